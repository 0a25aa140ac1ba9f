"""The cases whose work is counted exactly: small tables of this project's own engine, written, planned and read.

The tables lie in memory, so that neither a disk nor a path decides anything, and are written without Spark. In one,
partitions of ninety days cross three manifests of rows in arrival order, and three more hold a range of days each, so
that manifests, entries and, by ticket number, metrics have something to prune. The other is one file of many row
groups. Then some customers are deleted from both, merge-on-read.

Run as ``python -m bench.cases.counters``, the results are printed as a baseline.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pyarrow as pa

import engine
from bench.engines.checksum import checksum_of
from bench.gate.baseline import Baseline, CaseResult, encode
from bench.workloads.tpcds import Tpcds

WAREHOUSE = "memory://icebench-gate"
NAMESPACE = "gate"
WORKLOAD = Tpcds(scale=0.02, seed=7)
ROWS = 48_000
DATE, ITEM, TICKET, PAID = "ss_sold_date_sk", "ss_item_sk", "ss_ticket_number", "ss_net_paid"
DELETED = "ss_customer_sk <= 200"
SIZES = "_bytes_"
"""In the names of counters of sizes, which random ids and versions of compressors move; see docs/design/gate.md."""


@dataclass(frozen=True, kw_only=True)
class TableCase:
    """A table and how it is written.

    Args:
        name: Of the table.
        partitions: Columns and transforms.
        properties: Of the table.
        in_arrival_order: How many appends the first half of the rows makes.
        by_date: How many appends the other half makes, sorted by date; 0 leaves it out.
    """

    name: str
    partitions: Sequence[tuple[str, str]] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    in_arrival_order: int
    by_date: int = 0

    def appends(self) -> Iterator[pa.Table]:
        """The rows of each append."""
        half = ROWS // 2
        arrived = pa.Table.from_batches([WORKLOAD.batch("store_sales", 0, half)])
        yield from _parts(arrived, self.in_arrival_order)
        if self.by_date:
            rest = pa.Table.from_batches([WORKLOAD.batch("store_sales", half, ROWS)])
            yield from _parts(
                rest.sort_by([(DATE, "ascending"), (TICKET, "ascending"), (ITEM, "ascending")]), self.by_date
            )


@dataclass(frozen=True)
class ScanCase:
    """A scan of a table; `filter` None keeps all rows."""

    table: str
    name: str
    filter: str | None = None
    columns: Sequence[str] = (DATE, ITEM, TICKET, PAID)


PARTITIONED = TableCase(name="partitioned", partitions=[(DATE, "truncate[90]")], in_arrival_order=3, by_date=3)
GROUPED = TableCase(
    name="grouped", properties={"write.parquet.row-group-size-bytes": str(64 << 10)}, in_arrival_order=1
)
TABLES = (PARTITIONED, GROUPED)

SCANS = (
    ScanCase("partitioned", "no-filter"),
    ScanCase("partitioned", "one-column", columns=(ITEM,)),
    ScanCase("partitioned", "partition-filter", f"{DATE} >= 2451100 and {DATE} < 2451190"),
    ScanCase("partitioned", "metrics-filter", f"{TICKET} <= 300"),
    ScanCase("partitioned", "both-filters", f"{DATE} < 2451000 and {TICKET} <= 900"),
    ScanCase("partitioned", "unprunable", f"{PAID} > 5000.00"),
    ScanCase("partitioned", "nothing", f"{ITEM} = -1"),
    ScanCase("grouped", "no-filter"),
    ScanCase("grouped", "row-group-filter", f"{TICKET} <= 300"),
)


def run_cases() -> dict[str, CaseResult]:
    """Build the tables, run every case, and give what was counted, by case.

    Raises:
        EngineError: The engine could not do it; nothing of the tables is left behind either way.
    """
    catalog = engine.load_catalog(WAREHOUSE)
    results: dict[str, CaseResult] = {}
    try:
        for case in TABLES:
            results[f"{case.name}/append"] = _append(catalog, case)
        results |= {f"{case.table}/scan/{case.name}": _scan(catalog, case) for case in SCANS}
        for case in TABLES:
            results[f"{case.name}/delete"] = _delete(catalog, case)
        results |= {f"{case.table}/scan-with-deletes/{case.name}": _scan(catalog, case) for case in SCANS}
    finally:
        for case in TABLES:
            if catalog.table_exists((NAMESPACE, case.name)):
                catalog.drop_table((NAMESPACE, case.name))
        catalog.close()
    return results


def _append(catalog: engine.Catalog, case: TableCase) -> CaseResult:
    counters = engine.Counters()
    table = catalog.create_table(
        (NAMESPACE, case.name),
        WORKLOAD.schema("store_sales"),
        partition_spec=case.partitions,
        properties=case.properties,
    )
    for rows in case.appends():
        table.append(rows, counters=counters)
    return _result(counters)


def _delete(catalog: engine.Catalog, case: TableCase) -> CaseResult:
    counters = engine.Counters()
    catalog.load_table((NAMESPACE, case.name)).delete(DELETED, mode="merge-on-read", counters=counters)
    return _result(counters)


def _scan(catalog: engine.Catalog, case: ScanCase) -> CaseResult:
    """A case starts from a handle of its own: what an earlier one cached must not make it look cheap."""
    counters = engine.Counters()
    table = catalog.load_table((NAMESPACE, case.table))
    batches = table.scan(filter=case.filter, columns=case.columns, counters=counters).to_batches()
    return _result(counters, checksum_of(batches, case.columns).text)


def _result(counters: engine.Counters, checksum: str = "no rows") -> CaseResult:
    counted = {name: n for name, n in counters.as_dict().items() if SIZES not in name}
    return CaseResult(counters=counted, checksum=checksum)


def _parts(rows: pa.Table, count: int) -> Iterator[pa.Table]:
    ends = [rows.num_rows * ordinal // count for ordinal in range(count + 1)]
    for start, stop in pairwise(ends):
        yield rows.slice(start, stop - start)


def main() -> None:
    """Print the results."""
    sys.stdout.write(encode(Baseline(cases=run_cases())))


if __name__ == "__main__":
    main()
