"""The cases: what users do with a table, a piece each. The gate counts and times them, and so does asv.

A case prepares what is not measured and gives what is. Whatever it changes is made for it alone, so that a case can be
repeated, and none sees what another left.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from itertools import count
from typing import Any, Protocol

import pyarrow as pa

import icebench
from icebench.bench.engines.checksum import checksum_of
from icebench.bench.gate.cases.planned_work import Planned, planned_checksum
from icebench.bench.gate.cases.request_rounds import Rounds
from icebench.bench.gate.cases.tables import (
    DATE,
    DELETED,
    ITEM,
    NAMESPACE,
    PAID,
    SMALL_ROWS,
    TABLES,
    TICKET,
    TableCase,
    create,
    equality_deletes,
    people,
    sales,
)

Timed = Callable[[], object]
Checksum = Callable[[icebench.Catalog, Any], str]

KEY = [ITEM, TICKET]
_numbers = count()
"""Names the tables that cases change."""

ROWS = (DATE, ITEM, TICKET, PAID)
ONE_WHOLE_PARTITION = f"{DATE} >= 2451000 and {DATE} < 2451600"
"""Of the tables that commits change."""
ONE_PARTITION = f"{DATE} >= 2451100 and {DATE} < 2451190"
_LATER = "2100-01-01T00:00:00Z"
_THREADS = 8
"""Of a plan on an object store."""
SOME_TICKETS = f"{TICKET} <= 300"


@dataclass(frozen=True)
class Case:
    """A piece of work.

    Args:
        name: ``kind/table/what``.
        prepare: Takes the catalog of the tables and counters of the engine's work; gives what is measured.
        checksum: Of the answer; takes the catalog and what was measured gave. None where there is nothing to compare.
        rows: Gives the scan that is measured; None where it is no scan.
    """

    name: str
    prepare: Callable[[icebench.Catalog, icebench.Counters], Timed]
    checksum: Checksum | None = None
    rows: Callable[[icebench.Catalog], icebench.Scan] | None = None


def cases() -> dict[str, Case]:
    """All cases, by name."""
    return {case.name: case for case in (*_scans(), *_plans(), *_profiles(), *_commits())}


def _load(catalog: icebench.Catalog, table: str) -> icebench.Table:
    """A handle of its own: what an earlier one cached must not make a case look cheap."""
    return catalog.load_table((NAMESPACE, table))


def _scan(table: str, name: str, filter: str | None = None, columns: Sequence[str] = ROWS) -> Case:
    def scan(catalog: icebench.Catalog, counters: icebench.Counters | None = None) -> icebench.Scan:
        return _load(catalog, table).scan(filter=filter, columns=columns, counters=counters)

    def prepare(catalog: icebench.Catalog, counters: icebench.Counters) -> Timed:
        return partial(_drop, scan(catalog, counters).to_batches)

    return Case(f"scan/{table}/{name}", prepare, _of_rows(scan, columns), scan)


class _Readable(Protocol):
    """A scan, or a changelog."""

    def to_batches(self) -> pa.RecordBatchReader: ...


def _of_rows(scan: Callable[[icebench.Catalog], _Readable], columns: Sequence[str]) -> Checksum:
    """Of what is read once more: what is measured keeps no rows."""
    return lambda catalog, _: checksum_of(scan(catalog).to_batches(), columns).text


def _of_plan(_: icebench.Catalog, plan: Planned) -> str:
    return planned_checksum(plan)


def _of_tasks(_: icebench.Catalog, tasks: Iterable[Any]) -> str:
    """Of the pieces of each task; files are known by their place in the plan, which `_of_plan` compares elsewhere."""
    pieces = [[task.file_index.tolist(), task.start.tolist(), task.length_bytes.tolist()] for task in tasks]
    return hashlib.sha256(json.dumps(pieces).encode()).hexdigest()[:20]


def _of_table(_: icebench.Catalog, table: icebench.Table) -> str:
    return checksum_of(table.scan().to_batches(), [field.name for field in table.schema().fields]).text


def _of_files(_: icebench.Catalog, table: icebench.Table) -> str:
    return planned_checksum(table.scan().plan())


def _drop(read: Callable[[], Iterable[object]]) -> None:
    for _ in read():
        pass


def _scans() -> list[Case]:
    decimals = [f.name for f in sales(0, 1).schema if pa.types.is_decimal(f.type)]
    found = [
        _scan("partitioned", "no-filter"),
        _scan("partitioned", "one-column", columns=(ITEM,)),
        _scan("partitioned", "partition-filter", ONE_PARTITION),
        _scan("partitioned", "metrics-filter", SOME_TICKETS),
        _scan("partitioned", "both-filters", f"{DATE} < 2451000 and {TICKET} <= 900"),
        _scan("partitioned", "unprunable", f"{PAID} > 5000.00"),
        _scan("partitioned", "nothing", f"{ITEM} = -1"),
        _scan("grouped", "no-filter"),
        _scan("grouped", "row-group-filter", SOME_TICKETS),
        _scan("large", "decimals", columns=decimals),
        _scan("large", "few-rows", f"{TICKET} <= 20", decimals),
        _scan("large", "unprunable", f"{PAID} > 5000.00", decimals),
    ]
    found += [
        _scan("orc", "no-filter"),
        _scan("orc", "metrics-filter", SOME_TICKETS),
        _scan("avro", "no-filter"),
        _scan("nested", "no-filter", columns=people(0, 1).column_names),
        _scan("nested", "struct-filter", "place.zip = 7", ("id", "place")),
        _scan("nested", "text-filter", "name like 'abc-%'", ("id", "name")),
    ]
    for table in ("positions", "vectors", "equality"):
        found += [_scan(table, "no-filter"), _scan(table, "metrics-filter", SOME_TICKETS)]

    def count(catalog: icebench.Catalog, counters: icebench.Counters) -> Timed:
        return _load(catalog, "partitioned").scan(counters=counters).count

    def changelog(catalog: icebench.Catalog, counters: icebench.Counters | None = None) -> _Readable:
        return _load(catalog, "positions").changelog_scan(columns=ROWS, counters=counters)

    def changes(catalog: icebench.Catalog, counters: icebench.Counters) -> Timed:
        return partial(_drop, changelog(catalog, counters).to_batches)

    return [
        *found,
        Case("scan/partitioned/count", count, lambda _, rows: str(rows)),
        Case("changelog/positions", changes, _of_rows(changelog, (*ROWS, "_change_type", "_change_ordinal"))),
    ]


def _plans() -> list[Case]:
    filters = {
        "no-filter": None,
        "metrics-filter": f"{ITEM} = 9000",
        "partition-filter": "ss_sold_date >= '2000-11-01' and ss_sold_date < '2000-12-01'",
    }

    def cold(filter: str | None, catalog: icebench.Catalog, counters: icebench.Counters) -> Timed:
        return _load(catalog, "many").scan(filter=filter, counters=counters).plan

    def warm(filter: str | None, catalog: icebench.Catalog, counters: icebench.Counters) -> Timed:
        table = _load(catalog, "many")
        table.scan(filter=filter).plan()
        return table.scan(filter=filter, counters=counters).plan

    def from_disk(filter: str | None, catalog: icebench.Catalog, counters: icebench.Counters) -> Timed:
        folder = tempfile.TemporaryDirectory()
        location = _load(catalog, "many").metadata_location

        def table() -> icebench.Table:
            return icebench.load_table(location, cache=icebench.ManifestCache(directory=folder.name))

        table().scan(filter=filter).plan()
        scan = table().scan(filter=filter, counters=counters)
        weakref.finalize(scan, folder.cleanup)  # once it has been measured
        return scan.plan

    def in_rounds(catalog: icebench.Catalog, counters: icebench.Counters) -> Timed:
        rounds = Rounds(_THREADS)
        scan = _load(catalog, "hundred").scan(counters=rounds, runner=rounds)

        def plan() -> object:
            found = scan.plan()
            counters.merge(rounds)
            counters.add("request_rounds", rounds.now)
            return found

        return plan

    def opened(catalog: icebench.Catalog, _counters: icebench.Counters) -> Timed:
        return partial(_load, catalog, "many")

    def tasks(catalog: icebench.Catalog, _counters: icebench.Counters) -> Timed:
        plan = _load(catalog, "many").scan().plan()
        return lambda: plan.tasks(split_bytes=128 << 20)

    return [
        Case(f"plan/many/{how}/{name}", partial(plan, filter), _of_plan)
        for how, plan in (("cold", cold), ("warm", warm), ("disk-cache", from_disk))
        for name, filter in filters.items()
    ] + [
        Case("plan/hundred/rounds", in_rounds, _of_plan),
        Case("open/many", opened, _of_files),
        Case("tasks/many", tasks, _of_tasks),
    ]


def _profiles() -> list[Case]:
    def profile(table: str, catalog: icebench.Catalog, counters: icebench.Counters) -> Timed:
        return partial(_load(catalog, table).maintenance.profile, counters=counters)

    return [Case(f"profile/{table}", partial(profile, table)) for table in ("many", "positions")]


def _append(table: icebench.Table, counters: icebench.Counters) -> None:
    for start in range(0, 3_000, 1_000):
        table.append(sales(0, 3_000).slice(start, 1_000), counters=counters)


def _upsert(table: icebench.Table, counters: icebench.Counters) -> None:
    rows = sales(0, 500)
    place = rows.column_names.index(PAID)
    changed = rows.set_column(place, rows.field(PAID), rows.column(PAID).take(pa.array(range(500)[::-1])))
    table.upsert(changed, KEY, "merge-on-read", counters=counters)


def _add_deletes(table: icebench.Table, counters: icebench.Counters) -> None:
    table.add_files([equality_deletes(table, [3, 4], 0)], counters=counters)


def _add_files(table: icebench.Table, counters: icebench.Counters) -> None:
    described = [
        icebench.DataFile(
            file_path=f"{table.location}/data/{n}.parquet",
            file_format="parquet",
            partition=(2450400 + 600 * (n % 4),),
            record_count=10,
            file_size_in_bytes=1_000,
            lower_bounds={1: (2451000 + n).to_bytes(4, "little")},
            upper_bounds={1: (2451100 + n).to_bytes(4, "little")},
        )
        for n in range(1_000)
    ]
    table.add_files(described, counters=counters)


class _Raced(icebench.Counters):
    """Counters of a writer that loses a race: as its first attempt to commit begins, another writer commits.

    Args:
        other: What the other one does, whose work is not counted here.
    """

    def __init__(self, other: Callable[[], object]) -> None:
        super().__init__()
        self._waiting = [other]

    def add(self, name: str, n: int = 1) -> None:
        super().add(name, n)
        if name == "commit_attempts" and self._waiting:
            self._waiting.pop()()


def _raced(
    act: Callable[[icebench.Table, icebench.Counters], object], table: icebench.Table, counters: icebench.Counters
) -> None:
    """Do that while another writer appends: its first attempt conflicts, and what follows is a retry."""
    raced = _Raced(partial(table.append, sales(0, 500)))
    act(table, raced)
    counters.merge(raced)


def _commits() -> list[Case]:
    v2 = TableCase(name="changed", partitions=[(DATE, "truncate[600]")])
    v3 = _with(v2, {"format-version": "3"})
    merging = _with(v2, {"commit.manifest.min-count-to-merge": "3"})
    # A delete that another writer's rows do not contradict; a retry that does not wait long.
    contended = {"write.delete.isolation-level": "snapshot", "commit.retry.min-wait-ms": "1"}

    def fresh(
        case: TableCase, catalog: icebench.Catalog, *, appends: int = 3, rows: int = SMALL_ROWS
    ) -> icebench.Table:
        """A table of a few appends."""
        table = create(catalog, case, f"changed-{next(_numbers):06d}")
        for number in range(appends):
            table.append(sales(0, rows).slice(number * rows // appends, rows // appends))
        return table

    def change(
        name: str,
        act: Callable[[icebench.Table, icebench.Counters], object],
        case: TableCase = v2,
        checksum: Checksum = _of_table,
        **options: int,
    ) -> Case:
        def prepare(catalog: icebench.Catalog, counters: icebench.Counters) -> Timed:
            table = fresh(case, catalog, **options)

            def changed() -> icebench.Table:
                act(table, counters)
                return table

            return changed

        return Case(f"commit/{name}", prepare, checksum)

    return [
        change("append", _append, appends=0),
        change("append-merging-manifests", _append, merging),
        change(
            "append-conflict",
            partial(_raced, lambda t, c: t.append(sales(0, 500), counters=c)),
            _with(merging, contended),
        ),
        change(
            "delete-conflict",
            partial(_raced, lambda t, c: t.delete(DELETED, "copy-on-write", counters=c)),
            _with(v2, contended),
        ),
        change("add-files", _add_files, checksum=_of_files, appends=0),
        change("add-deletes", _add_deletes, TABLES["equality"]),
        change("delete-partition", lambda t, c: t.delete(ONE_WHOLE_PARTITION, "copy-on-write", counters=c)),
        change("delete-positions", lambda t, c: t.delete(DELETED, "merge-on-read", counters=c)),
        change("delete-vectors", lambda t, c: t.delete(DELETED, "merge-on-read", counters=c), v3),
        change("delete-copy-on-write", lambda t, c: t.delete(DELETED, "copy-on-write", counters=c)),
        change("update", lambda t, c: t.update(DELETED, {PAID: Decimal("1.00")}, "merge-on-read", counters=c), v3),
        change("upsert", _upsert),
        change("overwrite", lambda t, c: t.overwrite(sales(0, 500), SOME_TICKETS, counters=c)),
        change("overwrite-partitions", lambda t, c: t.overwrite_partitions(sales(0, 500), counters=c)),
        change("rewrite-data-files", lambda t, _: t.maintenance.rewrite_data_files(rewrite_all=True)),
        change("rewrite-manifests", lambda t, _: t.maintenance.rewrite_manifests()),
        change(
            "expire-snapshots",
            lambda t, _: t.maintenance.expire_snapshots(retain_last=1, older_than=_LATER),
        ),
    ]


def _with(case: TableCase, properties: dict[str, str]) -> TableCase:
    return replace(case, properties={**case.properties, **properties})
