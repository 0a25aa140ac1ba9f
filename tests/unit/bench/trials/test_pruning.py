from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.execution.run_file import RunWriter
from icebench.bench.records.case import Case
from icebench.bench.trials.pruning import Pruning
from icebench.bench.truth.effectiveness import effectiveness
from icebench.bench.truth.manifests import live_files
from icebench.bench.truth.metadata import load_table_json
from icebench.bench.truth.rows import MatchingRows
from icebench.bench.truth.sql import Disputed
from tests.unit.bench.execution.scripted import Clock, ScriptedEngine, recorded, small_table

SIZES = {"a": 10, "b": 20, "c": 30, "d": 40}
FILTER = "id >= 150 and id < 250"  # the second and the third file


def test_known_figures() -> None:
    found = effectiveness(SIZES, {"a", "b", "c"}, {"b", "d"})
    assert found.recall == 0.5
    assert found.false_positive_rate == 1.0
    assert found.wasted_files_share == pytest.approx(2 / 3)
    assert (found.files_planned_share, found.files_matching_share) == (0.75, 0.5)
    assert found.bytes_planned_share == 0.6


@given(st.sets(st.sampled_from(sorted(SIZES))), st.sets(st.sampled_from(sorted(SIZES))))
def test_laws_of_effectiveness(planned: set[str], matching: set[str]) -> None:
    found = effectiveness(SIZES, planned, matching)
    assert all(0 <= value <= 1 for value in vars(found).values())
    assert (found.recall == 1) == (matching <= planned)
    assert (found.false_positive_rate == 0) == (planned <= matching)
    assert (found.wasted_files_share == 0) == (planned <= matching)


def test_nothing_at_all() -> None:
    found = effectiveness({}, set(), set())
    assert (found.recall, found.false_positive_rate, found.files_planned_share) == (1.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_table(tmp_path_factory.mktemp("tables"))


def truth_of(location: str) -> tuple[MatchingRows, list[str]]:
    table = load_table_json(location)
    files = sorted(live_files(table), key=lambda file: int.from_bytes(file.lower_bounds[1], "little"))
    truth = MatchingRows(table, files)
    return truth, list(truth.files)


def pruning(location: str, truth: MatchingRows, **filters: str) -> Pruning:
    case = Case(workload="w", layout="small", measurement="pruning")
    return Pruning(case=case, location=location, filters=filters or {"some": FILTER}, truth=lambda: truth)


def test_a_plan_is_measured_against_every_row(writer: RunWriter, location: str) -> None:
    truth, paths = truth_of(location)
    clock = Clock()
    exact = ScriptedEngine("exact", clock, plans={(location, FILTER): [f"file://{path}" for path in paths[1:3]]})
    everything = ScriptedEngine("everything", clock, plans={(location, FILTER): paths})
    made = recorded(writer, clock, exact, everything)
    made.measure(pruning(location, truth))
    assert not made.failures
    assert made.samples("exact", "some", "false_positive_rate") == [0.0]
    assert made.samples("everything", "some", "false_positive_rate") == [1.0]
    assert made.samples("everything", "some", "wasted_files_share") == [0.5]
    assert made.samples("everything", "some", "recall") == [1.0]
    counters = next(r for r in made.records if r.engine == "everything").counters
    assert counters == {
        "files_planned": 4,
        "files_total": 4,
        "files_matching": 2,
        "files_wasted": 2,
        "rows_matching": 100,
    }


def test_a_lost_file_is_a_failure(writer: RunWriter, location: str) -> None:
    truth, paths = truth_of(location)
    clock = Clock()
    loses = ScriptedEngine("loses", clock, plans={(location, FILTER): paths[:2]})
    made = recorded(writer, clock, loses)
    made.measure(pruning(location, truth))
    assert made.samples("loses", "some", "recall") == [0.5]
    (failure,) = made.failures
    assert (failure.kind, failure.engine, failure.case) == ("WrongAnswer", "loses", "some")
    assert "with 50 matching rows: its scans lose rows" in failure.message


def test_a_strange_file_is_a_failure_and_no_figure(writer: RunWriter, location: str) -> None:
    truth, paths = truth_of(location)
    clock = Clock()
    invents = ScriptedEngine("invents", clock, plans={(location, FILTER): [*paths, "/else/where.parquet"]})
    made = recorded(writer, clock, invents)
    made.measure(pruning(location, truth))
    assert not made.records
    assert "plans 1 file (where.parquet) that the table does not have" in made.failures[0].message


def test_a_filter_that_one_parser_refuses_is_skipped_for_that_engine(writer: RunWriter, location: str) -> None:
    truth, paths = truth_of(location)
    clock = Clock()
    takes = ScriptedEngine("takes", clock, plans={(location, FILTER): paths})
    refuses = ScriptedEngine("refuses", clock)
    made = recorded(writer, clock, takes, refuses)
    made.measure(pruning(location, truth))
    assert {record.engine for record in made.records} == {"takes"}
    assert [(s.engine, s.case) for s in made.skipped] == [("refuses", "some")]
    assert not made.failures


def test_a_filter_that_all_parsers_refuse_is_a_failure(writer: RunWriter, location: str) -> None:
    truth, _ = truth_of(location)
    clock = Clock()
    made = recorded(writer, clock, ScriptedEngine("one", clock), ScriptedEngine("two", clock))
    made.measure(pruning(location, truth))
    assert [failure.kind for failure in made.failures] == ["FilterRefused", "FilterRefused"]


def test_a_filter_on_a_column_that_is_not_there_is_a_failure(writer: RunWriter, location: str) -> None:
    truth, _ = truth_of(location)
    clock = Clock()
    made = recorded(writer, clock, ScriptedEngine("one", clock))
    made.measure(pruning(location, truth, x="nothing = 1"))
    assert "names column 'nothing', which the table does not have" in made.failures[0].message


def test_a_filter_whose_truth_is_disputed_is_skipped(writer: RunWriter, location: str) -> None:
    truth, paths = truth_of(location)
    clock = Clock()
    made = recorded(writer, clock, ScriptedEngine("one", clock, plans={(location, FILTER): paths}))

    class Unsure:
        files = truth.files

        def matching(self, filter: str) -> dict[str, int]:
            raise Disputed("two evaluators differ")

    made.measure(pruning(location, cast("MatchingRows", Unsure())))
    assert not made.failures
    assert not made.records
    assert [(s.case, s.reason) for s in made.skipped] == [("some", "two evaluators differ")]
