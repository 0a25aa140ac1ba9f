"""Figures of a profile against Iceberg Java's metadata tables: equal, and how long either takes.

Spark gives the sums, histogram, partitions, overlaps and greatest depths; average depths, which need the maximum over
each file's range, are this engine's alone.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import DateType
from pyspark.sql.window import Window

import icebench
from icebench.bench.tables.cache import DatasetCache
from icebench.bench.tables.metadata_tables import find_or_build
from icebench.bench.workloads.metadata_files import MetadataFiles

_ROUNDED = 6


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What both sides say of a table; `columns` has average overlaps and most depth, of the table and in partitions."""

    files: int
    records: int
    size_bytes: int
    small_files: int
    histogram: Mapping[int, int]
    partitions: int
    largest_partition_bytes: int
    manifests: int
    columns: Mapping[str, tuple[float, int, float, int]]


def own_figures(location: str) -> Figures:
    """By `table.maintenance.profile()`."""
    found = icebench.load_table(location).maintenance.profile()
    assert found.partitions is not None
    columns = {}
    for column in found.columns:
        table, within = column.table, column.within_partitions
        assert table is not None
        assert within is not None
        columns[column.name] = (
            round(table.average_overlaps, _ROUNDED),
            table.most_depth,
            round(within.average_overlaps, _ROUNDED),
            within.most_depth,
        )
    return Figures(
        files=found.files.files,
        records=found.files.records,
        size_bytes=found.files.size_bytes,
        small_files=found.files.small_files,
        histogram=dict(zip(found.files.histogram.lower, found.files.histogram.files, strict=True)),
        partitions=found.partitions.partitions,
        largest_partition_bytes=found.partitions.largest[0].size_bytes,
        manifests=found.manifests.data_manifests + found.manifests.delete_manifests,
        columns=columns,
    )


def java_figures(spark: SparkSession, location: str, smallest_bytes: int) -> Figures:
    """By Iceberg Java's metadata tables ``files`` and ``manifests``."""
    files = spark.read.format("iceberg").load(f"{location}#files").where("content = 0")
    size = sf.col("file_size_in_bytes")
    sums = files.agg(
        sf.count("*"), sf.sum("record_count"), sf.sum(size), sf.sum((size < smallest_bytes).cast("long"))
    ).collect()[0]
    bins = files.groupBy(sf.floor(sf.log2(size) / 2).alias("bin")).count().collect()
    partitions = files.groupBy("partition").agg(sf.sum(size).alias("size")).agg(sf.count("*"), sf.max("size")).collect()
    return Figures(
        files=sums[0],
        records=sums[1],
        size_bytes=sums[2],
        small_files=sums[3],
        histogram={4 ** row["bin"]: row["count"] for row in bins},
        partitions=partitions[0][0],
        largest_partition_bytes=partitions[0][1],
        manifests=spark.read.format("iceberg").load(f"{location}#manifests").count(),
        columns=_overlaps(files),
    )


def _overlaps(files: DataFrame) -> dict[str, tuple[float, int, float, int]]:
    """Ends of ranges in order, with running counts of those that have begun and ended; where one range ends and another
    begins, it begins first."""
    metrics = files.schema["readable_metrics"].dataType
    ends = []
    for column in metrics.fields:  # type: ignore[attr-defined] # a struct
        for number, bound in enumerate(("lower_bound", "upper_bound")):
            value = sf.col(f"readable_metrics.{column.name}.{bound}")
            is_date = isinstance(column.dataType["lower_bound"].dataType, DateType)
            as_number = (sf.unix_date(value) if is_date else value).cast("double")
            ends.append(
                sf.struct(sf.lit(column.name).alias("name"), as_number.alias("at"), sf.lit(number).alias("end"))
            )
    events = files.select("partition", sf.explode(sf.array(*ends)).alias("event")).select("partition", "event.*")
    of_table, of_partitions = (_running(events, keys) for keys in (["name"], ["name", "partition"]))
    return {name: (*of_table[name], *of_partitions[name]) for name in of_table}


def _running(events: DataFrame, keys: Sequence[str]) -> dict[str, tuple[float, int]]:
    window = Window.partitionBy(*keys).orderBy("at", "end").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ended = sf.sum("end").over(window)
    begun = sf.count("*").over(window) - ended
    counted = events.select("name", "end", begun.alias("begun"), ended.alias("ended"))
    is_end: Column = sf.col("end") == 1
    found = counted.groupBy("name").agg(
        sf.sum(sf.when(is_end, sf.col("begun")).otherwise(-sf.col("ended"))).alias("meeting"),
        sf.sum("end").alias("files"),
        sf.max(sf.col("begun") - sf.col("ended")).alias("depth"),
    )
    return {row["name"]: (round(row["meeting"] / row["files"] - 1, _ROUNDED), row["depth"]) for row in found.collect()}


def test_both_sides_say_the_same(spark: SparkSession, tmp_path: Path) -> None:
    files = MetadataFiles(files=300, clustered=False, seed=5)
    location = find_or_build(files, DatasetCache(tmp_path), report=lambda _: None)
    own = own_figures(location)
    assert own == java_figures(spark, location, 402_653_184)
    assert (own.files, own.partitions, len(own.columns)) == (300, 60, 23)
    assert own.columns["ss_item_sk"][1] > 1


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_both_sides_in_turns(spark: SparkSession, tmp_path: Path) -> None:
    """``pytest -s -m soak`` prints the figures of docs/design/profile.md. Both sides load the table anew in each round;
    the first round is not counted."""
    location = find_or_build(MetadataFiles(files=100_000), DatasetCache(tmp_path), report=lambda _: None)
    smallest = icebench.load_table(location).maintenance.profile().files.smallest_bytes
    sides = {
        "icebench": lambda: own_figures(location),
        "Iceberg Java": lambda: java_figures(spark, location, smallest),
    }
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(6):
        found = []
        for name in sorted(sides, reverse=bool(turn % 2)):
            begun = time.perf_counter()
            found.append(sides[name]())
            seconds[name].append(time.perf_counter() - begun)
        assert found[0] == found[1]
    own, java = (statistics.median(each[1:]) for each in seconds.values())
    print(f"| {own:.1f} s | {java:.1f} s | {java / own:.0f}x |")  # noqa: T201
