from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from bench.engines.checksum import Checksum
from bench.experiment import Repetitions
from bench.measure.deletes import _record, measure_deletes
from bench.measure.recorder import CaseId
from bench.measure.run_file import RunWriter
from bench.measure.subject import Subject
from tests.unit.bench.measure.scripted import Clock, ScriptedEngine, recorded

SUBJECT = Subject(
    layout="small",
    metadata_location="all",
    filters={},
    decimal_columns=(),
    delete_columns=("x",),
    without_deletes="all",
    with_deletes={"25%": "some", "50%": "half"},
    deleted_rows={"25%": 1, "50%": 2},
)
OFTEN = Repetitions(repetitions=4, warmups=1)


def rows(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"x": pa.array(values, pa.int64())})


TABLES = {"all": rows(1, 2, 3, 4), "some": rows(2, 3, 4), "half": rows(3, 4)}
SECONDS = {"all": 2.0, "some": 2.5, "half": 4.0}


def test_the_cost_is_the_difference_within_a_round(writer: RunWriter) -> None:
    clock = Clock()
    one = ScriptedEngine("one", clock, rows=TABLES, seconds=SECONDS)
    two = ScriptedEngine("two", clock, rows=TABLES, seconds=dict.fromkeys(SECONDS, 1.0))
    made = recorded(writer, clock, one, two)
    measure_deletes(made.bench, SUBJECT, OFTEN)
    assert not made.failures
    assert made.samples("one", "none", "scan_time") == [2.0] * 4
    assert made.samples("one", "25%", "scan_time") == [2.5] * 4
    assert made.samples("one", "25%", "delete_cost") == [0.5] * 4
    assert made.samples("one", "50%", "delete_cost_ratio") == [1.0] * 4
    assert made.samples("two", "50%", "delete_cost") == [0.0] * 4
    half = next(r for r in made.records if (r.engine, r.case) == ("one", "50%"))
    assert half.counters == {"rows_returned": 2, "rows_deleted": 2}
    assert not [r for r in made.records if r.case == "none" and r.metric != "scan_time"]


class SlowingEngine(ScriptedEngine):
    """Every scan of a location takes a second longer than the one before, as on a machine that others load."""

    def scan(self, handle: list[str], columns: Sequence[str], filter: str | None) -> Mapping[str, int]:
        self.seconds = {**self.seconds, handle[0]: self.seconds[handle[0]] + 1}
        return super().scan(handle, columns, filter)


def test_scans_of_different_rounds_are_not_compared(writer: RunWriter) -> None:
    clock = Clock()
    made = recorded(writer, clock, SlowingEngine("one", clock, rows=TABLES, seconds=SECONDS))
    measure_deletes(made.bench, SUBJECT, OFTEN)
    without = made.samples("one", "none", "scan_time")
    assert sorted(set(without)) == without
    assert len(set(without)) == 4
    assert made.samples("one", "25%", "delete_cost") == [0.5] * 4
    assert made.samples("one", "50%", "delete_cost_ratio") == [2 / seconds for seconds in without]


def test_what_is_subtracted_is_of_the_same_round(writer: RunWriter) -> None:
    clock = Clock()
    made = recorded(writer, clock, ScriptedEngine("one", clock))
    rows_of = Checksum(2, 0, {})
    seconds = {("one", "none"): [3.0, 1.0, 2.0], ("one", "25%"): [4.0, 3.0, 2.5]}
    case = CaseId(layout="small", measurement="deletes", case="25%", engine="one")
    _record(made.bench.recorder, case, seconds, {"none": {"one": rows_of}, "25%": {"one": rows_of}}, columns=("x",))
    assert made.samples("one", "25%", "delete_cost") == [1.0, 2.0, 0.5]
    assert made.samples("one", "25%", "delete_cost_ratio") == [1 / 3, 2.0, 0.25]


def test_deleted_rows_that_come_back_are_a_failure(writer: RunWriter) -> None:
    clock = Clock()
    good = [ScriptedEngine(name, clock, rows=TABLES, seconds=SECONDS) for name in ("one", "two")]
    forgets = ScriptedEngine("forgets", clock, rows={**TABLES, "some": TABLES["all"]}, seconds=SECONDS)
    made = recorded(writer, clock, *good, forgets)
    measure_deletes(made.bench, SUBJECT, OFTEN)
    assert {(f.engine, f.case) for f in made.failures} == {("forgets", "25%")}
    messages = {f.message for f in made.failures}
    assert "delivers 4 of 4 rows, of which 1 are deleted" in messages
    assert not [r for r in made.records if (r.engine, r.case) == ("forgets", "25%")]
    assert made.samples("forgets", "50%", "delete_cost") == [2.0] * 4


def test_who_deletes_as_many_but_other_rows_is_not_timed(writer: RunWriter) -> None:
    clock = Clock()
    good = [ScriptedEngine(name, clock, rows=TABLES, seconds=SECONDS) for name in ("one", "two")]
    other = ScriptedEngine("other", clock, rows={**TABLES, "some": rows(1, 3, 4)}, seconds=SECONDS)
    made = recorded(writer, clock, *good, other)
    measure_deletes(made.bench, SUBJECT, OFTEN)
    assert {(f.engine, f.case) for f in made.failures} == {("other", "25%")}
    assert not [r for r in made.records if (r.engine, r.case) == ("other", "25%")]


def test_even_when_all_engines_agree_on_it(writer: RunWriter) -> None:
    clock = Clock()
    wrong = {**TABLES, "half": TABLES["some"]}
    made = recorded(writer, clock, *(ScriptedEngine(name, clock, rows=wrong) for name in ("one", "two")))
    measure_deletes(made.bench, SUBJECT, OFTEN)
    assert {(f.engine, f.case, f.message) for f in made.failures} == {
        (name, "50%", "delivers 3 of 4 rows, of which 2 are deleted") for name in ("one", "two")
    }


def test_an_engine_that_cannot_apply_deletes_keeps_its_other_figures(writer: RunWriter) -> None:
    clock = Clock()
    partial = ScriptedEngine("partial", clock, rows={**TABLES, "half": NotImplementedError("too many")})
    made = recorded(writer, clock, partial)
    measure_deletes(made.bench, SUBJECT, OFTEN)
    assert [(f.engine, f.case, f.message) for f in made.failures] == [("partial", "50%", "too many")]
    assert made.samples("partial", "25%", "delete_cost") == [0.0] * 4


@pytest.mark.parametrize("without", [None, "all"])
def test_a_table_without_deletes_is_skipped(writer: RunWriter, without: str | None) -> None:
    clock = Clock()
    made = recorded(writer, clock, ScriptedEngine("one", clock))
    subject = Subject(layout="small", metadata_location="all", filters={}, decimal_columns=(), without_deletes=without)
    measure_deletes(made.bench, subject, OFTEN)
    assert [s.reason for s in made.skipped] == ["the table has no deletes"]
