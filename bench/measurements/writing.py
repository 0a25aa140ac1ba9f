"""Writing: rows in memory appended to an empty table, and changes of the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from icebench.bench.definition import Definition, one_of
from icebench.bench.engines.registry import ENGINES
from icebench.bench.errors import ConfigError
from icebench.bench.execution.measurement import ANY, Asked, MeasurementKind, Metric, Race, SectionText

if TYPE_CHECKING:
    from icebench.bench.workloads.workload import Workload

_ROWS = 1_000_000
_LEAST_LEVEL, _MOST_LEVEL = 1, 22
"""Of zstd."""
_FEWEST_UPSERTED = 4
"""Rows of a table of which some are changed and others are new."""


@dataclass(frozen=True, kw_only=True)
class WrittenRows:
    """What is written; an append of all columns always is.

    Args:
        rows: At most how many rows of the table, which are held in memory.
        levels: Levels of zstd of further appends.
        narrow: Columns of an append of these alone; none where empty.
        sort: Columns of the sort order of a table that is appended to; none where empty.
        upserts: Shares of the rows that are upserted.
        overwrite: Whether a partition is overwritten.
        most_keys: Engine -> the most rows that it is asked to upsert.
    """

    rows: int
    levels: tuple[int, ...] = ()
    narrow: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    upserts: tuple[float, ...] = ()
    overwrite: bool = False
    most_keys: Mapping[str, int] = field(default_factory=dict)


class _Kind(MeasurementKind):
    name = "writing"
    description = "rows in memory appended to an empty table or written to a Parquet file; upserts, an overwrite"
    made_by = "icebench.bench.trials.writing:measurements"
    is_usual = False
    seconds = 1.0
    series: ClassVar = {ANY: ("write_time", "write_cpu", "write_memory")}
    units: ClassVar = {"write_bytes": "bytes", "write_files": "files"}
    section = SectionText(
        title="Writing",
        explanation=(
            "Appends: the table's rows, in memory in the form in which each engine has rows, appended to an empty table"
            " of the same columns and partitions: data files, manifests and metadata are written and the table's "
            "pointer moved. DuckDB and Polars write no table but one Parquet file, without partitions. Files are as "
            "each engine makes them by default, compressed by zstd, at its default level unless one is named. Sorted: "
            "the table declares a sort order, by which the rows of each file were seen to be. Upserts and the "
            "overwrite: equal copies of a table whose files icebench wrote. Of the rows that are upserted half are the "
            "table's, spread evenly over it, with other values in all columns but key and partition, and half are new, "
            "spread likewise. Overwritten is the partition with the most rows, by as many. A case is compared with the "
            "same of other engines alone. What was written was read back, where possible by another engine, and seen "
            "to be right."
        ),
        metrics=(
            Metric(name="write_time", title="Time of a write", caption="Time of a write: median and interval."),
            Metric(name="write_cpu", title="Processor time of a write"),
            Metric(name="write_bytes", title="Bytes of data and delete files written", counted=True),
            Metric(name="write_files", title="Data and delete files written", counted=True),
        ),
        case="Write",
        against_own=True,
    )
    races = (
        Race(what="Appending rows", metric="write_time", cases="append"),
        Race(what="Upserting rows", metric="write_time", cases="upsert"),
        Race(what="Overwriting a partition", metric="write_time", cases="overwrite"),
    )

    def parse(self, values: Definition) -> WrittenRows:
        levels, upserts = values.wholes("levels"), values.shares("upserts", [], above=True)
        rows, keys = values.whole("rows", _ROWS, least=1), values.table("most_keys")
        for name, found in (("levels", levels), ("upserts", upserts)):
            if len(set(found)) < len(found):
                raise ConfigError("the same value is listed twice", path=values.at(name))
        if levels and not _LEAST_LEVEL <= min(levels) <= max(levels) <= _MOST_LEVEL:
            raise ConfigError(f"levels of zstd are {_LEAST_LEVEL} to {_MOST_LEVEL}", path=values.at("levels"))
        if upserts and max(upserts) > 0.5:
            raise ConfigError(f"{max(upserts):g} is more than half of the rows", path=values.at("upserts"))
        if upserts and rows < _FEWEST_UPSERTED:
            raise ConfigError(f"{rows} is below {_FEWEST_UPSERTED}, which upserts need", path=values.at("rows"))
        for engine in keys.keys():  # noqa: SIM118 - it is no mapping
            one_of(engine, ENGINES, "engine", keys.at(engine))
        return WrittenRows(
            rows=rows,
            levels=levels,
            narrow=values.columns("narrow"),
            sort=values.columns("sort"),
            upserts=upserts,
            overwrite=values.flag("overwrite", default=False),
            most_keys={engine: keys.whole(engine, least=1) for engine in keys.keys()},  # noqa: SIM118
        )

    def cases(self, workload: Workload, asked: Asked) -> int:
        own: WrittenRows = asked.options
        appends = 1 + len(own.levels) + bool(own.narrow) + bool(own.sort)
        return len(asked.engines) * (appends + 2 * len(own.upserts) + own.overwrite)


KIND = _Kind()
