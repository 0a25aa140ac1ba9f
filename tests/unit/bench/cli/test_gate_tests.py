"""`icebench.pytest` in the suites of others: limits, baselines, pytest-benchmark and pytest-xdist, on a real table."""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
import icebench.engine
from tests.tidy.source import REPOSITORY

pytest_plugins = ["pytester"]

SCHEMA = pa.schema([("day", pa.int64()), ("kind", pa.string())])
HEAD = """
import icebench
import pytest

events = icebench.load_table("wh/db/events")
"""
ONE_SCAN = """
def test_early(iceberg_gate):
    iceberg_gate.check(events.scan("day < 12"))
"""
TWO_TESTS = """
def test_early(iceberg_gate):
    iceberg_gate.check(events.scan("day < 12"))
    iceberg_gate.check(events.scan("day < 25"), "later")

@pytest.mark.parametrize("day", [5, 35])
def test_day(iceberg_gate, day):
    iceberg_gate.check(events.scan(f"day = {day}"))
"""


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """Loads what the suites load: when a suite ends, pytest forgets the modules that it loaded first."""
    import_module("icebench.bench.cli.gate_tests")
    for module in pkgutil.walk_packages(icebench.engine.__path__, "icebench.engine."):
        import_module(module.name)


def rows(*days: int) -> pa.Table:
    return pa.table({"day": list(days), "kind": ["a"] * len(days)}, SCHEMA)


@pytest.fixture
def table(pytester: pytest.Pytester) -> icebench.Table:
    """Four files of ten days each, below the directory of the suite, each of its own commit."""
    table = icebench.load_catalog(str(pytester.path / "wh")).create_table("db.events", SCHEMA)
    for start in range(0, 40, 10):
        table.append(rows(*range(start, start + 10)))
    return table


def write(pytester: pytest.Pytester, text: str) -> Path:
    return pytester.makepyfile(test_events=HEAD + text)


def baseline(pytester: pytest.Pytester) -> dict[str, dict[str, int]]:
    path = pytester.path / "test_events.icebench.json"
    if not path.exists():
        return {}
    return {name: case["counters"] for name, case in json.loads(path.read_text())["cases"].items()}


def failures(result: pytest.RunResult) -> list[str]:
    """What the assertions say, line by line."""
    return [line[1:].strip() for line in result.outlines if line.startswith("E ")]


def test_limits_pass_up_to_what_is_counted(pytester: pytest.Pytester, table: icebench.Table) -> None:
    sizes = [row["file_size_in_bytes"] for row in table.inspect.files().to_pylist()]
    plan = f"files=2, bytes={sum(sizes[:2])}, delete_files=0, manifests=4, requests=5"
    write(pytester, f"def test_it(iceberg_gate):\n    iceberg_gate.check(events.scan('day < 12'), {plan})\n")
    pytester.runpytest().assert_outcomes(passed=1)
    assert not baseline(pytester)


@pytest.mark.parametrize(
    ("limit", "counted"), [("files", 2), ("bytes", None), ("manifests", 4), ("requests", 5), ("delete_files", 1)]
)
def test_each_limit_fails_one_below(
    pytester: pytest.Pytester, table: icebench.Table, limit: str, counted: int | None
) -> None:
    if limit == "delete_files":
        table.delete("day = 3", mode="merge-on-read")
    if counted is None:
        counted = table.scan("day < 12").plan().size_in_bytes
    call = f"iceberg_gate.check(events.scan('day < 12'), {limit}={counted - 1})"
    write(pytester, f"def test_it(iceberg_gate):\n    {call}\n")
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    name = {"files": "files_planned", "bytes": "bytes_planned", "delete_files": "delete_files_planned"}.get(
        limit, limit
    )
    name = name.replace("manifests", "manifests_decoded")
    assert failures(result)[0] == f"AssertionError: {name}: {counted:,}, at most {counted - 1:,} expected"
    result.stdout.fnmatch_lines([f">       {call.replace('[', '[[]')}"])  # the trace ends in the test


def test_a_failure_says_which_stages_skipped_nothing_and_why_files_are_planned(
    pytester: pytest.Pytester, table: icebench.Table
) -> None:
    write(pytester, "def test_it(iceberg_gate):\n    iceberg_gate.check(events.scan('day < 12'), files=1)\n")
    text = "\n".join(failures(pytester.runpytest()))
    assert "Scan(events, filter: day < 12, 2 of 4 files" in text
    assert re.search(r"^Stages that skip nothing: .*entries by partition.*manifests by summary$", text, re.MULTILINE)
    assert "entries: 2 of 4; skipped 2 by column bounds and counts" in text
    assert "rows may match; left to test: day < 12" in text
    assert "not day < 12: day is 30 to 39" in text


