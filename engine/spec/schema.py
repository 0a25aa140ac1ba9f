"""Table schemas (spec: "Schemas and Data Types", "Schema Evolution").

Columns are found by id first; a name is only a label of one schema. Nested columns are named by their dotted path, in
which list elements are ``element`` and map entries ``key`` and ``value``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property

from icebench.engine.display import count_text, html_fold, html_table, printable, some_lines
from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.spec.types import (
    INCOMPARABLE,
    MAX_DEPTH,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    children,
    with_children,
)

FIRST_METADATA_COLUMN_ID = 2147483447
"""Ids from here up are reserved for metadata columns (spec: "Reserved Field IDs")."""


@dataclass(frozen=True)
class Schema:
    """A table schema: ordered top-level fields, an id, and the ids that identify a row."""

    fields: tuple[NestedField, ...]
    schema_id: int = 0
    identifier_field_ids: frozenset[int] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        seen: set[int] = set()
        level, depth = self.fields, 0
        while level:
            depth += 1
            if depth > MAX_DEPTH:
                raise Invalid(f"column {level[0].name!r} of schema {self.schema_id} is nested over {MAX_DEPTH} deep")
            for nested in level:
                if nested.field_id in seen:
                    raise Invalid(f"field id {nested.field_id} is used twice in schema {self.schema_id}")
                seen.add(nested.field_id)
            level = tuple(child for nested in level for child in children(nested.type))

    def __call__(self) -> Schema:
        """Itself, so that a property of a table may be called, as in PyIceberg."""
        return self

    def __repr__(self) -> str:
        lines = [f"  {f.field_id}: {printable(f.name)} {printable(f.type)}{self._notes(f)}" for f in self.fields]
        return "\n".join([f"Schema({self.schema_id}, {count_text(len(self.fields), 'column')})", *some_lines(lines)])

    def _repr_html_(self) -> str:
        title = f"Schema {self.schema_id}: {count_text(len(self.fields), 'column')}"
        rows = [(str(f.field_id), f.name, f.type, self._notes(f), f.doc) for f in self.fields]
        return html_fold(title, [html_table(("id", "name", "type", "", "doc"), rows)], is_open=True)

    def _notes(self, field: NestedField) -> str:
        key = " identifier" if field.field_id in self.identifier_field_ids else ""
        return f"{' required' if field.required else ''}{key}"

    def walk(self) -> Iterator[NestedField]:
        """All fields, parents before children."""
        stack = list(reversed(self.fields))
        while stack:
            current = stack.pop()
            yield current
            stack.extend(reversed(children(current.type)))

    @cached_property
    def by_id(self) -> dict[int, NestedField]:
        """Every field of every depth by id."""
        return {f.field_id: f for f in self.walk()}

    @cached_property
    def name_of(self) -> dict[int, str]:
        """Field id -> full dotted name."""
        names: dict[int, str] = {}

        def visit(fields: tuple[NestedField, ...], prefix: str) -> None:
            for f in fields:
                names[f.field_id] = prefix + f.name
                visit(children(f.type), f"{prefix}{f.name}.")

        visit(self.fields, "")
        return names

    @cached_property
    def ids_of_nanoseconds(self) -> frozenset[int]:
        """The ids of timestamps in nanoseconds, at any depth."""
        names = ("timestamp_ns", "timestamptz_ns")
        return frozenset(i for i, f in self.by_id.items() if isinstance(f.type, PrimitiveType) and f.type.name in names)

    @cached_property
    def parent_of(self) -> dict[int, int]:
        """Field id -> id of its parent field; top-level fields are absent."""
        return {child.field_id: f.field_id for f in self.walk() for child in children(f.type)}

    @cached_property
    def shared_names(self) -> frozenset[str]:
        """Full names that several fields share, as a column ``a.b`` and the field ``b`` of a struct ``a`` do."""
        return frozenset(name for name, count in Counter(self.name_of.values()).items() if count > 1)

    @cached_property
    def id_of(self) -> dict[str, int]:
        """Full dotted name -> field id, without `shared_names`. A list of structs may also be named without
        ``element``."""
        ids = {name: field_id for field_id, name in self.name_of.items() if name not in self.shared_names}
        for field_id, name in self.name_of.items():
            short = self._short_name(field_id)
            if short != name and short not in self.shared_names:
                ids.setdefault(short, field_id)
        return ids

    def path_of(self, field_id: int) -> tuple[str, ...]:
        """The names of a field and of those that it is in, the outermost first; any of them may hold dots."""
        own = self.by_id[field_id].name
        parent = self.parent_of.get(field_id)
        return (own,) if parent is None else (*self.path_of(parent), own)

    def _short_name(self, field_id: int) -> str:
        parts: list[str] = []
        current: int | None = field_id
        while current is not None:
            parent = self.parent_of.get(current)
            own = self.by_id[current]
            inside = self.by_id[parent].type if parent is not None else None
            skipped = isinstance(own.type, StructType) and (
                isinstance(inside, ListType) or (isinstance(inside, MapType) and own.name == "value")
            )
            if not skipped or current == field_id:
                parts.append(own.name)
            current = parent
        return ".".join(reversed(parts))

    def find(self, name: str, *, case_sensitive: bool = True) -> NestedField:
        """The field of that full name.

        Raises:
            Invalid: No such column (the message offers the nearest names), or several match, exactly or, if not
                `case_sensitive`, without regard to case.
        """
        if not isinstance(name, str):
            raise Invalid(f"{name!r} is not the name of a column")
        if name in self.shared_names:
            raise Invalid(f"several columns are called {name!r}")
        found = self.id_of.get(name)
        if found is None and not case_sensitive:
            matches = {i for n, i in self.id_of.items() if n.lower() == name.lower()}
            if len(matches) > 1:
                raise Invalid(f"column {name!r} is ambiguous without regard to case")
            found = next(iter(matches), None)
        if found is None:
            raise Invalid(f"no column {name!r}; {self._suggest(name)}")
        return self.by_id[found]

    def _suggest(self, name: str) -> str:
        near = get_close_matches(name, self.id_of, n=3)
        if near:
            return "did you mean " + " or ".join(repr(n) for n in near) + "?"
        return "the columns are " + ", ".join(f.name for f in self.fields[:20]) + ("..." if self.fields[20:] else "")

    @property
    def highest_field_id(self) -> int:
        """The largest field id in use; 0 for an empty schema."""
        return max(self.by_id, default=0)

    def primitive(self, field_id: int) -> PrimitiveType:
        """The primitive type of a column; raises Invalid for an unknown id or a nested column."""
        found = self.by_id.get(field_id)
        if found is None or not isinstance(found.type, PrimitiveType):
            raise Invalid(f"field id {field_id} is not a primitive column of schema {self.schema_id}")
        return found.type

    def key_type(self, field_id: int) -> PrimitiveType:
        """The type of a column whose values identify rows.

        Raises:
            Invalid: As `primitive`.
            Unsupported: Its values are not compared: variant, geometry, geography.
        """
        type_ = self.primitive(field_id)
        if type_.name in INCOMPARABLE:
            raise Unsupported(f"the column {self.name_of[field_id]!r} of type {type_} as a key")
        return type_

    def check_identifier(self, field_id: int) -> None:
        """Raise Invalid or Unsupported where a column cannot identify rows (spec, "Identifier Field IDs"): it must be
        required, as must the structs that it is in, comparable and not floating point, and not inside a list or map."""
        self.row_primitive(field_id)
        type_ = self.key_type(field_id)
        at: int | None = field_id
        is_required = True
        while at is not None:
            is_required &= self.by_id[at].required
            at = self.parent_of.get(at)
        if not is_required or type_.name in ("float", "double"):
            name = self.name_of[field_id]
            raise Invalid(f"{name!r} cannot be an identifier field: it must be required and not floating point")

    def row_primitive(self, field_id: int) -> PrimitiveType:
        """The primitive type of a column that has one value a row: top-level, or inside structs only.

        Raises:
            Invalid: The id is unknown, a nested type, or inside a list or map (partition and sort sources may not be).
        """
        ancestor = self.parent_of.get(field_id)
        while ancestor is not None:
            if not isinstance(self.by_id[ancestor].type, StructType):
                raise Invalid(f"{self.name_of[field_id]!r} is inside a list or map")
            ancestor = self.parent_of.get(ancestor)
        return self.primitive(field_id)

    def select(self, field_ids: Collection[int]) -> Schema:
        """The schema pruned to these ids: an ancestor of a kept field is kept, a kept field keeps its subtree."""
        wanted = set(field_ids)

        def prune(fields: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
            kept = []
            for f in fields:
                if f.field_id in wanted:
                    kept.append(f)
                    continue
                inner = prune(children(f.type))
                if inner:
                    if isinstance(f.type, MapType):  # a map has both a key and a value, whichever is wanted
                        known = {each.field_id: each for each in inner}
                        inner = tuple(known.get(each.field_id, each) for each in children(f.type))
                    kept.append(replace(f, type=with_children(f.type, inner)))
            return tuple(kept)

        return Schema(prune(self.fields), self.schema_id, self.identifier_field_ids & wanted)


def list_of_names(names: Sequence[str], argument: str) -> tuple[str, ...]:
    """The names that an argument lists; raises Invalid for a single string, whose characters would be read as names."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise Invalid(f"{argument} is a list of names, such as ['id'], not {names!r}")
    return tuple(names)
