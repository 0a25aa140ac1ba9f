"""Which metrics a manifest has of each column (table properties ``write.metadata.metrics.*``).

``none``: nothing; ``counts``: sizes and counts; ``truncate(n)``: also bounds, text and binary cut to n characters or
bytes; ``full``: also bounds, whole. Without a default the first 100 columns get ``truncate(16)`` and the rest ``none``,
since every column's statistics cost memory in every plan that needs them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from icebench.engine.errors import Invalid
from icebench.engine.spec.properties import METRICS_COLUMN, METRICS_DEFAULT, METRICS_MAX_INFERRED
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.spec.types import NestedField, PrimitiveType, children

_TRUNCATE = re.compile(r"truncate\((\d{1,10})\)", re.ASCII)


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """One mode; `length` is that of truncate."""

    kind: Literal["none", "counts", "truncate", "full"]
    length: int = 0

    @property
    def has_bounds(self) -> bool:
        """Whether lower and upper bounds are kept."""
        return self.kind in ("truncate", "full")


NONE = MetricsMode("none")
COUNTS = MetricsMode("counts")
FULL = MetricsMode("full")
TRUNCATE_16 = MetricsMode("truncate", 16)


def parse_mode(text: str, property_name: str) -> MetricsMode:
    """The mode of that text, any case; raises Invalid naming the property."""
    plain = text.strip().lower()
    simple = {"none": NONE, "counts": COUNTS, "full": FULL}.get(plain)
    if simple is not None:
        return simple
    match = _TRUNCATE.fullmatch(plain)
    if match is None or int(match[1]) == 0:
        raise Invalid(f"{property_name}={text!r} is not none, counts, truncate(length) or full")
    return MetricsMode("truncate", int(match[1]))


def metrics_modes(
    properties: Mapping[str, str], schema: Schema, sort_order: SortOrder | None = None
) -> dict[int, MetricsMode]:
    """Column id -> mode, for every primitive column at any depth.

    Columns of the sort order that would get ``none`` or ``counts`` by default get ``truncate(16)``: files cluster by
    them, so their bounds prune best.
    """
    columns = _own_first(schema)
    default = METRICS_DEFAULT.of(properties)
    if default is not None:
        modes = dict.fromkeys(columns, parse_mode(default, METRICS_DEFAULT.name))
    else:
        limit = METRICS_MAX_INFERRED.of(properties)
        modes = {column: TRUNCATE_16 if i < limit else NONE for i, column in enumerate(columns)}
    for key in sort_order.fields if sort_order is not None else ():
        if key.transform.preserves_order and key.source_id in modes and not modes[key.source_id].has_bounds:
            modes[key.source_id] = TRUNCATE_16
    for name, text in METRICS_COLUMN.by_column(properties).items():
        column = schema.id_of.get(name)
        # A property may outlive its column, and then has no effect.
        if column in modes and text is not None:
            modes[column] = parse_mode(text, METRICS_COLUMN.prefix + name)
    return modes


def _own_first(schema: Schema) -> list[int]:
    """Primitive columns: those of the top level first, then all those of the first nested field, then of the next."""
    found: list[int] = []

    def visit(fields: tuple[NestedField, ...]) -> None:
        found.extend(f.field_id for f in fields if isinstance(f.type, PrimitiveType))
        for f in fields:
            visit(children(f.type))

    visit(schema.fields)
    return found
