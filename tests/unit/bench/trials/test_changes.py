"""Changes of rows: what is recorded, and that a table with any other rows than the right ones is a failure."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icebench
from icebench.bench.engines.duckdb_engine import DuckDb
from icebench.bench.engines.icebench import Icebench
from icebench.bench.engines.pyiceberg_engine import PyIceberg
from icebench.bench.records.case import Case
from icebench.bench.trials.changes import Changes
from icebench.bench.workloads.dated_sales import DatedSales
from icebench.bench.workloads.tpcds import Tpcds
from tests.unit.bench.execution.scripted import CONTEXT, Recorded

ROWS = 3_000
SALES = DatedSales.of(Tpcds(scale=0.01))
KEY = ("ss_item_sk", "ss_ticket_number")
ON_WRITE, ON_READ = "upsert 1 %, copy-on-write", "upsert 1 %, merge-on-read"


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of years, and of rows without a date."""
    rows = SALES.batch(0, ROWS)
    catalog = icebench.load_catalog(str(tmp_path_factory.mktemp("yearly")))
    made = catalog.create_table("db.sales", rows.schema, partition_spec=[("ss_sold_date", "year")])
    made.append(pa.Table.from_batches([rows]))
    return made.metadata_location


@pytest.fixture
def upserts(location: str, tmp_path: Path) -> Changes:
    return Changes(
        case=Case(workload="t", layout="t", measurement="writing"),
        location=location,
        partition_columns=("ss_sold_date",),
        identifier_columns=KEY,
        rows=ROWS,
        workspace=tmp_path / "written",
        upserts=(0.01,),
    )


@pytest.fixture
def overwrite(upserts: Changes) -> Changes:
    return replace(upserts, upserts=(), overwrite=True)


def counted(made: Recorded) -> dict[tuple[str, str], tuple[int, int]]:
    """Rows given and delete files, by engine and case; all timed thrice, with as many bytes."""
    assert {len(record.samples) for record in made.records} == {3}
    assert all(min(record.samples) > 1_000 for record in made.records if record.metric == "write_bytes")
    return {
        (record.engine, record.case): (record.counters["rows_given"], record.counters["delete_files"])
        for record in made.records
    }


def test_engines_upsert_the_same_rows(bench_of: Callable[..., Recorded], upserts: Changes) -> None:
    made = bench_of(Icebench(CONTEXT), PyIceberg(CONTEXT), DuckDb(CONTEXT))
    made.measure(upserts)
    assert not made.failures
    found = counted(made)
    assert found.keys() == {("icebench", ON_WRITE), ("icebench", ON_READ), ("pyiceberg", ON_WRITE)}
    assert {rows for rows, _ in found.values()} == {30}
    assert {case for (_, case), (_, deletes) in found.items() if deletes} == {ON_READ}
    assert {(skip.case, skip.reason) for skip in made.skipped} == {
        (ON_READ, "pyiceberg has no merge-on-read upserts"),
        ("changes of rows", "duckdb offers no changing rows"),
    }
    assert list(upserts.workspace.iterdir()) == []


def test_engines_overwrite_the_same_partition(
    bench_of: Callable[..., Recorded], overwrite: Changes, location: str
) -> None:
    made = bench_of(Icebench(CONTEXT), PyIceberg(CONTEXT))
    made.measure(overwrite)
    assert not made.failures
    years = icebench.load_table(location).inspect.partitions().to_pylist()
    most = max(each["record_count"] for each in years if each["partition"]["ss_sold_date_year"] is not None)
    assert counted(made) == {(name, "overwrite a partition"): (most, 0) for name in ("icebench", "pyiceberg")}


def test_a_table_without_partitions_is_not_overwritten(
    bench_of: Callable[..., Recorded], overwrite: Changes, location: str
) -> None:
    made = bench_of(Icebench(CONTEXT))
    made.measure(replace(overwrite, partition_columns=()))
    assert not made.records
    assert not made.skipped


