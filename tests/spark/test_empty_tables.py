"""DataFrames of tables without rows, and of filters without matches, with all types that Spark has in one table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import engine
from engine.errors import Unsupported
from engine.spark.types import shown_type
from tests.property.empty_tables import COLUMNS, STATES, Case, Column, schema_of


def _is_shown(column: Column) -> bool:
    try:
        shown_type(column.leaf, column=column.name)
    except Unsupported:
        return False
    return True


@pytest.mark.parametrize(
    ("state", "partitioned"),
    [("new", True), ("deleted by position", True), ("file without rows", True), ("no match", False)],
)
def test_dataframes_without_rows(spark: SparkSession, tmp_path: Path, state: str, partitioned: bool) -> None:
    columns = [column for column in COLUMNS if _is_shown(column) and column.place in ("top", "struct", "list", "map")]
    names = {column.name for column in columns}
    spec = [(name, "identity") for name in ("uuid_top", "fixed_top", "unknown_top") if partitioned and name in names]
    table = engine.load_catalog(f"{tmp_path}/wh").create_table(
        "db.t",
        schema_of(columns),
        partition_spec=spec,
        properties={"format-version": "3", "write.delete.mode": "merge-on-read"},
    )
    case = Case(columns, "new")
    case.store = table.store  # type: ignore[assignment]
    STATES[state](case, table)
    frame = table.scan().to_spark(spark)
    assert frame.columns == case.arrow.names
    assert [row["id"] for row in frame.sort("id").collect()] == [row["id"] for row in case.live]
    for filter in case.filters:
        assert not table.scan(filter, [*names, "_file", "_partition"]).to_spark(spark).collect()
    for net in (False, True):
        changes = table.changelog_scan(filter="id > 100", net_changes=net).to_spark(spark)
        assert not changes.collect()
