"""Writing rows: what is recorded, and that what is written is read back."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.bench.engines.access import LOCAL, TableAccess
from icebench.bench.engines.duckdb_engine import DuckDb
from icebench.bench.engines.engine import Ability
from icebench.bench.engines.icebench import Icebench
from icebench.bench.engines.polars_engine import Polars
from icebench.bench.engines.pyiceberg_engine import PyIceberg
from icebench.bench.errors import ConfigError
from icebench.bench.execution.context import Context
from icebench.bench.execution.spark_use import SparkDefinition, SparkUse
from icebench.bench.execution.trial import Measurement
from icebench.bench.measurements.writing import WrittenRows
from icebench.bench.progress import silent
from icebench.bench.records.case import Case
from icebench.bench.trials.changes import Changes
from icebench.bench.trials.subject import Subject
from icebench.bench.trials.writing import Append, Writes, appends_of, measurements
from icebench.bench.truth.metadata import load_table_json
from icebench.bench.workloads.dated_sales import DatedSales
from icebench.bench.workloads.tpcds import Tpcds
from tests.unit.bench.execution.scripted import CONTEXT, Clock, Recorded, ScriptedEngine

ROWS = 3_000


def table(folder: Path, name: str, **options: object) -> str:
    rows = DatedSales.of(Tpcds(scale=0.01)).batch(0, ROWS)
    made = icebench.load_catalog(str(folder)).create_table(f"db.{name}", rows.schema, **options)  # type: ignore[arg-type]
    made.append(pa.Table.from_batches([rows]))
    return made.metadata_location


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    return table(tmp_path_factory.mktemp("plain"), "sales")


@pytest.fixture
def writes(location: str, tmp_path: Path) -> Writes:
    return Writes(
        case=Case(workload="t", layout="t", measurement="writing"),
        location=location,
        partitioned=False,
        rows=1_000_000,
        workspace=tmp_path / "written",
    )


def test_engines_write_the_same_rows(bench_of: Callable[..., Recorded], writes: Writes) -> None:
    made = bench_of(*(engine(CONTEXT) for engine in (Icebench, PyIceberg, DuckDb, Polars)))
    made.measure(writes)
    assert not made.failures
    assert {(r.engine, r.case, r.metric, len(r.samples)) for r in made.records} == {
        (name, "append", metric, 3)
        for name in ("icebench", "pyiceberg", "duckdb", "polars")
        for metric in ("write_time", "write_cpu", "write_bytes", "write_files")
    }
    for record in made.records:
        counters = dict(record.counters)
        assert (counters["rows_written"], counters["files_written"]) == (ROWS, 1)
        assert 20_000 < counters["bytes_written"] < 1_000_000
        assert record.metric != "write_bytes" or set(record.samples) == {counters["bytes_written"]}
    assert list(writes.workspace.iterdir()) == []


def test_no_more_rows_than_asked_for_are_written(bench_of: Callable[..., Recorded], writes: Writes) -> None:
    made = bench_of(Icebench(CONTEXT))
    made.measure(replace(writes, rows=700))
    assert {dict(record.counters)["rows_written"] for record in made.records} == {700}


def test_who_writes_plain_files_is_skipped_for_partitions(
    bench_of: Callable[..., Recorded], writes: Writes, tmp_path: Path
) -> None:
    location = table(tmp_path, "monthly", partition_spec=[("ss_sold_date", "month")])
    made = bench_of(Icebench(CONTEXT), DuckDb(CONTEXT))
    made.measure(replace(writes, location=location, partitioned=True))
    assert [skip.reason for skip in made.skipped] == ["duckdb writes no partitions"]
    assert {record.engine for record in made.records} == {"icebench"}
    months = len(list((Path(location).parents[1] / "data").rglob("*.parquet")))
    assert {dict(record.counters)["files_written"] for record in made.records} == {months}
    assert months > 1


class Losing(Icebench):
    """Writes something else."""

    def __init__(self, change: Callable[[pa.Table], pa.Table]) -> None:
        super().__init__(CONTEXT)
        self.change = change

    def append_rows(self, target: icebench.Table, rows: pa.Table) -> None:
        super().append_rows(target, self.change(rows))


def without_a_value(rows: pa.Table) -> pa.Table:
    values = rows["ss_net_paid"].to_pylist()
    return rows.set_column(
        rows.schema.get_field_index("ss_net_paid"),
        rows.schema.field("ss_net_paid"),
        pa.array([None, *values[1:]], rows.schema.field("ss_net_paid").type),
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda rows: rows.slice(1), "3000 rows against 2999"),
        (lambda rows: pa.concat_tables([rows.slice(1), rows.slice(9, 1)]), "against"),
        (without_a_value, "column ss_net_paid: "),
    ],
)
@pytest.mark.parametrize("reader", [(), (PyIceberg,)], ids=["read by itself", "read by PyIceberg"])
def test_what_is_written_is_read_back(
    bench_of: Callable[..., Recorded],
    writes: Writes,
    change: Callable[[pa.Table], pa.Table],
    reason: str,
    reader: tuple[type[PyIceberg], ...],
) -> None:
    made = bench_of(Losing(change), *(engine(CONTEXT) for engine in reader))
    made.measure(writes)
    (failure,) = made.failures
    assert failure.kind == "Disagreement"
    assert failure.message.startswith("what icebench wrote is not what it was given: ")
    assert reason in failure.message
    assert {record.engine for record in made.records} == {engine.name for engine in reader}


def test_an_engine_that_writes_nothing_is_skipped(bench_of: Callable[..., Recorded], writes: Writes) -> None:
    made = bench_of(ScriptedEngine("reads", Clock(), abilities=frozenset({Ability.SCAN})))
    made.measure(writes)
    assert [skip.reason for skip in made.skipped] == ["reads offers no writing rows"]


LEVELS = appends_of((1, 9), (), ())


def test_levels_of_zstd_are_each_engine_s_own(bench_of: Callable[..., Recorded], writes: Writes) -> None:
    made = bench_of(*(engine(CONTEXT) for engine in (Icebench, PyIceberg, DuckDb, Polars)))
    made.measure(replace(writes, appends=LEVELS))
    assert not made.failures
    sizes = {(r.engine, r.case): r.counters["bytes_written"] for r in made.records}
    assert len(sizes) == 12
    for engine in ("icebench", "pyiceberg", "duckdb", "polars"):
        low, high = (sizes[engine, f"append, zstd level {level}"] for level in (1, 9))
        assert high < low
    assert {r.checksum for r in made.records} == {made.records[0].checksum}


class Ignoring(Icebench):
    """Makes tables without what they are asked to have."""

    def __init__(self, *, level: bool = False, sort: bool = False) -> None:
        super().__init__(CONTEXT)
        self.level, self.sort = level, sort

    def new_target(self, metadata_location: str, folder: Path, level: int | None) -> icebench.Table:
        if not self.sort:
            return super().new_target(metadata_location, folder, None if self.level else level)
        schema = icebench.load_table(metadata_location).schema()
        return icebench.load_catalog(str(folder)).create_table("bench.sales", schema)


def test_who_ignores_the_level_is_found(bench_of: Callable[..., Recorded], writes: Writes) -> None:
    made = bench_of(Ignoring(level=True))
    made.measure(replace(writes, appends=LEVELS))
    (failure,) = made.failures
    assert failure.case == "append, zstd level 9"
    assert failure.message.startswith("icebench writes the same ")
    assert failure.message.endswith(" bytes at levels 1 and 9 of zstd")


def test_a_few_columns_alone(bench_of: Callable[..., Recorded], writes: Writes) -> None:
    made = bench_of(*(engine(CONTEXT) for engine in (Icebench, PyIceberg, DuckDb, Polars)))
    columns = ("ss_item_sk", "ss_net_paid", "ss_sold_date")
    made.measure(replace(writes, appends=appends_of((), columns, ())))
    assert not made.failures
    for record in made.records:
        assert record.counters["rows_written"] == ROWS
        assert (record.counters["bytes_written"] < 40_000) == (record.case == "append, 3 columns")
    assert len({(record.case, record.checksum) for record in made.records}) == 2


SORTED = appends_of((), (), ("ss_item_sk", "ss_ticket_number"))


def test_rows_are_sorted_where_the_table_says_so(bench_of: Callable[..., Recorded], writes: Writes) -> None:
    made = bench_of(*(engine(CONTEXT) for engine in (Icebench, PyIceberg, DuckDb)))
    made.measure(replace(writes, appends=SORTED))
    assert not made.failures
    assert {record.engine for record in made.records if record.case == "append, sorted"} == {"icebench"}
    assert {(skip.case, skip.reason) for skip in made.skipped} == {
        ("append, sorted", "pyiceberg ignores the sort order of a table"),
        ("append, sorted", "duckdb writes no table with a sort order"),
    }


def test_who_ignores_the_sort_order_is_found(bench_of: Callable[..., Recorded], writes: Writes) -> None:
    made = bench_of(Ignoring(sort=True))
    made.measure(replace(writes, appends=SORTED))
    (failure,) = made.failures
    assert failure.message == "icebench wrote a file that is not sorted by ss_item_sk, ss_ticket_number"
    assert {record.case for record in made.records} == {"append"}


class Counting(Icebench):
    """Says how often it took rows."""

    def __init__(self) -> None:
        super().__init__(CONTEXT)
        self.taken: list[int] = []

    def take_rows(self, rows: pa.Table, kept: ExitStack) -> pa.Table:
        self.taken.append(rows.num_columns)
        kept.callback(self.taken.append, 0)
        return rows


def test_rows_are_taken_once_and_kept_to_the_end(bench_of: Callable[..., Recorded], writes: Writes) -> None:
    own = Counting()
    made = bench_of(own)
    made.measure(replace(writes, appends=appends_of((1,), ("ss_item_sk",), ("ss_item_sk",))))
    assert not made.failures
    assert own.taken == [24, 1, 0, 0]


def asked(location: str, options: WrittenRows, folder: Path) -> list[Measurement]:
    """What a definition's options make of a table."""
    subject = Subject(workload="t", layout="monthly", table=load_table_json(location), filters={})
    context = Context(
        options=options,
        engines={},
        asked=(),
        seed=1,
        cache=folder,
        spark=SparkUse(SparkDefinition(master="local[1]"), folder),
        progress=silent,
        resources=ExitStack(),
        access=TableAccess(),
        store=lambda: LOCAL,
    )
    return list(measurements(subject, context))


