"""Values below null structs, which Arrow leaves open: what they must be differs by writer.

pyarrow's Parquet writer wants values in required fields. Its ORC writer wants nulls: it stores what the fields of a
null struct hold as values, which readers take for those of later rows, unless a struct further out has nulls too.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from engine.columnar.schemas import child_fields, is_list, storage_of


def hides_nulls(type_: pa.DataType) -> bool:
    """Whether an array of the type can have nulls where a field is required, below null structs."""
    inner = child_fields(type_)
    return (pat.is_struct(type_) and not all(f.nullable for f in inner)) or any(hides_nulls(f.type) for f in inner)


def fill_hidden_nulls(array: pa.Array) -> pa.Array:
    """The same values, without nulls in required fields below null structs. Nulls in structs that are none stay."""
    type_ = array.type
    if not hides_nulls(type_):
        return array
    if pat.is_struct(type_):
        children = [_filled(array, place, f) for place, f in enumerate(child_fields(type_))]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(child_fields(type_)), mask=mask)
    return _with_elements(array, fill_hidden_nulls)


def spread_nulls(array: pa.Array) -> pa.Array:
    """The same values, with null in all fields of a null struct."""
    type_ = array.type
    if pat.is_struct(type_) and type_.num_fields:
        children = [spread_nulls(child) for child in array.flatten()]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(child_fields(type_)), mask=mask)
    if pat.is_map(type_) or is_list(type_):
        return _with_elements(array, spread_nulls)
    return array


def _with_elements(array: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """A list or map array with other elements, or keys and values, in the same places."""
    type_ = array.type
    if pat.is_map(type_):
        parts = [change(array.keys), change(array.items)]
        inner = pa.StructArray.from_arrays(parts, fields=list(child_fields(type_)))
    else:
        assert is_list(type_), type_
        inner = change(array.values)
    return pa.Array.from_buffers(type_, len(array), array.buffers()[:2], offset=array.offset, children=[inner])


def _filled(struct: pa.StructArray, place: int, field: pa.Field) -> pa.Array:
    child = fill_hidden_nulls(struct.field(place))
    if field.nullable or not child.null_count or pc.any(pc.and_(struct.is_valid(), child.is_null())).as_py():
        return child
    stored = storage_of(child)
    # Without the bits that say what is null, there is whatever Arrow has in the place of a null.
    plain = _without_validity(stored)
    return plain if stored is child else pa.ExtensionArray.from_storage(child.type, plain)


def _without_validity(array: pa.Array) -> pa.Array:
    type_ = array.type
    if pat.is_struct(type_):
        return pa.StructArray.from_arrays([array.field(i) for i in range(type_.num_fields)], fields=list(type_))
    own = array.buffers()[: 2 if pat.is_map(type_) or is_list(type_) else None]
    inner = None
    if pat.is_map(type_):
        inner = [pa.StructArray.from_arrays([array.keys, array.items], fields=list(child_fields(type_)))]
    elif is_list(type_):
        inner = [array.values]
    return pa.Array.from_buffers(type_, len(array), [None, *own[1:]], offset=array.offset, children=inner)
