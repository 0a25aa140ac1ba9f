"""Single beliefs in metrics; `tests/property/test_trusted_metrics.py` has what writers got wrong."""

from __future__ import annotations

import math
import struct
import uuid
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from icebench.engine.plan.scan import table_scan
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec import types
from icebench.engine.spec.partitioning import partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import (
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    DecimalType,
    NestedField,
    PrimitiveType,
    StructType,
)
from icebench.engine.spec.values import encode_value
from tests.property.table_builder import TableBuilder, added, data_file

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
DAY = 86_400_000_000


def left(type_: PrimitiveType, filter: str, path: str = "memory://t/a.parquet", **metrics: Any) -> str | None:
    """The residual of a file of ten rows; None if it is skipped."""
    inner = StructType((NestedField(field_id=2, name="x", type=type_),))
    schema = Schema((NestedField(field_id=1, name="c", type=type_), NestedField(field_id=3, name="s", type=inner)))
    builder = TableBuilder(schema)
    builder.add_manifest([added(data_file(path, **metrics))])
    plan = table_scan(builder.metadata(), builder.store, filter=filter, runner=LocalRunner(1)).plan()
    return str(plan.residuals[plan.residual_codes[0]]) if plan.files.num_rows else None


def bounds(type_: PrimitiveType, low: Any, high: Any, **more: Any) -> dict[str, Any]:
    return {"lower_bounds": {1: encode_value(type_, low)}, "upper_bounds": {1: encode_value(type_, high)}, **more}


NO_NULLS: dict[str, Any] = {"value_counts": {1: 10, 2: 10}, "null_value_counts": {1: 0, 2: 0}}


@pytest.mark.parametrize("filter", ["c is null", 's."x" is null'])
def test_zero_nulls_are_believed_where_every_row_is_counted(filter: str) -> None:
    column = 1 if filter.startswith("c") else 2
    assert left(INT, filter, **NO_NULLS) is None
    assert left(INT, filter, **{**NO_NULLS, "value_counts": {column: 9}}) == filter
    assert left(INT, filter, **NO_NULLS, split_offsets=None) == filter
    uncounted = left(INT, filter, null_value_counts={column: 0})
    assert uncounted == (filter if column == 2 else None)


def test_only_nulls_are_believed_of_all_rows_and_without_bounds() -> None:
    nulls: dict[str, Any] = {"value_counts": {1: 10}, "null_value_counts": {1: 10}}
    assert left(INT, "c = 5", **nulls) is None
    assert left(INT, "c = 5", **bounds(INT, 0, 9, **nulls)) == "c = 5"
    assert left(INT, "c = 5", value_counts={1: 4}, null_value_counts={1: 6}) == "c = 5"
    assert left(INT, "c = 5", value_counts={1: 11}, null_value_counts={1: 11}) == "c = 5"


@pytest.mark.parametrize("uncounted", ["null_value_counts", "nan_value_counts"])
def test_a_negative_count_is_none(uncounted: str) -> None:
    other = {"null_value_counts": "nan_value_counts", "nan_value_counts": "null_value_counts"}[uncounted]
    counts: dict[str, Any] = {uncounted: {1: -1}, other: {1: 11}}
    assert left(DOUBLE, "c = 5", value_counts={1: 11}, **counts) == "c = 5.0"
    del counts[other]
    assert left(DOUBLE, "c is null", value_counts={1: 10}, **counts) == "c is null"


def test_only_nan_is_believed_without_bounds() -> None:
    nans: dict[str, Any] = {**NO_NULLS, "nan_value_counts": {1: 10}}
    assert left(DOUBLE, "c = 5", **nans) is None
    assert left(DOUBLE, "c = 5", **bounds(DOUBLE, 0.0, 9.0, **nans)) == "c = 5.0"


def test_no_bound_is_believed_beside_one_that_no_value_has() -> None:
    price = DecimalType(7, 2)
    exact = bounds(price, Decimal("1.00"), Decimal("9.00"))
    assert left(price, "c = 20", **exact) is None
    # 10.00 as Parquet stores it in an INT32.
    little_endian = struct.pack("<i", 1000)
    assert left(price, "c = 20", **{**exact, "upper_bounds": {1: little_endian}}) == "c = 20.00"
    assert left(price, "c = 0.5", **{**exact, "upper_bounds": {1: little_endian}}) == "c = 0.50"
    assert left(price, "c = 20", upper_bounds={1: little_endian}) == "c = 20.00"
    nan = {1: struct.pack("<d", math.nan)}
    said: dict[str, Any] = {**NO_NULLS, "nan_value_counts": {1: 0}}
    assert left(DOUBLE, "c = 20", **bounds(DOUBLE, 1.0, 9.0)) is None
    assert left(DOUBLE, "c = 20", **{**bounds(DOUBLE, 1.0, 9.0), "lower_bounds": nan}) == "c = 20.0"
    assert left(DOUBLE, "c is nan", **said) is None
    assert left(DOUBLE, "c is nan", **{**bounds(DOUBLE, 1.0, 9.0, **said), "lower_bounds": nan}) == "c is nan"


