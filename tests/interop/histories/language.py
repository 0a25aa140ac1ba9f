"""The language of histories: changes, the engines that make them, and what they do to the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import pyarrow as pa

from icebench.engine.spec.types import Type
from tests.interop.histories.filters import Row, Where
from tests.interop.histories.model import Edited, Model

Engine = Literal["ours", "java", "pyiceberg"]


class Change(Protocol):
    """One change of a table. Its actors, one an engine, make it; `apply` says what it means."""

    def apply(self, model: Model) -> None:
        """Change the model."""
        ...


class Actor(Protocol):
    """An engine that makes changes of one table."""

    def perform(self, change: Change) -> None:
        """Make the change, and commit it; NotImplementedError for one that the engine has no way to make."""
        ...


# ---- rows --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Append:
    """Adds rows; with `wap`, in a snapshot that is published later."""

    rows: Sequence[Row]
    branch: str = "main"
    wap: str | None = None

    def apply(self, model: Model) -> None:
        if self.wap is None:
            model.set([*model.state(self.branch).rows, *self.rows], self.branch)
        else:
            model.staged[self.wap] = tuple(map(model.whole, self.rows))


@dataclass(frozen=True)
class Overwrite:
    """Puts rows in the place of those that a filter is true for; without one, of all."""

    rows: Sequence[Row]
    where: Where | None = None
    branch: str = "main"

    def apply(self, model: Model) -> None:
        where = self.where
        kept = [] if where is None else [row for row in model.state(self.branch).rows if not where(row)]
        model.set([*kept, *self.rows], self.branch)


@dataclass(frozen=True)
class OverwritePartitions:
    """Puts rows in the place of all that are in their partitions; `by` gives a row's partition."""

    rows: Sequence[Row]
    by: Callable[[Row], object]

    def apply(self, model: Model) -> None:
        gone = {self.by(row) for row in self.rows}
        model.set([*(row for row in model.state().rows if self.by(row) not in gone), *self.rows])


@dataclass(frozen=True)
class Delete:
    """Deletes the rows that a filter is true for, as the table's properties say."""

    where: Where
    branch: str = "main"

    def apply(self, model: Model) -> None:
        model.set([row for row in model.state(self.branch).rows if not self.where(row)], self.branch)


@dataclass(frozen=True)
class Update:
    """Sets columns of the rows that a filter is true for."""

    where: Where
    values: Mapping[str, Any]
    branch: str = "main"

    def apply(self, model: Model) -> None:
        rows = [row | dict(self.values) if self.where(row) else row for row in model.state(self.branch).rows]
        model.set(rows, self.branch)


@dataclass(frozen=True)
class Upsert:
    """Brings rows in by key."""

    rows: Sequence[Row]
    on: Sequence[str] = ("id",)
    branch: str = "main"

    def apply(self, model: Model) -> None:
        keys = {tuple(row[name] for name in self.on) for row in self.rows}
        old = [row for row in model.state(self.branch).rows if tuple(row[name] for name in self.on) not in keys]
        model.set([*old, *self.rows], self.branch)


@dataclass(frozen=True)
class Stream:
    """A batch of a keyed change stream (equality deletes): ("insert" or "update", row) or ("delete", key)."""

    changes: Sequence[tuple[Literal["insert", "update", "delete"], Row]]
    on: Sequence[str] = ("id",)

    def apply(self, model: Model) -> None:
        rows = list(model.state().rows)
        for kind, row in self.changes:
            if kind != "insert":
                rows = [old for old in rows if any(old[name] != row[name] for name in self.on)]
            if kind != "delete":
                rows.append(row)
        model.set(rows)


@dataclass(frozen=True)
class DeleteKeys:
    """Deletes by key without reading: an equality-delete file of these columns. `partition` holds the values of the
    partition that it goes to, where the table has any."""

    keys: Sequence[Row]
    partition: tuple[Any, ...] = ()
    within: Callable[[Row], bool] = lambda _: True

    def apply(self, model: Model) -> None:
        names = tuple(self.keys[0])
        gone = {tuple(key[name] for name in names) for key in self.keys}

        def stays(row: Row) -> bool:
            return not self.within(row) or tuple(row[name] for name in names) not in gone

        model.set(filter(stays, model.state().rows))