def test_a_partition_that_no_filter_keeps_is_skipped(
    bench_of: Callable[..., Recorded], overwrite: Changes, tmp_path: Path
) -> None:
    rows = SALES.batch(0, 500)
    made = icebench.load_catalog(str(tmp_path)).create_table(
        "db.sales", rows.schema, partition_spec=[("ss_item_sk", "bucket[4]")]
    )
    made.append(pa.Table.from_batches([rows]))
    bench = bench_of(Icebench(CONTEXT))
    bench.measure(replace(overwrite, location=made.metadata_location, partition_columns=("ss_item_sk",)))
    assert [skip.reason for skip in bench.skipped] == ["no range of ss_item_sk is a partition"]


def test_what_cannot_be_upserted_is_skipped(bench_of: Callable[..., Recorded], upserts: Changes) -> None:
    made = bench_of(Icebench(CONTEXT))
    made.measure(replace(upserts, identifier_columns=()))
    assert {skip.reason for skip in made.skipped} == {"no key of t is known, to upsert by"}
    assert {skip.case for skip in made.skipped} == {ON_WRITE, ON_READ}
    many = bench_of(Icebench(CONTEXT))
    many.measure(replace(upserts, upserts=(0.01, 0.001), most_keys={"icebench": 29}))
    assert {skip.reason for skip in many.skipped} == {
        "icebench is asked to upsert 29 rows at most, by writing.most_keys, and not 30"
    }
    assert {record.case for record in many.records} == {"upsert 0.1 %, copy-on-write", "upsert 0.1 %, merge-on-read"}


class Wrong(Icebench):
    """Changes rows in a way of its own."""

    def __init__(self, change: Callable[[icebench.Table, pa.Table], object]) -> None:
        super().__init__(CONTEXT)
        self.change = change

    def upsert_rows(self, target: icebench.Table, rows: pa.Table, key: Sequence[str]) -> None:
        self.change(target, rows)

    def overwrite_partition(self, target: icebench.Table, rows: pa.Table, filter: str) -> None:
        self.change(target, rows)


def upserted_without(column: str) -> Callable[[icebench.Table, pa.Table], object]:
    """Keeps the old value of one column of the rows that were there, as far as it is null in others."""

    def change(table: icebench.Table, rows: pa.Table) -> None:
        nulls = pa.nulls(rows.num_rows, rows.schema.field(column).type)
        table.upsert(rows.set_column(rows.schema.get_field_index(column), rows.schema.field(column), nulls), KEY)

    return change


def upserted_but_one(table: icebench.Table, rows: pa.Table) -> None:
    table.upsert(rows, KEY)
    lost = rows.slice(0, 1).to_pylist()[0]
    table.delete(" and ".join(f"{name} = {lost[name]}" for name in KEY))


WRONG_UPSERTS = {
    "an updated row is lost": (upserted_but_one, "3000 rows against 2999"),
    "the old versions stay": (lambda table, rows: table.append(rows), "3000 rows against 3015"),
    "rows are not updated": (lambda table, rows: table.append(rows.slice(15)), "column ss_"),
    "a row is not updated": (lambda table, rows: table.upsert(rows.slice(1), KEY), "column ss_"),
    "a column is lost": (upserted_without("ss_net_paid"), "column ss_net_paid: "),
}


@pytest.mark.parametrize("wrong", WRONG_UPSERTS)
@pytest.mark.parametrize("reader", [(), (PyIceberg,)], ids=["read by itself", "read by PyIceberg"])
def test_a_wrong_upsert_is_found(
    bench_of: Callable[..., Recorded], upserts: Changes, wrong: str, reader: tuple[type[PyIceberg], ...]
) -> None:
    change, reason = WRONG_UPSERTS[wrong]
    made = bench_of(Wrong(change), *(engine(CONTEXT) for engine in reader))
    made.measure(replace(upserts, most_keys={"pyiceberg": 1}))
    assert made.failures
    failed = {failure.case: failure for failure in made.failures}
    assert {failure.kind for failure in made.failures} == {"Disagreement"}
    assert failed[ON_WRITE].message.startswith("what icebench left is not the table with the change: ")
    assert reason in failed[ON_WRITE].message
    assert not made.records