@pytest.mark.parametrize(
    ("name", "believed"),
    [
        (f"00000-0-{UUID}.parquet", False),
        (f"00000-0-{UUID}-00001.parquet", True),
        ("00000-0.parquet", True),
        ("", True),
    ],
)
def test_text_bounds_over_row_groups_are_not_believed_of_files_that_pyiceberg_named(name: str, believed: bool) -> None:
    stated = bounds(STRING, "b", "c")
    path = f"memory://t/{name}"
    assert left(STRING, "c > 'x'", path, **stated) is None
    assert left(STRING, "c > 'x'", path, **stated, split_offsets=(4, 99)) == (None if believed else "c > 'x'")
    assert left(INT, "c > 5", path, **bounds(INT, 1, 2), split_offsets=(4, 99)) is None


@pytest.mark.parametrize("low", ["b", "customer#0001", "customer#0001\x00", "\x00"])
def test_bounds_are_compared_to_their_last_byte(low: str) -> None:
    assert left(STRING, "c > 'x'", **bounds(STRING, low, low)) is None
    assert left(STRING, "c > 'x'", **bounds(STRING, low, low + "\x00")) is None
    assert left(STRING, "c > 'x'", **bounds(STRING, low + "\x00", low)) == "c > 'x'"
    assert left(STRING, "c > 'x'", **bounds(STRING, low + "1", low)) == "c > 'x'"


def test_timestamps_in_whole_milliseconds_are_believed_to_their_end() -> None:
    whole = bounds(TIMESTAMP, 200 * DAY, 300 * DAY)
    assert left(TIMESTAMP, "c > '1970-10-28 00:00:00.000998'", **whole) is not None
    assert left(TIMESTAMP, "c > '1970-10-28 00:00:00.000999'", **whole) is None
    assert left(TIMESTAMP, "c > '1970-10-28 00:00:00.000001'", **bounds(TIMESTAMP, 200 * DAY, 300 * DAY + 1)) is None
    last = bounds(TIMESTAMP, 200 * DAY, (1 << 63) - 808)
    assert left(TIMESTAMP, "c < '1970-01-01'", **last) is None


@pytest.mark.parametrize(
    ("low", "high", "filter", "believed"),
    [
        (1, 2, "c > '2020-01-01'", False),
        (1, 2, "c < '1960-01-01'", True),
        (-2, -1, "c < '1960-01-01'", False),
        (-2, -1, "c > '2020-01-01'", True),
        (1, 10**13, "c > '2020-01-01'", True),
        (-(10**13), 2, "c < '1960-01-01'", True),
    ],
)
def test_timestamps_near_the_epoch_may_be_milliseconds(low: int, high: int, filter: str, believed: bool) -> None:
    assert (left(TIMESTAMP, filter, **bounds(TIMESTAMP, low, high)) is None) == believed


def test_a_summary_without_nan_is_not_believed() -> None:
    schema = Schema((NestedField(field_id=1, name="c", type=DOUBLE),))
    builder = TableBuilder(schema, (partition_spec(schema, [("c", Identity())]),))
    manifest = builder.add_manifest([added(data_file("memory://t/a", partition=(math.nan,)))])
    assert manifest.partitions is not None
    (summary,) = manifest.partitions
    builder.manifests[0] = replace(manifest, partitions=(replace(summary, contains_nan=False),))
    plan = table_scan(builder.metadata(), builder.store, filter="c is nan", runner=LocalRunner(1)).plan()
    assert plan.files.num_rows == 1


@pytest.mark.parametrize("split_offsets", [(4,), (4, 99), None])
def test_bounds_of_uuids_that_java_puts_together_of_row_groups(split_offsets: tuple[int, ...] | None) -> None:
    """Of row groups from 0 to 5 and from 6 to f by their first digit, Java's upper bound is that of the first."""
    low, high = (uuid.UUID(int=(digit << 124) + 5) for digit in (0, 5))
    known = bounds(types.UUID, low, high, split_offsets=split_offsets)
    above = "c > uuid '90000000-0000-0000-0000-000000000000'"
    assert left(types.UUID, above, **known) == (None if split_offsets == (4,) else above)
    assert left(types.UUID, "c < '00000000-0000-0000-0000-000000000000'", **known) is None
    if split_offsets is None:
        assert left(types.UUID, above, "memory://t/a.avro", file_format="avro", **known) is None
