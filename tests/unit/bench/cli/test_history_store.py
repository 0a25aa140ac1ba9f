"""The history among asv's results: what is recorded is read again, asv reads it too, and its site plots it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from asv.results import Results
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icebench.bench.asv_run import ROOT
from icebench.bench.cli.history_store import describe_history, read_history, record_revision
from icebench.bench.errors import ConfigError
from icebench.bench.gate.decisions.history import Entry, Measured

CASES = ("commit/append", "scan/it's")
COMMITTED = ROOT / "results" / "asv" / "results"


def entry(number: int, *, ratio: float = 1.0, **counters: int) -> Entry:
    return Entry(
        revision=f"{number:08x}" * 5,
        number=number,
        date="2026-01-01T00:00:00+00:00",
        subject=f"é {number}",
        reference="f" * 40,
        pairs=3,
        environment={"python": "3.11", "numpy": "2.4.6", "cases": "0123"},
        cases={
            CASES[0]: Measured(error="Gone: no such thing"),
            CASES[1]: Measured(ratio=ratio, samples=(ratio, 2 * ratio, ratio), counters=counters),
        },
    )


def path_of(results: Path, recorded: Entry) -> Path:
    return results / "history" / f"{recorded.revision[:8]}-beside-{recorded.reference[:8]}.json"


def benchmarks(results: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((results / "benchmarks.json").read_text(encoding="utf-8"))
    return found


counters = st.dictionaries(
    st.sampled_from(["files_planned", "entries_decoded", "rows_returned"]), st.integers(0, 2**60)
)
measured = st.builds(
    Measured,
    ratio=st.floats(1e-6, 1e6),
    samples=st.lists(st.floats(1e-6, 1e6), max_size=3).map(tuple),
    counters=counters,
) | st.builds(Measured, error=st.text(min_size=1))
recorded = st.builds(
    Entry,
    revision=st.text("0123456789abcdef", min_size=40, max_size=40),
    number=st.integers(1, 9999),
    date=st.datetimes().map(lambda moment: moment.replace(microsecond=0).isoformat() + "+00:00"),
    subject=st.text(),
    reference=st.text("0123456789abcdef", min_size=40, max_size=40),
    pairs=st.integers(1, 99),
    environment=st.dictionaries(st.sampled_from(["python", "numpy", "cpu"]), st.text()),
    cases=st.dictionaries(st.text(min_size=1), measured, min_size=1, max_size=3),
) | st.builds(replace, st.just(entry(1)), cases=st.just({}), error=st.text(min_size=1))


@given(st.lists(recorded, max_size=3, unique_by=lambda one: one.revision[:8]))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_recorded_is_read_again_and_survives_asv(tmp_path: Path, entries: list[Entry]) -> None:
    for name in ("results", "kept"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    for one in entries:
        record_revision(tmp_path / "results", one)
    wanted = sorted(entries, key=lambda one: (one.number, one.revision, one.reference))
    assert read_history(tmp_path / "results") == wanted
    for one in entries:
        Results.load(str(path_of(tmp_path / "results", one)), machine_name="history").save(str(tmp_path / "kept"))
    assert read_history(tmp_path / "kept") == wanted


def test_a_revision_that_is_measured_again_replaces_its_figures_beside_the_same_reference(tmp_path: Path) -> None:
    beside = replace(entry(1, ratio=9.0), reference="e" * 40)
    for one in (entry(1), entry(2), beside, entry(1, ratio=3.0)):
        record_revision(tmp_path, one)
    assert read_history(tmp_path) == [beside, entry(1, ratio=3.0), entry(2)]


def test_asv_is_given_what_is_followed_and_keeps_what_is_not(tmp_path: Path) -> None:
    record_revision(tmp_path, entry(1, files_planned=3, entries_skipped_by_metrics=5))
    other = {"name": "cases.Cases.time_case", "params": [], "version": "2"}
    listed = {
        "version": 2,
        "cases.Cases.time_case": other,
        "history.track_gone": {**other, "name": "history.track_gone"},
    }
    (tmp_path / "benchmarks.json").write_text(json.dumps(listed), encoding="utf-8")
    describe_history(tmp_path)
    found = benchmarks(tmp_path)
    assert found.pop("version") == 2
    assert list(found) == ["cases.Cases.time_case", "history.time_ratio", "history.track_files_planned"]
    assert found["cases.Cases.time_case"] == other
    assert {tuple(one["params"][0]) for name, one in found.items() if name.startswith("history.")} == {
        ("'commit/append'", '"scan/it\'s"')
    }
    assert read_history(tmp_path)[0].cases[CASES[1]].counters == {"files_planned": 3, "entries_skipped_by_metrics": 5}


Damage = Callable[[dict[str, Any]], object]
DAMAGE: dict[str, Damage] = {
    "another version": lambda file: file.update(version=3),
    "another machine": lambda file: file["params"].update(machine="box"),
    "no reference": lambda file: file["params"].pop("reference"),
    "nothing of ours": lambda file: file["requirements"].pop("icebench"),
    "a number as text": lambda file: file["requirements"]["icebench"].update(number="1"),
    "a ratio as text": lambda file: file["results"]["history.time_ratio"][0].__setitem__(1, "fast"),
    "a ratio of nothing": lambda file: file["results"]["history.time_ratio"][0].__setitem__(1, 0.0),
    "no ratio and no error": lambda file: file["results"]["history.time_ratio"][0].__setitem__(1, None),
    "no cases and no error": lambda file: file["results"].pop("history.time_ratio"),
    "half a file": lambda file: file["results"]["history.track_files"][0].__setitem__(1, 0.5),
    "params of something else": lambda file: file["results"]["history.time_ratio"].__setitem__(1, [["a"], ["b"]]),
    "a date of text": lambda file: file.update(date="today"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_named(damage: str, tmp_path: Path) -> None:
    for one in (entry(1, files=2), entry(2, files=2)):
        record_revision(tmp_path, one)
    path = path_of(tmp_path, entry(2))
    file = json.loads(path.read_text(encoding="utf-8"))
    DAMAGE[damage](file)
    path.write_text(json.dumps(file), encoding="utf-8")
    with pytest.raises(ConfigError, match="damaged: ") as raised:
        read_history(tmp_path)
    assert str(raised.value).startswith(f"{path}: damaged: ")


@pytest.mark.parametrize("length", [0, 1, 300, -1])
def test_a_file_that_was_cut_is_named(length: int, tmp_path: Path) -> None:
    record_revision(tmp_path, entry(1))
    path = path_of(tmp_path, entry(1))
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ConfigError, match="damaged: "):
        read_history(tmp_path)


def test_a_revision_whose_file_has_another_is_refused(tmp_path: Path) -> None:
    record_revision(tmp_path, entry(1))
    alike = replace(entry(2), revision=entry(1).revision[:8] + "0" * 32)
    for one in (alike, replace(entry(1), reference="f" * 39 + "0")):
        with pytest.raises(ConfigError, match=f"is not of {one.revision} beside {one.reference}"):
            record_revision(tmp_path, one)
    assert read_history(tmp_path) == [entry(1)]


def test_revisions_that_are_recorded_at_the_same_time_are_all_there(tmp_path: Path) -> None:
    several = [replace(entry(n), cases={f"case/{n}": Measured(ratio=1.0)}) for n in range(1, 9)]
    threads = [Thread(target=record_revision, args=(tmp_path, one)) for one in several]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_history(tmp_path) == several
    assert len(benchmarks(tmp_path)["history.time_ratio"]["params"][0]) == 8


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_full_disk_leaves_what_was_recorded(failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the writes of a record (the machine, the revision, the list of benchmarks) each fails once."""
    record_revision(tmp_path, entry(1))
    synced, count = os.fsync, iter(range(1, 9))

    def fails(descriptor: int) -> None:
        if next(count) == failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        synced(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fails)
        with pytest.raises(OSError, match="No space left"):
            record_revision(tmp_path, entry(2))
    assert read_history(tmp_path) == [entry(1), entry(2)][: 1 + (failing == 3)]
    assert "history.time_ratio" in benchmarks(tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.suffix == ".part"]


