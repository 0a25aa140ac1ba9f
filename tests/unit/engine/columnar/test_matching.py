from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.columnar.matching import find_uncancelled, row_codes, update_pairs

CHANGES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.booleans()), max_size=12)


@given(CHANGES)
def test_changes_cancel_like_brackets(changes: list[tuple[int, int, bool]]) -> None:
    """Against a stack for each code: a change takes away the last one of the other kind, or waits."""
    waiting: dict[int, list[int]] = {}
    for place in sorted(range(len(changes)), key=lambda i: (changes[i][1], changes[i][2], i)):
        code, _, inserted = changes[place]
        own = waiting.setdefault(code, [])
        if own and changes[own[-1]][2] != inserted:
            own.pop()
        else:
            own.append(place)
    kept = find_uncancelled(
        np.array([c for c, _, _ in changes], np.int64),
        np.array([o for _, o, _ in changes], np.int64),
        np.array([i for _, _, i in changes], np.bool_),
    )
    assert sorted(np.flatnonzero(kept).tolist()) == sorted(place for own in waiting.values() for place in own)


@given(CHANGES)
def test_updates_are_pairs_of_one_key(changes: list[tuple[int, int, bool]]) -> None:
    codes = np.array([c for c, _, _ in changes], np.int64)
    inserted = np.array([i for _, _, i in changes], np.bool_)
    found = {
        code: [[i for i, x in enumerate(changes) if (x[0], x[2]) == (code, side)] for side in (False, True)]
        for code in (0, 1, 2)
    }
    pairs = update_pairs(codes, inserted)
    unclear = {code for code, (gone, come) in found.items() if gone and come and len(gone) + len(come) > 2}
    if pairs.ambiguous is not None:
        assert codes[pairs.ambiguous] in unclear
        return
    assert not unclear
    expected = sorted((gone[0], come[0]) for gone, come in found.values() if gone and come)
    assert list(zip(pairs.before.tolist(), pairs.after.tolist(), strict=True)) == expected


def test_rows_are_equal_by_all_columns() -> None:
    rows = pa.table(
        {
            "f": [math.nan, math.nan, 0.0, -0.0, None, None],
            "s": pa.array([{"x": 1}, {"x": 1}, None, None, {"x": None}, None], pa.struct([("x", pa.int64())])),
        }
    )
    codes = row_codes([column.combine_chunks() for column in rows.columns], 6).tolist()
    assert codes[0] == codes[1]
    assert len(set(codes)) == 5
    many = [pa.array([None if place == i else 0 for place in range(70)], pa.int64()) for i in range(70)]
    assert len(set(row_codes(many, 70).tolist())) == 70  # nulls of more columns than a word has bits
    assert row_codes([], 3).tolist() == [0, 0, 0]


def test_the_entries_of_a_map_have_no_order_and_those_of_a_list_do() -> None:
    maps = pa.array(
        [[("a", 1), ("b", 2)], [("b", 2), ("a", 1)], [("a", 2), ("b", 1)]], pa.map_(pa.string(), pa.int64())
    )
    codes = row_codes([maps], 3).tolist()
    assert codes[0] == codes[1] != codes[2]
    lists = pa.array([[1, 2], [2, 1], [1, 2], [], None])
    codes = row_codes([lists], 5).tolist()
    assert codes[0] == codes[2]
    assert len(set(codes)) == 4


@pytest.mark.parametrize("stored", [pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns")])
def test_dates_and_timestamps_in_lists_and_maps_are_compared_whatever_the_year(stored: pa.DataType) -> None:
    far = 4_000_000 if pa.types.is_date(stored) else 2**62
    values = pa.array([far, 1, far, far - 1, None], pa.int32() if pa.types.is_date(stored) else pa.int64()).cast(stored)
    places = pa.array(range(6), pa.int32())
    structs = pa.StructArray.from_arrays([values], ["at"])
    keys = pa.array(["k"] * 5)
    for nested in (
        pa.ListArray.from_arrays(places, values),
        pa.ListArray.from_arrays(places, structs),
        pa.MapArray.from_arrays(places, keys, values),
    ):
        codes = row_codes([nested], 5).tolist()
        assert codes[0] == codes[2]
        assert len(set(codes)) == 4
        assert len(set(row_codes([nested.slice(2)], 3).tolist())) == 3


def test_nulls_in_lists_differ_from_one_another_by_their_level() -> None:
    inner = pa.struct([("a", pa.int64()), ("b", pa.struct([]))])
    lists = pa.array(
        [[None], [{"a": None, "b": None}], [{"a": None, "b": {}}], [], None, [None], [None, None]], pa.list_(inner)
    )
    codes = row_codes([lists], 7).tolist()
    assert codes[0] == codes[5]
    assert len(set(codes)) == 6
