"""Rows in a sort order."""

import random
import struct
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icebench.engine.columnar import sorting
from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.columnar.sorting import is_sorted, sort_indices, sorted_table
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortField, SortOrder
from icebench.engine.spec.transforms import Bucket, Identity, Truncate
from icebench.engine.spec.types import DOUBLE, FLOAT, LONG, STRING, NestedField, PrimitiveType
from icebench.errors import Unsupported

SCHEMA = Schema((NestedField(field_id=1, name="id", type=LONG), NestedField(field_id=2, name="name", type=STRING)))
BY_NAME = PartitionSpec((PartitionField(source_ids=(2,), field_id=1000, name="name", transform=Identity()),))


def table(*rows: tuple[int | None, str | None]) -> pa.Table:
    arrow = to_arrow_schema(SCHEMA)
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(arrow)]
    return pa.table(columns, schema=arrow)


def test_by_partition_and_then_by_the_order() -> None:
    order = SortOrder((SortField(source_ids=(1,), transform=Identity(), direction="desc", null_order="nulls-last"),), 1)
    found = sorted_table(table((1, "b"), (None, "a"), (3, "a"), (2, None), (4, "a")), BY_NAME, order, SCHEMA)
    assert list(zip(*found.to_pydict().values(), strict=True)) == [(2, None), (4, "a"), (3, "a"), (None, "a"), (1, "b")]


def test_keys_are_compared_by_their_transforms() -> None:
    tens = SortField(source_ids=(1,), transform=Truncate(10), direction="desc")
    order = SortOrder((tens, SortField(source_ids=(2,), transform=Identity())), 1)
    found = sorted_table(table((1, "b"), (19, "b"), (11, "a"), (9, "a")), PartitionSpec(), order, SCHEMA)
    assert list(zip(*found.to_pydict().values(), strict=True)) == [(11, "a"), (19, "b"), (9, "a"), (1, "b")]


SPECIAL = [None, float("nan"), -float("nan"), float("-inf"), -1.5, -0.0, 0.0, 5e-324, 2.0, float("inf")]


def total_order(value: float) -> int:
    """Java's: of the bits, in which negative numbers grow downwards."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits if bits >= 0 else -(bits & (1 << 63) - 1) - 1)


@pytest.mark.parametrize("type_", [FLOAT, DOUBLE])
@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("nulls", ["nulls-first", "nulls-last"])
def test_floating_point_numbers_in_the_order_of_the_spec(type_: PrimitiveType, direction: Any, nulls: Any) -> None:
    schema = Schema((NestedField(field_id=1, name="x", type=type_),))
    order = SortOrder(
        (SortField(source_ids=(1,), transform=Identity(), direction=direction, null_order=nulls),), order_id=1
    )
    values = random.Random(3).choices(SPECIAL, k=60)
    given = pa.table(
        [pa.chunked_array([values[:20], values[20:]], to_arrow_schema(schema)[0].type)], to_arrow_schema(schema)
    )
    stored = given["x"].cast(pa.float64()).to_pylist()
    numbers = sorted((v for v in stored if v is not None), key=total_order, reverse=direction == "desc")
    absent = [None] * stored.count(None)
    expected = [*absent, *numbers] if nulls == "nulls-first" else [*numbers, *absent]
    found = sorted_table(given, PartitionSpec(), order, schema)
    assert list(map(repr, found["x"].cast(pa.float64()).to_pylist())) == list(map(repr, expected))
    assert is_sorted(found, order, schema)
    assert not is_sorted(given, order, schema)


def test_zeros_of_either_sign_are_in_order() -> None:
    schema = Schema((NestedField(field_id=1, name="x", type=DOUBLE),))
    order = SortOrder((SortField(source_ids=(1,), transform=Identity()),), 1)
    given = pa.table({"x": [0.0, -0.0, 0.0, 1.0]}, to_arrow_schema(schema))
    assert is_sorted(given, order, schema)
    assert list(map(str, sorted_table(given, PartitionSpec(), order, schema)["x"].to_pylist())) == [
        "-0.0",
        "0.0",
        "0.0",
        "1.0",
    ]


def test_a_transform_of_several_columns_is_not_taken_for_one_of_the_first() -> None:
    order = SortOrder((SortField(source_ids=(1, 2), transform=Bucket(3)),), 1)
    with pytest.raises(Unsupported, match=r"bucket\[3\] of several columns"):
        sorted_table(table((1, "b")), PartitionSpec(), order, SCHEMA)


BY_FIRST_LETTER = PartitionSpec(
    (PartitionField(source_ids=(2,), field_id=1000, name="letter", transform=Truncate(1)),), 1
)
DESCENDING = SortOrder((SortField(source_ids=(1,), transform=Identity(), direction="desc"),), 1)
BY_BOTH = SortOrder(
    (SortField(source_ids=(2,), transform=Identity()), SortField(source_ids=(1,), transform=Identity())), 1
)


@pytest.mark.parametrize(
    ("spec", "order", "expected"),
    [
        (BY_FIRST_LETTER, DESCENDING, [4, 2, 0, 5, 3, 1]),
        (PartitionSpec(), BY_BOTH, [0, 2, 4, 1, 3, 5]),
    ],
)
def test_text_of_more_than_two_gib_is_compared(spec: PartitionSpec, order: SortOrder, expected: list[int]) -> None:
    length = 400_000_000
    text = np.zeros(2 * length, np.uint8)  # of which the system stores nothing
    text[0], text[length] = b"ab"
    offsets = pa.array([0, length, 2 * length], pa.int32()).buffers()[1]
    chunk = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(text)])
    rows = pa.table([range(6), pa.chunked_array([chunk] * 3)], schema=to_arrow_schema(SCHEMA))
    found = sort_indices(rows, spec, order, SCHEMA)
    assert found is not None
    assert found.to_pylist() == expected


@pytest.mark.parametrize("spec", [PartitionSpec(), BY_FIRST_LETTER])
@pytest.mark.parametrize("most_bytes", [20, 100, 500, 3_000])
def test_text_beyond_what_one_array_holds_comes_in_several_chunks(
    monkeypatch: pytest.MonkeyPatch, spec: PartitionSpec, most_bytes: int
) -> None:
    draws = random.Random(most_bytes)
    rows = [
        (draws.choice([None, draws.randrange(20)]), draws.choice([None, draws.choice("abc") * draws.randrange(1, 90)]))
        for _ in range(150)
    ]
    ends = [0, 0, 1, 70, 70, 149, 150]
    given = pa.concat_tables(table(*rows[start:end]) for start, end in pairwise(ends))
    expected = sorted_table(given, spec, BY_BOTH, SCHEMA)
    monkeypatch.setattr(sorting, "_MOST_BYTES", most_bytes)
    found = sorted_table(given, spec, BY_BOTH, SCHEMA)
    assert found.equals(expected)
    assert all(chunk.nbytes <= most_bytes or len(chunk) == 1 for chunk in found["name"].chunks)
    assert is_sorted(found, BY_BOTH, SCHEMA)