def test_counts_do_not_depend_on_earlier_plans(pytester: pytest.Pytester, table: icebench.Table) -> None:
    write(
        pytester,
        "def test_it(iceberg_gate):\n"
        "    scan = events.scan('day < 12')\n"
        "    first = iceberg_gate.check(scan, files=2)\n"
        "    scan.to_arrow()\n"
        "    again = iceberg_gate.check(scan, files=2)\n"
        "    assert first == again\n"
        "    assert (again.files, again.delete_files, again.manifests, again.requests) == (2, 0, 4, 5)\n"
        "    assert again.bytes == scan.plan().size_in_bytes\n",
    )
    pytester.runpytest().assert_outcomes(passed=1)


def test_a_baseline_is_written_when_it_is_asked_for_and_then_compared(
    pytester: pytest.Pytester, table: icebench.Table
) -> None:
    write(pytester, TWO_TESTS)
    result = pytester.runpytest()
    result.assert_outcomes(failed=3)
    expected = "test_events.icebench.json has no test_early: pytest --icebench-accept writes it, to be committed"
    assert failures(result)[0] == f"AssertionError: {expected}"
    assert not baseline(pytester)
    result = pytester.runpytest("--icebench-accept")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["Accepted:", "test_events.icebench.json: test_day[[]35[]] is new"])
    files = {name: counters["files_planned"] for name, counters in baseline(pytester).items()}
    assert files == {"test_early": 2, "test_early/later": 3, "test_day[5]": 1, "test_day[35]": 1}
    pytester.runpytest().assert_outcomes(passed=3)
    table.append(rows(3, 33))
    result = pytester.runpytest()
    result.assert_outcomes(failed=3)
    text = "\n".join(failures(result))
    assert "files_planned: 3, 2 expected (+50.0%)" in text
    assert "Expected by test_events.icebench.json; if this is wanted: pytest --icebench-accept" in text
    assert "No stage skips less than before: the table has more files" in text
    pytester.runpytest("--icebench-accept").assert_outcomes(passed=3)
    assert baseline(pytester)["test_early"]["files_planned"] == 3
    pytester.runpytest().assert_outcomes(passed=3)


def test_the_stage_that_lets_files_through_is_named(pytester: pytest.Pytester, table: icebench.Table) -> None:
    path = write(pytester, ONE_SCAN)
    pytester.runpytest("--icebench-accept")
    path.write_text(path.read_text().replace("day < 12", "day < 12 or kind = 'a'"))
    text = "\n".join(failures(pytester.runpytest()))
    assert "files_planned: 4, 2 expected (+100.0%)" in text
    assert "Stage that skips less: entries by metrics, 0; 2 before" in text


def test_less_than_the_baseline_passes_and_is_said(pytester: pytest.Pytester, table: icebench.Table) -> None:
    path = write(pytester, ONE_SCAN)
    pytester.runpytest("--icebench-accept")
    path.write_text(path.read_text().replace("day < 12", "day < 2"))
    result = pytester.runpytest()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "Less than the baseline; pytest --icebench-accept keeps it so:",
            "test_early: files_planned decreased 2 -> 1 (-50.0%)",
        ]
    )
    assert baseline(pytester)["test_early"]["files_planned"] == 2


@pytest.mark.parametrize(("share", "passes"), [(0.97, True), (0.9, False)])
def test_bytes_have_the_tolerance_of_the_gate(
    pytester: pytest.Pytester, table: icebench.Table, share: float, passes: bool
) -> None:
    table.overwrite(rows(*range(5_000)))  # bytes enough for the slack of 64 to be small
    write(pytester, ONE_SCAN)
    pytester.runpytest("--icebench-accept")
    path = pytester.path / "test_events.icebench.json"
    counted = baseline(pytester)["test_early"]["bytes_planned"]
    path.write_text(path.read_text().replace(str(counted), str(int(counted * share))))
    pytester.runpytest().assert_outcomes(passed=int(passes), failed=int(not passes))


def test_accepting_keeps_what_did_not_run_and_removes_what_is_gone(
    pytester: pytest.Pytester, table: icebench.Table
) -> None:
    path = write(pytester, TWO_TESTS)
    pytester.runpytest("--icebench-accept")
    everything = set(baseline(pytester))
    pytester.runpytest("--icebench-accept", "-k", "early").assert_outcomes(passed=1, deselected=2)
    pytester.runpytest("--icebench-accept", "test_events.py::test_day").assert_outcomes(passed=2)
    assert set(baseline(pytester)) == everything
    path.write_text(path.read_text().replace(', "later"', ', "last"').replace("[5, 35]", "[35]"))
    result = pytester.runpytest("--icebench-accept")
    result.stdout.fnmatch_lines(["test_events.icebench.json: test_day[[]5[]] is removed"])
    assert set(baseline(pytester)) == {"test_early", "test_early/last", "test_day[35]"}
    path.write_text(HEAD + "def test_nothing():\n    pass\n")
    pytester.runpytest("--icebench-accept")
    assert not (pytester.path / "test_events.icebench.json").exists()


