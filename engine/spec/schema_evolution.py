"""Schema changes (spec: "Schema Evolution"): add, drop, rename, move, promote, by field id, at any depth.

A `SchemaUpdate` collects changes against one base schema and checks each as it is made; `apply()` returns the new
schema and the highest column id ever assigned. Ids are never reused. Nothing here touches a table: the caller commits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from icebench.engine.errors import Invalid
from icebench.engine.spec.calendar import UNITS_PER_DAY
from icebench.engine.spec.metadata_columns import check_column_names
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import (
    BINARY,
    DATE,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    GeospatialType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    can_promote,
    children,
    with_children,
)
from icebench.engine.spec.values import Value, as_value

_TOP = 0
"""Stands for the schema itself where a parent's field id is asked for; field ids begin at 1."""

_UNITS = ({TIMESTAMP, TIMESTAMP_NS}, {TIMESTAMPTZ, TIMESTAMPTZ_NS})


@dataclass(frozen=True, slots=True)
class _Move:
    field_id: int
    where: str  # "first", "before" or "after"
    sibling_id: int | None  # None for "first"


@dataclass
class SchemaUpdate:
    """Changes against `base`.

    Each method returns the update, and raises Invalid for a column that does not exist or is ambiguous, for a name that
    is taken, and for changes that the spec forbids.

    Args:
        base: The schema that names and ids refer to, as it was before any change of this update.
        last_column_id: The highest column id that the table ever assigned.
        format_version: Decides which promotions and defaults are legal.
    """

    base: Schema
    last_column_id: int
    format_version: int = 2
    _added: dict[int, list[NestedField]] = field(default_factory=dict)
    _dropped: set[int] = field(default_factory=set)
    _changed: dict[int, NestedField] = field(default_factory=dict)
    _moves: dict[int, list[_Move]] = field(default_factory=dict)
    _beside: set[int] = field(default_factory=set)
    _identifiers: frozenset[int] | None = None
    _siblings: dict[int, dict[str, set[int]]] = field(default_factory=dict)
    _added_names: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add_column(
        self,
        name: str,
        type_: Type,
        *,
        parent: str | None = None,
        required: bool = False,
        doc: str | None = None,
        default: Value | None = None,
    ) -> SchemaUpdate:
        """Add a column at the end of the schema, or of the struct (or list or map of structs) named `parent`.

        A required column needs `default`, which becomes its initial and write default (v3), because existing rows have
        no value for it. Fields nested in `type_` get new ids.
        """
        parent_id = _TOP if parent is None else self._struct_id(parent)
        if self._ids_of(parent_id).get(name):
            raise Invalid(f"cannot add column {name!r}: it exists")
        self._check_name(parent_id, name)
        if default is not None and self.format_version < 3:
            raise Invalid(f"a default for {name!r} needs format version 3; the table has {self.format_version}")
        default = _default(name, type_, default)
        if required and default is None:
            raise Invalid(f"cannot add required column {name!r} without a default: existing rows have no value for it")
        field_id = self._next_id()
        made = NestedField(
            field_id=field_id,
            name=name,
            type=self._renumber(type_),
            required=required,
            doc=doc,
            initial_default=default,
            write_default=default,
        )
        self._add(parent_id, made)
        return self

    def drop_column(self, name: str) -> SchemaUpdate:
        """Drop a column and everything nested in it."""
        found = self.base.find(name)
        self._refuse_collection_child(found.field_id, "drop")
        if found.field_id in self._changed or found.field_id in self._added:
            raise Invalid(f"cannot drop column {name!r}: this update changes it")
        if self._holds_identifier(found.field_id):
            raise Invalid(f"cannot drop column {name!r}: it is or holds an identifier field")
        if found.field_id in self._beside:
            raise Invalid(f"cannot drop column {name!r}: this update moves another column beside it or inside it")
        self._ids_of(self.base.parent_of.get(found.field_id, _TOP))[found.name].discard(found.field_id)
        self._dropped.add(found.field_id)
        return self

    def rename_column(self, name: str, new_name: str) -> SchemaUpdate:
        """Rename a column; its id and data stay."""
        if not new_name:
            raise Invalid(f"cannot rename column {name!r} to an empty name")
        found = self._current(name)
        self._refuse_collection_child(found.field_id, "rename")
        parent_id = self.base.parent_of.get(found.field_id, _TOP)
        ids = self._ids_of(parent_id)
        if ids.get(new_name, set()) - {found.field_id}:
            raise Invalid(f"cannot rename column {name!r} to {new_name!r}: that name exists")
        self._check_name(parent_id, new_name)
        ids[found.name].discard(found.field_id)
        ids.setdefault(new_name, set()).add(found.field_id)
        return self._change(replace(found, name=new_name))

    def promote_column(self, name: str, type_: PrimitiveType) -> SchemaUpdate:
        """Widen a column's type, and its defaults with it, as the spec allows; raises Invalid for any other change."""
        found = self._current(name)
        if not can_promote(found.type, type_, format_version=self.format_version):
            raise Invalid(f"cannot change column {name!r} from {found.type} to {type_}")
        initial, write = (
            _promoted(name, found.type, type_, each) for each in (found.initial_default, found.write_default)
        )
        return self._change(replace(found, type=type_, initial_default=initial, write_default=write))

    def make_optional(self, name: str) -> SchemaUpdate:
        """Make a column optional. An optional column cannot be made required."""
        found = self._current(name)
        if self._holds_identifier(found.field_id):
            raise Invalid(f"cannot make column {name!r} optional: it is or holds an identifier field")
        return self._change(replace(found, required=False))

    def document_column(self, name: str, doc: str | None) -> SchemaUpdate:
        """Set or remove a column's documentation."""
        return self._change(replace(self._current(name), doc=doc))

    def set_write_default(self, name: str, value: Value | None) -> SchemaUpdate:
        """Set the default of future rows (v3), in the internal representation of `icebench.engine.spec.values`."""
        if self.format_version < 3:
            raise Invalid(f"a default for {name!r} needs format version 3; the table has {self.format_version}")
        found = self._current(name)
        self._refuse_collection_child(found.field_id, "set a default of")
        return self._change(replace(found, write_default=_default(name, found.type, value)))

    def set_identifier_fields(self, *names: str) -> SchemaUpdate:
        """Set the columns that identify a row: required, not floating point, not inside a list or map."""
        ids = set()
        for name in names:
            found = self._current(name)
            self.base.check_identifier(found.field_id)
            ids.add(found.field_id)
        self._identifiers = frozenset(ids)
        return self

    def move_first(self, name: str) -> SchemaUpdate:
        """Move a column to the front of its struct."""
        return self._move(name, "first", None)

    def move_before(self, name: str, sibling: str) -> SchemaUpdate:
        """Move a column before another one of the same struct."""
        return self._move(name, "before", sibling)

    def move_after(self, name: str, sibling: str) -> SchemaUpdate:
        """Move a column after another one of the same struct."""
        return self._move(name, "after", sibling)

    def union_by_name(self, incoming: Schema) -> SchemaUpdate:
        """Add columns that only `incoming` has, with their defaults, promote those that are wider in it, make optional
        those optional in it.

        Columns are matched by name at every depth. A column that is only in the base stays, and becomes optional when
        required, since incoming rows lack it. A timestamp keeps its unit, which cannot change: its values are cast.
        Geometry and geography take binary, in which form Arrow has them.
        """
        if not isinstance(incoming, Schema):
            raise Invalid(f"a schema is an icebench.Schema, not {type(incoming)}")
        self._union(_TOP, self.base.fields, incoming.fields, "")
        return self

    def apply(self) -> tuple[Schema, int]:
        """The new schema (with the base's schema id; the table assigns the next) and the new last column id."""
        fields = self._rebuilt(_TOP, self.base.fields)
        if not fields:
            raise Invalid("a schema needs at least one column")
        schema = Schema(fields, self.base.schema_id, self._identifier_ids())
        return schema, self.last_column_id

    # ---- parts -------------------------------------------------------------------------------------------------------

    def _union(self, parent_id: int, ours: tuple[NestedField, ...], theirs: tuple[NestedField, ...], at: str) -> None:
        known = {f.name: f for f in ours}
        for other in theirs:
            mine = known.get(other.name)
            full_name = f"{at}{other.name}"
            if mine is None:
                self._check_name(parent_id, other.name)
                made = replace(
                    other,
                    field_id=self._next_id(),
                    type=self._renumber(other.type),
                    required=False,
                    initial_default=_default(full_name, other.type, other.initial_default),
                    write_default=_default(full_name, other.type, other.write_default),
                )
                self._add(parent_id, made)
                continue
            if mine.required and not other.required:
                self.make_optional(full_name)
            self._union_type(mine, other, full_name)
        names = {f.name for f in theirs}
        if parent_id != _TOP and isinstance(self.base.by_id[parent_id].type, ListType | MapType):
            return
        for mine in ours:
            if mine.required and mine.name not in names:
                self.make_optional(f"{at}{mine.name}")

    def _union_type(self, mine: NestedField, other: NestedField, full_name: str) -> None:
        inner, outer = children(mine.type), children(other.type)
        if inner or outer:
            if type(mine.type) is not type(other.type):
                raise Invalid(f"cannot change column {full_name!r} from {mine.type} to {other.type}")
            self._union(mine.field_id, inner, outer, f"{full_name}.")
            return
        assert isinstance(mine.type, PrimitiveType)
        assert isinstance(other.type, PrimitiveType)
        fits = (
            can_promote(other.type, mine.type, format_version=3)
            or {mine.type, other.type} in _UNITS
            or (isinstance(mine.type, GeospatialType) and other.type == BINARY)
        )
        if not fits:
            self.promote_column(full_name, other.type)

    @staticmethod
    def _check_name(parent_id: int, name: str) -> None:
        if parent_id == _TOP:
            check_column_names([name])

    def _identifier_ids(self) -> frozenset[int]:
        return self.base.identifier_field_ids if self._identifiers is None else self._identifiers

    def _holds_identifier(self, field_id: int) -> bool:
        return any(field_id in self._path(each) for each in self._identifier_ids())

    def _next_id(self) -> int:
        self.last_column_id += 1
        return self.last_column_id

    def _renumber(self, type_: Type) -> Type:
        """The same type with fresh ids for all that is nested in it."""
        numbered = [replace(f, field_id=self._next_id()) for f in children(type_)]
        return with_children(type_, tuple(replace(f, type=self._renumber(f.type)) for f in numbered))

    def _current(self, name: str) -> NestedField:
        found = self.base.find(name)
        if any(i in self._dropped for i in self._path(found.field_id)):
            raise Invalid(f"cannot change column {name!r}: this update drops it")
        return self._changed.get(found.field_id, found)

    def _path(self, field_id: int) -> list[int]:
        path = [field_id]
        while (parent := self.base.parent_of.get(path[-1])) is not None:
            path.append(parent)
        return path

    def _change(self, changed: NestedField) -> SchemaUpdate:
        self._changed[changed.field_id] = changed
        return self

    def _refuse_collection_child(self, field_id: int, verb: str) -> None:
        parent = self.base.parent_of.get(field_id)
        if parent is not None and not isinstance(self.base.by_id[parent].type, StructType):
            raise Invalid(f"cannot {verb} {self.base.name_of[field_id]!r}: it is part of a list or map type")

    def _struct_id(self, name: str) -> int:
        """The id of the struct to add to: of the named column, or of its list element or map value."""
        found = self.base.find(name)
        match found.type:
            case ListType(element):
                found = element
            case MapType(_, value):
                found = value
        if not isinstance(found.type, StructType):
            raise Invalid(f"cannot add a column to {name!r}: it is not a struct, nor a list or map of structs")
        if any(i in self._dropped for i in self._path(found.field_id)):
            raise Invalid(f"cannot add a column to {name!r}: this update drops it")
        return found.field_id

    def _ids_of(self, parent_id: int) -> dict[str, set[int]]:
        """The ids of a struct's columns by their names as this update has left them."""
        if parent_id not in self._siblings:
            found: dict[str, set[int]] = {}
            for each in self.base.fields if parent_id == _TOP else children(self.base.by_id[parent_id].type):
                found.setdefault(each.name, set()).add(each.field_id)
            self._siblings[parent_id] = found
        return self._siblings[parent_id]

    def _add(self, parent_id: int, made: NestedField) -> None:
        self._added.setdefault(parent_id, []).append(made)
        self._ids_of(parent_id).setdefault(made.name, set()).add(made.field_id)
        prefix = "" if parent_id == _TOP else f"{self.base.name_of[parent_id]}."
        self._added_names.setdefault(prefix + made.name, (parent_id, made.field_id))

    def _move(self, name: str, where: str, sibling: str | None) -> SchemaUpdate:
        parent_id, moved = self._locate(name)
        sibling_id = None
        if sibling is not None:
            sibling_parent, sibling_id = self._locate(sibling)
            if sibling_parent != parent_id:
                raise Invalid(f"cannot move {name!r} {where} {sibling!r}: they are in different structs")
            if sibling_id == moved:
                raise Invalid(f"cannot move {name!r} {where} itself")
            self._beside.update(self._path(sibling_id))
        self._moves.setdefault(parent_id, []).append(_Move(moved, where, sibling_id))
        return self

    def _locate(self, name: str) -> tuple[int, int]:
        """Parent id and field id of a column of the base or one that this update added."""
        if name in self._added_names:
            return self._added_names[name]
        found = self._current(name)
        self._refuse_collection_child(found.field_id, "move")
        return self.base.parent_of.get(found.field_id, _TOP), found.field_id

    def _rebuilt(self, parent_id: int, fields: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
        made = []
        for old in fields:
            if old.field_id in self._dropped:
                continue
            new = self._changed.get(old.field_id, old)
            inner = children(old.type)
            if inner:
                rebuilt = self._rebuilt(old.field_id, inner)
                if not rebuilt:
                    raise Invalid(f"cannot drop every column of struct {self.base.name_of[old.field_id]!r}")
                if isinstance(old.type, MapType) and rebuilt[0] != old.type.key:
                    # Keys that differed in what is dropped or changed would be one key.
                    raise Invalid(f"cannot change the keys of map {self.base.name_of[old.field_id]!r}")
                new = replace(new, type=with_children(old.type, rebuilt))
            made.append(new)
        made += self._added.get(parent_id, [])
        return _moved(made, self._moves.get(parent_id, []))


def _moved(fields: list[NestedField], moves: list[_Move]) -> tuple[NestedField, ...]:
    """The fields of a struct in their new order, found in a linked list, in which each move takes the same time."""
    by_id: dict[int | None, NestedField] = {f.field_id: f for f in fields}
    ring = [None, *by_id]  # None is before the first and after the last
    following = dict(zip(ring, [*ring[1:], None], strict=True))
    preceding = {after: before for before, after in following.items()}
    for move in moves:
        if move.field_id not in by_id:  # dropped after it was moved
            continue
        before, after = preceding[move.field_id], following[move.field_id]
        following[before], preceding[after] = after, before
        before = preceding[move.sibling_id] if move.where == "before" else move.sibling_id
        after = following[before]
        following[before] = preceding[after] = move.field_id
        preceding[move.field_id], following[move.field_id] = before, after
    made, at = [], following[None]
    while at is not None:
        made.append(by_id[at])
        at = following[at]
    return tuple(made)


def _promoted(name: str, old: Type, new: PrimitiveType, default: Value | None) -> Value | None:
    """A default in the units of the type that its column is widened to; raises Invalid if that does not hold it."""
    if default is None or old != DATE:
        return default  # the value is the same in every other type that may become another one
    assert isinstance(default, int)
    return _default(name, new, default * UNITS_PER_DAY[new.name])


def _default(name: str, type_: Type, value: Value | None) -> Value | None:
    """A default in the internal representation; raises Invalid."""
    if value is None or not isinstance(type_, PrimitiveType):
        return value
    try:
        found = as_value(type_, value)
    except ValueError as error:
        raise Invalid(f"the default of column {name!r}: {error}") from error
    if isinstance(found, float) and not math.isfinite(found):
        raise Invalid(f"the default of column {name!r}: JSON has no number {found}")
    return found


def _normalized(column: NestedField) -> NestedField:
    """The column with legal defaults in the internal representation, which a user may have given as whole numbers."""
    if not isinstance(column.type, PrimitiveType):
        return column
    initial, write = (
        None if each is None else as_value(column.type, each) for each in (column.initial_default, column.write_default)
    )
    return replace(column, initial_default=initial, write_default=write)


def assign_fresh_ids(schema: Schema) -> tuple[Schema, Mapping[int, int]]:
    """The schema numbered from 1 as a new table numbers it: level by level, siblings before their children.

    Returns:
        The schema, and old id -> new id for translating specs and sort orders that refer to the old ids.
    """
    return assign_replacement_ids(schema, Schema(()), 0)


def assign_replacement_ids(schema: Schema, base: Schema, last_column_id: int) -> tuple[Schema, Mapping[int, int]]:
    """The schema numbered as one that replaces `base`, as Iceberg Java does: a column keeps the id of the former one of
    its full name, others are numbered after `last_column_id`, level by level.

    Unlike in Iceberg Java, a name whose type is not the former one or wider than it gets a new id: bounds and partition
    values of older snapshots could not be read as the new type.

    Returns:
        As `assign_fresh_ids`.
    """
    numbers = count(last_column_id + 1)

    def renumber(type_: Type, former: Type) -> Type:
        known = {f.name: f for f in children(former)}
        kept = {f.name: known[f.name] for f in children(type_) if f.name in known and _is_read_as(known[f.name], f)}
        numbered = [
            replace(_normalized(f), field_id=kept[f.name].field_id if f.name in kept else next(numbers))
            for f in children(type_)
        ]
        inner = (renumber(f.type, kept[f.name].type if f.name in kept else UNKNOWN) for f in numbered)
        return with_children(type_, tuple(map(lambda f, t: replace(f, type=t), numbered, inner)))

    fields = renumber(StructType(schema.fields), StructType(base.fields))
    assert isinstance(fields, StructType)
    made = Schema(fields.fields, schema.schema_id)
    mapping = {old.field_id: new.field_id for old, new in zip(schema.walk(), made.walk(), strict=True)}
    identifiers = frozenset(mapping[i] for i in schema.identifier_field_ids)
    return replace(made, identifier_field_ids=identifiers), mapping


def _is_read_as(former: NestedField, wanted: NestedField) -> bool:
    """Whether what was written for a column may be read as another, in every format version."""
    if isinstance(former.type, PrimitiveType) and isinstance(wanted.type, PrimitiveType):
        return can_promote(former.type, wanted.type, format_version=2)
    return type(former.type) is type(wanted.type)
