from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

import icebench
from icebench.engine.spec.name_mapping import mapping_of, name_mapping_text, parse_name_mapping
from icebench.engine.spec.properties import NAME_MAPPING
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.statistics import PartitionStatisticsFile, StatisticsFile
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import LONG, STRING, NestedField, StructType
from icebench.errors import AlreadyExists, Invalid, NotFound

ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "day": [f"d{i}" for i in ids]}, schema=ROWS)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[icebench.Table]:
    catalog = icebench.load_catalog(f"{tmp_path}/wh")
    made = catalog.create_table("db.t", ROWS)
    made.append(rows(1, 2))
    yield made
    catalog.close()


def ids(table: icebench.Table, **which: object) -> list[int]:
    return sorted(table.scan(**which).to_arrow()["id"].to_pylist())  # type: ignore[arg-type]


def test_schema_spec_order_properties_and_format(table: icebench.Table) -> None:
    table.update_schema(lambda s: s.add_column("n", LONG).rename_column("day", "on")).update_spec(
        lambda s: s.add_field("on", Identity())
    ).replace_sort_order(icebench.SortOrder((icebench.SortField(source_ids=(1,), transform=Identity()),), 1))
    table.set_properties({"a": "1", "b": "2"}).remove_properties("a", "c").upgrade_format(3)
    assert [f.name for f in table.schema().fields] == ["id", "on", "n"]
    assert [f.name for f in table.spec.fields] == ["on"]
    assert not table.sort_order.is_unsorted
    assert table.properties == {"b": "2"}
    assert table.metadata.format_version == 3
    table.append(pa.table({"id": [3], "on": ["x"], "n": [7]}))
    read = table.scan().to_arrow().sort_by("id")
    assert read.to_pylist() == [
        {"id": 1, "on": "d1", "n": None},
        {"id": 2, "on": "d2", "n": None},
        {"id": 3, "on": "x", "n": 7},
    ]


def test_reserved_names_are_no_properties(table: icebench.Table) -> None:
    with pytest.raises(Invalid, match="'uuid' is a reserved name"):
        table.set_properties({"uuid": "x"})


def test_branches_tags_and_going_back(table: icebench.Table) -> None:
    first = table.current_snapshot
    assert first is not None
    table.create_tag("v1").create_branch("audit", min_snapshots_to_keep=3)
    table.append(rows(3), branch="audit")
    assert (ids(table), ids(table, ref="audit"), ids(table, ref="v1")) == ([1, 2], [1, 2, 3], [1, 2])
    assert table.refs["audit"].min_snapshots_to_keep == 3
    table.fast_forward("main", "audit")
    assert ids(table) == [1, 2, 3]
    table.rollback(snapshot_id=first.snapshot_id)
    assert ids(table) == [1, 2]
    table.set_current_snapshot(table.refs["audit"].snapshot_id)
    assert ids(table) == [1, 2, 3]
    table.remove_ref("audit")
    assert set(table.refs) == {"main", "v1"}
    with pytest.raises(AlreadyExists):
        table.create_tag("v1")
    with pytest.raises(NotFound):
        table.remove_ref("audit")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda table: table.rollback(snapshot_id=7), NotFound),
        (lambda table: table.rollback(before_ms=1), NotFound),
        (lambda table: table.rollback(before_ms=1, branch="nope"), NotFound),
        (lambda table: table.rollback(before_ms=2**50, branch="v1"), Invalid),
        (lambda table: table.rollback(), Invalid),
        (lambda table: table.set_current_snapshot(7), NotFound),
        (lambda table: table.fast_forward("main", "nope"), NotFound),
        (lambda table: table.fast_forward("v1", "main"), Invalid),
        (lambda table: table.remove_ref("main"), Invalid),
        (lambda table: table.set_last_batch("s", -2), Invalid),
        (lambda table: table.set_last_batch("s", 10**19), Invalid),
        (lambda table: table.set_last_batch("s", 1, branch="v1"), Invalid),
    ],
)
def test_what_is_unknown_or_does_not_fit_is_refused(
    table: icebench.Table, change: Callable[[icebench.Table], object], error: type[Exception]
) -> None:
    before = table.create_tag("v1").metadata_location
    with pytest.raises(error):
        change(table)
    assert table.refresh().metadata_location == before


def test_statistics(table: icebench.Table) -> None:
    head = table.current_snapshot
    assert head is not None
    of_table = StatisticsFile(
        snapshot_id=head.snapshot_id, statistics_path="s.puffin", file_size_in_bytes=9, file_footer_size_in_bytes=4
    )
    of_partitions = PartitionStatisticsFile(
        snapshot_id=head.snapshot_id, statistics_path="p.parquet", file_size_in_bytes=9
    )
    table.set_statistics(of_table, of_partitions)
    assert (table.metadata.statistics, table.metadata.partition_statistics) == ((of_table,), (of_partitions,))
    table.remove_statistics(head.snapshot_id)
    assert (table.metadata.statistics, table.metadata.partition_statistics) == ((), ())
    with pytest.raises(NotFound):
        table.set_statistics(replace(of_table, snapshot_id=5))


