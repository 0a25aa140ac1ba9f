"""A process of the simulated world: the public API as an actor calls it, its time and names those of the world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pyarrow as pa

from icebench.engine.catalog import catalog as rooms
from icebench.engine.commit.committer import Identifier
from icebench.engine.commit.retry import Waiting
from icebench.engine.commit.staging_context import Staging
from icebench.engine.commit.target import Target
from icebench.engine.maintenance.maintenance import Maintenance
from icebench.engine.opening.catalog import Catalog
from icebench.engine.plan.cache import ManifestCache
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.storage.store import Store
from icebench.engine.table import Table
from tests.simulation.catalogs import Place
from tests.simulation.schedule import Operation, RowValues
from tests.simulation.world import World

TABLE: Identifier = ("d", "t")
RENAMED: Identifier = ("d", "u")
ONE_THREAD = LocalRunner(1)


class SimulatedTable(Table):
    """A table handle whose clock, names, chance and waits are the world's."""

    world: World

    def _target(self, counters: Counters | None) -> Target:
        return replace(super()._target(counters), new_staging=self._staging, waiting=waiting_in(self.world))

    def rename(self, old: Identifier, new: Identifier) -> None:
        """Rename a table."""
        self._catalog.rename_table(old, new)

    def drop(self) -> None:
        """Drop this table."""
        self._catalog.drop_table(self._identifier)

    def create(self) -> None:
        """Make a table of this table's first name, like this one."""
        inner = Catalog(self._catalog, now_ms=self.world.time_ms, new_id=self.world.new_uuid)
        inner.create_table(TABLE, self.schema(), properties={"format-version": str(self.metadata.format_version)})

    @property
    def _catalog(self) -> rooms.Catalog:
        assert self._committer is not None
        return cast("rooms.Catalog", self._committer)

    @property
    def maintenance(self) -> Maintenance:
        target = replace(self._target(None), runner=ONE_THREAD)
        return replace(super().maintenance, target=lambda: target, new_id=self.world.new_uuid)

    def _staging(self, store: Store, counters: Counters) -> Staging:
        world = self.world
        return Staging(
            store=store,
            counters=counters,
            commit_id=world.new_uuid(),
            now_ms=world.time_ms,
            new_snapshot_id=world.number,
            runner=ONE_THREAD,
        )


def waiting_in(world: World) -> Waiting:
    """Waits that pass the world's time."""
    return Waiting(sleep=world.sleep, monotonic=world.monotonic, random=lambda: 0.5)


@dataclass(eq=False)
class Step:
    """A change of one snapshot, as it was called.

    Args:
        operation: What was called.
        tag: Stands in the snapshot's summary.
        given: The rows that were given, by field id, in the order of the call.
        chosen: A snapshot that was chosen by what the table was.
        did: Whether the call said that it made a snapshot.
        result: What it returned.
    """

    operation: Operation
    tag: str
    given: list[frozenset[tuple[int, object]]] = field(default_factory=list)
    chosen: int | None = None
    did: bool | None = None
    result: object = None


@dataclass(eq=False)
class Process:
    """One run of an actor's program, until it dies."""

    world: World
    place: Place
    store: Store
    _cache: ManifestCache = field(default_factory=ManifestCache)

    def __post_init__(self) -> None:
        self.catalog = self.place.client(self.store, waiting_in(self.world))

    def table(self, identifier: Identifier = TABLE) -> SimulatedTable:
        """The table as it is now."""
        state = self.catalog.load_state(identifier)
        made = SimulatedTable(identifier, state, self.store, self.catalog, self._cache)
        made.world = self.world
        return made


def arrow_rows(rows: Sequence[RowValues], target: Any, step: Step) -> pa.Table:
    """Rows as the call takes them: columns that were added to the table hold what v holds."""
    schema = target.metadata.schema
    columns: dict[str, Any] = {
        "k": [row[0] for row in rows],
        "v": [row[1] for row in rows],
        "p": [row[2] for row in rows],
    }
    types = {"p": pa.float64()}
    for column in schema.fields[3:]:
        columns[column.name] = columns["v"]
    names = {f.name: f.field_id for f in schema.fields}
    step.given = [
        frozenset((names[name], plain(values[i])) for name, values in columns.items() if values[i] is not None)
        for i in range(len(rows))
    ]
    return pa.table({name: pa.array(values, types.get(name, pa.int64())) for name, values in columns.items()})


def plain(value: object) -> object:
    """NaN equals itself here."""
    return "NaN" if value != value else value  # noqa: PLR0124
