"""A wide table whose columns are cases: each has the values in which engines may bound or count it in another way."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa

NAN, INF = math.nan, math.inf
LAST = "\U0010ffff"
"""The last code point: no text that consists of it alone has a greater one of its length."""


def _decimals(*texts: str) -> list[Any]:
    return [*map(Decimal, texts), None]


def _floating() -> dict[str, list[Any]]:
    """Columns of floating point, for either width."""
    return {
        "plain": [1.5, -2.5, None],
        "nan": [NAN, 1.25, None],
        "nan_first": [NAN, NAN, 3.0, -3.0],
        "all_nan": [NAN],
        "nan_or_null": [NAN, None],
        "minus_zero": [-0.0],
        "plus_zero": [0.0],
        "both_zeros": [0.0, -0.0],
        "zero_is_most": [-1.0, -0.0],
        "zero_is_least": [0.0, 1.0],
        "infinite": [-INF, INF, NAN, 0.5],
        "only_infinite": [INF],
        "null": [None],
    }


_UTC = dt.UTC
_MOMENTS = [
    dt.datetime(1, 1, 1),  # noqa: DTZ001 - local times are wanted
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
    None,
]

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "id": (pa.int64(), list(range(400))),
    "bool_both": (pa.bool_(), [True, False, None]),
    "bool_true": (pa.bool_(), [True]),
    "int": (pa.int32(), [-(2**31), 0, 2**31 - 1, None]),
    "int_null": (pa.int32(), [None]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1]),
    **{f"float_{name}": (pa.float32(), values) for name, values in _floating().items()},
    **{f"double_{name}": (pa.float64(), values) for name, values in _floating().items()},
    "dec7": (pa.decimal128(7, 2), _decimals("-1.28", "1.28", "0.00")),
    "dec7_negative": (pa.decimal128(7, 2), _decimals("-1.29", "-0.01")),
    "dec7_extreme": (pa.decimal128(7, 2), _decimals("-99999.99", "99999.99")),
    "dec15": (pa.decimal128(15, 2), _decimals("-9999999999999.99", "0.01", "1.27")),
    "dec38": (pa.decimal128(38, 10), _decimals("-9999999999999999999999999999.9999999999", "0.0000000255")),
    "dec38_positive": (pa.decimal128(38, 10), _decimals("0.0000000128", "9999999999999999999999999999")),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31), None]),
    "at": (pa.timestamp("us"), _MOMENTS),
    "instant": (pa.timestamp("us", "UTC"), [m and m.replace(tzinfo=_UTC) for m in _MOMENTS]),
    "text": (pa.string(), ["b" * 20, "a" * 20, None]),
    "text_exact": (pa.string(), ["a" * 16, "b" * 16]),
    "text_one_more": (pa.string(), ["a" * 17, "b" * 17]),
    "text_two_bytes": (pa.string(), ["é" * 17, "ë" * 16]),
    "text_three_bytes": (pa.string(), ["名" * 17, "前" * 15]),
    "text_four_bytes": (pa.string(), ["🙂" * 17, "🙃" * 16]),
    "text_before_surrogates": (pa.string(), ["x" * 15 + "\ud7ff" + "y", "\ud7ff" * 17]),
    "text_after_surrogates": (pa.string(), ["\ue000" * 17]),
    "text_order_of_utf16": (pa.string(), ["\uffff" * 17, "\U00010000" * 17]),
    "text_last": (pa.string(), [LAST * 17, LAST * 16]),
    "text_last_at_end": (pa.string(), ["a" * 10 + LAST * 10]),
    "text_empty": (pa.string(), ["", None]),
    "text_empty_or_not": (pa.string(), ["", "z"]),
    "text_zeros": (pa.string(), ["\x00" * 18, "\x00"]),
    "text_null": (pa.string(), [None]),
    "text_long": (pa.string(), ["a" * 5000, "b", None]),
    "raw": (pa.binary(), [b"\x7f" * 20, b"\x80" * 20, None]),
    "raw_exact": (pa.binary(), [b"a" * 16, b"b" * 16]),
    "raw_ff": (pa.binary(), [b"\xff" * 20]),
    "raw_ff_exact": (pa.binary(), [b"\xff" * 16, b"\x00"]),
    "raw_ff_at_end": (pa.binary(), [b"\x01" + b"\xff" * 20]),
    "raw_empty": (pa.binary(), [b"", None]),
    "raw_long": (pa.binary(), [b"a", b"b" * 5000]),
    "fixed4": (pa.binary(4), [b"\x00\x00\x00\x01", b"\xff" * 4, b"\x7f" * 4]),
    "fixed20": (pa.binary(20), [b"\x80" * 20, b"\xff" * 20, None]),
    "uuid": (pa.uuid(), [uuid.UUID(int=1), uuid.UUID(int=2**127 + 5), uuid.UUID(int=2**128 - 1), None]),
    "struct": (
        pa.struct([("i", pa.int32()), ("d", pa.float64()), ("t", pa.string())]),
        [{"i": 1, "d": NAN, "t": "t" * 20}, None, {"i": None, "d": 2.5, "t": None}, {"i": 7, "d": None, "t": ""}],
    ),
    "deep": (
        pa.struct([("in", pa.struct([("x", pa.decimal128(7, 2)), ("f", pa.float32())])), ("y", pa.date32())]),
        [{"in": {"x": Decimal("1.00"), "f": 1.0}, "y": None}, {"in": None, "y": dt.date(2020, 1, 1)}, None],
    ),
    "list": (pa.list_(pa.float64()), [[1.0, NAN, None], [], None, [-5.0]]),
    "list_of_structs": (pa.list_(pa.struct([("x", pa.int32())])), [[{"x": 1}, None], [], None, [{"x": None}]]),
    "map": (pa.map_(pa.string(), pa.int32()), [[("k", 1), ("l", None)], [], None]),
}

SCHEMA = pa.schema([pa.field(name, type_) for name, (type_, _) in COLUMNS.items()])


def cycled(count: int) -> pa.Table:
    """Rows in which the values of each column follow each other."""
    return _table({name: [values[i % len(values)] for i in range(count)] for name, (_, values) in COLUMNS.items()})


def in_runs(count: int) -> pa.Table:
    """Rows in which each value of a column comes in one run, so that row groups have few values each."""
    return _table(
        {name: [values[i * len(values) // count] for i in range(count)] for name, (_, values) in COLUMNS.items()}
    )


def _table(columns: dict[str, list[Any]]) -> pa.Table:
    return pa.Table.from_arrays([pa.array(columns[f.name], f.type) for f in SCHEMA], schema=SCHEMA)