@dataclass(frozen=True)
class ImportFile:
    """Adds a Parquet file without field ids, as Hive or another writer leaves it."""

    rows: Sequence[Row]

    def apply(self, model: Model) -> None:
        model.set([*model.state().rows, *self.rows])


@dataclass(frozen=True)
class Transaction:
    """Several changes in one commit."""

    changes: Sequence[Change]

    def apply(self, model: Model) -> None:
        for change in self.changes:
            change.apply(model)


# ---- schema ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AddColumn:
    """Adds a field at the end of the schema, or of the struct that its path leads to.

    Args:
        path: Names with dots; ``element`` and ``value`` lead into lists and maps.
        type: Its Iceberg type.
        default: The initial and the write default (v3).
    """

    path: str
    type: Type
    default: Any = None

    def apply(self, model: Model) -> None:
        name = self.path.rpartition(".")[2]

        def add(holder: Row) -> None:
            holder[name] = self.default

        model.edit(Edited(self.path, add, lambda names: [*names, name]))
        if "." not in self.path and self.default is not None:
            model.write_defaults[name] = self.default


@dataclass(frozen=True)
class DropColumn:
    path: str

    def apply(self, model: Model) -> None:
        name = self.path.rpartition(".")[2]

        def drop(holder: Row) -> None:
            del holder[name]

        model.edit(Edited(self.path, drop, lambda names: [n for n in names if n != name]))
        model.write_defaults.pop(self.path, None)


@dataclass(frozen=True)
class RenameColumn:
    path: str
    new: str

    def apply(self, model: Model) -> None:
        name = self.path.rpartition(".")[2]

        def rename(holder: Row) -> None:
            holder[self.new] = holder.pop(name)

        model.edit(Edited(self.path, rename, lambda names: [self.new if n == name else n for n in names]))
        if self.path in model.write_defaults:
            model.write_defaults[self.new] = model.write_defaults.pop(self.path)


@dataclass(frozen=True)
class Promote:
    """Widens a type; `change` is what it does to values, where it does anything."""

    path: str
    type: Type
    change: Callable[[Any], Any] = lambda value: value

    def apply(self, model: Model) -> None:
        name = self.path.rpartition(".")[2]

        def widen(holder: Row) -> None:
            if holder[name] is not None:
                holder[name] = self.change(holder[name])

        model.edit(Edited(self.path, widen))


@dataclass(frozen=True)
class Move:
    """Moves a column behind another one of its struct, or to the front."""

    path: str
    after: str | None = None

    def apply(self, model: Model) -> None:
        def moved(names: list[str]) -> list[str]:
            rest = [n for n in names if n != self.path]
            place = 0 if self.after is None else rest.index(self.after) + 1
            return [*rest[:place], self.path, *rest[place:]]

        model.edit(Edited(self.path, columns=moved))


@dataclass(frozen=True)
class WriteDefault:
    """Sets the default of future rows (v3)."""

    path: str
    value: Any

    def apply(self, model: Model) -> None:
        model.write_defaults[self.path] = self.value


# ---- layout and metadata: no row changes -------------------------------------------------------------------------


@dataclass(frozen=True)
class SameRows:
    """A change that leaves every row, and in v3 every row's lineage, as it is."""

    def apply(self, model: Model) -> None:
        return


@dataclass(frozen=True)
class AddField(SameRows):
    """Partitions by a transform (``"bucket[4]"``) of a column as well."""

    column: str
    transform: str
    name: str | None = None


@dataclass(frozen=True)
class DropField(SameRows):
    name: str


@dataclass(frozen=True)
class RenameField(SameRows):
    name: str
    new: str


