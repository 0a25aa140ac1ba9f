from __future__ import annotations

import math
from io import StringIO
from pathlib import Path
from random import Random

import pytest
from rich.console import Console

from icebench.bench.cli.calibrate import _AGAIN, _BEFORE, _SLOWED, CASES, Decisions, _keep, _print, _read, decide
from icebench.bench.cli.context import Context
from icebench.bench.cli.places import Places
from icebench.bench.cli.terminal import Terminal
from icebench.bench.errors import ConfigError
from icebench.bench.gate.decisions.time_verdict import Stand
from icebench.bench.gate.revisions.build import Revision, Unbuildable, planted
from icebench.bench.gate.revisions.pairs import Pairs
from tests.tidy.source import REPOSITORY
from tests.unit.bench.cli.test_main import exit_code
from tests.unit.bench.gate.revisions.test_pairs import Scripted, Seconds

OF = {"seed": 7, "engine": "e", "hardware": {"cores": 2}}


def drawn(seconds: float, random: Random) -> Seconds:
    return lambda _: seconds * math.exp(random.gauss(0, 0.02))


def test_each_kind_is_decided_as_often_as_asked_and_in_turn() -> None:
    order: list[str] = []

    def pairs_of(kind: str, number: int) -> Pairs:
        order.append(kind)
        random = Random(number)
        seconds = 1.3 if kind == "slow" else 1.0
        base, head = (Scripted(n, {c: drawn(s, random) for c in CASES}) for n, s in (("base", 1.0), ("head", seconds)))
        return Pairs(base=base, head=head, warehouse=Path("tables"), random=random)

    kept: list[int] = []
    found = decide({"equal": 3, "slow": 2, "none": 0}, pairs_of, lambda so_far: kept.append(len(so_far)))
    assert order == ["equal", "slow", "equal", "slow", "equal"]
    assert found["equal"].stands[Stand.PASS] == 3
    assert found["slow"].stands[Stand.REGRESSED] == 2
    assert 1.25 < min(found["slow"].ratios) <= max(found["slow"].ratios) < 1.35
    assert len(kept) == 5


def test_what_was_made_counts_and_keeps_its_numbers(tmp_path: Path) -> None:
    numbers: list[tuple[str, int]] = []

    def pairs_of(kind: str, number: int) -> Pairs:
        numbers.append((kind, number))
        random = Random(number)
        base, head = (Scripted(n, {c: drawn(1.0, random) for c in CASES}) for n in ("base", "head"))
        return Pairs(base=base, head=head, warehouse=Path("tables"), random=random)

    path = tmp_path / "calibration.json"
    first = decide({"equal": 2, "slow": 1}, pairs_of, lambda so_far: _keep(path, OF, so_far))
    numbers.clear()
    kept = _read(path, OF)
    assert kept == first
    found = decide({"equal": 3}, pairs_of, lambda so_far: _keep(path, OF, so_far), kept)
    assert numbers == [("equal", 2)]
    assert found["equal"].count == len(found["equal"].ratios) == len(found["equal"].seconds) == 3
    assert found["slow"] == first["slow"]
    assert _read(path, OF) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "nothing to resume"),
        ('{"seed": 8, "kinds": {}}', "has the decisions of another seed, 8"),
        ('{"seed": 7, "kinds": {}}', "has the decisions of another engine, None"),
        ('{"seed": 7, "engine": "e", "hardware": {"cores": 4}, "kinds": {}}', "of another hardware, {'cores': 4}"),
        ('{"seed": 7, "kinds": {"equal": {"stand": 1}}}', "is not what calibrate keeps"),
        ("[]", "is not what calibrate keeps"),
        ("{", "is not what calibrate keeps"),
    ],
)
def test_decisions_that_cannot_be_resumed_are_refused(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "calibration.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        _read(path, OF)


def test_a_kind_without_decisions_is_neither_kept_nor_shown(tmp_path: Path) -> None:
    """As where a call was stopped before the first of its kind."""
    own = Decisions(seconds=[60.0])
    own.stands[Stand.PASS] = 1
    found = {"equal": own, "+5 %": Decisions()}
    out = StringIO()
    context = Context(places=Places(tmp_path), terminal=Terminal(out=Console(file=out), err=Console(file=out)))
    _print(context, found)
    assert "equal" in out.getvalue()
    assert "+5 %" not in out.getvalue()
    _keep(tmp_path / "calibration.json", OF, found)
    assert _read(tmp_path / "calibration.json", OF) == {"equal": own}


def test_the_interval_is_exact() -> None:
    own = Decisions()
    own.stands[Stand.PASS] = 300
    assert own.interval == pytest.approx((0.0, 1 - 0.025 ** (1 / 300)))


def test_the_slowdown_can_be_planted_in_the_engine() -> None:
    text = (REPOSITORY / _SLOWED).read_text()
    assert text.count(_BEFORE) == 1
    compile(text.replace(_BEFORE, _AGAIN.format(share=10) + _BEFORE), _SLOWED, "exec")


def test_a_text_that_is_not_there_cannot_be_planted(tmp_path: Path) -> None:
    (tmp_path / "side").mkdir()
    (tmp_path / "side" / "file.py").write_text("x = 1\n")
    side = Revision(name="side", folder=tmp_path / "side", python="python")
    with pytest.raises(Unbuildable, match=r"slow: file.py has 'y = 1' 0 times"):
        planted(side, "slow", "file.py", ("y = 1", "y = 2"), cache=tmp_path)


def test_a_directory_that_is_no_checkout_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code("calibrate") == 4
    said = capsys.readouterr().err
    assert said == f"icebench: {tmp_path}: not a checkout of icebench; calibrate runs in one, and builds its engine\n"
