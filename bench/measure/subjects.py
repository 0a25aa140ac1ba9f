"""What a definition's workloads are measured by: their tables, found or made, and a measurement for each figure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from bench.engines.access import TableAccess
from bench.engines.engine import AnyEngine, normalised
from bench.engines.iceberg_java import IcebergJava
from bench.engines.inflate import Inflate
from bench.errors import BenchError, ConfigError
from bench.experiment import Experiment
from bench.measure.brute.filters import filter_columns
from bench.measure.brute.manifests import DATA, live_files
from bench.measure.brute.metadata import TableJson, load_table_json
from bench.measure.brute.truth import MatchingRows
from bench.measure.building import Building
from bench.measure.cache import DatasetCache
from bench.measure.case import EVERYTHING, Case
from bench.measure.commits import Commits
from bench.measure.datasets import Dataset, DatasetRequest, find_or_build
from bench.measure.fresh_scans import FreshScans
from bench.measure.histories import histories
from bench.measure.maintenance import Maintenance
from bench.measure.metadata_tables import find_or_build as find_described
from bench.measure.metadata_tables import rewritten_by_java
from bench.measure.oracle import Oracle
from bench.measure.own_tables import own_tables
from bench.measure.planning import DescribedFiles, Planning, TableFiles
from bench.measure.progress import Progress
from bench.measure.pruning import Pruning
from bench.measure.reading import DELETE_ENGINES, reading
from bench.measure.scanning import Scanning
from bench.measure.spark_use import SparkUse, spark_settings
from bench.measure.subject import NONE, Subject, Unmeasured, decimal_columns
from bench.measure.trial import Measurement
from bench.workloads.definitions import (
    DescribedWorkload,
    EventsWorkload,
    MaintenanceWorkload,
    ReadingWorkload,
    RowsWorkload,
    TableWorkload,
)

JAVA = "iceberg-java"
PHASE = "tables"
FRESH = (EVERYTHING, "metric")
"""Filters of described files that fresh processes plan."""


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What finding and making tables takes.

    Args:
        experiment: The definition.
        cache: Directory of generated tables.
        spark: The run's session.
        progress: Told every step.
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
                    for subject in self._arranged(workload):
                        found += self._of_table(subject)
                case TableWorkload():
                    tables.append(workload)
                case DescribedWorkload():
                    found += self._described(workload)
                case ReadingWorkload():
                    found += reading(workload, self.experiment.engines, DatasetCache(self.cache), self.progress)
                case EventsWorkload():
                    found += histories(workload, self.experiment.engines, DatasetCache(self.cache), self.progress)
                case MaintenanceWorkload():
                    case = Case(workload=workload.name, layout=workload.name, measurement="maintenance")
                    found.append(
                        Maintenance(
                            case=case, tables=workload.tables, actions=workload.actions,
                            engines=self.experiment.engines, workspace=self.cache,
                            spark=spark_settings(self.experiment.spark, self.cache / "iceberg_java")
                            if workload.fresh else None,
                        )
                    )  # fmt: skip
        if tables:
            self.cache.mkdir(parents=True, exist_ok=True)
            folder = Path(self.resources.enter_context(TemporaryDirectory(prefix="table-", dir=self.cache)))
            for subject in own_tables(tables, self.experiment.filters, folder, self.access):
                found += self._of_table(subject)
        return found

    def _of_table(self, subject: Subject) -> Iterator[Measurement]:
        """The measurements of a table with rows."""
        case = subject.case
        wanted = [m for m in self.experiment.measurements if self.experiment.measures(m, subject.layout)]
        table = load_table_json(subject.location, self.access.reader(subject.location))
        files = [file for file in live_files(table) if file.content == DATA]
        if subject.cost is not None:
            yield Building(case=case("build"), cost=subject.cost)
        rows = cache(partial(MatchingRows, table, files))
        if "planning" in wanted:
            by_path = {normalised(file.path): file for file in files}
            truth = TableFiles(by_path, lambda name: rows().matching(subject.filters[name]))
            yield Planning(case=case("planning"), location=subject.location, filters=subject.filters, truth=truth)
        if "pruning" in wanted:
            yield Pruning(case=case("pruning"), location=subject.location, filters=subject.filters, truth=rows)
        if "decimals" in wanted:
            if subject.decimal_columns:
                yield Scanning(
                    case=case("decimals"),
                    tables={"": subject.location},
                    columns=subject.decimal_columns,
                    truth=subject.truth,
                )
            else:
                yield Unmeasured(case=case("decimals"), reason="the table has no decimal column")
        if "filtered" in wanted:
            yield Scanning(
                case=case("filtered"),
                tables={"": subject.location},
                columns=subject.filtered_columns,
                filters={**({EVERYTHING: None} if self.experiment.filtered_everything else {}), **subject.filters},
                truth=subject.truth,
            )
        if "reading" in wanted and subject.rows is not None:
            yield FreshScans(
                case=case("reading"),
                location=subject.location,
                rows=subject.rows,
                engines=tuple(self.engines),
                columns=subject.filtered_columns,
            )
        if "deletes" in wanted:
            if subject.without_deletes is None or not subject.with_deletes:
                yield Unmeasured(case=case("deletes"), reason="the table has no deletes")
                return
            yield Scanning(
                case=case("deletes"),
                tables={NONE: subject.without_deletes, **subject.with_deletes},
                columns=subject.delete_columns,
                base=NONE,
                readers=subject.readers,
                truth=subject.truth,
            )

    def _arranged(self, workload: RowsWorkload) -> Iterator[Subject]:
        """The workload's rows in every layout."""
        experiment = self.experiment
        request = DatasetRequest(
            rows=workload.rows,
            layouts=experiment.layouts,
            deletes=experiment.deletes if "deletes" in experiment.measurements else None,
            delete_layouts=[each.name for each in experiment.layouts if experiment.measures("deletes", each.name)],
        )
        for dataset in find_or_build(request, DatasetCache(self.cache), spark=self.spark, progress=self.progress):
            table = load_table_json(dataset.metadata_location)
            filters = experiment.filters or workload.rows.filters
            for name, text in filters.items():
                try:
                    filter_columns(text, table)
                except ConfigError as error:
                    raise ConfigError(str(error), path=f"filters.{name}") from error
            decimals = decimal_columns(table)
            scanned = workload.scanned or decimals
            yield Subject(
                workload=workload.name,
                layout=dataset.layout.name,
                location=dataset.metadata_location,
                filters=filters,
                decimal_columns=_known(experiment.columns, table, "decimals.columns") or decimals,
                delete_columns=_known(experiment.deletes.columns, table, "deletes.columns") or scanned,
                filtered_columns=_known(experiment.filtered_columns, table, "filtered.columns") or scanned,
                rows=dataset.raw.rows,
                without_deletes=dataset.metadata_location,
                with_deletes=dataset.with_deletes,
                readers={v: DELETE_ENGINES[kind] for v, kind in dataset.kinds.items() if kind in DELETE_ENGINES},
                truth=partial(_truth_of, dataset),
                cost=dataset.cost,
            )

    def _described(self, workload: DescribedWorkload) -> Iterator[Measurement]:
        """Plans of the table in the manifests of each of its writers, and commits of its files."""
        files, engines = workload.files, workload.engines or self.experiment.engines

        def told(done: int) -> None:
            self.progress(PHASE, f"{workload.name}: files", done, files.files)

        own = find_described(files, DatasetCache(self.cache), told=told)
        if "planning" in self.experiment.measurements:
            for writer in workload.writers:
                name = workload.name if writer != JAVA else f"{workload.name}, written by {JAVA}"
                case = Case(workload=workload.name, layout=name, measurement="planning")
                location = own
                if writer == JAVA and JAVA not in self.engines:
                    yield Unmeasured(case=case, reason=f"{JAVA}, which would write the table, is missing")
                    continue
                if writer == JAVA:
                    self.progress(PHASE, f"{name}: manifests", 0, 1)
                    try:
                        java = cast("IcebergJava", self.engines[JAVA])
                        location = rewritten_by_java(own, java, DatasetCache(self.cache))
                    except BenchError as error:
                        yield Unmeasured(case=case, error=error)
                        continue
                yield Planning(
                    case=case,
                    location=location,
                    filters=files.filters(),
                    truth=DescribedFiles(files),
                    engines=(*engines, Inflate.name),
                    fresh=FRESH if workload.fresh and writer != JAVA else (),
                    floorless=("partition",),
                )
        if "commits" in self.experiment.measurements:
            case = Case(workload=workload.name, layout=workload.name, measurement="commits")
            yield Commits(case=case, location=own, files=files, engines=tuple(engines), workspace=self.cache)


def _truth_of(dataset: Dataset, variant: str) -> Oracle:
    return Oracle(dataset.raw.paths, dataset.deleted.get(variant, ()))


def _known(columns: Collection[str], table: TableJson, path: str) -> tuple[str, ...]:
    known: Sequence[str] = [column.name for column in table.columns]
    for index, name in enumerate(columns):
        if name not in known:
            raise ConfigError(f"the table has no column {name!r}", path=f"{path}[{index}]")
    return tuple(columns)
