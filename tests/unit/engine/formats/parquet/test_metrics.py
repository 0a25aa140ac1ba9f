"""Metrics that a written file reports, against brute force over the values that went in."""

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.columnar.scalars import to_arrow_array
from icebench.engine.columnar.schemas import to_arrow_field, to_arrow_schema
from icebench.engine.formats.metrics_modes import COUNTS, FULL, NONE, MetricsMode
from icebench.engine.formats.parquet.metrics import FileMetrics, NanCounter, lower_bound, upper_bound
from icebench.engine.formats.parquet.parquet_writer import ParquetFileWriter, ParquetOptions
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import (
    BINARY,
    DOUBLE,
    INT,
    STRING,
    DecimalType,
    NestedField,
    PrimitiveType,
    StructType,
    list_type,
    map_type,
)
from icebench.engine.spec.values import Value, decode_value
from icebench.engine.storage.memory import MemoryStore
from tests.unit.engine.columnar.value_strategies import PRIMITIVES, values

MODES = (NONE, COUNTS, FULL, MetricsMode("truncate", 1), MetricsMode("truncate", 16))


def written(schema: Schema, batches: list[pa.RecordBatch], mode: MetricsMode) -> FileMetrics:
    """The metrics and size of a file with one row group a batch."""
    store = MemoryStore()
    modes = {f.field_id: mode for f in schema.walk() if isinstance(f.type, PrimitiveType)}
    output = store.open_output("memory://b/f.parquet")
    writer = ParquetFileWriter(output, to_arrow_schema(schema), schema, modes=modes, options=ParquetOptions())
    for batch in batches:
        writer.add(batch)
        writer.flush()
    metrics, size_bytes = writer.close()
    assert size_bytes == store.size("memory://b/f.parquet")
    return metrics


@given(data=st.data(), type_=st.sampled_from(PRIMITIVES), mode=st.sampled_from(MODES))
def test_counts_and_bounds_hold_for_every_value(data: st.DataObject, type_: PrimitiveType, mode: MetricsMode) -> None:
    schema = Schema((NestedField(field_id=7, name="c", type=type_),))
    column = st.lists(st.none() | values(type_, nan=True), max_size=6)
    groups: list[list[Value | None]] = data.draw(st.lists(column, min_size=1, max_size=3))
    batches = [
        pa.RecordBatch.from_arrays([to_arrow_array(type_, group)], schema=to_arrow_schema(schema)) for group in groups
    ]
    metrics = written(schema, batches, mode)
    everything = [value for group in groups for value in group]
    assert metrics.record_count == len(everything)
    if mode == NONE:
        assert not metrics.value_counts
        assert not metrics.column_sizes
        return
    assert metrics.value_counts == {7: len(everything)}
    assert metrics.null_value_counts == {7: everything.count(None)}
    nans = [v for v in everything if isinstance(v, float) and math.isnan(v)]
    assert metrics.nan_value_counts == ({7: len(nans)} if type_.name in ("float", "double") else {})
    real: list[Any] = [v for v in everything if v is not None and v == v]  # noqa: PLR0124 - NaN
    if mode == COUNTS or not real:
        assert not metrics.lower_bounds
        assert not metrics.upper_bounds
        return
    lower: Any = decode_value(type_, metrics.lower_bounds[7])
    assert lower <= min(real)
    exact = mode == FULL or type_.name not in ("string", "binary")
    if 7 in metrics.upper_bounds:
        upper: Any = decode_value(type_, metrics.upper_bounds[7])
        assert upper >= max(real)
        assert not exact or (lower == min(real) and upper == max(real))
    else:
        assert not exact


@given(st.text(max_size=6), st.integers(1, 4))
def test_a_truncated_upper_bound_of_text_is_short_and_above_all_continuations(text: str, length: int) -> None:
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        return
    bound = upper_bound(STRING, raw, MetricsMode("truncate", length))
    lower = lower_bound(STRING, raw, MetricsMode("truncate", length))
    assert lower == text[:length].encode()
    if bound is None:
        assert set(text[:length]) == {"\U0010ffff"}
        return
    assert len(bound.decode()) <= length
    assert bound == raw if len(text) <= length else bound > (text[:length] + "\U0010ffff" * 5).encode()


