"""Sort orders (spec: "Sorting")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from icebench.engine.display import printable
from icebench.engine.errors import Invalid
from icebench.engine.spec.schema import Schema, list_of_names
from icebench.engine.spec.transforms import Identity, Transform


@dataclass(frozen=True, slots=True, kw_only=True)
class SortField:
    """One sort key: a transform of a source column, a direction and where nulls go."""

    source_ids: tuple[int, ...]
    transform: Transform
    direction: Literal["asc", "desc"] = "asc"
    null_order: Literal["nulls-first", "nulls-last"] = "nulls-first"

    @property
    def source_id(self) -> int:
        """The only (or first) source column id."""
        return self.source_ids[0]


@dataclass(frozen=True, slots=True)
class SortOrder:
    """An ordered tuple of sort fields; order id 0 is reserved for unsorted."""

    fields: tuple[SortField, ...] = ()
    order_id: int = 0

    def __call__(self) -> SortOrder:
        """Itself, so that a property of a table may be called, as in PyIceberg."""
        return self

    def __repr__(self) -> str:
        keys = [
            f"{printable(f.transform)}({', '.join(map(str, f.source_ids))}) {f.direction} {f.null_order}"
            for f in self.fields
        ]
        return f"SortOrder({self.order_id}, {', '.join(keys) or 'unsorted'})"

    @property
    def is_unsorted(self) -> bool:
        """No sort key."""
        return not self.fields

    def check(self, schema: Schema) -> None:
        """Raise Invalid where a key's source is missing or of a type that the transform does not take."""
        for f in self.fields:
            for source_id in f.source_ids:
                source = schema.row_primitive(source_id)
                if not f.transform.accepts(source):
                    raise Invalid(f"cannot sort {schema.name_of[source_id]!r} of type {source} by {f.transform}")


UNSORTED = SortOrder()


def sort_order_of(order: SortOrder | Sequence[str], schema: Schema, argument: str = "sort_order") -> SortOrder:
    """The order, or the one by these columns, ascending and with nulls first.

    Raises:
        Invalid: A column is unknown, or named twice; `argument` is the argument that the message names.
    """
    if isinstance(order, SortOrder):
        return order
    ids = [schema.find(name).field_id for name in list_of_names(order, argument)]
    if len(set(ids)) < len(ids):
        raise Invalid(f"{argument} names a column twice")
    return SortOrder(tuple(SortField(source_ids=(i,), transform=Identity()) for i in ids))