def test_a_definition_says_what_is_written(location: str, tmp_path: Path) -> None:
    (plain,) = asked(location, WrittenRows(rows=5), tmp_path)
    assert isinstance(plain, Writes)
    assert (plain.rows, plain.appends) == (5, (Append(),))
    options = WrittenRows(
        rows=5, levels=(1, 3), narrow=("ss_item_sk",), sort=("ss_item_sk",), upserts=(0.1,), most_keys={"polars": 2}
    )
    writes, changes = asked(location, options, tmp_path)
    assert isinstance(writes, Writes)
    assert isinstance(changes, Changes)
    assert [append.name for append in writes.appends] == [
        "append",
        "append, zstd level 1",
        "append, zstd level 3",
        "append, 1 column",
        "append, sorted",
    ]
    assert (changes.rows, changes.upserts, changes.overwrite, changes.most_keys) == (5, (0.1,), False, {"polars": 2})


def test_narrow_rows_have_their_partition(tmp_path: Path) -> None:
    location = table(tmp_path, "monthly", partition_spec=[("ss_sold_date", "month")])
    with pytest.raises(ConfigError, match="'ss_sold_date', by which layout monthly is partitioned") as caught:
        asked(location, WrittenRows(rows=5, narrow=("ss_item_sk",)), tmp_path)
    assert str(caught.value).startswith("writing.narrow: ")
    assert len(asked(location, WrittenRows(rows=5, narrow=("ss_item_sk", "ss_sold_date")), tmp_path)) == 1
    with pytest.raises(ConfigError, match=r"writing.sort\[0\]: the table has no column 'x'"):
        asked(location, WrittenRows(rows=5, sort=("x",)), tmp_path)