@pytest.mark.parametrize(
    ("type_", "raw", "length", "expected"),
    [
        (STRING, "ab\U0010ffff\U0010ffffx".encode(), 4, b"ac"),
        (STRING, "\ud7ffx".encode(), 1, "\ue000".encode()),
        (STRING, b"\xff\xfe", 4, None),
        (BINARY, b"\x01\xff\xff\xff\xff", 4, b"\x02"),
        (BINARY, b"\xff\xff\xff\xff\xff", 4, None),
        (BINARY, b"\x01\x02", 4, b"\x01\x02"),
    ],
)
def test_upper_bounds_round_up_at_the_last_place_that_can(
    type_: PrimitiveType, raw: bytes, length: int, expected: bytes | None
) -> None:
    assert upper_bound(type_, raw, MetricsMode("truncate", length)) == expected


def test_columns_in_structs_have_counts_and_those_in_lists_and_maps_sizes_alone() -> None:
    in_list = StructType((NestedField(field_id=10, name="x", type=INT),))
    schema = Schema(
        (
            NestedField(field_id=1, name="s", type=StructType((NestedField(field_id=2, name="d", type=DOUBLE),))),
            NestedField(field_id=3, name="l", type=list_type(4, DOUBLE)),
            NestedField(field_id=5, name="m", type=map_type(6, STRING, 7, DOUBLE)),
            NestedField(field_id=8, name="ls", type=list_type(9, in_list)),
        )
    )
    nan = math.nan
    columns = [
        [{"d": 1.0}, {"d": nan}, None, {"d": None}],
        [[1.0, nan, None], [], None, [nan]],
        [[("a", nan)], None, [], [("b", 2.0), ("c", None)]],
        [[{"x": 1}], None, [None], [{"x": None}, {"x": 5}]],
    ]
    arrays = [pa.array(c, to_arrow_field(f).type) for c, f in zip(columns, schema.fields, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=to_arrow_schema(schema))
    metrics = written(schema, [batch, batch.slice(1, 2), batch], FULL)
    assert metrics.nan_value_counts == {2: 3}
    assert set(metrics.lower_bounds) == set(metrics.upper_bounds) == {2}
    assert metrics.value_counts[2] == 10
    assert metrics.null_value_counts[2] == 5
    assert set(metrics.value_counts) == set(metrics.null_value_counts) == {2}
    assert set(metrics.column_sizes) == {2, 4, 6, 7, 10}
    assert len(metrics.split_offsets) == 3
    assert list(metrics.split_offsets) == sorted(metrics.split_offsets)


def test_counts_nan_in_slices_and_chunks() -> None:
    schema = Schema((NestedField(field_id=1, name="d", type=DOUBLE),))
    counter = NanCounter(to_arrow_schema(schema))
    table = pa.Table.from_arrays(
        [pa.chunked_array([[math.nan, 1.0], [], [None, math.nan]], pa.float64())], schema=to_arrow_schema(schema)
    )
    counter.add(table)
    counter.add(table.slice(1, 2))
    assert counter.counts == {1: 2}


def one_column(type_: PrimitiveType, *groups: list[Value | None]) -> FileMetrics:
    schema = Schema((NestedField(field_id=7, name="c", type=type_),))
    arrow = to_arrow_schema(schema)
    batches = [pa.RecordBatch.from_arrays([to_arrow_array(type_, group)], schema=arrow) for group in groups]
    return written(schema, batches, FULL)


def test_there_are_no_bounds_where_one_row_group_has_none() -> None:
    metrics = one_column(STRING, ["a"], ["b" * 10_000])  # longer than a footer's statistics may be
    assert (metrics.lower_bounds, metrics.upper_bounds) == ({}, {})
    assert one_column(STRING, ["b"], [None]).lower_bounds == {7: b"b"}


def test_bounds_of_wide_decimals_have_a_sign() -> None:
    type_ = DecimalType(38, 2)
    metrics = one_column(type_, [Decimal("-3.00"), Decimal("2.00")])
    bounds = metrics.lower_bounds[7], metrics.upper_bounds[7]
    assert [decode_value(type_, bound) for bound in bounds] == [Decimal("-3.00"), Decimal("2.00")]


def test_a_split_begins_with_the_dictionary_of_its_row_group() -> None:
    metrics = one_column(STRING, ["a", "a"], ["b"])
    assert metrics.split_offsets[0] == len(b"PAR1")
    assert metrics.split_offsets[1] == len(b"PAR1") + one_column(STRING, ["a", "a"]).column_sizes[7]