def test_a_test_that_fails_keeps_its_baseline(pytester: pytest.Pytester, table: icebench.Table) -> None:
    path = write(pytester, ONE_SCAN)
    pytester.runpytest("--icebench-accept")
    before = baseline(pytester)
    path.write_text(path.read_text().replace("day < 12", "day < 25") + "\n    assert False\n")
    pytester.runpytest("--icebench-accept").assert_outcomes(failed=1)
    assert baseline(pytester) == before


def test_names_of_scans_in_a_test_differ(pytester: pytest.Pytester, table: icebench.Table) -> None:
    write(pytester, ONE_SCAN.replace('12"))', "12\"), 'x')\n    iceberg_gate.check(events.scan(), 'x')"))
    result = pytester.runpytest("--icebench-accept")
    assert failures(result)[0] == "ValueError: this test has checked a scan named 'x'; give another name"


def test_what_is_no_scan_is_refused(pytester: pytest.Pytester, table: icebench.Table) -> None:
    write(pytester, "def test_it(iceberg_gate):\n    iceberg_gate.check(events)\n")
    assert "a scan of `icebench.Table.scan` is expected, not Table" in failures(pytester.runpytest())[0]


def test_a_damaged_baseline_is_reported_with_its_place(pytester: pytest.Pytester, table: icebench.Table) -> None:
    write(pytester, ONE_SCAN)
    (pytester.path / "test_events.icebench.json").write_text('{"format": 2, "cases": {"test_early": 1}}')
    line = [line for line in failures(pytester.runpytest()) if "ConfigError" in line][-1]
    assert "test_events.icebench.json" in line
    assert "restore it from version control" in line


@pytest.mark.parametrize("options", [(), ("--benchmark-disable",)])
def test_benchmarks_carry_the_counts(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, table: icebench.Table, options: Sequence[str]
) -> None:
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"):  # of this session; else nothing is measured
        monkeypatch.delenv(name, raising=False)
    write(
        pytester,
        "def test_early(iceberg_gate, benchmark):\n"
        "    scan = events.scan('day < 12')\n"
        "    iceberg_gate.check(scan, files=2)\n"
        "    iceberg_gate.check(events.scan('day < 2'), 'first', files=1)\n"
        "    assert benchmark.pedantic(scan.count, rounds=2) == 12\n"
        "    assert benchmark.extra_info['first/files_planned'] == 1\n",
    )
    pytester.runpytest("--benchmark-save=x", *options).assert_outcomes(passed=1)
    saved = list(pytester.path.glob(".benchmarks/*/*_x.json"))
    assert len(saved) == (0 if options else 1)
    for path in saved:
        [found] = json.loads(path.read_text())["benchmarks"]
        assert found["extra_info"]["files_planned"] == 2
        assert found["extra_info"]["first/files_planned"] == 1
        assert found["extra_info"]["entries_skipped_by_metrics"] == 2


@pytest.mark.slow
def test_workers_of_xdist_write_one_baseline(pytester: pytest.Pytester, table: icebench.Table) -> None:
    path = write(pytester, TWO_TESTS)
    pytester.runpytest("-n", "2", "--icebench-accept").assert_outcomes(passed=3)
    side_by_side = baseline(pytester)
    pytester.runpytest("--icebench-accept").assert_outcomes(passed=3)
    assert baseline(pytester) == side_by_side
    assert len(side_by_side) == 4
    path.write_text(path.read_text().replace("[5, 35]", "[35]").replace("day < 25", "day < 15"))
    result = pytester.runpytest("-n", "2")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["test_early/later: files_planned decreased 3 -> 2 (-33.3%)"])
    pytester.runpytest("-n", "2", "--icebench-accept").assert_outcomes(passed=2)
    assert set(baseline(pytester)) == {"test_early", "test_early/later", "test_day[35]"}


def test_a_suite_that_gates_nothing_loads_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it():
            loaded = {name for name in sys.modules if name.partition(".")[0] in {"icebench", "numpy", "pyarrow"}}
            assert loaded == {"icebench", "icebench.pytest"}

        def test_the_engine_is_as_it_is_elsewhere():
            import icebench.engine.errors
            assert "_pytest" not in type(icebench.engine.errors.__loader__).__module__
        """
    )
    pytester.runpytest_subprocess("-p", "no:randomly").assert_outcomes(passed=2)


def test_the_example_of_the_guide_runs(pytester: pytest.Pytester, table: icebench.Table) -> None:
    page = (REPOSITORY / "docs" / "guide" / "ci.md").read_text()
    [example] = [text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "iceberg_gate" in text]
    pytester.makepyfile(test_events=example)
    result = pytester.runpytest("--icebench-accept")
    result.assert_outcomes(passed=2)
    assert set(baseline(pytester)) == {"test_two_days"}
    pytester.runpytest().assert_outcomes(passed=2)
