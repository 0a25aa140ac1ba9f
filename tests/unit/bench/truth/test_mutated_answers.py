"""An engine that delivers almost the right rows is wrong: every such answer is noticed."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from icebench.bench.engines.checksum import checksum_of, decode_checksum
from icebench.bench.truth.oracle import Answer

GREAT = Decimal("12345678901234567890123456789012345.678")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.decimal128(7, 2)),
        ("great", pa.decimal128(38, 3)),
        ("real", pa.float64()),
        ("moment", pa.timestamp("us", "UTC")),
        ("exact", pa.timestamp("ns")),
        ("day", pa.date32()),
        ("raw", pa.binary()),
        ("flag", pa.bool_()),
        ("many", pa.list_(pa.int32())),
        ("pairs", pa.map_(pa.string(), pa.int32())),
        ("part", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])),
    ]
)
ROWS: list[dict[str, Any]] = [
    {"id": 1, "name": "", "price": Decimal("1.25"), "great": GREAT, "real": math.nan, "moment": 0, "exact": 1,
     "day": 0, "raw": b"", "flag": False, "many": [1, 2], "pairs": [("a", 1), ("b", 2)], "part": {"x": 1, "y": ["a"]}},
    {"id": 2, "name": None, "price": Decimal("2.25"), "great": -GREAT, "real": 0.0, "moment": None, "exact": None,
     "day": 5, "raw": None, "flag": None, "many": [], "pairs": [], "part": {"x": None, "y": []}},
    {"id": 3, "name": "x", "price": None, "great": None, "real": -2.5, "moment": 7_200_000_000, "exact": 1000,
     "day": None, "raw": b"\x00", "flag": True, "many": None, "pairs": None, "part": None},
    {"id": 4, "name": "y", "price": Decimal("0.00"), "great": Decimal("0.000"), "real": None, "moment": 1, "exact": 0,
     "day": 1, "raw": b"x", "flag": True, "many": [None, 0], "pairs": [("a", None)], "part": {"x": 0, "y": None}},
]  # fmt: skip
TRUE = pa.Table.from_pylist(ROWS, SCHEMA)


def changed(row: int, **values: Any) -> pa.Table:
    return pa.Table.from_pylist([{**each, **(values if i == row else {})} for i, each in enumerate(ROWS)], SCHEMA)


def cast(name: str, kind: pa.DataType, convert: Callable[[Any], Any]) -> pa.Table:
    """The same words in another type."""
    values = [None if value is None else convert(value) for value in TRUE[name].to_pylist()]
    return TRUE.set_column(SCHEMA.get_field_index(name), name, pa.array(values, kind))


def swapped(name: str, one: int, other: int) -> pa.Table:
    values = {one: {name: ROWS[other][name]}, other: {name: ROWS[one][name]}}
    return pa.Table.from_pylist([{**row, **values.get(i, {})} for i, row in enumerate(ROWS)], SCHEMA)


EVEN = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
WRONG: dict[str, tuple[pa.Table, pa.Table]] = {
    "a row twice and two lost, with equal sums": (EVEN, pa.table({"id": [2, 2, 2], "name": ["b", "b", "b"]})),
    "a row twice and another lost": (TRUE, TRUE.take(pa.array([0, 0, 2, 3]))),
    "null for empty text": (TRUE, changed(0, name=None)),
    "empty text for null": (TRUE, changed(1, name="")),
    "null and empty text swapped": (TRUE, swapped("name", 0, 1)),
    "null for an empty list": (TRUE, changed(1, many=None)),
    "an empty list for null": (TRUE, changed(2, many=[])),
    "null and an empty list swapped": (TRUE, swapped("many", 1, 2)),
    "null for an empty map": (TRUE, changed(1, pairs=None)),
    "a struct of nulls for null": (TRUE, changed(2, part={"x": None, "y": None})),
    "an empty list in a struct for null": (TRUE, changed(3, part={"x": 0, "y": []})),
    "elements in another order": (TRUE, changed(0, many=[2, 1])),
    "zero for null in a list": (TRUE, changed(3, many=[0, 0])),
    "values of a map under the other keys": (TRUE, changed(0, pairs=[("a", 2), ("b", 1)])),
    "a null value of a map lost": (TRUE, changed(3, pairs=[])),
    "NaN for null": (TRUE, changed(3, real=math.nan)),
    "null for NaN": (TRUE, changed(0, real=None)),
    "NaN and null swapped": (TRUE, swapped("real", 0, 3)),
    "-0.0 for 0.0": (TRUE, changed(1, real=-0.0)),
    "the last digit of a decimal of 38": (TRUE, changed(0, great=GREAT + Decimal("0.001"))),
    "the first digit of a decimal of 38": (TRUE, changed(0, great=GREAT + Decimal(10) ** 34)),
    "signs of two decimals swapped": (TRUE, swapped("great", 0, 1)),
    "zero for a null decimal": (TRUE, changed(2, great=Decimal("0.000"))),
    "a time zone": (TRUE, changed(2, moment=0)),
    "the time zone of two rows, with equal sums": (
        TRUE,
        changed(0, moment=7_200_000_000).set_column(
            SCHEMA.get_field_index("moment"), "moment", pa.array([7_200_000_000, None, 0, 1], pa.timestamp("us", "UTC"))
        ),
    ),
    "a day": (TRUE, changed(0, day=1)),
    "false for null": (TRUE, changed(1, flag=False)),
    "null for empty bytes": (TRUE, changed(0, raw=None)),
    "a decimal as its digits": (TRUE, cast("price", pa.int32(), lambda value: int(value * 100))),
    "a decimal of another scale": (TRUE, cast("price", pa.decimal128(9, 0), lambda value: value * 100)),
    "days as numbers": (TRUE, cast("day", pa.int32(), lambda value: value.toordinal() - 719_163)),
    "microseconds as numbers": (TRUE, cast("moment", pa.int64(), lambda value: int(value.timestamp() * 1_000_000))),
    "nanoseconds as microseconds": (
        TRUE,
        TRUE.set_column(
            SCHEMA.get_field_index("exact"), "exact", TRUE["exact"].cast(pa.int64()).cast(pa.timestamp("us"))
        ),
    ),
    "bits of a float as a number": (
        TRUE,
        TRUE.set_column(
            SCHEMA.get_field_index("real"),
            "real",
            pa.array([0x7FF8000000000000, 0, -4_610_560_118_520_545_280, None], pa.int64()),
        ),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_noticed(name: str) -> None:
    true, wrong = WRONG[name]
    columns = true.column_names
    assert true.num_rows == wrong.num_rows
    answer = Answer({"file": checksum_of(true.to_batches(), columns)})
    found = checksum_of(wrong.to_batches(), columns)
    assert answer.fault_of(found) is not None
    assert answer.fault_of(decode_checksum(found.encode())) is not None


def test_the_right_answer_is_right_in_pieces_and_through_text() -> None:
    answer = Answer({"file": checksum_of(TRUE.to_batches(), SCHEMA.names)})
    # The first piece has nulls alone in some columns, which have no type of values to compare.
    pieces = [piece for start in (2, 0, 3, 1) for piece in TRUE.slice(start, 1).to_batches()]
    found = checksum_of(pieces, SCHEMA.names)
    assert answer.fault_of(found) is None
    assert decode_checksum(found.encode()) == answer.total
    assert found.text == answer.total.text


def test_types_that_differ_are_named() -> None:
    price = pa.table({"price": pa.array([Decimal("1.25")], pa.decimal128(7, 2))})
    answer = Answer({"file": checksum_of(price.to_batches(), ["price"])})
    digits = checksum_of(pa.table({"price": [125]}).to_batches(), ["price"])
    assert answer.fault_of(digits) == "column price: whole numbers against decimals of scale 2"
