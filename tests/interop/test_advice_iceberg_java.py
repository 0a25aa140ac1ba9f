"""Iceberg Java runs the Spark SQL that advice prints, whatever names a table's columns have."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icebench.bench.advise.candidates import layout_of, todays_layout
from icebench.bench.advise.statements import spark_statements
from icebench.bench.layouts.layout import Term
from tests.interop.histories.places import directory_place

BUCKETS = Term(column="event-id", transform="bucket[4]")


def test_spark_sql_of_layouts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = directory_place(spark, tmp_path_factory.mktemp("advised"), "advised")
    schema = pa.schema([("event-id", pa.int64()), ("order", pa.int64()), ("2nd day", pa.int32())])
    table = place.ours.create_table(
        "db.odd-name", schema, partition_spec=[("2nd day", "identity")], sort_order=["order"]
    )
    rows = pa.table([pa.array(range(40), field.type) for field in schema], schema)
    table.append(rows)
    for layout in (
        layout_of((), {"sort": ("event-id", "order")}),
        layout_of((BUCKETS,), {"zorder": ("event-id", "2nd day")}),
        layout_of((), {"sort": ("order",)}),
        layout_of((), {"hilbert": ("order", "2nd day")}),
        layout_of((BUCKETS,), {"sort": ("2nd day",)}),
    ):
        for statement in spark_statements(layout, todays_layout(table), f"{place.spark_catalog}.db.odd-name"):
            spark.sql(statement)
        now = todays_layout(table.refresh())
        assert (now.partition, now.sort) == (layout.partition, layout.sort)
        assert table.scan().to_arrow().sort_by("order").equals(rows)
    place.close()
