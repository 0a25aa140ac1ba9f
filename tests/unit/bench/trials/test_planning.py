from dataclasses import replace

import pytest

from icebench.bench.engines.engine import Ability
from icebench.bench.errors import DatasetFailed
from icebench.bench.execution.run_file import RunWriter
from icebench.bench.records.case import Case
from icebench.bench.trials.planning import Planning, TableFiles
from icebench.bench.truth.manifests import FileEntry
from icebench.bench.truth.sql import Disputed
from tests.unit.bench.execution.scripted import Clock, ScriptedEngine, recorded

PATHS = ["/t/a", "/t/b", "/t/c"]
FILES = {
    path: FileEntry(content=0, path=path, format="parquet", records=records, size_bytes=1, partition={}, spec_id=0)
    for records, path in enumerate(PATHS, 1)
}
PLANNING = Planning(
    case=Case(workload="w", layout="small", measurement="planning"),
    location="m",
    filters={"some": "x = 1"},
    truth=TableFiles(FILES, lambda name: {"some": {"/t/a": 1}}[name]),
)


def test_cold_plans_have_a_fresh_handle_and_warm_ones_do_not(writer: RunWriter) -> None:
    clock = Clock()
    engine = ScriptedEngine(
        "one", clock, plans={("m", None): PATHS, ("m", "x = 1"): PATHS[:1]}, seconds={"m": 2.0}, warm_seconds=0.5
    )
    made = recorded(writer, clock, engine)
    made.measure(PLANNING)
    for case in ("all", "some"):
        assert made.samples("one", case, "latency_cold") == [2.0] * 3
        assert made.samples("one", case, "latency_warm") == [0.5] * 3
    # Of each case: once for checking, then one handle for every cold run, warm-ups too.
    assert engine.opened == 2 * (1 + 4)
    assert not made.failures
    checksums = {record.case: record.checksum for record in made.records}
    assert checksums["all"] != checksums["some"]
    assert {r.detail["filter"] for r in made.records if r.case == "some"} == {"x = 1"}
    assert {r.counters["files_planned"] for r in made.records if r.case == "some"} == {1}


def test_without_a_filter_every_file_is_planned(writer: RunWriter) -> None:
    clock = Clock()
    loses = ScriptedEngine("loses", clock, plans={("m", None): PATHS[1:], ("m", "x = 1"): PATHS})
    whole = ScriptedEngine("whole", clock, plans={("m", None): PATHS, ("m", "x = 1"): PATHS})
    made = recorded(writer, clock, loses, whole)
    made.measure(PLANNING)
    (failure,) = made.failures
    assert (failure.kind, failure.engine, failure.case) == ("WrongAnswer", "loses", "all")
    assert failure.message == "without a filter, does not plan 1 file (a) of the table"
    assert {r.engine for r in made.records if r.case == "all"} == {"whole"}
    assert {r.engine for r in made.records if r.case == "some"} == {"whole", "loses"}


def test_a_plan_that_loses_rows_is_not_timed(writer: RunWriter) -> None:
    clock = Clock()
    loses = ScriptedEngine("loses", clock, plans={("m", None): PATHS, ("m", "x = 1"): PATHS[1:]})
    whole = ScriptedEngine("whole", clock, plans={("m", None): PATHS, ("m", "x = 1"): PATHS[:1]})
    made = recorded(writer, clock, loses, whole)
    made.measure(PLANNING)
    (failure,) = made.failures
    assert (failure.kind, failure.engine, failure.case) == ("WrongAnswer", "loses", "some")
    assert failure.message == "does not plan 1 file (a) with 1 matching rows: its scans lose rows"
    assert {r.engine for r in made.records if r.case == "some"} == {"whole"}
    assert {r.engine for r in made.records if r.case == "all"} == {"whole", "loses"}


@pytest.mark.parametrize("doubt", [Disputed("two evaluators differ"), DatasetFailed("file a cannot be read")])
def test_where_nobody_knows_what_a_plan_must_have_none_is_wrong(writer: RunWriter, doubt: Exception) -> None:
    clock = Clock()

    def matching(_: str) -> dict[str, int]:
        raise doubt

    one = ScriptedEngine("one", clock, plans={("m", None): PATHS, ("m", "x = 1"): PATHS[1:]})
    made = recorded(writer, clock, one)
    made.measure(replace(PLANNING, truth=TableFiles(FILES, matching)))
    assert not made.failures
    assert {r.case for r in made.records} == {"all", "some"}
    assert [(s.engine, s.case, s.reason) for s in made.skipped] == [
        ("oracle", "some", f"plans are not searched for files that they lack: {doubt}")
    ]


def test_an_engine_that_raises_is_a_failure_and_the_others_go_on(writer: RunWriter) -> None:
    clock = Clock()
    broken = ScriptedEngine("broken", clock, plans={("m", None): OSError("no\n  disk"), ("m", "x = 1"): PATHS})
    whole = ScriptedEngine("whole", clock, plans={("m", None): PATHS, ("m", "x = 1"): PATHS})
    made = recorded(writer, clock, broken, whole)
    made.measure(PLANNING)
    assert [(f.engine, f.kind, f.message) for f in made.failures] == [("broken", "OSError", "no disk")]
    assert made.samples("whole", "all", "latency_cold")


def test_an_engine_that_cannot_plan_is_skipped_with_the_reason(writer: RunWriter) -> None:
    clock = Clock()
    scans = ScriptedEngine("scans", clock, abilities=frozenset({Ability.SCAN}))
    made = recorded(writer, clock, scans)
    made.measure(PLANNING)
    assert [(s.engine, s.measurement, s.reason) for s in made.skipped] == [
        ("scans", "planning", "scans offers no planning")
    ]


@pytest.mark.parametrize("warm", [0.1, 0.9])
def test_plans_of_two_engines_are_pairs(writer: RunWriter, warm: float) -> None:
    clock = Clock()
    plans = {("m", None): PATHS, ("m", "x = 1"): PATHS}
    one = ScriptedEngine("one", clock, plans=plans, warm_seconds=warm)
    two = ScriptedEngine("two", clock, plans=plans, warm_seconds=2 * warm)
    made = recorded(writer, clock, one, two)
    made.measure(PLANNING)
    pairs = zip(made.samples("one", "all", "latency_warm"), made.samples("two", "all", "latency_warm"), strict=True)
    assert all(second == pytest.approx(2 * first) for first, second in pairs)
