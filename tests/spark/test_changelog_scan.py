"""Changelogs and append scans as DataFrames: the rows that Arrow gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import icebench
from icebench.engine.spark.changelog_scan import changelog_to_dataframe
from icebench.engine.table import Table
from icebench.errors import Unsupported
from tests.spark.deleted_tables import FIELDS, open_catalog, rows, with_every_delete


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Appends, deletes of every kind, updates, an overwrite, a rewrite, a file that goes, and an upgrade."""
    made = with_every_delete(tmp_path_factory.mktemp("changelog"))
    made.update("id between 500 and 520", {"name": "'merge-on-read'"}, mode="merge-on-read")
    made.update("id between 600 and 605", {"name": "'copy-on-write'"}, mode="copy-on-write")
    made.append(rows(3000, 3010))
    made.delete("id >= 3000", mode="copy-on-write")
    made.overwrite(rows(1400, 1500), filter="id between 1400 and 1450")
    made.append(rows(3000, 3005))
    return made


def bag(found: DataFrame | pa.Table) -> Counter[str]:
    return Counter(map(repr, (found.toArrow() if isinstance(found, DataFrame) else found).to_pylist()))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"net_changes": True},
        {"identifier_columns": ["id"]},
        {"compute_updates": True, "identifier_columns": ["id"], "columns": ["name"]},
        {"columns": ["id"], "filter": "id between 140 and 610 or name = 'n3001'"},
    ],
    ids=str,
)
@pytest.mark.parametrize("span", [(None, None), (1, -2), (3, 4)])
def test_changes_are_those_of_arrow(
    spark: SparkSession, table: Table, span: tuple[int | None, int | None], options: Mapping[str, Any]
) -> None:
    ids = [snapshot.snapshot_id for snapshot in table.snapshots]
    scan = table.changelog_scan(*(None if at is None else ids[at] for at in span), **options)
    expected = scan.to_arrow()
    assert len(expected) > 0 or options.get("columns") == ["id"]
    frame = scan.to_spark(spark)
    assert frame.columns == expected.schema.names
    assert bag(frame) == bag(expected)
    assert bag(changelog_to_dataframe(spark, scan, split_bytes=1)) == bag(expected)


def test_of_a_changelog_only_what_is_asked_for_comes(session: SparkSession, table: Table) -> None:
    scan = table.changelog_scan()
    changes = scan.to_arrow().to_pylist()
    frame = scan.to_spark(session)
    kinds = {row[0]: row[1] for row in frame.groupBy("_change_type").count().collect()}
    assert kinds == Counter(row["_change_type"] for row in changes)
    deleted = frame.where("_change_type = 'DELETE' and day = 1").select("id", "_change_ordinal")
    assert bag(deleted) == Counter(
        repr({"id": row["id"], "_change_ordinal": row["_change_ordinal"]})
        for row in changes
        if row["_change_type"] == "DELETE" and row["day"] == 1
    )
    back = (
        frame.alias("a")
        .join(frame.alias("b"), "id")
        .where("a._change_type = 'DELETE' and b._change_type = 'INSERT' and a._change_ordinal < b._change_ordinal")
    )
    gone = {
        row["id"]: row["_change_ordinal"] for row in changes if row["_change_type"] == "DELETE" and row["id"] >= 3000
    }
    assert back.where("id >= 3000").count() == 5
    assert len(gone) == 10


def test_a_snapshot_that_only_adds_is_as_many_tasks_as_its_files_are_worth(spark: SparkSession, tmp_path: Path) -> None:
    made = open_catalog(tmp_path).create_table(
        "db.t", FIELDS, partition_spec=[("day", "identity")], properties={"format-version": "2"}
    )
    made.append(rows(0, 30))
    made.append(rows(30, 60))
    scan = made.changelog_scan()
    assert scan.to_spark(spark).rdd.getNumPartitions() == 2
    assert changelog_to_dataframe(spark, scan, split_bytes=1).rdd.getNumPartitions() == 6
    net = made.changelog_scan(net_changes=True)
    assert changelog_to_dataframe(spark, net, split_bytes=1).rdd.getNumPartitions() == 1
    last = made.snapshots[-1].snapshot_id
    nothing = made.changelog_scan(last, last).to_spark(spark)
    assert nothing.columns == [*FIELDS.names, "_change_type", "_change_ordinal", "_commit_snapshot_id"]
    assert nothing.count() == 0


def test_a_changelog_stays_at_its_snapshots_and_is_planned_once(spark: SparkSession, tmp_path: Path) -> None:
    made = open_catalog(tmp_path).create_table("db.t", FIELDS, properties={"format-version": "2"})
    made.append(rows(0, 10))
    made.delete("id = 3", "merge-on-read")
    counters = icebench.Counters()
    frame = made.changelog_scan(counters=counters).to_spark(spark)
    planned = counters.as_dict()
    made.append(rows(10, 20))
    assert frame.count() == 11
    assert counters.as_dict() == planned
    assert planned["files_planned"] >= 2


def test_storage_of_this_process_alone_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    made = icebench.load_catalog(f"memory://{tmp_path.name}").create_table("db.t", FIELDS)
    made.append(rows(0, 10))
    with pytest.raises(Unsupported):
        made.changelog_scan().to_spark(spark)


def test_append_scans_are_those_of_arrow(session: SparkSession, table: Table) -> None:
    first = table.snapshots[0].snapshot_id
    for options in ({}, {"filter": "id > 1990"}, {"columns": ["name", "_file", "_pos", "_row_id"]}):
        scan = table.incremental_append_scan(first, **options)
        expected = scan.to_arrow()
        frame = scan.to_spark(session)
        assert len(expected) >= 5
        assert bag(frame) == bag(expected)
        assert bag(frame.select("name").where("name = 'n3001'")) == Counter([repr({"name": "n3001"})] * 2)
