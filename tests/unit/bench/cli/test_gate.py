from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from icebench.bench.cli.gate import CasesDiffer, check, move_baseline
from icebench.bench.errors import ConfigError
from icebench.bench.gate.decisions.baseline import Baseline, CaseResult, decode, encode


def result(checksum: str = "c", **counters: int) -> CaseResult:
    return CaseResult(counters=counters, checksum=checksum)


def written(tmp_path: Path, **cases: CaseResult) -> Path:
    path = tmp_path / "baselines" / "counters.json"
    path.parent.mkdir()
    path.write_text(encode(Baseline(cases=cases)), encoding="utf-8")
    return path


def compared(path: Path, now: Mapping[str, CaseResult]) -> tuple[int, str]:
    out = StringIO()
    return check(path, lambda: Baseline(cases=now), Console(file=out, width=200)), out.getvalue()


def moved(path: Path, *runs: Mapping[str, CaseResult], allow: tuple[str, ...] = ()) -> tuple[int, str]:
    out = StringIO()
    return move_baseline(
        path, allow, Console(file=out, width=200), lambda: [Baseline(cases=run) for run in runs]
    ), out.getvalue()


def test_equal_counts_pass(tmp_path: Path) -> None:
    code, text = compared(written(tmp_path, scan=result(files_planned=1)), {"scan": result(files_planned=1)})
    assert code == 0
    assert text.startswith("pass: 1 cases, 1 counters compared with ")


def test_an_increase_fails_with_case_and_counter(tmp_path: Path) -> None:
    code, text = compared(written(tmp_path, scan=result(files_planned=1)), {"scan": result(files_planned=2)})
    assert code == 1
    assert "scan: files_planned increased 1 -> 2 (+100.0%)" in text


def test_a_decrease_passes_with_the_hint_to_accept_it(tmp_path: Path) -> None:
    code, text = compared(written(tmp_path, scan=result(files_planned=2)), {"scan": result(files_planned=1)})
    assert code == 0
    assert "'icebench gate --accept' keeps it so" in text


@pytest.mark.parametrize("now", [{}, {"new": result(files_planned=1)}])
def test_what_the_baseline_does_not_cover_is_a_configuration_fault(tmp_path: Path, now: dict[str, CaseResult]) -> None:
    assert compared(written(tmp_path, scan=result(files_planned=2)), now)[0] == 4


def test_without_a_baseline_the_message_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'icebench gate --accept' makes the first one"):
        compared(tmp_path / "none.json", {"scan": result()})


def test_a_damaged_baseline_is_named_with_the_place_inside(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text('{"format": 2, "environment": {}, "cases": {"a": 3}}', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"b\.json: cases\.a: an object is expected, found 3; restore it"):
        compared(path, {})


def test_the_first_baseline_is_made(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "counters.json"
    now = {"scan": result(files_planned=1)}
    assert moved(path, now, now)[0] == 0
    assert decode(path.read_text(encoding="utf-8")).cases == now
    assert "is up to date" in moved(path, now, now)[1]


def test_the_baseline_goes_down_freely_and_up_only_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, scan=result(files_planned=2, rows_decoded=5))
    before = path.read_text(encoding="utf-8")
    worse = {"scan": result(files_planned=3, rows_decoded=4)}
    code, text = moved(path, worse)
    assert code == 1
    assert "icebench gate --accept --allow scan:files_planned" in text
    assert path.read_text(encoding="utf-8") == before
    assert moved(path, worse, allow=("scan:files_planned",))[0] == 0
    assert decode(path.read_text(encoding="utf-8")).cases == worse


def test_counts_that_differ_between_processes_are_not_admitted(tmp_path: Path) -> None:
    path = tmp_path / "counters.json"
    with pytest.raises(CasesDiffer, match="scan:files_planned: differs between runs with different hash seeds"):
        moved(path, {"scan": result(files_planned=1)}, {"scan": result(files_planned=2)})
    assert not path.exists()
