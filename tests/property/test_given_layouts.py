"""Rows keep their values whatever layout Arrow has them in: views, large and fixed-size lists, dictionaries, slices,
and children that are elements of no value, at every depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.columnar.rows import table_rows
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import LONG, STRING, ListType, MapType, NestedField, StructType, Type

Draw = Callable[[st.SearchStrategy[Any]], Any]

TYPES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(["long", "string"]),
    lambda inner: st.one_of(
        st.tuples(st.just("list"), inner),
        st.tuples(st.just("map"), inner),
        st.tuples(st.just("struct"), st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=4,
)
LEAVES = {
    "long": ([pa.int64(), pa.int32(), pa.uint16(), pa.dictionary(pa.int8(), pa.int64())], st.integers(0, 9)),
    "string": (
        [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int16(), pa.string())],
        st.sampled_from(["", "a", "b", "a text of more than twelve bytes"]),
    ),
}
INT = pa.int32()


def column_type(drawn: Any, next_id: Callable[[], int]) -> Type:
    match drawn:
        case "list", inner:
            return ListType(NestedField(field_id=next_id(), name="element", type=column_type(inner, next_id)))
        case "map", inner:
            key = NestedField(field_id=next_id(), name="key", type=STRING, required=True)
            return MapType(key, NestedField(field_id=next_id(), name="value", type=column_type(inner, next_id)))
        case "struct", children:
            fields = [
                NestedField(field_id=next_id(), name=f"f{place}", type=column_type(child, next_id))
                for place, child in enumerate(children)
            ]
            return StructType(tuple(fields))
    return LONG if drawn == "long" else STRING


def array_of(draw: Draw, drawn: Any, length: int, *, nullable: bool = True) -> pa.Array:
    """Values of that type in a layout that is drawn, too; a slice of a longer array."""
    before, after = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    whole = before + length + after
    nulls = [nullable and draw(st.booleans()) and draw(st.booleans()) for _ in range(whole)]
    match drawn:
        case "list", inner:
            made = list_of(draw, inner, nulls)
        case "map", inner:
            keys, children = array_of(draw, "string", 6, nullable=False), array_of(draw, inner, 6)
            if pa.types.is_dictionary(keys.type):
                keys = keys.dictionary_decode()
            made = pa.MapArray.from_arrays(
                offsets_of(draw, whole, INT), keys, children, mask=pa.array(nulls, pa.bool_())
            )
        case "struct", inner:
            places = draw(st.permutations(range(len(inner))))
            children = [array_of(draw, inner[place], whole) for place in places]
            names = [f"f{place}" for place in places]
            made = pa.StructArray.from_arrays(children, names, mask=pa.array(nulls, pa.bool_()))
        case _:
            types, values = LEAVES[drawn]
            found = [None if is_null else draw(values) for is_null in nulls]
            type_ = draw(st.sampled_from(types))
            plain = pa.array(found, type_.value_type if pa.types.is_dictionary(type_) else type_)
            made = plain.dictionary_encode().cast(type_) if pa.types.is_dictionary(type_) else plain
    return made.slice(before, length)


def list_of(draw: Draw, inner: Any, nulls: list[bool]) -> pa.Array:
    kind, mask = draw(st.sampled_from(["list", "large", "view", "large view", "fixed"])), pa.array(nulls, pa.bool_())
    if kind == "fixed":
        size = draw(st.integers(1, 2))
        return pa.FixedSizeListArray.from_arrays(array_of(draw, inner, size * len(nulls)), size, mask=mask)
    children = array_of(draw, inner, 6)
    offset_type = pa.int64() if "large" in kind else INT
    if "view" not in kind:
        make = pa.LargeListArray if kind == "large" else pa.ListArray
        return make.from_arrays(offsets_of(draw, len(nulls), offset_type), children, mask=mask)
    make = pa.LargeListViewArray if kind == "large view" else pa.ListViewArray
    starts = [draw(st.integers(0, 6)) for _ in nulls]
    sizes = [draw(st.integers(0, 6 - start)) for start in starts]
    return make.from_arrays(pa.array(starts, offset_type), pa.array(sizes, offset_type), children, mask=mask)


def offsets_of(draw: Draw, count: int, type_: pa.DataType) -> pa.Array:
    """Offsets into six children, of which the first and the last may belong to no value."""
    return pa.array(sorted(draw(st.integers(0, 6)) for _ in range(count + 1)), type_)


@given(data=st.data())
def test_rows_keep_their_values_in_every_layout(data: st.DataObject) -> None:
    drawn = data.draw(TYPES)
    array = array_of(data.draw, drawn, data.draw(st.integers(0, 4)))
    ids = iter(range(2, 1000))
    schema = Schema((NestedField(field_id=1, name="c", type=column_type(drawn, lambda: next(ids))),))
    found = list(table_rows(pa.table({"c": array}), schema))
    for batch in found:
        batch.validate(full=True)
    assert [value for batch in found for value in batch.column(0).to_pylist()] == array.to_pylist()
