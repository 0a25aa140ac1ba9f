"""Wide tables, as feature stores have them: every column differs from every other, in type or in values.

Column ``c<n>`` is of kind n modulo the number of kinds, nested ones among them, and its values are drawn from a range
or a vocabulary of its own. So a reader that delivers a column in place of another is found by the first checksum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from icebench.bench.workloads.draws import Int32s, Int64s, Words, below, words
from icebench.bench.workloads.rows import KeyRange, Rows

_VOCABULARY = 50
_MOST_ITEMS = 3
_EPOCH_DAY, _DAYS = 10_957, 1_000  # from 2000-01-01
_PLACE = pa.struct([("x", pa.int32()), ("label", pa.string())])

KINDS: tuple[pa.DataType, ...] = (
    pa.int32(),
    pa.int64(),
    pa.float64(),
    pa.decimal128(7, 2),
    pa.string(),
    pa.date32(),
    pa.timestamp("us"),
    pa.bool_(),
    pa.float32(),
    pa.decimal128(20, 4),
    pa.binary(),
    pa.list_(pa.int32()),
    _PLACE,
    pa.map_(pa.string(), pa.int64()),
    pa.list_(_PLACE),
)
"""Types of the columns, cyclically."""


@dataclass(frozen=True, kw_only=True)
class Wide(Rows):
    """A wide table: `id`, the row's number, and `columns` others, or the columns `only` of it. One value in sixteen is
    null."""

    columns: int
    only: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        return f"wide, {self.columns:,} columns"

    @property
    def schema(self) -> pa.Schema:
        kinds = (pa.field(f"c{n}", KINDS[n % len(KINDS)]) for n in range(1, self.columns + 1))
        fields = [pa.field("id", pa.int64(), nullable=False), *kinds]
        return pa.schema([field for field in fields if self.only is None or field.name in self.only])

    @property
    def identifier_columns(self) -> tuple[str, ...]:
        return ("id",) if "id" in self.schema.names else ()

    @property
    def filters(self) -> Mapping[str, str]:
        return {"one_percent": f"id < {max(1, self.rows // 100)}", "one_value": "c1 = 1007"}

    @property
    def scannable(self) -> tuple[str, ...]:
        """The columns of all kinds but the last: PyIceberg 0.12 delivers null lists of structs as empty ones."""
        return tuple(f"c{n}" for n in range(1, self.columns + 1) if n % len(KINDS) != len(KINDS) - 1)

    def spread(self, selected: int) -> tuple[str, ...]:
        """That many of those, from all over the table and of all kinds."""
        steps = range(len(self.scannable) // selected, 0, -1)
        step = next(step for step in steps if math.gcd(step, len(KINDS) - 1) == 1)
        return self.scannable[: selected * step : step]

    def delete_keys(self, share: float, spread: str) -> KeyRange:
        if spread == "random":
            # One value in sixteen is null, the others are as many of each of a thousand numbers.
            return KeyRange(column="c1", start=1_000, stop=1_000 + max(1, round(1_000 * share * 16 / 15)))
        return self.consecutive_keys("id", share, spread)

    def batch(self, start: int, stop: int) -> pa.RecordBatch:
        rows = np.arange(start, stop, dtype=np.int64)
        schema = self.schema
        columns = [pa.array(rows) if n == "id" else _column(self.seed, int(n[1:]), rows) for n in schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(seed: int, number: int, rows: Int64s) -> pa.Array:
    """Column ``c<number>``; the low four bits of a value's word say whether it is null."""
    kind = KINDS[number % len(KINDS)]
    stream = f"wide.c{number}"
    word = words(seed, stream, rows)
    is_null = (word & np.uint64(15)) == 0
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays(_place(word, number), fields=list(kind), mask=pa.array(is_null))
    if pa.types.is_nested(kind):
        return _lists(number, rows, word, is_null, lambda places: words(seed, f"{stream}.items", places))
    return _flat(kind, word, number, is_null)


def _flat(kind: pa.DataType, word: Words, number: int, is_null: NDArray[np.bool_] | None = None) -> pa.Array:
    """Values of a range of the column's own: some thousands from `number` thousands on, or that many words."""
    value = below(word, 1_000)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        vocabulary = pa.array([f"c{number}-{n}" for n in range(_VOCABULARY)]).cast(kind)
        return vocabulary.take(pa.array(value % _VOCABULARY, mask=is_null))
    if pa.types.is_boolean(kind):
        # Columns differ by how many are true, as far as there is room, and by which.
        return pa.array(value < 100 + number % 800, mask=is_null)
    if pa.types.is_date(kind):
        return pa.array((_EPOCH_DAY + number % _DAYS + value).astype(np.int32), mask=is_null).cast(kind)
    own = number * np.int64(1_000) + value
    if pa.types.is_timestamp(kind):
        return pa.array((_EPOCH_DAY * 86_400 + own) * 1_000_000, mask=is_null).cast(kind)
    if pa.types.is_decimal(kind):
        # The unscaled value; narrow ones wrap around at their precision.
        unscaled = own % 10**kind.precision if kind.precision <= 18 else own * np.int64(10**9 + 7)
        pairs = np.stack([unscaled, unscaled >> 63], axis=1)
        valid = None if is_null is None else pa.py_buffer(np.packbits(~is_null, bitorder="little"))
        return pa.Array.from_buffers(kind, len(own), [valid, pa.py_buffer(np.ascontiguousarray(pairs))])
    return pa.array(own / 8 if pa.types.is_floating(kind) else own, mask=is_null).cast(kind, safe=False)


def _place(word: Words, number: int) -> list[pa.Array]:
    return [_flat(pa.int32(), word, number), _flat(pa.string(), word, number)]


def _lists(
    number: int, rows: Int64s, word: Words, is_null: NDArray[np.bool_], items: Callable[[Int64s], Words]
) -> pa.Array:
    """Up to three elements a row, each drawn by the row's number and its place; a map's keys differ within a row."""
    kind = KINDS[number % len(KINDS)]
    lengths: Int32s = below(word, _MOST_ITEMS + 1, shift=4, bits=16)
    lengths[is_null] = 0
    ends = np.cumsum(lengths)
    place = np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)
    item = items(np.repeat(rows, lengths) * _MOST_ITEMS + place)
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    made: Callable[..., pa.Array] = pa.ListArray.from_arrays
    if pa.types.is_map(kind):
        keys = pa.array([f"c{number}-key{n}" for n in range(_MOST_ITEMS)]).take(pa.array(place))
        children = [keys, _flat(kind.item_type, item, number)]
        made = pa.MapArray.from_arrays
    elif pa.types.is_struct(kind.value_type):
        children = [pa.StructArray.from_arrays(_place(item, number), fields=list(kind.value_type))]
    else:
        children = [_flat(kind.value_type, item, number)]
    return made(pa.array(offsets), *children, type=kind, mask=pa.array(is_null))
