"""A table with rows, under measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from icebench.bench.errors import BenchError
from icebench.bench.measure.brute.metadata import TableJson
from icebench.bench.measure.case import Case
from icebench.bench.measure.table_builder import BuildCost
from icebench.bench.measure.trial import Bench, TableTruth, Trial

NONE = "none"
"""The configuration without deletes, in the deletes measurement."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One table.

    Args:
        workload: Whose rows it has.
        layout: The name under which it is recorded.
        location: The metadata file that planning, pruning and decimals measure.
        filters: Name -> SQL text.
        decimal_columns: The columns of the decimals measurement.
        delete_columns: The columns that the deletes measurement scans.
        filtered_columns: Those of filtered reads.
        rows: How many it has before deletes, where that is known.
        without_deletes: The table whose scan is what deletes are compared with; None when there is none.
        with_deletes: Variant -> the same data files with deletes.
        readers: Variant -> engines that can read its deletes, where not all can.
        truth: Gives what knows the rows of a variant, of `NONE` the undeleted ones; None where only the files do.
        cost: What building it took; None for a table that was there.
    """

    workload: str
    layout: str
    location: str
    filters: Mapping[str, str]
    decimal_columns: tuple[str, ...]
    delete_columns: tuple[str, ...] = ()
    filtered_columns: tuple[str, ...] = ()
    rows: int | None = None
    without_deletes: str | None = None
    with_deletes: Mapping[str, str] = field(default_factory=dict)
    readers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    truth: Callable[[str], TableTruth] | None = None
    cost: BuildCost | None = None

    def case(self, measurement: str) -> Case:
        """The case of a measurement of this table, whatever the filter and engine."""
        return Case(workload=self.workload, layout=self.layout, measurement=measurement)


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


def decimal_columns(table: TableJson) -> tuple[str, ...]:
    """The table's decimal columns, in order."""
    return tuple(column.name for column in table.columns if column.type.startswith("decimal"))