@pytest.mark.parametrize(
    ("mode", "failing", "said"),
    [("copy-on-write", ON_READ, "leaves 0 delete files"), ("merge-on-read", ON_WRITE, "delete files where the table")],
)
def test_who_ignores_the_mode_is_found(
    bench_of: Callable[..., Recorded], upserts: Changes, mode: str, failing: str, said: str
) -> None:
    made = bench_of(Wrong(lambda table, rows: table.upsert(rows, KEY, mode)))  # type: ignore[arg-type]
    made.measure(upserts)
    (failure,) = made.failures
    assert failure.case == failing
    assert said in failure.message
    assert {record.case for record in made.records} == {ON_WRITE, ON_READ} - {failing}


def another_year(table: icebench.Table, rows: pa.Table) -> None:
    own = pc.max(rows["ss_sold_date"]).as_py().year
    other = 1999 if own != 1999 else 2000
    table.overwrite(rows, f"ss_sold_date >= '{other}-01-01' and ss_sold_date <= '{other}-12-31'")


WRONG_OVERWRITES = {
    "of another partition": another_year,
    "of all partitions": lambda table, rows: table.overwrite(rows),
    "of no partition": lambda table, rows: table.append(rows),
    "without a row": lambda table, rows: table.overwrite_partitions(rows.slice(1)),
    "with the old rows": lambda table, rows: None,
}


@pytest.mark.parametrize("wrong", WRONG_OVERWRITES)
def test_a_wrong_overwrite_is_found(bench_of: Callable[..., Recorded], overwrite: Changes, wrong: str) -> None:
    made = bench_of(Wrong(WRONG_OVERWRITES[wrong]))
    made.measure(overwrite)
    (failure,) = made.failures
    assert failure.message.startswith("what icebench left is not the table with the change: ")
    assert not made.records


def test_every_run_changes_the_table_as_it_was(bench_of: Callable[..., Recorded], upserts: Changes) -> None:
    seen: list[tuple[int, int]] = []

    def change(table: icebench.Table, rows: pa.Table) -> None:
        seen.append((len(table.snapshots), table.scan().to_arrow().num_rows))
        table.upsert(rows, KEY)

    made = bench_of(Wrong(change))
    made.measure(upserts)
    assert not made.failures
    assert set(seen) == {(1, ROWS - 15)}
    assert len(seen) > 3


def test_half_of_the_given_rows_are_new(bench_of: Callable[..., Recorded], upserts: Changes) -> None:
    """Half replace rows, in all columns but key and partition; both are spread over the table."""
    rows = pa.Table.from_batches([SALES.batch(0, ROWS)])
    before: dict[tuple[int, ...], dict[str, object]] = {
        tuple(row[name] for name in KEY): row for row in rows.to_pylist()
    }
    asked: list[list[dict[str, object]]] = []

    def change(table: icebench.Table, given: pa.Table) -> None:
        asked.append(given.to_pylist())
        table.upsert(given, KEY)

    made = bench_of(Wrong(change))
    made.measure(upserts)
    for row in asked[0][:15]:
        old = before[tuple(row[name] for name in KEY)]  # type: ignore[misc]
        assert row["ss_sold_date"] == old["ss_sold_date"]
        assert sum(row[name] != old[name] for name in rows.column_names) > 10
    assert all(row == before[tuple(row[name] for name in KEY)] for row in asked[0][15:])  # type: ignore[misc]
    assert len({row["ss_sold_date"] for row in asked[0]}) > 10
