"""Random values, encoded by an encoder of the tests' own and shredded at random, are read back as they were."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import icebench
from icebench.engine.columnar.variants import plain_variants
from icebench.errors import CorruptTable, EngineError
from tests.unit.engine.codec.variant_encoder import encode, encode_value

NAMES = ("a", "b", "Z", "long name", "é", "名", "", "aa")
DIGITS = {4: (9, 2), 8: (18, 5), 16: (38, 10)}


def decimals(width: int) -> st.SearchStrategy[Decimal]:
    precision, scale = DIGITS[width]
    least = 10 ** {4: 0, 8: 9, 16: 18}[width]
    numbers = st.integers(least, 10**precision - 1) | st.integers(1 - 10**precision, -least)
    return numbers.map(lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale)))


SCALARS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "boolean": (pa.bool_(), st.booleans()),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int16": (pa.int16(), st.integers(128, 2**15 - 1)),
    "int32": (pa.int32(), st.integers(-(2**31), -(2**15) - 1)),
    "int64": (pa.int64(), st.integers(2**31, 2**63 - 1)),
    "double": (pa.float64(), st.floats(width=64)),
    "decimal4": (pa.decimal128(9, 2), decimals(4)),
    "decimal8": (pa.decimal128(18, 5), decimals(8)),
    "decimal16": (pa.decimal128(38, 10), decimals(16)),
    "date": (pa.date32(), st.dates()),
    "time": (pa.time64("us"), st.times().map(lambda t: t.replace(fold=0))),
    "timestamptz": (
        pa.timestamp("us", "UTC"),
        st.datetimes(timezones=st.just(dt.UTC)).map(lambda t: t.replace(fold=0)),
    ),
    "timestamp": (pa.timestamp("us"), st.datetimes().map(lambda t: t.replace(fold=0))),
    "binary": (pa.binary(), st.binary(max_size=80)),
    "string": (pa.string(), st.text(max_size=80)),
    "uuid": (pa.uuid(), st.uuids()),
}
VALUES = st.recursive(
    st.none() | st.one_of([values for _, values in SCALARS.values()]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)
Shape = Any
"""How values are shredded: None (not at all), the name of a scalar, ("list", shape), ("object", {name: shape})."""
SHAPES = st.recursive(
    st.none() | st.sampled_from([*SCALARS]),
    lambda inner: (
        st.tuples(st.just("list"), inner)
        | st.tuples(st.just("object"), st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=4))
    ),
    max_leaves=6,
)


def kind_of(value: Any) -> str:
    """The scalar that the encoder makes of a value."""
    code = encode_value(value, [])[0]
    kinds = {1: "boolean", 2: "boolean", 3: "int8", 4: "int16", 5: "int32", 6: "int64", 7: "double", 8: "decimal4",
             9: "decimal8", 10: "decimal16", 11: "date", 12: "timestamptz", 13: "timestamp", 15: "binary", 16: "string",
             17: "time", 20: "uuid"}  # fmt: skip
    return "string" if code & 3 == 1 else kinds.get(code >> 2, "null")


def typed_type(shape: Shape, *, stored: bool) -> pa.DataType:
    if isinstance(shape, str):
        return pa.binary(16) if stored and shape == "uuid" else SCALARS[shape][0]
    kind, inner = shape
    if kind == "list":
        return pa.list_(pa.field("element", group_type(inner, stored=stored), nullable=False))
    return pa.struct([pa.field(n, group_type(s, stored=stored), nullable=False) for n, s in inner.items()])


def group_type(shape: Shape, *, top: bool = False, stored: bool = False) -> pa.DataType:
    """`stored`: without extension types, of which Arrow makes no nested arrays from Python values."""
    fields = [pa.field("metadata", pa.binary(), nullable=False)] if top else []
    fields.append(pa.field("value", pa.binary()))
    typed = [] if shape is None else [pa.field("typed_value", typed_type(shape, stored=stored))]
    return pa.struct([*typed, *fields])


def shredded(value: Any, shape: Shape, names: list[str]) -> dict[str, Any]:
    """A value as its group: `value`, `typed_value` or both."""
    whole = {"value": encode_value(value, names), "typed_value": None}
    match shape:
        case ("list", inner) if isinstance(value, list):
            return {"value": None, "typed_value": [shredded(v, inner, names) for v in value]}
        case ("object", inner) if isinstance(value, dict):
            fields = {n: shredded(value[n], s, names) if n in value else {} for n, s in inner.items()}
            rest = {n: v for n, v in value.items() if n not in inner}
            return {"value": encode_value(rest, names) if rest else None, "typed_value": fields}
        case str() if not isinstance(value, (list, dict)) and kind_of(value) == shape:
            if shape.startswith("decimal") and -value.as_tuple().exponent != SCALARS[shape][0].scale:
                return whole
            return {"value": None, "typed_value": value.bytes if isinstance(value, uuid.UUID) else value}
    return whole


def shred(values: list[Any], shape: Shape) -> pa.StructArray:
    rows: list[dict[str, Any] | None] = []
    for value in values:
        if value is ABSENT:
            rows.append(None)
            continue
        names = sorted({*NAMES, *(f"more{i}" for i in range(len(rows) % 3 * 150))})
        rows.append({"metadata": encode(value, tuple(names))["metadata"], **shredded(value, shape, names)})
    return pa.array(rows, group_type(shape, top=True, stored=True)).cast(group_type(shape, top=True))


class Absent:
    """A row without a variant."""


ABSENT = Absent()


def decoded(array: pa.StructArray) -> list[Any]:
    return [ABSENT if v is None else icebench.decode_variant(v["metadata"], v["value"]) for v in array.to_pylist()]


def same(found: Any, expected: Any) -> bool:
    if type(found) is not type(expected):
        return False
    if isinstance(found, dict):
        return found.keys() == expected.keys() and all(same(v, expected[k]) for k, v in found.items())
    if isinstance(found, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(found, float):
        return math.copysign(1, found) == math.copysign(1, expected) and repr(found) == repr(expected)
    return bool(repr(found) == repr(expected))


@given(values=st.lists(st.just(ABSENT) | VALUES, max_size=8), shape=SHAPES, cut=st.integers(0, 4))
@example(values=[[], [1] * 300, "x"], shape=("list", "int8"), cut=0)
@example(values=[{"a": "x" * 70_000, "b": 1}], shape=("object", {"a": "string", "aa": "int8"}), cut=0)
def test_shredded_variants_are_what_was_shredded(values: list[Any], shape: Shape, cut: int) -> None:
    array = shred(values, shape)
    plain = plain_variants(array, "v")
    plain.validate(full=True)
    assert same(decoded(plain), values)
    assert plain_variants(array.slice(cut), "v").equals(plain.slice(cut))
    # And as files have them, where nothing is below a null.
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"v": array}), sink, store_schema=False)
    stored = pq.read_table(pa.BufferReader(sink.getvalue())).column("v").combine_chunks()
    assert same(decoded(plain_variants(stored, "v")), values)


@given(value=VALUES)
def test_plain_variants_are_decoded(value: Any) -> None:
    variant = encode(value)
    assert same(icebench.decode_variant(variant["metadata"], variant["value"]), value)


@given(value=VALUES, at=st.integers(0, 500), byte=st.integers(0, 255), shape=SHAPES)
def test_damage_is_an_error_of_the_engine_or_another_value(value: Any, at: int, byte: int, shape: Shape) -> None:
    variant = encode(value)
    damaged = bytearray(variant["metadata"] + variant["value"])
    damaged[at % len(damaged)] = byte
    metadata, rest = bytes(damaged[: len(variant["metadata"])]), bytes(damaged[len(variant["metadata"]) :])
    with suppress(EngineError):
        icebench.decode_variant(metadata, rest)
    for cut in range(len(variant["value"])):
        with pytest.raises(CorruptTable):
            icebench.decode_variant(variant["metadata"], variant["value"][:cut])
    if isinstance(shape, tuple) and shape[0] == "object":
        row = {"metadata": metadata, "value": rest, "typed_value": {n: {} for n in shape[1]}}
        with suppress(EngineError):
            plain_variants(pa.array([row], group_type(shape, top=True, stored=True)), "v")


def test_elements_without_a_value_are_null() -> None:
    """VariantShredding.md: readers take a missing element, which is not valid, for null."""
    shape = ("list", "int8")
    element = {"value": None, "typed_value": None}
    row = {**shredded([1, 2], shape, []), "metadata": encode([1, 2])["metadata"]}
    row["typed_value"].insert(1, element)
    array = pa.array([row], group_type(shape, top=True))
    assert decoded(plain_variants(array, "v")) == [[1, None, 2]]
