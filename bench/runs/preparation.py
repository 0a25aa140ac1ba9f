"""What is measured of a definition's workloads: their tables, found or made, and what measurements make of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from icebench.bench.costs.object_store import PROFILES
from icebench.bench.engines.access import Access, TableAccess
from icebench.bench.engines.engine import AnyEngine
from icebench.bench.engines.registry import readers_of
from icebench.bench.errors import ConfigError
from icebench.bench.execution.context import NO_DELAY, Context
from icebench.bench.execution.measurement import BUILD, MEASUREMENTS
from icebench.bench.execution.spark_use import SparkUse
from icebench.bench.execution.trial import Measurement
from icebench.bench.experiment import Experiment
from icebench.bench.processes.delayed_s3 import Delay, delayed_s3
from icebench.bench.progress import Progress
from icebench.bench.records.case import Case
from icebench.bench.runs.own_tables import own_database, own_tables
from icebench.bench.tables.cache import DatasetCache
from icebench.bench.tables.datasets import Dataset, DatasetRequest, find_or_build
from icebench.bench.tables.table_builder import TableBuild, is_distributed
from icebench.bench.trials.building import Building
from icebench.bench.trials.subject import Subject
from icebench.bench.truth.filters import filter_columns
from icebench.bench.truth.metadata import load_table_json
from icebench.bench.truth.oracle import Oracle
from icebench.bench.workloads.definitions import RowsWorkload, TablesWorkload
from icebench.bench.workloads.reading_files import DELETE_KINDS
from icebench.bench.workloads.workload import TableWorkload, Workload


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What finding and making tables takes.

    Args:
        experiment: The definition.
        cache: Directory of generated tables.
        spark: The run's session.
        progress: Reports every step.
        engines: Those that could be made, by name.
        access: Learns what opens the files of tables in catalogs.
        resources: Holds what tables need until the end of the run.
    """

    experiment: Experiment
    cache: Path
    spark: SparkUse
    progress: Progress
    engines: Mapping[str, AnyEngine]
    resources: ExitStack
    access: TableAccess = field(default_factory=TableAccess)
    _oracles: dict[tuple[tuple[Path, ...], tuple[str, ...]], Oracle] = field(default_factory=dict, init=False)

    def measurements(self) -> list[Measurement]:
        """Every measurement of the definition, in the order of its workloads, with all tables made.

        Raises:
            ConfigError: A filter or column list names what a table does not have, or there is no such table.
            DatasetFailed: A table could not be made.
            EngineError: This project's engine could not write a table.
        """
        found: list[Measurement] = []
        tables: list[TableWorkload] = []
        for workload in self.experiment.workloads:
            match workload:
                case RowsWorkload():
                    for table in self._arranged(workload):
                        found += self._of_table(workload, table)
                case TableWorkload():
                    tables.append(workload)
                case TablesWorkload():
                    found += self._made(workload, own_database(workload, self._folder(), self.access), None)
                case _:
                    for subject in workload.subjects():
                        found += self._made(workload, subject, None)
        if tables:
            for table in own_tables(tables, self.experiment.filters, self._folder(), self.access):
                found += self._of_table(tables[0], table)
        return found

    def _folder(self) -> Path:
        """A new directory for metadata of tables that exist, until the end of the run."""
        self.cache.mkdir(parents=True, exist_ok=True)
        return Path(self.resources.enter_context(TemporaryDirectory(prefix="table-", dir=self.cache)))

    def _of_table(self, workload: Workload, table: Subject) -> Iterator[Measurement]:
        if table.building is not None:
            yield table.building
        yield from self._made(workload, table, table.layout)

    def _made(self, workload: Workload, subject: object, layout: str | None) -> Iterator[Measurement]:
        """What the measurements that suit the workload make of one of its subjects."""
        experiment = self.experiment
        for name in experiment.measurements:
            kind = MEASUREMENTS[name]
            if not kind.fits(workload) or not (layout is None or experiment.measures(name, layout)):
                continue
            context = Context(
                options=experiment.options[name],
                engines=self.engines,
                asked=experiment.engines,
                seed=experiment.seed,
                cache=self.cache,
                spark=self.spark,
                progress=self.progress,
                resources=self.resources,
                access=self.access,
                store=lambda: self._store,
            )
            yield from kind.measurements(subject, context)

    @cached_property
    def _store(self) -> Access:
        """What opens the files of an S3 server, which runs until the end of the run."""
        delays = {
            profile.name: Delay(seconds=profile.latency_seconds, bytes_per_second=profile.connection_bytes_per_second)
            for profile in PROFILES.values()
        }
        no_delay = Delay(seconds=0.0, bytes_per_second=math.inf)
        return self.resources.enter_context(delayed_s3({NO_DELAY: no_delay, **delays}))

    def _arranged(self, workload: RowsWorkload) -> Iterator[Subject]:
        """The workload's rows in every layout."""
        experiment = self.experiment
        deletes = "deletes" in experiment.measurements
        request = DatasetRequest(
            rows=workload.rows,
            layouts=experiment.layouts,
            deletes=experiment.options["deletes"] if deletes else None,
            delete_layouts=[each.name for each in experiment.layouts if experiment.measures("deletes", each.name)],
        )
        readers = {kind: readers_of(kind, experiment.engines) for kind in DELETE_KINDS}
        for dataset in find_or_build(request, DatasetCache(self.cache), spark=self.spark, progress=self.progress):
            table = load_table_json(dataset.metadata_location)
            filters = experiment.filters or workload.rows.filters
            for name, text in filters.items():
                try:
                    filter_columns(text, table)
                except ConfigError as error:
                    raise ConfigError(str(error), path=f"filters.{name}") from error
            yield Subject(
                workload=workload.name,
                layout=dataset.layout.name,
                table=table,
                filters=filters,
                identifier_columns=workload.rows.identifier_columns,
                usual=workload.scanned,
                rows=dataset.raw.rows,
                without_deletes=dataset.metadata_location,
                with_deletes=dataset.with_deletes,
                readers={variant: readers[kind] for variant, kind in dataset.kinds.items() if kind in readers},
                truth=partial(self._truth_of, dataset),
                building=self._building(workload.name, dataset),
            )

    def _building(self, workload: str, dataset: Dataset) -> Building:
        """What the table takes to build."""
        layout = dataset.layout
        build = partial(TableBuild.prepare, layout, dataset.raw, spark=self.spark, enlarged=dataset.enlarged)
        return Building(
            case=Case(workload=workload, layout=layout.name, measurement=BUILD.name),
            cost=dataset.cost,
            workspace=self.cache,
            prepare=build if self.experiment.times_builds else None,
            seconds=dataset.build_seconds,
            on_spark=is_distributed(layout),
        )

    def _truth_of(self, dataset: Dataset, variant: str) -> Oracle:
        """One for all layouts of the same rows."""
        known = (tuple(dataset.raw.paths), tuple(dataset.deleted.get(variant, ())))
        return self._oracles.setdefault(known, Oracle(*known))
