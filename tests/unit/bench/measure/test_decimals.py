import pyarrow as pa
import pytest

from bench.errors import DatasetFailed
from bench.experiment import Repetitions
from bench.measure.decimals import measure_decimals
from bench.measure.oracle import NoTruth
from bench.measure.run_file import RunWriter
from bench.measure.subject import Subject
from tests.unit.bench.measure.scripted import Clock, ScriptedEngine, recorded

SUBJECT = Subject(layout="small", metadata_location="m", filters={}, decimal_columns=("price",))
OFTEN = Repetitions(repetitions=3, warmups=1)


def prices(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"price": pa.array(values, pa.int64())})


def engine(name: str, clock: Clock, rows: pa.RecordBatch | Exception, seconds: float = 2.0) -> ScriptedEngine:
    return ScriptedEngine(name, clock, rows={"m": rows}, seconds={"m": seconds})


def test_time_and_rate(writer: RunWriter) -> None:
    clock = Clock()
    made = recorded(writer, clock, engine("one", clock, prices(1, 2, 3)), engine("two", clock, prices(3, 2, 1), 0.5))
    measure_decimals(made.bench, SUBJECT, OFTEN)
    assert made.samples("one", "scan", "scan_time") == [2.0] * 3
    assert made.samples("one", "scan", "rows_per_second") == [1.5] * 3
    assert made.samples("two", "scan", "rows_per_second") == [6.0] * 3
    assert not made.failures
    assert {(r.checksum, r.counters["rows_returned"], r.detail["columns"]) for r in made.records} == {
        (made.records[0].checksum, 3, "price")
    }


def test_who_differs_from_the_truth_is_wrong_even_in_the_majority(writer: RunWriter) -> None:
    clock = Clock()
    wrong = [engine(name, clock, prices(1, 3)) for name in ("one", "two")]
    made = recorded(writer, clock, *wrong, engine("odd", clock, prices(1, 2)), truth={"m": prices(2, 1)})
    measure_decimals(made.bench, SUBJECT, OFTEN)
    assert [(f.engine, f.kind) for f in made.failures] == [("one", "Disagreement"), ("two", "Disagreement")]
    assert made.failures[0].message == "delivers wrong rows: column price: sum 4 against 3"
    assert {r.engine for r in made.records} == {"odd"}


def test_without_the_truth_all_must_deliver_the_same(writer: RunWriter) -> None:
    clock = Clock()
    unknown = {"m": NoTruth("DuckDB is not there")}
    made = recorded(writer, clock, engine("one", clock, prices(1)), engine("two", clock, prices(1, 2)), truth=unknown)
    measure_decimals(made.bench, SUBJECT, OFTEN)
    assert {f.engine for f in made.failures} == {"one", "two"}
    assert "1 rows against 2; one: 1 rows; two: 2 rows" in made.failures[0].message
    assert not made.records
    assert [(s.engine, s.reason) for s in made.skipped] == [
        ("oracle", "engines are held against each other only: DuckDB is not there")
    ]


def test_without_the_truth_equal_engines_are_timed(writer: RunWriter) -> None:
    clock = Clock()
    engines = [engine(name, clock, prices(1, 2)) for name in ("one", "two")]
    made = recorded(writer, clock, *engines, truth={"m": NoTruth("DuckDB is not there")})
    measure_decimals(made.bench, SUBJECT, OFTEN)
    assert not made.failures
    assert {r.engine for r in made.records} == {"one", "two"}


def test_a_table_whose_files_cannot_be_read_is_a_failure(writer: RunWriter) -> None:
    clock = Clock()
    made = recorded(
        writer, clock, engine("one", clock, prices(1)), truth={"m": DatasetFailed("file f.parquet cannot be read")}
    )
    measure_decimals(made.bench, SUBJECT, OFTEN)
    assert [(f.engine, f.message) for f in made.failures] == [("oracle", "file f.parquet cannot be read")]
    assert not made.records


def test_an_engine_that_cannot_read_is_a_failure(writer: RunWriter) -> None:
    clock = Clock()
    made = recorded(writer, clock, engine("one", clock, prices(1)), engine("two", clock, RuntimeError("bad page")))
    measure_decimals(made.bench, SUBJECT, OFTEN)
    assert [(f.engine, f.message) for f in made.failures] == [("two", "bad page")]
    assert {r.engine for r in made.records} == {"one"}


@pytest.mark.parametrize(
    ("columns", "rows", "reason"),
    [((), prices(1), "the table has no decimal column"), (("price",), prices(), "the table has no rows")],
)
def test_what_cannot_be_measured_is_skipped(
    writer: RunWriter, columns: tuple[str, ...], rows: pa.RecordBatch, reason: str
) -> None:
    clock = Clock()
    made = recorded(writer, clock, engine("one", clock, rows))
    subject = Subject(layout="small", metadata_location="m", filters={}, decimal_columns=columns)
    measure_decimals(made.bench, subject, OFTEN)
    assert [(s.reason, s.layout) for s in made.skipped] == [(reason, "small")]
    assert not made.records
    assert not made.failures
