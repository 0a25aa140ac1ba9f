"""Rows of nested types in which anything may be null, as columns that a test writes and reads back.

A nesting is a path of structs, lists and maps down to a leaf, such as ``"slm"``. A shape is a value without its
leaves: `shapes` lists those of a nesting, `column` puts a different value at each leaf, none of them zero or empty.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

LEAF = "leaf"
LEAVES: tuple[tuple[pa.DataType, Callable[[int], Any]], ...] = (
    (pa.int64(), lambda n: n),
    (pa.string(), lambda n: f"v{n}"),
    (pa.int32(), lambda n: -n),
    (pa.float64(), lambda n: n + 0.5),
    (pa.bool_(), lambda n: True),
    (pa.decimal128(9, 2), lambda n: Decimal(n) / 4),
    (pa.decimal128(38, 3), lambda n: Decimal(n) * 10**30),
    (pa.timestamp("us"), lambda n: dt.datetime(2001, 1, 1) + dt.timedelta(days=n, microseconds=n)),  # noqa: DTZ001
    (pa.date32(), lambda n: dt.date(2001, 1, 1) + dt.timedelta(days=n)),
    (pa.binary(), lambda n: bytes([n % 256, 1])),
    (pa.float32(), float),
)


def nestings(depth: int) -> list[str]:
    """All nestings of so many levels."""
    return ["".join(kinds) for kinds in itertools.product("slm", repeat=depth)]


def shapes(nesting: str) -> list[Any]:
    """The shapes of one value: null at each level, empty lists and maps, and such of two elements."""
    if not nesting:
        return [None, LEAF]
    inner = shapes(nesting[1:])
    if nesting[0] == "s":
        return [None, *({"x": LEAF, "in": shape} for shape in inner), {"x": None, "in": inner[-1]}]
    lists = [None, [], *([shape] for shape in inner), [inner[0], inner[-1]], [inner[-1], inner[0]]]
    if nesting[0] == "l":
        return lists
    return [None if made is None else [(LEAF, shape) for shape in made] for made in lists]


def patterns(nesting: str, rows: int, *, most: int, random: Random) -> Iterator[Sequence[Any]]:
    """Columns of so many shapes: all that there are, or `most` random ones if there are more."""
    known = shapes(nesting)
    if len(known) ** rows <= most:
        return itertools.product(known, repeat=rows)
    return (random.choices(known, k=rows) for _ in range(most))


def column(nesting: str, pattern: Sequence[Any], leaf: int) -> pa.Array:
    """A pattern with values, of the type ``LEAVES[leaf]``."""
    leaf_type, value_of = LEAVES[leaf]
    numbers = itertools.count(1)
    rows = [_filled(shape, numbers, value_of) for shape in pattern]
    return pa.array(rows, _type(nesting, leaf_type))


def _type(nesting: str, leaf: pa.DataType) -> pa.DataType:
    if not nesting:
        return leaf
    inner = _type(nesting[1:], leaf)
    if nesting[0] == "s":
        return pa.struct([("x", leaf), ("in", inner)])
    return pa.list_(inner) if nesting[0] == "l" else pa.map_(pa.int64(), inner)


def _filled(shape: Any, numbers: Iterator[int], value_of: Callable[[int], Any]) -> Any:
    match shape:
        case "leaf":
            return value_of(next(numbers))
        case dict():
            return {name: _filled(inner, numbers, value_of) for name, inner in shape.items()}
        case list():
            return [_filled(inner, numbers, value_of) for inner in shape]
        case (_, value):
            return next(numbers), _filled(value, numbers, value_of)
    return shape
