"""Workloads as definitions have them: each kind with its keys, its defaults, and what can be measured of it.

``datasets/`` explains every key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, cast, get_args

from icebench.bench.definition import Definition, typed
from icebench.bench.errors import ConfigError
from icebench.bench.layouts.actions import Action
from icebench.bench.maintenance.policy import Policy
from icebench.bench.plugins import Registry
from icebench.bench.workloads.dated_sales import DatedSales
from icebench.bench.workloads.described import DescribedWorkload
from icebench.bench.workloads.events import Events
from icebench.bench.workloads.gives import Gives
from icebench.bench.workloads.log import Log
from icebench.bench.workloads.maintenance_tables import MaintenanceTables
from icebench.bench.workloads.reading_files import DELETE_KINDS, KEYS, PATTERNS, Cell, DeleteRows, cells_of
from icebench.bench.workloads.refreshes import Refreshes
from icebench.bench.workloads.rows import Rows
from icebench.bench.workloads.schemas import TABLES
from icebench.bench.workloads.tpcds import Tpcds
from icebench.bench.workloads.wide import Wide
from icebench.bench.workloads.workload import DEFAULT_SEED, TableWorkload, Workload

TPCDS, TPCDS_TABLES = "tpcds", "tpcds-tables"
EVENTS, REFRESHES = "events", "refreshes"
DEFAULT = "default"
"""The maintenance policy that comes with the project."""
ACTIONS = get_args(Action)
PARTS = ("integers", "decimals", "deletes", "small", "wide", "large")
"""What a reading workload has, each measured unless the definition leaves it out."""

_VALUES = 2_880_404 * 24
"""Of store_sales at scale 1."""
_MAINTAINED_ROWS = 1_000_000
_OF_ALL_TABLES = 3.0
"""Values of all tables of TPC-DS, as a share of those of store_sales."""
DATABASE_FILES = 4
DayOrder: TypeAlias = Literal["sorted", "partitioned"]


@dataclass(frozen=True, kw_only=True)
class RowsWorkload(Workload):
    """Rows that are arranged in layouts.

    Args:
        kind: Its name in definitions.
        rows: What generates them.
        scanned: The columns that scans deliver unless the definition names others; if empty, the decimal ones.
        first_scans: Whether the first scans of fresh processes can be measured.
    """

    kind: str
    rows: Rows
    scanned: tuple[str, ...] = ()
    first_scans: bool = False
    gives: ClassVar[Gives] = Gives.ROWS

    @property
    def name(self) -> str:  # type: ignore[override]  # it is the rows'
        return self.rows.name

    @property
    def size(self) -> float:
        return self.rows.rows * len(self.rows.schema) / _VALUES

    @property
    def generated(self) -> Rows:
        return self.rows

    def tables_made(self, layouts: int) -> int:
        return 1 + layouts


def _tpcds(values: Definition) -> RowsWorkload:
    return RowsWorkload(kind=TPCDS, rows=_sales(values))


def _sales(values: Definition) -> DatedSales:
    """TPC-DS-derived rows: see `icebench.bench.workloads.tpcds.Tpcds`; and which fact table it is."""
    tpcds = Tpcds(
        scale=values.number("scale", least=0, above=True),
        seed=values.whole("seed", DEFAULT_SEED, least=0),
        skew=values.number("skew", 0.0, least=0),
        wide_decimals=values.flag("wide_decimals", default=False),
        correlation=values.part("correlation", 0.0),
        late=values.part("late", 0.0),
    )
    return DatedSales.of(tpcds, values.text("table", TABLES[0], known=TABLES))


def _wide(values: Definition) -> RowsWorkload:
    """A table of many columns of mixed and nested types, of which `selected` are scanned."""
    wide = Wide(
        rows=values.whole("rows", least=1),
        columns=values.whole("columns", least=1),
        seed=values.whole("seed", DEFAULT_SEED, least=0),
    )
    most = len(wide.scannable)
    selected = values.whole("selected", min(20, most), least=1)
    if selected > most:
        raise ConfigError(f"more columns than engines can be asked for, which are {most}", path=values.at("selected"))
    return RowsWorkload(kind="wide", rows=wide, scanned=wide.spread(selected), first_scans=True)


def _log(values: Definition) -> RowsWorkload:
    """A log of web requests: how many, to how many hosts, the Zipf exponent of their shares, and the share of late
    requests."""
    log = Log(
        rows=values.whole("rows", least=1),
        hosts=values.whole("hosts", 1_000, least=1),
        skew=values.number("skew", 1.1, least=0),
        late=values.part("late", 0.01),
        seed=values.whole("seed", DEFAULT_SEED, least=0),
    )
    return RowsWorkload(kind="log", rows=log, scanned=("logged_at", "host", "url", "status", "bytes"))


@dataclass(frozen=True, kw_only=True)
class TablesWorkload(Workload):
    """Existing tables that queries join, by the names that queries use, in lower case."""

    gives: ClassVar[Gives] = Gives.DATABASE

    kind: str = "tables"

    tables: Mapping[str, TableWorkload]
    name: str = "tables"

    @property
    def existing(self) -> tuple[TableWorkload, ...]:
        return tuple(self.tables.values())

    @classmethod
    def parse(cls, values: Definition) -> TablesWorkload:
        found: dict[str, TableWorkload] = {}
        for table in values.tables("table"):
            name = table.text("name").lower()
            if name in found:
                raise ConfigError(f"two tables are named {name!r}", path=table.at("name"))
            found[name] = TableWorkload.parse(table)
            table.done()
        if not found:
            raise ConfigError("must have at least one table", path=values.at("table"))
        return cls(tables=found)


@dataclass(frozen=True, kw_only=True)
class TpcdsTablesWorkload(Workload):
    """All tables of TPC-DS as dsdgen makes them, in up to `files` data files each; beside these the same with their
    facts by day, sorted or partitioned, where `by_day` says so, and where there are refreshes, the same after them, as
    they are left and compacted."""

    gives: ClassVar[Gives] = Gives.DATABASE

    kind: str = TPCDS_TABLES

    scale: float
    files: int
    by_day: tuple[DayOrder, ...] = ()
    refreshes: int = 0
    name: str = "TPC-DS"
    known_bytes: ClassVar[bool] = False

    @property
    def size(self) -> float:
        return _OF_ALL_TABLES * self.scale

    def tables_made(self, layouts: int) -> int:
        return 1 + len(self.by_day) + (2 if self.refreshes else 0)

    @classmethod
    def parse(cls, values: Definition) -> TpcdsTablesWorkload:
        return cls(
            scale=values.number("scale", least=0, above=True),
            files=values.whole("files", DATABASE_FILES, least=1),
            by_day=cast(
                "tuple[DayOrder, ...]",
                values.names("by_day", [], known=get_args(DayOrder), what="order of days", empty=True),
            ),
            refreshes=values.whole("refreshes", 0, least=0),
        )


@dataclass(frozen=True, kw_only=True)
class WideDefinition:
    """A table of `columns` columns of which `selected` are read, against one that has no others."""

    rows: int
    columns: int
    selected: int


@dataclass(frozen=True, kw_only=True)
class ReadingWorkload(Workload):
    """Small tables that differ in one thing each, to be scanned side by side.

    Args:
        parts: Names out of `PARTS`.
        cell_rows: Rows of each table of the decimal matrix, and of the comparison with integers.
        cells: The decimal matrix.
        deletes: The rows that the delete matrix deletes from.
        fractions: Shares of them that are deleted.
        delete_kinds: Names out of `DELETE_KINDS`.
        patterns: Names out of `PATTERNS`.
        equality_fractions: As `fractions`, of equality deletes.
        equality_columns: How many columns equality deletes compare.
        delete_files: Into how many delete files the same equality deletes are spread.
        small: Tables of small files, which differ in how many.
        small_filtered: Share of their rows that the filter keeps.
        small_deleted: Share of their rows that position deletes remove.
        wide: The wide table.
        large_rows: Rows of the table in large row groups.
        seed: Draws the rows.
    """

    gives: ClassVar[Gives] = Gives.CELLS

    kind: str = "reading"

    parts: tuple[str, ...]
    cell_rows: int
    cells: tuple[Cell, ...]
    deletes: DeleteRows
    fractions: tuple[float, ...]
    delete_kinds: tuple[str, ...]
    patterns: tuple[str, ...]
    equality_fractions: tuple[float, ...]
    equality_columns: int
    delete_files: tuple[int, ...]
    small: tuple[DeleteRows, ...]
    small_filtered: float
    small_deleted: float
    wide: WideDefinition
    large_rows: int
    seed: int
    name: str = "reading"
    known_bytes: ClassVar[bool] = False

    @classmethod
    def parse(cls, values: Definition) -> ReadingWorkload:
        decimals, deletes, small, wide, large = (values.table(name) for name in PARTS[1:])
        seed = values.whole("seed", DEFAULT_SEED, least=0)
        fractions = deletes.shares("fractions", [])
        found = cls(
            parts=values.names("parts", list(PARTS), known=PARTS, what="part"),
            cell_rows=decimals.whole("rows", least=1),
            cells=cells_of(decimals.wholes("precisions"), decimals.shares("nulls", [])),
            deletes=DeleteRows(
                rows=deletes.whole("rows", least=1),
                files=deletes.whole("files", 4, least=1),
                row_groups=deletes.whole("row_groups", 2, least=1),
                seed=seed,
            ),
            fractions=fractions,
            delete_kinds=deletes.names("kinds", list(DELETE_KINDS), known=DELETE_KINDS, what="kind"),
            patterns=deletes.names("patterns", list(PATTERNS), known=PATTERNS, what="pattern"),
            equality_fractions=deletes.shares("equality_fractions", []) or fractions,
            equality_columns=deletes.whole("equality_columns", 1, least=1),
            delete_files=deletes.wholes("equality_files"),
            small=_small_files(small, seed),
            small_filtered=small.part("filtered", 0.05),
            small_deleted=small.part("deleted", 0.01),
            wide=WideDefinition(
                rows=wide.whole("rows", 1, least=1),
                columns=wide.whole("columns", 1, least=1),
                selected=wide.whole("selected", 1, least=1),
            ),
            large_rows=large.whole("rows", 1, least=1),
            seed=seed,
        )
        if found.wide.selected > found.wide.columns:
            raise ConfigError("more columns than the table has", path=wide.at("selected"))
        if found.equality_columns > len(KEYS):
            most = f"more key columns than the table has, which are {len(KEYS)}"
            raise ConfigError(most, path=deletes.at("equality_columns"))
        for part in (decimals, deletes, small, wide, large):
            part.done()
        return found


def _small_files(values: Definition, seed: int) -> tuple[DeleteRows, ...]:
    """Tables of `files` files of as many `rows` each; none of an absent table."""
    rows = values.whole("rows", 1, least=1)
    return tuple(
        DeleteRows(rows=rows * count, files=count, row_groups=1, seed=seed) for count in values.wholes("files")
    )


@dataclass(frozen=True, kw_only=True)
class EventsWorkload(Workload):
    """A table that batches of changes are committed to.

    Args:
        kind: In definitions.
        name: In cases.
        events: The changes.
        deletes: How rows are deleted, names out of `DELETE_KINDS`; each makes a history of its own.
        compact_every: After how many batches a history is compacted; 0 is never.
        policies: Files of maintenance policies, or ``default``; each maintains a further history after every batch.
        measured: The batches after which the table is scanned.
    """

    kind: str
    name: str
    events: Events | Refreshes
    deletes: tuple[str, ...]
    compact_every: tuple[int, ...]
    policies: tuple[str, ...]
    measured: tuple[int, ...]
    gives: ClassVar[Gives] = Gives.HISTORIES

    @property
    def size(self) -> float:
        return self.events.first_rows * len(self.events.schema) / _VALUES

    @property
    def generated(self) -> Events | Refreshes:
        return self.events

    @property
    def inputs(self) -> Mapping[str, Any]:
        found = {name: Policy.load(None if name == DEFAULT else Path(name)).to_json() for name in self.policies}
        return {"policies": found} if found else {}

    def tables_made(self, layouts: int) -> int:
        # Each history leaves behind what its compactions replaced, and each state has a compacted twin and raw rows.
        return len(self.deletes) * (len(self.compact_every) + len(self.policies)) * (1 + 2 * len(self.measured))

    @classmethod
    def of_events(cls, values: Definition) -> EventsWorkload:
        """Changes by key."""
        events = Events(
            keys=values.whole("keys", least=1),
            batches=values.whole("batches", least=1),
            changes=values.whole("changes", least=1),
            skew=values.number("skew", 1.0, least=0),
            late=values.part("late", 0.02),
            seed=values.whole("seed", DEFAULT_SEED, least=0),
        )
        return cls._parse(values, events, kind=EVENTS, name=EVENTS, usual=("equality", "vectors"), known=DELETE_KINDS)

    @classmethod
    def of_refreshes(cls, values: Definition) -> EventsWorkload:
        """Rows that are added, and others deleted by ranges of their dates."""
        sales = _sales(values)
        try:
            made = Refreshes(sales=sales, batches=values.whole("refreshes", least=1), share=values.part("share", 0.01))
        except ValueError as error:
            raise ConfigError(str(error), path=values.at("share")) from error
        kinds = tuple(kind for kind in DELETE_KINDS if kind != "equality")
        return cls._parse(
            values, made, kind=REFRESHES, name=f"{sales.name}, {REFRESHES}", usual=("vectors",), known=kinds
        )

    @classmethod
    def _parse(
        cls,
        values: Definition,
        events: Events | Refreshes,
        *,
        kind: str,
        name: str,
        usual: Sequence[str],
        known: Sequence[str],
    ) -> EventsWorkload:
        measured = values.wholes("measured") or tuple(range(1, events.batches + 1))
        for index, batch in enumerate(measured):
            if not 0 <= batch <= events.batches:
                path = f"{values.at('measured')}[{index}]"
                raise ConfigError(f"there is no batch {batch} of {events.batches}", path=path)
        every = values.wholes("compact_every") or (0,)
        if min(every) < 0:
            raise ConfigError(f"{min(every)} is below 0", path=values.at("compact_every"))
        policies: dict[str, str] = {}
        for path, value in values.items("policies", []):
            policy = typed(value, str, "a file, or default", path)
            if (stem := Path(policy).stem) in policies:
                raise ConfigError(f"a policy named {stem!r} is listed before", path=path)
            policies[stem] = policy
        return cls(
            kind=kind,
            name=name,
            events=events,
            deletes=values.names("deletes", list(usual), known=known, what="kind"),
            compact_every=every,
            policies=tuple(policies.values()),
            measured=measured,
        )


@dataclass(frozen=True, kw_only=True)
class MaintenanceWorkload(Workload):
    """Tables that need maintenance, and the actions; `fresh`: each time in its own process."""

    gives: ClassVar[Gives] = Gives.WORN_TABLES

    kind: str = "maintenance"

    tables: MaintenanceTables
    actions: tuple[Action, ...]
    fresh: bool
    name: str = "maintenance"
    known_bytes: ClassVar[bool] = False

    @property
    def size(self) -> float:
        return self.tables.rows / _MAINTAINED_ROWS

    @classmethod
    def parse(cls, values: Definition) -> MaintenanceWorkload:
        actions = values.names("actions", list(ACTIONS), known=ACTIONS, what="action")
        tables = MaintenanceTables(
            rows=values.whole("rows", least=1),
            files=values.whole("files", least=1),
            target_bytes=values.whole("target_bytes", least=1),
            snapshots=values.whole("snapshots", least=1),
            listed_files=values.whole("listed_files", least=1),
            orphans=values.whole("orphans", least=0),
            seed=values.whole("seed", DEFAULT_SEED, least=0),
        )
        fresh = values.flag("fresh", default=False)
        return cls(tables=tables, actions=cast("tuple[Action, ...]", actions), fresh=fresh)


@dataclass(frozen=True, kw_only=True)
class WorkloadEntry:
    """A kind of workload. `parse` takes its table of a definition, without `kind`, and may raise ConfigError."""

    description: str
    parse: Callable[[Definition], Workload]


WORKLOADS: Registry[WorkloadEntry] = Registry(
    "icebench.workloads",
    "workload",
    {
        TPCDS: WorkloadEntry(description="fact tables derived from TPC-DS, at a scale factor", parse=_tpcds),
        "wide": WorkloadEntry(description="a table of many columns of mixed and nested types", parse=_wide),
        "log": WorkloadEntry(description="a log of web requests", parse=_log),
        "table": WorkloadEntry(description="a table that exists", parse=TableWorkload.parse),
        "tables": WorkloadEntry(description="tables that exist, which queries join", parse=TablesWorkload.parse),
        TPCDS_TABLES: WorkloadEntry(
            description="all 24 tables of TPC-DS as DuckDB's dsdgen makes them", parse=TpcdsTablesWorkload.parse
        ),
        "described-files": WorkloadEntry(
            description="files that manifests describe and that do not exist, by the million",
            parse=DescribedWorkload.parse,
        ),
        "reading": WorkloadEntry(description="small tables that differ in one thing each", parse=ReadingWorkload.parse),
        EVENTS: WorkloadEntry(
            description="a table that batches of changes by key are committed to", parse=EventsWorkload.of_events
        ),
        REFRESHES: WorkloadEntry(
            description="a fact table whose refreshes add and delete rows", parse=EventsWorkload.of_refreshes
        ),
        "maintenance": WorkloadEntry(
            description="tables with small files, old snapshots and orphans", parse=MaintenanceWorkload.parse
        ),
    },
    WorkloadEntry,
)
"""Kinds of workloads by name."""