@dataclass(frozen=True)
class Sort(SameRows):
    """The sort order that writers use: column, direction, place of nulls."""

    keys: Sequence[tuple[str, Literal["asc", "desc"], Literal["nulls-first", "nulls-last"]]]


@dataclass(frozen=True)
class SetProperties(SameRows):
    values: Mapping[str, str]


@dataclass(frozen=True)
class Upgrade(SameRows):
    version: int


@dataclass(frozen=True)
class RewriteData(SameRows):
    """Rewrites all data files into as few as possible; `zorder` are columns along which we arrange rows besides."""

    zorder: Sequence[str] = ()


@dataclass(frozen=True)
class RewriteManifests(SameRows):
    pass


@dataclass(frozen=True)
class RewritePositionDeletes(SameRows):
    pass


@dataclass(frozen=True)
class ConvertEqualityDeletes(SameRows):
    pass


@dataclass(frozen=True)
class Expire(SameRows):
    """Expires all snapshots but the last `keep` of each branch and those that tags hold."""

    keep: int = 1


# ---- references --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Branch:
    name: str
    label: str | None = None

    def apply(self, model: Model) -> None:
        model.branches[self.name] = model.state() if self.label is None else model.labels[self.label]


@dataclass(frozen=True)
class Tag:
    name: str
    label: str | None = None

    def apply(self, model: Model) -> None:
        model.tags[self.name] = model.branches["main"] if self.label is None else model.labels[self.label]


@dataclass(frozen=True)
class DropRef:
    name: str

    def apply(self, model: Model) -> None:
        (model.branches if self.name in model.branches else model.tags).pop(self.name)


@dataclass(frozen=True)
class FastForward:
    branch: str
    to: str

    def apply(self, model: Model) -> None:
        model.branches[self.branch] = model.branches[self.to]


@dataclass(frozen=True)
class Rollback:
    """Makes a former state of main current again."""

    label: str

    def apply(self, model: Model) -> None:
        model.branches["main"] = model.labels[self.label]


@dataclass(frozen=True)
class SetCurrent(Rollback):
    """Makes any snapshot current."""


@dataclass(frozen=True)
class Publish:
    """Brings the rows of a staged snapshot to main."""

    wap: str

    def apply(self, model: Model) -> None:
        model.set([*model.state().rows, *model.staged[self.wap]])


# ---- histories ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A change, who makes it, and the name of the snapshot that main is at after it."""

    engine: Engine
    change: Change
    label: str | None = None


def ours(change: Change, label: str | None = None) -> Step:
    return Step("ours", change, label)


def java(change: Change, label: str | None = None) -> Step:
    return Step("java", change, label)


def pyiceberg(change: Change, label: str | None = None) -> Step:
    return Step("pyiceberg", change, label)


@dataclass(frozen=True, kw_only=True)
class History:
    """What happens to one table.

    Args:
        name: Says it.
        columns: The first schema.
        steps: In order.
        versions: The format versions that it is played in, each with a table of its own.
        partition: Column and transform, such as ``("id", "bucket[4]")``.
        properties: Of the table, from the start.
        required: Columns that are never null.
        created_by: Who creates the table.
        catalog: Which catalog all engines share.
        refusals: Reader -> a piece of the error that it raises, for what it does not support.
        wrong: Reader -> why it returns other rows than the table has; it fails when it no longer does.
        unaccounted: Totals of snapshot summaries that an engine gets wrong in it.
        probes: Filters that are read with at the end, too.
        coda: Engines that append one more row each before the end.
        in_sample: Whether it is played in every run of the tests; the others are soak.
    """

    name: str
    columns: Mapping[str, pa.DataType]
    steps: Sequence[Step]
    versions: Sequence[int] = (1, 2, 3)
    partition: Sequence[tuple[str, str]] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    created_by: Engine = "ours"
    catalog: Literal["sql", "directory", "rest"] = "sql"
    refusals: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)
    unaccounted: Sequence[str] = ()
    probes: Sequence[Where] = ()
    coda: Sequence[Engine] = ("java", "ours", "pyiceberg")
    in_sample: bool = False