def published(results: Path, repository: Path, folder: Path) -> Path:
    """The site that `asv publish` makes with our configuration."""
    folder.mkdir()
    lines = (ROOT / "asv.conf.json").read_text(encoding="utf-8").splitlines()
    given = json.loads("\n".join(line for line in lines if not line.strip().startswith("//")))
    given |= {"repo": str(repository), "results_dir": str(results), "html_dir": str(folder / "html")}
    (folder / "asv.conf.json").write_text(json.dumps(given), encoding="utf-8")
    command = [sys.executable, "-m", "asv", "--config", str(folder / "asv.conf.json"), "publish", "--no-pull"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "html"


def graph(site: Path, benchmark: str, reference: str = "f" * 40) -> list[list[Any]]:
    """Revision by its place in the repository's log, and the values of its cases."""
    (path,) = (site / "graphs").rglob(f"reference-{reference}/{benchmark}.json")
    found: list[list[Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def regressions(site: Path) -> dict[str, list[list[Any]]]:
    """Of each series that became worse: place before or None for the commit before, place, value before and after."""
    found = json.loads((site / "regressions.json").read_text(encoding="utf-8"))["regressions"]
    return {one[0]: one[6] for one in found}


def commits(repository: Path, count: int) -> Sequence[str]:
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    for number in range(count):
        day = {**os.environ, "GIT_COMMITTER_DATE": f"2026-01-{number + 1:02d}T00:00:00Z"}
        command = [*git, "commit", "--quiet", "--allow-empty", "--message", f"change {number}"]
        subprocess.run(command, check=True, env=day)
    listed = subprocess.run([*git, "rev-list", "--reverse", "HEAD"], check=True, capture_output=True, text=True)
    return listed.stdout.split()


def test_asv_plots_what_is_recorded_and_finds_planted_steps(tmp_path: Path) -> None:
    *revisions, last = commits(tmp_path / "repository", 17)
    noise = [0.01, -0.02, 0.0, 0.02, -0.01, 0.01, -0.01, 0.0] * 2
    for number, revision in enumerate(revisions):
        late = number >= 9
        one = entry(
            number, ratio=(1.3 if late else 1.0) + noise[number], files_planned=7 if late else 5, rows_returned=1
        )
        record_revision(tmp_path / "results", replace(one, revision=revision))
    record_revision(tmp_path / "results", replace(entry(16, ratio=9.0), revision=last, reference="e" * 40))
    site = published(tmp_path / "results", tmp_path / "repository", tmp_path / "asv")
    points = graph(site, "history.time_ratio")
    assert [place for place, _ in points] == list(range(16))
    assert [values for _, values in points] == [
        [None, (1.3 if number >= 9 else 1.0) + noise[number]] for number in range(16)
    ]
    assert [values[1] for _, values in graph(site, "history.track_files_planned")] == [5] * 9 + [7] * 7
    found = regressions(site)
    assert set(found) == {'history.time_ratio("scan/it\'s")', 'history.track_files_planned("scan/it\'s")'}
    assert found['history.track_files_planned("scan/it\'s")'] == [[None, 9, 5, 7]]
    ((before, at, low, high),) = found['history.time_ratio("scan/it\'s")']
    assert (before, at) == (None, 9)
    assert (low, high) == pytest.approx((1.0, 1.3), abs=0.01)


def test_asv_plots_the_revisions_that_are_committed(tmp_path: Path) -> None:
    """As in a fresh clone: asv itself, the files as they are."""
    entries = read_history(COMMITTED)
    assert len(entries) >= 30
    known = ["git", "-C", str(ROOT), "cat-file", "-e", entries[0].revision]
    if subprocess.run(known, capture_output=True, check=False).returncode:
        pytest.skip("the checkout has no history of commits")
    results = tmp_path / "results"
    results.mkdir()
    shutil.copytree(COMMITTED / "history", results / "history")
    shutil.copy(COMMITTED / "benchmarks.json", results)
    site = published(results, ROOT, tmp_path / "asv")
    for reference in {entry.reference for entry in entries}:
        own = [entry for entry in entries if entry.reference == reference]
        timed = sum(any(case.ratio for case in one.cases.values()) for one in own)
        points = graph(site, "history.time_ratio", reference)
        assert sum(any(values) for _, values in points) == timed > 0
    assert "history.track_parquet_values_decoded('scan/large/decimals')" in regressions(site)
    describe_history(results)
    assert benchmarks(results) == benchmarks(COMMITTED)
