"""A table with rows, under measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from icebench.bench.engines.engine import normalised
from icebench.bench.errors import BenchError, ConfigError
from icebench.bench.execution.context import Context
from icebench.bench.execution.trial import Bench, Measurement, TableTruth, Trial
from icebench.bench.records.case import Case
from icebench.bench.tables.cache import DatasetCache
from icebench.bench.tables.metadata_tables import find_or_build
from icebench.bench.truth.manifests import DATA, FileEntry, live_files
from icebench.bench.truth.metadata import TableJson
from icebench.bench.truth.rows import MatchingRows
from icebench.bench.workloads.described import DescribedWorkload


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One table.

    Args:
        workload: Whose rows it has.
        layout: The name under which it is recorded.
        table: Its metadata.
        filters: Name -> SQL text.
        identifier_columns: Whose values together identify a row; empty where none are known.
        usual: The columns that scans deliver unless the definition names others; if empty, the decimal ones.
        rows: How many it has before deletes, where that is known.
        without_deletes: The table whose scan is what deletes are compared with; None when there is none.
        with_deletes: Variant -> the same data files with deletes.
        readers: Variant -> engines that can read its deletes, where not all can.
        truth: Returns the ground truth for the rows of a variant, for `NONE` the undeleted ones; None if there is only
            what the files hold.
        building: The measurement of building it; None for a table that existed.
    """

    workload: str
    layout: str
    table: TableJson
    filters: Mapping[str, str]
    identifier_columns: tuple[str, ...] = ()
    usual: tuple[str, ...] = ()
    rows: int | None = None
    without_deletes: str | None = None
    with_deletes: Mapping[str, str] = field(default_factory=dict)
    readers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    truth: Callable[[str], TableTruth] | None = None
    building: Measurement | None = None

    @property
    def location(self) -> str:
        """Its metadata file."""
        return self.table.location

    @property
    def decimal_columns(self) -> tuple[str, ...]:
        """In their order."""
        return tuple(column.name for column in self.table.columns if column.type.startswith("decimal"))

    @property
    def scanned(self) -> tuple[str, ...]:
        """The columns that scans deliver unless the definition names others."""
        return self.usual or self.decimal_columns

    @cached_property
    def files(self) -> Mapping[str, FileEntry]:
        """Its data files by normalised path."""
        return {normalised(file.path): file for file in live_files(self.table) if file.content == DATA}

    @cached_property
    def matching(self) -> MatchingRows:
        """Which rows of each file a filter keeps, by brute force."""
        return MatchingRows(self.table, list(self.files.values()))

    def chosen(self, columns: Sequence[str], usual: Sequence[str], path: str) -> tuple[str, ...]:
        """Columns that a definition names, or the usual ones where it names none.

        Raises:
            ConfigError: The table has no such column; `path` is where the definition names it.
        """
        known = [column.name for column in self.table.columns]
        for index, name in enumerate(columns):
            if name not in known:
                raise ConfigError(f"the table has no column {name!r}", path=f"{path}[{index}]")
        return tuple(columns or usual)

    def case(self, measurement: str) -> Case:
        """The case of a measurement of this table, whatever the filter and engine."""
        return Case(workload=self.workload, layout=self.layout, measurement=measurement)


def described_table(workload: DescribedWorkload, context: Context) -> str:
    """The metadata file of the table with the workload's files, from the cache or made now.

    Raises:
        DatasetFailed: The disk refused.
        EngineError: The engine could not write.
    """
    files = workload.files

    def report(done: int) -> None:
        context.progress("tables", f"{workload.name}: files", done, files.files)

    return find_or_build(files, DatasetCache(context.cache), report=report)


@dataclass(frozen=True, kw_only=True)
class Unmeasured:
    """A measurement that cannot be made: skipped for a reason, or failed with an error."""

    case: Case
    reason: str = ""
    error: BenchError | None = None

    def trials(self, bench: Bench) -> Iterator[Trial]:
        if self.error is not None:
            bench.recorder.fail(replace(self.case, filter="*"), self.error)
        else:
            bench.recorder.skip(replace(self.case, filter="*"), self.reason)
        return iter(())
