from __future__ import annotations

import uuid
from typing import Any

import pytest

from icebench.engine.spec.creation import new_table_metadata
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec, partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortField, SortOrder
from icebench.engine.spec.transforms import Bucket, Day, Identity, Truncate, UnknownTransform
from icebench.engine.spec.types import (
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    VARIANT,
    NestedField,
    StructType,
    list_type,
    map_type,
)
from icebench.errors import Invalid, Unsupported

POINT = StructType((NestedField(field_id=70, name="x", type=LONG), NestedField(field_id=60, name="y", type=LONG)))
SCHEMA = Schema(
    (
        NestedField(field_id=50, name="at", type=TIMESTAMP),
        NestedField(field_id=40, name="points", type=list_type(30, POINT)),
        NestedField(field_id=20, name="id", type=LONG, required=True),
    ),
    schema_id=8,
    identifier_field_ids=frozenset({20}),
)


def create(schema: Schema = SCHEMA, *args: Any, **options: Any) -> TableMetadata:
    return new_table_metadata(
        schema, *args, **{"location": "/wh/t/", "uuid": uuid.UUID(int=7), "now_ms": 1_000, **options}
    )


def test_ids_are_given_afresh_siblings_before_children() -> None:
    metadata = create()
    assert [(f.field_id, f.name) for f in metadata.schema.walk()] == [
        (1, "at"),
        (2, "points"),
        (4, "element"),
        (5, "x"),
        (6, "y"),
        (3, "id"),
    ]
    assert metadata.schema.schema_id == 0
    assert metadata.schema.identifier_field_ids == {3}
    assert metadata.last_column_id == 6


def test_specs_and_orders_follow_the_new_ids() -> None:
    spec = PartitionSpec(
        (
            PartitionField(source_ids=(20,), field_id=4000, name="id_bucket", transform=Bucket(4)),
            PartitionField(source_ids=(50,), field_id=3000, name="at_day", transform=Day()),
        ),
        spec_id=6,
    )
    order = SortOrder((SortField(source_ids=(20,), transform=Identity(), direction="desc"),), order_id=9)
    metadata = create(SCHEMA, spec, order)
    assert [(f.source_id, f.field_id, f.name) for f in metadata.spec.fields] == [
        (3, 1000, "id_bucket"),
        (1, 1001, "at_day"),
    ]
    assert metadata.default_spec_id == 0
    assert metadata.last_partition_id == 1001
    assert metadata.default_sort_order_id == 1
    assert metadata.sort_order.fields == (SortField(source_ids=(3,), transform=Identity(), direction="desc"),)


def test_an_empty_table() -> None:
    metadata = create(properties={"owner": "ann"})
    assert metadata.location == "/wh/t"
    assert metadata.format_version == 2
    assert metadata.table_uuid == str(uuid.UUID(int=7))
    assert metadata.last_updated_ms == 1_000
    assert metadata.last_sequence_number == 0
    assert metadata.last_partition_id == 999
    assert metadata.properties == {"owner": "ann"}
    assert metadata.current_snapshot is None
    assert (metadata.snapshots, metadata.refs, metadata.snapshot_log) == ((), {}, ())
    assert metadata.sort_order.is_unsorted
    assert metadata.next_row_id is None
    assert create(format_version=3).next_row_id == 0


@pytest.mark.parametrize("version", [0, 4])
def test_unsupported_format_versions(version: int) -> None:
    with pytest.raises(Unsupported, match=f"format version {version}"):
        create(format_version=version)


def test_reserved_property_names() -> None:
    with pytest.raises(Invalid, match="'uuid' is a reserved name"):
        create(properties={"uuid": "x"})


def test_types_of_later_versions() -> None:
    schema = Schema((NestedField(field_id=1, name="v", type=VARIANT),))
    with pytest.raises(Invalid, match="'v' of type variant needs format version 3"):
        create(schema)
    create(schema, format_version=3)


def test_unknown_transforms_are_not_written() -> None:
    spec = PartitionSpec(
        (PartitionField(source_ids=(20,), field_id=1000, name="z", transform=UnknownTransform("zorder")),)
    )
    with pytest.raises(Unsupported, match="zorder"):
        create(SCHEMA, spec)


def test_transforms_of_several_columns_are_not_written() -> None:
    spec = PartitionSpec((PartitionField(source_ids=(20, 50), field_id=1000, name="z", transform=Bucket(4)),))
    with pytest.raises(Unsupported, match=r"bucket\[4\] of several columns"):
        create(SCHEMA, spec)
    order = SortOrder((SortField(source_ids=(20, 50), transform=Bucket(4)),), order_id=1)
    with pytest.raises(Unsupported, match=r"bucket\[4\] of several columns"):
        create(SCHEMA, sort_order=order)


def test_partition_names_are_no_columns() -> None:
    schema = Schema((NestedField(field_id=1, name="a", type=LONG), NestedField(field_id=2, name="b", type=STRING)))
    create(schema, partition_spec(schema, [("a", Identity())]))
    clash = PartitionSpec((PartitionField(source_ids=(2,), field_id=1000, name="a", transform=Truncate(2)),))
    with pytest.raises(Invalid, match="'a' has the name of a column"):
        create(schema, clash)


def test_wrong_sources() -> None:
    missing = PartitionSpec((PartitionField(source_ids=(99,), field_id=1000, name="p", transform=Identity()),))
    with pytest.raises(Invalid, match="field id 99"):
        create(SCHEMA, missing)
    with pytest.raises(Invalid, match="cannot sort 'id'"):
        create(SCHEMA, PartitionSpec(), SortOrder((SortField(source_ids=(20,), transform=Day()),)))


@pytest.mark.parametrize(
    "identifier",
    [
        NestedField(field_id=1, name="id", type=LONG),
        NestedField(field_id=1, name="id", type=DOUBLE, required=True),
        NestedField(field_id=2, name="id", type=list_type(1, LONG, required=True), required=True),
        NestedField(
            field_id=2, name="id", type=StructType((NestedField(field_id=1, name="x", type=LONG, required=True),))
        ),
        NestedField(field_id=2, name="id", type=LONG, required=True),
    ],
)
def test_identifier_fields_are_those_of_the_spec(identifier: NestedField) -> None:
    """Iceberg Java opens no table with others."""
    with pytest.raises(Invalid):
        create(Schema((identifier,), identifier_field_ids=frozenset({1})))


@pytest.mark.parametrize(
    "column",
    [
        NestedField(field_id=1, name="u", type=UNKNOWN, required=True),
        NestedField(field_id=1, name="m", type=map_type(2, UNKNOWN, 3, LONG)),
    ],
)
def test_a_column_of_type_unknown_is_optional(column: NestedField) -> None:
    with pytest.raises(Invalid, match="unknown cannot be required"):
        create(Schema((column,)), format_version=3)
