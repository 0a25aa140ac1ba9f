"""Digests of columns are equal where the values are, and only there."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.columnar.digests import ColumnDigest

TYPE = pa.struct(
    [
        ("t", pa.string()),
        ("l", pa.list_(pa.struct([("f", pa.float64()), ("d", pa.decimal128(38, 2))]))),
        ("m", pa.map_(pa.int32(), pa.list_(pa.bool_()))),
        ("b", pa.binary(2)),
    ]
)


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


VALUES = some(
    st.fixed_dictionaries(
        {
            "t": some(st.text("ab", max_size=2)),
            "l": some(
                st.lists(
                    some(
                        st.fixed_dictionaries(
                            {
                                "f": some(st.sampled_from([0.0, -0.0, 1.5, math.nan])),
                                "d": some(st.decimals(-9, 9, places=2)),
                            }
                        )
                    ),
                    max_size=2,
                )
            ),
            "m": some(
                st.lists(st.tuples(st.integers(0, 2), some(st.lists(some(st.booleans()), max_size=2))), max_size=2)
            ),
            "b": some(st.sampled_from([b"ab", b"cd"])),
        }
    )
)
ROWS = st.lists(VALUES, max_size=4)


def exact(value: Any) -> Any:
    """A value in which NaN equals NaN, and zeros of either sign differ."""
    match value:
        case float():
            return "nan" if math.isnan(value) else struct.pack("<d", value)
        case dict():
            return {key: exact(inner) for key, inner in value.items()}
        case list() | tuple():
            return [exact(inner) for inner in value]
    return value


def digest(*parts: pa.Array) -> bytes:
    made = ColumnDigest()
    for part in parts:
        made.add(part)
    return made.result()


@given(rows=ROWS, other=ROWS, cut=st.integers(0, 4), before=ROWS)
def test_equal_rows_have_equal_digests_however_they_are_cut(rows: Any, other: Any, cut: int, before: Any) -> None:
    whole = pa.array(rows, TYPE)
    sliced = pa.array([*before, *rows, *before], TYPE).slice(len(before), len(rows))
    assert digest(whole) == digest(sliced.slice(0, cut), sliced.slice(cut)) == digest(pa.concat_arrays([sliced]))
    assert (digest(whole) == digest(pa.array(other, TYPE))) == (exact(rows) == exact(other))


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ([[1], [2, 3]], [[1, 2], [3]]),
        ([[], None], [None, []]),
        ([[1, 2]], [[2, 1]]),
        ([[None], []], [[], [None]]),
        ([["a", "bc"]], [["ab", "c"]]),
        ([["", None]], [[None, ""]]),
        ([[0.0]], [[-0.0]]),
        ([{"a": None}], [None]),
        ([{"a": 1, "b": None}], [{"a": None, "b": 1}]),
        ([True, None], [None, True]),
    ],
)
def test_rows_that_are_nearly_equal_have_different_digests(one: Any, another: Any) -> None:
    both = pa.array([*one, *another])
    assert digest(both.slice(0, len(one))) != digest(both.slice(len(one)))


def test_what_is_in_the_place_of_a_null_does_not_count() -> None:
    hidden = pa.array([1, 2, 3])
    null = pa.array([False, True, False])
    fields = [pa.field("a", pa.int64())]
    one = pa.StructArray.from_arrays([hidden], fields=fields, mask=null)
    assert digest(one) == digest(pa.array([{"a": 1}, None, {"a": 3}], one.type))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), hidden, mask=null)
    assert digest(lists) == digest(pa.array([[1], None, [3]], lists.type))
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), hidden, hidden, mask=null)
    assert digest(maps) == digest(pa.array([[(1, 1)], None, [(3, 3)]], maps.type))


@pytest.mark.parametrize(
    "type_",
    [pa.list_(pa.struct([("u", pa.uuid())])), pa.map_(pa.string(), pa.uuid()), pa.large_list(pa.list_(pa.uuid()))],
)
def test_lists_of_extension_types_that_are_all_null(type_: pa.DataType) -> None:
    """Arrow's `flatten` raises for them."""
    assert digest(pa.nulls(2, type_)) == digest(pa.nulls(3, type_).slice(1)) != digest(pa.nulls(3, type_))


def test_dictionaries_and_any_nan_are_the_values_that_they_stand_for() -> None:
    text = pa.array(["a", None, "b", "a"])
    assert digest(text) == digest(text.dictionary_encode())
    bits = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64)
    assert digest(pa.array(bits.view(np.float64))) == digest(pa.array([math.nan, math.nan]))
