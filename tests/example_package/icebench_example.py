"""An engine, a measurement and a workload of icebench, from a package of its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
import pyarrow as pa

import icebench
from icebench.bench.definition import Definition
from icebench.bench.engines.checksum import Checksum, checksum_of
from icebench.bench.engines.engine import Ability
from icebench.bench.engines.registry import EngineContext, EngineEntry
from icebench.bench.execution.context import Context
from icebench.bench.execution.measurement import SCAN_SERIES, MeasurementKind, Metric, Race, SectionText
from icebench.bench.execution.trial import Measurement
from icebench.bench.trials.scanning import Scanning
from icebench.bench.trials.subject import Subject
from icebench.bench.workloads.definitions import RowsWorkload, WorkloadEntry
from icebench.bench.workloads.gives import Gives
from icebench.bench.workloads.rows import KeyRange, Rows


class WholeTable:
    """This project's engine, which gives all rows as one Arrow table."""

    name = "whole-table"
    version = version("icebench")
    abilities = frozenset({Ability.SCAN})

    def __init__(self, context: EngineContext) -> None:
        self._access = context.access

    def open(self, metadata_location: str) -> icebench.Table:
        return icebench.load_table(metadata_location, properties=self._access(metadata_location).options)

    def compile(self, handle: icebench.Table, filter: str | None) -> str | None:
        return filter

    def scan(self, handle: icebench.Table, columns: Sequence[str], filter: str | None) -> pa.Table:
        return handle.scan(filter=filter, columns=columns).to_arrow()

    def checksum(self, handle: icebench.Table, columns: Sequence[str], filter: str | None) -> Checksum:
        return checksum_of(self.scan(handle, columns, filter).to_batches(), columns)


ENGINE = EngineEntry(name=WholeTable.name, factory="icebench_example:WholeTable", description="all rows at once")


class Narrow(MeasurementKind):
    """How long it takes to deliver the first column alone."""

    name = "narrow"
    description = "all rows of the first column delivered"
    suits = frozenset({Gives.ROWS, Gives.TABLE})
    series = SCAN_SERIES
    section = SectionText(
        title="Narrow scans",
        explanation="All rows of a table's first column.",
        metrics=(Metric(name="scan_time_cold", title="Time of the scan, cold", caption="Median and interval."),),
        case="Scan",
    )
    races = (Race(what="Scanning one column", metric="scan_time_cold"),)

    def measurements(self, subject: object, context: Context) -> Iterator[Measurement]:
        assert isinstance(subject, Subject)
        columns = [column.name for column in subject.table.columns[:1]]
        yield Scanning(
            case=subject.case(self.name), tables={"": subject.location}, columns=columns, truth=subject.truth
        )


NARROW = Narrow()

LAYOUTS = """
[[layout]]
name = "by-value"
description = "sorted by value"
sort = ["value"]
"""


@dataclass(frozen=True, kw_only=True)
class Sensors(Rows):
    """Readings of a hundred sensors in turn."""

    @property
    def name(self) -> str:
        return "sensors"

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("number", pa.int64()), ("sensor", pa.int32()), ("value", pa.float64())])

    @property
    def filters(self) -> dict[str, str]:
        return {"one_sensor": "sensor = 7"}

    def batch(self, start: int, stop: int) -> pa.RecordBatch:
        numbers = np.arange(start, stop)
        columns = [numbers, (numbers % 100).astype(np.int32), np.sin(numbers + self.seed)]
        return pa.record_batch(columns, schema=self.schema)

    def delete_keys(self, share: float, spread: str) -> KeyRange:
        return self.consecutive_keys("number", share, spread)


def sensors(values: Definition) -> RowsWorkload:
    """A definition's `rows`: how many."""
    return RowsWorkload(kind="sensors", rows=Sensors(rows=values.whole("rows", least=1)), scanned=("value",))


SENSORS = WorkloadEntry(description="readings of a hundred sensors", parse=sensors)
