"""Name mapping: field ids for data files that carry none (spec: "Column Projection", appendix "Name Mapping").

The mapping is a table property whose text is JSON, so its text form stands here with the noun.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from icebench.engine.errors import Invalid
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import NestedField, children


@dataclass(frozen=True, slots=True)
class MappedField:
    """One field: the names that files may use for it, its id (None: only its children are mapped), and its children."""

    names: tuple[str, ...]
    field_id: int | None = None
    fields: tuple[MappedField, ...] = ()


@dataclass(frozen=True)
class NameMapping:
    """Fields by the names that files use. Names are single path segments; they may hold dots."""

    fields: tuple[MappedField, ...]

    @cached_property
    def id_by_path(self) -> dict[tuple[str, ...], int]:
        """Path of names -> field id. List elements are ``element``, map entries ``key`` and ``value``."""
        return dict(_paths(self.fields, ()))

    def id_of(self, *path: str) -> int | None:
        """The id of the field at that path; None where the mapping has none, which means: ignore the column."""
        return self.id_by_path.get(path)


def _paths(fields: tuple[MappedField, ...], prefix: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    for mapped in fields:
        for name in mapped.names:
            path = (*prefix, name)
            if mapped.field_id is not None:
                yield path, mapped.field_id
            yield from _paths(mapped.fields, path)


def mapping_of(schema: Schema) -> NameMapping:
    """The mapping of a schema's present names."""

    def mapped(fields: tuple[NestedField, ...]) -> tuple[MappedField, ...]:
        return tuple(MappedField((f.name,), f.field_id, mapped(children(f.type))) for f in fields)

    return NameMapping(mapped(schema.fields))


def misplaced_id(mapping: NameMapping, schemas: Iterable[Schema]) -> int | None:
    """An id that the mapping has inside another column than all schemas that have it; None if there is none.

    No change of a schema moves a column into another, so such a mapping is of other ids than the table's. Hive, for
    one, numbers the columns of a table that it migrates in another order than the schema that it makes.
    """
    parents: dict[int, set[int | None]] = {}
    for schema in schemas:
        for field_id in schema.by_id:
            parents.setdefault(field_id, set()).add(schema.parent_of.get(field_id))

    def first(fields: tuple[MappedField, ...], parent: int | None, *, is_known: bool) -> int | None:
        for mapped in fields:
            own = mapped.field_id
            if is_known and own in parents and parent not in parents[own]:
                return own
            found = first(mapped.fields, own, is_known=own is not None)
            if found is not None:
                return found
        return None

    return first(mapping.fields, None, is_known=True)


def evolve_mapping(mapping: NameMapping, old: Schema, new: Schema) -> NameMapping:
    """The mapping after a change of schema: new columns are mapped by their names, renamed ones by the new name too.

    Files that were written before keep their names, so an old name stays unless another column has taken it; columns
    that were dropped stay mapped, so that nothing else is read from their place.
    """
    return NameMapping(_evolve(mapping.fields, old, new.fields))


def _evolve(mapped: tuple[MappedField, ...], old: Schema, fields: tuple[NestedField, ...]) -> tuple[MappedField, ...]:
    by_id = {f.field_id: f for f in fields}
    before = {f.field_id: old.by_id[f.field_id].name for f in fields if f.field_id in old.by_id}
    given = {f.name: f.field_id for f in fields if before.get(f.field_id) != f.name}
    made = []
    for each in mapped:
        names = [name for name in each.names if given.get(name, each.field_id) == each.field_id]
        found = None if each.field_id is None else by_id.get(each.field_id)
        if found is None:
            made.append(MappedField(tuple(names), each.field_id, each.fields))
            continue
        if found.name in given and found.name not in names:
            names.append(found.name)
        made.append(MappedField(tuple(names), each.field_id, _evolve(each.fields, old, children(found.type))))
    added = tuple(f for f in fields if f.field_id not in old.by_id)
    return (*made, *mapping_of(Schema(added)).fields)


def parse_name_mapping(text: str) -> NameMapping:
    """The mapping that a table property holds.

    Raises:
        Invalid: Not JSON, not of the spec's form, or a name used twice among siblings; the message has the place.
    """
    try:
        return NameMapping(_parse_fields(json.loads(text), "name mapping"))
    except ValueError as error:
        raise Invalid(f"name mapping is not JSON: {error}") from error
    except RecursionError as error:
        raise Invalid("name mapping is nested too deeply") from error


def _parse_fields(document: object, at: str) -> tuple[MappedField, ...]:
    if not isinstance(document, list):
        raise Invalid(f"{at}: a list of fields is expected, not {type(document).__name__}")
    fields = tuple(_parse_field(item, f"{at}[{index}]") for index, item in enumerate(document))
    seen: set[str] = set()
    for name in (name for mapped in fields for name in mapped.names):
        if name in seen:
            raise Invalid(f"{at}: the name {name!r} is used twice")
        seen.add(name)
    return fields


def _parse_field(item: object, at: str) -> MappedField:
    if not isinstance(item, dict):
        raise Invalid(f"{at}: an object is expected, not {type(item).__name__}")
    names = item.get("names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Invalid(f"{at}.names: a list of strings is expected")
    field_id = item.get("field-id")
    if field_id is not None and (isinstance(field_id, bool) or not isinstance(field_id, int)):
        raise Invalid(f"{at}.field-id: a whole number is expected")
    return MappedField(tuple(names), field_id, _parse_fields(item.get("fields") or [], f"{at}.fields"))


def name_mapping_text(mapping: NameMapping) -> str:
    """The text of the table property."""

    def encode(mapped: MappedField) -> dict[str, Any]:
        encoded: dict[str, Any] = {} if mapped.field_id is None else {"field-id": mapped.field_id}
        encoded["names"] = list(mapped.names)
        if mapped.fields:
            encoded["fields"] = [encode(child) for child in mapped.fields]
        return encoded

    return json.dumps([encode(mapped) for mapped in mapping.fields])
