"""The tables of the cases, small, and written by this project's engine.

Each is one way in which tables are written and deleted from:

- ``partitioned``: partitions of ninety days cross three manifests of rows in arrival order, and three more hold a range
  of days each, so that manifests, entries and, by ticket number, metrics have something to prune;
- ``grouped``: a file of many small row groups;
- ``large``: a file of one row group of all rows, compressed by zstd, as Iceberg Java and PyIceberg write them;
- ``positions``, ``vectors``, ``equality``: deletes of each kind;
- ``orc``, ``avro``: data files of the other formats;
- ``nested``: rows of texts, structs, lists and maps;
- ``many``: data files that are only described, for planning; ``hundred``: a few of them in each of 100 manifests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import pyarrow as pa

import icebench
from icebench.bench.workloads.equality_deletes import write_equality_deletes
from icebench.bench.workloads.tpcds import Tpcds

NAMESPACE = "gate"
DATE, ITEM, TICKET, CUSTOMER, PAID = (
    "ss_sold_date_sk",
    "ss_item_sk",
    "ss_ticket_number",
    "ss_customer_sk",
    "ss_net_paid",
)
DELETED = f"{CUSTOMER} <= 200"
"""The rows that positions and vectors delete."""
EQUALITY_ITEMS = range(1, 40)
"""The items that equality deletes delete."""
SMALL_ROWS = 3_000
"""The rows of tables that commits change."""


@cache
def sales(start: int, stop: int) -> pa.Table:
    """Rows of store_sales, the same in every process."""
    return pa.Table.from_batches([Tpcds(scale=0.5, seed=7).batch("store_sales", start, stop)])


@cache
def people(start: int, stop: int) -> pa.Table:
    """Rows with texts of several lengths, a struct, a list and a map, the same in every process."""
    numbers = range(start, stop)
    tags = pa.map_(pa.string(), pa.int64())
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": [f"{'abcdefghij'[: n % 10]}-{n:08d}" for n in numbers],
            "place": pa.array([{"zip": n % 1000, "city": f"city {n % 100}"} for n in numbers]),
            "scores": pa.array([list(range(n % 5)) for n in numbers], pa.list_(pa.int64())),
            "tags": pa.array([[(f"k{k}", n) for k in range(n % 3)] for n in numbers], tags),
        }
    )


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much: `rows` of each table, and described `files`."""

    rows: int = 48_000
    files: int = 2_000


@dataclass(frozen=True, kw_only=True)
class TableCase:
    """A table and how it is written.

    Args:
        name: Of the table.
        partitions: Columns and transforms.
        properties: Of the table.
        in_arrival_order: How many appends the first half of the rows makes.
        by_date: How many appends the other half makes, sorted by date; 0 leaves it out.
        deletes: What is deleted afterwards.
        share: The share of the scale's rows.
        rows: Gives the rows from one number to another.
    """

    name: str
    partitions: Sequence[tuple[str, str]] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    in_arrival_order: int = 1
    by_date: int = 0
    deletes: str = ""
    share: float = 1.0
    rows: Callable[[int, int], pa.Table] = sales

    def appends(self, rows: int) -> Iterator[pa.Table]:
        """The rows of each append."""
        half = int(rows * self.share) // 2
        yield from _parts(self.rows(0, half), self.in_arrival_order)
        if self.by_date:
            rest = self.rows(half, 2 * half)
            order = [(DATE, "ascending"), (TICKET, "ascending"), (ITEM, "ascending")]
            yield from _parts(rest.sort_by(order), self.by_date)


_BY_DATE = [(DATE, "truncate[90]")]
_V3 = {"format-version": "3"}

TABLES = {
    case.name: case
    for case in (
        TableCase(name="partitioned", partitions=_BY_DATE, in_arrival_order=3, by_date=3),
        TableCase(name="grouped", properties={"write.parquet.row-group-size-bytes": str(64 << 10)}),
        TableCase(name="large", share=6.0),
        TableCase(name="positions", partitions=_BY_DATE, in_arrival_order=2, deletes="rows", share=0.5),
        TableCase(name="vectors", partitions=_BY_DATE, properties=_V3, in_arrival_order=2, deletes="rows", share=0.5),
        TableCase(name="equality", in_arrival_order=2, by_date=2, deletes="items", share=0.5),
        TableCase(name="orc", properties={"write.format.default": "orc"}, in_arrival_order=2, share=0.25),
        TableCase(name="avro", properties={"write.format.default": "avro"}, in_arrival_order=2, share=0.25),
        TableCase(name="nested", in_arrival_order=2, share=0.25, rows=people),
    )
}


def create(catalog: icebench.Catalog, case: TableCase, name: str) -> icebench.Table:
    """An empty table."""
    return catalog.create_table(
        (NAMESPACE, name), case.rows(0, 1).schema, partition_spec=case.partitions, properties=case.properties
    )


def build(catalog: icebench.Catalog, scale: Scale) -> None:
    """All tables that are not there yet."""
    for case in TABLES.values():
        if catalog.table_exists((NAMESPACE, case.name)):
            continue
        table = create(catalog, case, case.name)
        for rows in case.appends(scale.rows):
            table.append(rows)
        if case.deletes == "rows":
            table.delete(DELETED, mode="merge-on-read")
        elif case.deletes == "items":
            for number, first in enumerate((0, 20)):
                table.add_files([equality_deletes(table, EQUALITY_ITEMS[first : first + 20], number)])
    if not catalog.table_exists((NAMESPACE, "many")):
        _describe(catalog, "many", scale.files, appends=4)
    if not catalog.table_exists((NAMESPACE, "hundred")):
        _describe(catalog, "hundred", scale.files // 4, appends=100)


def equality_deletes(table: icebench.Table, items: Sequence[int], number: int) -> icebench.DataFile:
    """A delete file with these items, written where the table is."""
    keys = pa.table({ITEM: pa.array(list(items), sales(0, 1).schema.field(ITEM).type)})
    return write_equality_deletes(table, keys, f"{table.location}/data/equality-{number}.parquet")


def _describe(catalog: icebench.Catalog, name: str, files: int, appends: int) -> None:
    from icebench.bench.workloads.metadata_files import MetadataFiles  # local import: PySpark takes a second

    made = MetadataFiles(files=files, clustered=False, deletes="equality")
    table = catalog.create_table(
        (NAMESPACE, name),
        made.schema(),
        partition_spec=made.partition_fields(),
        properties={"commit.manifest-merge.enabled": "false"},
    )
    step = -(-files // appends)
    for start in range(0, files, step):
        table.add_files(made.data_files(table.location, start, start + step), check_duplicate_files=False)
    table.add_files(made.delete_files(table.location, 0, files))


def _parts(rows: pa.Table, count: int) -> Iterator[pa.Table]:
    ends = [rows.num_rows * ordinal // count for ordinal in range(count + 1)]
    for start, stop in pairwise(ends):
        yield rows.slice(start, stop - start)
