"""The columns of one file, found by field id at every depth (spec: "Column Projection")."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import accumulate

import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.columnar.schemas import Leaf, field_id_of, leaf_children, leaves, stored_type
from icebench.engine.errors import Unsupported
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import VARIANT, ListType, MapType, NestedField, StructType

_MAY_BE_GROUPS = frozenset({pa.struct([]).id, pa.uuid().id})


class FileColumns:
    """The columns of a file, by field id.

    A file may have thousands of columns of which few are wanted: a column is looked up by its name first, and all ids
    are read only if that fails.

    Args:
        schema: The file's columns with field ids, as an Arrow reader of the file names them.
        leaf_count: The number of leaves, if known.
    """

    def __init__(self, schema: pa.Schema, leaf_count: int | None = None) -> None:
        self.schema = schema
        self._leaf_count = leaf_count
        self._chosen: tuple[Schema, tuple[int, ...]] | None = None

    @cached_property
    def _places(self) -> dict[int | None, int]:
        return {field_id_of(f): place for place, f in enumerate(self.schema)}

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """All leaves, in Parquet's order; raises Unsupported as `leaf_indices`."""
        found = leaves(self.schema)
        self._check_leaves(len(found))
        return found

    def _check_leaves(self, shown: int) -> None:
        if self._leaf_count is not None and shown != self._leaf_count:
            raise Unsupported(f"a file with {self._leaf_count} columns of values, where Arrow shows {shown}")

    @cached_property
    def _first_leaves(self) -> list[int] | None:
        """The number of each column's first leaf; None if each column is a leaf."""
        types = self.schema.types
        # Inlined, as a file may have thousands: structs without fields and extension types are no leaves, either.
        if self._leaf_count == len(types) and not [t for t in types if t.num_fields or t.id in _MAY_BE_GROUPS]:
            return None
        found = list(accumulate(map(_count_leaves, types), initial=0))
        self._check_leaves(found[-1])
        return found

    def place_of(self, field_id: int, name: str) -> int | None:
        """The index of the top-level column with an id, or None; `name` is its likely name."""
        near: int = self.schema.get_field_index(name)
        if near >= 0 and field_id_of(self.schema.field(near)) == field_id:
            return near
        return self._places.get(field_id)

    def leaf_indices(self, wanted: Schema) -> tuple[int, ...]:
        """The leaves to decode for the wanted fields, ascending.

        If all wanted fields of a struct are missing from the file, one leaf is decoded for the struct's nulls.

        Raises:
            Unsupported: The file has more or fewer leaves than its columns show.
        """
        known = self._chosen
        if known is not None and known[0] is wanted:  # of files that are alike, and share this
            return known[1]
        chosen: list[int] = []
        for target in wanted.fields:
            place = self.place_of(target.field_id, target.name)
            if place is not None:
                first = place if self._first_leaves is None else self._first_leaves[place]
                _choose(self.schema.field(place), target, first, chosen)
        self._chosen = wanted, tuple(sorted(chosen))
        return self._chosen[1]


def _count_leaves(type_: pa.DataType) -> int:
    inner = leaf_children(type_)
    return 1 if inner is None else sum(_count_leaves(child.type) for child in inner)


def _choose(source: pa.Field, target: NestedField | None, first: int, chosen: list[int]) -> int:
    """Append the wanted leaves of `source`, the first of which has number `first`; returns the number after its last
    leaf."""
    inner = leaf_children(source.type)
    if inner is None:
        if target is not None:
            chosen.append(first)
        return first + 1
    before, position = len(chosen), first
    by_id = _children_by_id(target)
    for place, child in enumerate(inner):
        # The parts of a variant have no ids, and all are wanted.
        is_variant = target is not None and target.type == VARIANT
        wanted = target if is_variant or target is None else _matching(source, child, place, by_id)
        position = _choose(child, wanted, position, chosen)
    if target is not None and len(chosen) == before and position > first:
        chosen.append(first)
    return position


def _children_by_id(target: NestedField | None) -> dict[int, NestedField]:
    match target.type if target is not None else None:
        case StructType(fields):
            return {f.field_id: f for f in fields}
        case ListType(element):
            return {element.field_id: element}
        case MapType(key, value):
            return {key.field_id: key, value.field_id: value}
    return {}


def _matching(source: pa.Field, child: pa.Field, place: int, by_id: Mapping[int, NestedField]) -> NestedField | None:
    """The wanted child that corresponds to a file's child. Elements, keys and values are matched by position: there is
    only one of each, and some writers give it no id."""
    if not pat.is_struct(stored_type(source.type)):
        return tuple(by_id.values())[place] if place < len(by_id) else None
    field_id = field_id_of(child)
    return None if field_id is None else by_id.get(field_id)
