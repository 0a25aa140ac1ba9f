"""Maintenance of equal copies of the same tables: what each engine takes for it, and what it writes.

Every run has the table as it was before the first one, in the same place, for metadata name files by whole paths. What
a run left behind is checked against what was asked for when the clock has stopped: rows, files, sizes, order, and which
files are on disk. No engine is trusted for any of that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq

from icebench.bench.engines.engine import Ability, AnyEngine, Maintaining, normalised
from icebench.bench.engines.sql_text import identifier, quoted
from icebench.bench.errors import Disagreement
from icebench.bench.execution.context import Context
from icebench.bench.execution.opened import try_each
from icebench.bench.execution.trial import Bench, Measurement, Timed, Trial
from icebench.bench.layouts.actions import KEYS, Action
from icebench.bench.layouts.layout import FORMAT_VERSION, Layout, Term
from icebench.bench.processes.fresh_process import fresh_process
from icebench.bench.records.case import Case, Evidence
from icebench.bench.spark_session import SparkSettings
from icebench.bench.tables.table_shape import check_shape
from icebench.bench.trials.commits import workspace
from icebench.bench.trials.restorable import Restorable
from icebench.bench.truth.manifests import DELETED, live_files, manifest_list, read_avro
from icebench.bench.truth.metadata import load_table_json
from icebench.bench.truth.sql import Sql
from icebench.bench.workloads.definitions import MaintenanceWorkload
from icebench.bench.workloads.maintenance_tables import NAME, MaintenanceTables, kind_of

_MOST_OVER = 1.8
"""How far a file may exceed the target: beyond this Iceberg would rewrite it again."""
_MOST_AREA = 0.5
"""Of the values of the keys, multiplied, a file of a curve has no larger share on average; unordered ones have all."""


@dataclass(frozen=True, kw_only=True)
class Maintenance:
    """Each action on the table that is made for it.

    Args:
        case: Of all actions and engines.
        tables: What is kept.
        actions: In which ways.
        engines: Names of those that are measured.
        workspace: Directory for the tables, which are deleted in the end.
        spark: Settings of the session of each run's own process; None runs all in this one, which warms.
    """

    case: Case
    tables: MaintenanceTables
    actions: tuple[Action, ...]
    engines: tuple[str, ...]
    workspace: Path
    spark: SparkSettings | None = None

    def trials(self, bench: Bench) -> Iterator[Trial]:
        folder = bench.resources.enter_context(workspace(self.workspace))
        for done, action in enumerate(self.actions):
            bench.progress("tables", f"a table for {action}", done, len(self.actions))
            case = replace(self.case, configuration=action)
            kept = KeptTable.of(self.tables, action, folder / kind_of(action))
            engines = bench.able(case, Ability.MAINTAIN, among=self.engines)
            for name in [name for name, each in engines.items() if action not in cast("Maintaining", each).maintains]:
                bench.recorder.skip(case.of(name), f"{name} has no {action} of its own")
                del engines[name]
            attempt = partial(_checked, bench, case, kept) if self.spark is None else partial(self._fresh, case, kept)
            yield from try_each(engines, attempt, bench.recorder, case).values()

    def _fresh(self, case: Case, kept: KeptTable, engine: AnyEngine) -> Trial:
        """In processes of its own, looked at each time."""
        own = ("icebench.bench.processes.fresh_maintenance", engine.name, str(kept.warehouse), kept.action)
        arguments = (*own, str(kept.tables.target_bytes), json.dumps(asdict(cast("SparkSettings", self.spark))))

        def prepare() -> Timed:
            kept.restore()
            return partial(fresh_process, arguments)

        return Trial(
            case=replace(case.of(engine.name), cache="fresh"), evidence=kept.evidence, prepare=prepare, after=kept.check
        )


def _checked(bench: Bench, case: Case, kept: KeptTable, engine: AnyEngine) -> Trial:
    """Keep the table once, and look at it."""
    own = cast("Maintaining", engine)
    prepare = partial(_maintaining, own, kept)
    timed = prepare()
    start = bench.clock()
    timed()
    seconds = bench.clock() - start
    kept.check()
    return Trial(
        case=case.of(engine.name),
        evidence=kept.evidence,
        prepare=prepare,
        seconds=seconds,
        after=kept.check,
    )


def _maintaining(own: Maintaining, kept: KeptTable) -> Callable[[], object]:
    kept.restore()
    return lambda: own.maintain(kept.warehouse, NAME, kept.action, kept.tables.target_bytes)


@dataclass(frozen=True, kw_only=True)
class KeptTable:
    """A table before maintenance: a restorable copy.

    Args:
        tables: Which.
        action: That it is made for.
        warehouse: The directory that its catalog is.
        aside: The same files once more.
    """

    tables: MaintenanceTables
    action: Action
    warehouse: Path
    aside: Path

    @classmethod
    def of(cls, tables: MaintenanceTables, action: Action, folder: Path) -> KeptTable:
        """Make it below a directory, unless it is there for another action."""
        made = cls(tables=tables, action=action, warehouse=folder / "warehouse", aside=folder / "aside")
        if made.aside.exists():
            made.restore()
        else:
            made.warehouse.mkdir(parents=True)
            tables.make(action, made.warehouse)
            made._restorable.keep()
        assert made.rows  # before anything is changed
        return made

    def restore(self) -> None:
        """Put all files where they were, and no others."""
        self._restorable.restore()

    @property
    def _restorable(self) -> Restorable:
        """The warehouse, to be restored."""
        return Restorable(place=self.warehouse, aside=self.aside)

    @cached_property
    def files(self) -> Mapping[str, int]:
        """Bytes of every file that there is before, by its path within the warehouse."""
        return _sizes(self.aside)

    @property
    def evidence(self) -> Evidence:
        """What it is."""
        return Evidence(counters={"files_before": len(self.files)})

    @cached_property
    def rows(self) -> tuple[Any, ...]:
        """What identifies the rows; of files without rows, their paths."""
        return self._rows_now()

    @cached_property
    def manifests(self) -> int:
        """How many there are before."""
        return len(manifest_list(load_table_json(str(self.warehouse / NAME.replace(".", "/")))))

    @property
    def _location(self) -> str:
        return str(self.warehouse / NAME.replace(".", "/"))

    def _rows_now(self) -> tuple[Any, ...]:
        table = load_table_json(self._location)
        paths = sorted(normalised(file.path) for file in live_files(table))
        if self.action in ("rewrite_manifests", "remove_orphan_files"):
            return tuple(paths)
        columns = ", ".join(sorted(identifier(column.name) for column in table.columns))
        listed = ", ".join(map(quoted, paths))
        query = f"SELECT count(*), sum(hash({columns})) FROM read_parquet([{listed}], hive_partitioning=false)"  # noqa: S608
        return Sql().rows(query, source=self._location)[0]

    def check(self) -> Mapping[str, float]:
        """Hold the table as it is now against what it was and what was asked for; what was written and deleted.

        Raises:
            Disagreement: It has other rows or files, or does not have the shape.
            DatasetFailed: A file is missing, or rows are not in the order.
        """
        if self._rows_now() != self.rows:
            raise Disagreement(f"after {self.action} the table has other rows or files")
        checks: Mapping[Action, Callable[[], Iterator[str]]] = {
            "rewrite_manifests": self._faults_of_manifests,
            "expire_snapshots": self._faults_on_disk,
            "remove_orphan_files": self._faults_on_disk,
        }
        for fault in checks.get(self.action, self._faults_of_data)():
            raise Disagreement(f"after {self.action} {fault}")
        now = _sizes(self.warehouse)
        new = now.keys() - self.files.keys()
        return {
            "bytes_written": sum(now[path] for path in new),
            "files_written": len(new),
            "files_deleted": len(self.files.keys() - now.keys()),
        }

    def _faults_of_data(self) -> Iterator[str]:
        """Sizes, and the order that the keys ask for."""
        files, keys, target = live_files(load_table_json(self._location)), KEYS.get(self.action, ()), self.tables
        size = sum(size for path, size in self.files.items() if path.endswith(".parquet"))
        if max(file.size_bytes for file in files) > _MOST_OVER * target.target_bytes:
            yield f"a file has more than {_MOST_OVER} times {target.target_bytes} bytes"
        if len(files) > 2 * size / target.target_bytes + 1:
            yield f"there are {len(files)} files of what was {size} bytes"
        sort = tuple(Term(column=key) for key in keys) if self.action == "sort" else ()
        check_shape(Layout(name=self.action, sort=sort, properties={FORMAT_VERSION: "2"}), self._location, target.rows)
        if self.action == "zorder" and len(files) >= 2 ** len(keys):
            areas = np.ones(len(files))
            for key in keys:
                columns = [pq.ParquetFile(file.path).read([key]).column(0).to_numpy() for file in files]
                everything = np.sort(np.concatenate(columns))
                ends = [np.searchsorted(everything, [one.min(), one.max()], side="right") for one in columns]
                areas *= [(last - first + 1) / len(everything) for first, last in ends]
            if areas.mean() > _MOST_AREA:
                yield f"a file has {areas.mean():.0%} of the keys on average"

    def _faults_of_manifests(self) -> Iterator[str]:
        """Each manifest has files of few partitions, and there are no more of them."""
        manifests = [each["manifest_path"] for each in manifest_list(load_table_json(self._location))]
        pairs = {
            (manifest, str(entry["data_file"]["partition"]))
            for manifest in manifests
            for entry in read_avro(manifest)
            if entry["status"] != DELETED
        }
        if len(pairs) >= len({partition for _, partition in pairs}) + len(manifests):
            yield f"{len(manifests)} manifests share partitions"
        if len(manifests) > self.manifests:
            yield f"there are {len(manifests)} manifests, and were {self.manifests}"

    def _faults_on_disk(self) -> Iterator[str]:
        """There are the files that the table needs, and no others; of metadata, after an expiry."""
        table = load_table_json(self._location)
        needed = {normalised(file.path) for file in live_files(table)}
        found = set(_paths(Path(self._location, "data")))
        if found != needed:
            yield f"data files: {len(found - needed)} are left over, {len(needed - found)} are missing"
        if self.action == "expire_snapshots":
            if len(table.values["snapshots"]) != 1:
                yield f"there are {len(table.values['snapshots'])} snapshots"
            needed = {normalised(each["manifest_path"]) for each in manifest_list(table)}
            needed.add(normalised(table.values["snapshots"][0]["manifest-list"]))
            found = {path for path in _paths(Path(self._location, "metadata")) if path.endswith(".avro")}
            if found != needed:
                yield f"metadata: {len(found - needed)} files are left over, {len(needed - found)} are missing"


def _paths(folder: Path) -> Iterator[str]:
    """Every file but Hadoop's checksums."""
    return (str(path) for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


def _sizes(folder: Path) -> dict[str, int]:
    return {path.removeprefix(str(folder)): Path(path).stat().st_size for path in _paths(folder)}


def measurements(subject: object, context: Context) -> Iterator[Measurement]:
    """Each action on the table that is made for it."""
    assert isinstance(subject, MaintenanceWorkload)
    yield Maintenance(
        case=Case(workload=subject.name, layout=subject.name, measurement="maintenance"),
        tables=subject.tables,
        actions=subject.actions,
        engines=context.asked,
        workspace=context.cache,
        spark=context.spark.settings if subject.fresh else None,
    )
