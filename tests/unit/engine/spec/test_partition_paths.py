"""Partition values for people."""

from __future__ import annotations

from decimal import Decimal

import pytest

from icebench.engine.spec.partition_paths import human_string, partition_path
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec, common_partition_type, partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Bucket, Day, Hour, Identity, Month, Void, Year
from icebench.engine.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ_NS,
    DecimalType,
    NestedField,
)

SCHEMA = Schema((NestedField(field_id=1, name="ts", type=TIMESTAMP), NestedField(field_id=2, name="name", type=STRING)))


@pytest.mark.parametrize(
    ("transform", "source", "value", "text"),
    [
        (Year(), DATE, -1, "1969"),
        (Month(), DATE, -1, "1969-12"),
        (Day(), TIMESTAMP, 19782, "2024-02-29"),
        (Hour(), TIMESTAMP, -1, "1969-12-31-23"),
        (Bucket(8), STRING, 7, "7"),
        (Identity(), DATE, 0, "1970-01-01"),
        (Identity(), BOOLEAN, True, "true"),
        (Identity(), DecimalType(9, 2), Decimal("1.50"), "1.50"),
        (Identity(), BINARY, b"\x00\xff", "AP8="),
        (Identity(), TIMESTAMP, 1, "1970-01-01T00:00:00.000001"),
        (Identity(), TIMESTAMPTZ_NS, 1_000_000_000, "1970-01-01T00:00:01+00:00"),
        (Identity(), INT, None, "null"),
    ],
)
def test_human_strings(transform, source, value, text):
    assert human_string(transform, source, value) == text


def test_paths_are_encoded():
    spec = partition_spec(SCHEMA, [("ts", Day()), ("name", Identity())])
    assert partition_path(spec, SCHEMA, (0, "a/b c")) == "ts_day=1970-01-01/name=a%2Fb+c"
    assert partition_path(PartitionSpec(), SCHEMA, ()) == ""


def test_one_struct_for_the_tuples_of_all_specs():
    old = partition_spec(SCHEMA, [("ts", Day()), ("name", Identity())])
    voided = PartitionSpec(
        (
            PartitionField(source_ids=(1,), field_id=1000, name="gone", transform=Void()),
            PartitionField(source_ids=(2,), field_id=1002, name="name_bucket", transform=Bucket(4)),
        ),
        1,
    )
    common = common_partition_type([voided, old], SCHEMA)
    assert [(f.field_id, f.name, f.type) for f in common.fields] == [
        (1000, "gone", DATE),
        (1001, "name", STRING),
        (1002, "name_bucket", INT),
    ]
