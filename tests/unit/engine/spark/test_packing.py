"""Keys as one number: the same numbers exactly where the keys are the same."""

from __future__ import annotations

import datetime as dt
import re
import sqlite3
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icebench.engine.spark.packing import Packing, packing_of
from icebench.engine.spec.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    PrimitiveType,
)

LEAST, MOST = -(2**63), 2**63 - 1

values = st.none() | st.integers(-3, 3) | st.integers(LEAST, MOST) | st.sampled_from([LEAST, LEAST + 1, MOST - 1, MOST])
near = st.none() | st.integers(-4, 4)


def made(keys: Sequence[Sequence[int | None]], types: Sequence[PrimitiveType]) -> Packing | None:
    return packing_of(types, [columns(keys, len(types))])


def columns(keys: Sequence[Sequence[int | None]], width: int) -> list[pa.Array]:
    return [pa.array([key[place] for key in keys], pa.int64()) for place in range(width)]


class Row:
    """The packed text of rows, computed by SQLite, whose integers are 64 bits wide too and overflow into floats."""

    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:")

    def packed(self, packing: Packing, row: Sequence[int | None]) -> int | None:
        text = packing.packed([f"c{i}" for i in range(len(row))])
        source = ", ".join(f"CAST(? AS INTEGER) AS c{i}" for i in range(len(row)))
        sql = re.sub(r"\b(\d+)L\b", r"\1", text).replace("BIGINT", "INTEGER")
        (found,) = self.database.execute(f"SELECT {sql} FROM (SELECT {source})", list(row)).fetchone()
        assert found is None or isinstance(found, int), "an overflow"
        return found


@pytest.mark.parametrize("keys", [[(0, -(2**63)), (-(2**63), -(2**63))], [(0, 0), (0, 2**63 - 1)]])
def test_keys_with_more_numbers_than_a_long_are_not_packed(keys: list[tuple[int, int]]) -> None:
    assert made(keys, [LONG] * 2) is None


@settings(max_examples=300)
@given(data=st.data(), width=st.integers(1, 3), kind=st.sampled_from([values, near]))
def test_a_row_has_the_number_of_the_key_that_it_equals(
    data: st.DataObject, width: int, kind: st.SearchStrategy[int | None]
) -> None:
    keys = data.draw(st.lists(st.tuples(*[kind] * width), min_size=1, max_size=12))
    rows = [*keys, *data.draw(st.lists(st.tuples(*[kind] * width), max_size=12))]
    packing = made(keys, [LONG] * width)
    if packing is None:
        spans = [[key[place] for key in keys if key[place] is not None] for place in range(width)]
        size = 1
        for place, span in enumerate(spans):
            size *= (max(span) - min(span) + 1 if span else 0) + any(key[place] is None for key in keys)
        assert size >= 2**63
        return
    numbers = [int(n) for n in packing.keys(columns(keys, width))]
    assert all(0 <= n < packing.size < 2**63 for n in numbers)
    by_number = dict(zip(numbers, keys, strict=True))
    assert len(by_number) == len(set(keys))
    sql = Row()
    for row in rows:
        found = sql.packed(packing, row)
        assert (found is not None and by_number.get(found) == row) == (row in set(keys))


def test_sets_of_keys_are_numbered_alike() -> None:
    packing = packing_of(
        [INT, LONG], [[pa.array([1], pa.int32()), pa.array([5])], [pa.array([3], pa.int32()), pa.array([-5])]]
    )
    assert packing is not None
    assert packing.size == 33
    assert list(packing.keys([pa.array([1, 3], pa.int32()), pa.array([-5, 5])])) == [0, 32]


def test_of_every_type_of_whole_numbers() -> None:
    day, moment = dt.date(1969, 12, 31), dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
    keys = [
        pa.chunked_array([pa.array([True, False])]),
        pa.chunked_array([pa.array([day, None])]),
        pa.chunked_array([pa.array([moment, moment], pa.timestamp("us", "UTC"))]),
    ]
    packing = packing_of([BOOLEAN, DATE, TIMESTAMPTZ], [keys])
    assert packing is not None
    assert [(r.low, r.size) for r in packing.ranges] == [(0, 2), (-1, 2), (1_000_000, 1)]
    assert list(packing.keys(keys)) == [2, 1]


@pytest.mark.parametrize("other", [STRING, DOUBLE, TIMESTAMP, DecimalType(7, 2)])
def test_other_types_are_not(other: PrimitiveType) -> None:
    assert packing_of([LONG, other], [[pa.array([1]), pa.array([None])]]) is None


def test_no_keys_and_too_many_are_not() -> None:
    assert made([], [LONG]) is None
    assert made([(LEAST,), (MOST,)], [LONG]) is None
    assert made([(0, 0), (2**32, 2**31)], [LONG, LONG]) is None
    assert made([(0,), (MOST,)], [LONG]) is None
    packing = made([(1,), (MOST,)], [LONG])
    assert packing is not None
    assert packing.size == 2**63 - 1