class TestNameMapping:
    def mapping(self, table: icebench.Table) -> dict[tuple[str, ...], int]:
        return parse_name_mapping(table.properties[NAME_MAPPING.name]).id_by_path

    def test_it_follows_the_schema(self, table: icebench.Table) -> None:
        table.set_properties({NAME_MAPPING.name: name_mapping_text(mapping_of(table.schema()))})
        inner = StructType((NestedField(field_id=1, name="x", type=STRING),))
        table.update_schema(lambda s: s.rename_column("day", "on").add_column("place", inner))
        assert self.mapping(table) == {("id",): 1, ("day",): 2, ("on",): 2, ("place",): 3, ("place", "x"): 4}
        table.update_schema(lambda s: s.rename_column("place.x", "y").add_column("z", LONG, parent="place"))
        assert self.mapping(table)["place", "x"] == self.mapping(table)["place", "y"] == 4
        assert self.mapping(table)["place", "z"] == 5

    def test_a_dropped_column_keeps_its_place(self, table: icebench.Table) -> None:
        table.set_properties({NAME_MAPPING.name: name_mapping_text(mapping_of(table.schema()))})
        table.update_schema(lambda s: s.drop_column("day"))
        assert self.mapping(table) == {("id",): 1, ("day",): 2}
        # A new column takes the name over: new files have ids, and old ones must not lend it their values.
        table.update_schema(lambda s: s.add_column("day", LONG))
        assert self.mapping(table) == {("id",): 1, ("day",): 3}

    def test_a_table_without_one_gets_none(self, table: icebench.Table) -> None:
        table.update_schema(lambda s: s.add_column("x", LONG))
        assert NAME_MAPPING.name not in table.properties
        assert isinstance(table.schema(), Schema)


DAYS = pa.schema([("day", pa.date32()), ("id", pa.int64())])


@pytest.mark.parametrize("transform", ["identity", "bucket[4]", "day", "month", "year"])
@pytest.mark.parametrize("becomes", [icebench.TIMESTAMP, icebench.TIMESTAMP_NS])
@pytest.mark.parametrize("is_former", [False, True])
def test_a_date_becomes_a_timestamp_only_where_partitions_are_still_found(
    tmp_path: Path, transform: str, becomes: icebench.PrimitiveType, *, is_former: bool
) -> None:
    catalog = icebench.load_catalog(f"{tmp_path}/wh")
    properties = {"format-version": "3"}
    table = catalog.create_table("db.t", DAYS, partition_spec=[("day", transform)], properties=properties)
    table.append(pa.table({"day": [date(2024, 1, 2), date(2024, 3, 1)], "id": [1, 2]}, schema=DAYS))
    if is_former:
        table.update_spec(lambda s: s.drop_field(table.spec.fields[0].name))
    if transform in {"identity", "bucket[4]"}:
        with pytest.raises(Invalid, match=r"cannot change column 'day' from date to timestamp.*other values"):
            table.update_schema(lambda s: s.promote_column("day", becomes))
        assert ids(table, filter="day = '2024-01-02'") == [1]
        return
    table.update_schema(lambda s: s.promote_column("day", becomes))
    assert ids(table, filter="day = '2024-01-02T00:00:00'") == [1]
    assert ids(table, filter="day > '2024-01-02T00:00:00'") == [2]


@pytest.mark.parametrize("name", ["commit.retry.num-retries", "icebench.commit.host-lock.enabled"])
def test_a_property_that_is_no_value_can_be_removed(catalog: icebench.Catalog, name: str) -> None:
    properties = {name: "x"}
    table = catalog.create_table("db.t", ROWS)
    with pytest.raises(Invalid, match=name):
        table.set_properties(properties)
    with pytest.raises(Invalid, match=name):
        catalog.create_table("db.u", ROWS, properties=properties)
    with patch("icebench.engine.commit.changes.evolution.check_table_properties"):  # as other writers set it
        table.set_properties(properties)
    table = catalog.load_table("db.t")
    with pytest.raises(Invalid, match=name):
        table.append(rows(1))
    table.remove_properties(name)
    table.append(rows(1))
    assert table.scan().count() == 1


def test_a_name_mapping_that_is_none_is_refused(table: icebench.Table) -> None:
    with pytest.raises(Invalid, match="name mapping"):
        table.set_properties({NAME_MAPPING.name: "nonsense"})
    assert NAME_MAPPING.name not in table.properties
