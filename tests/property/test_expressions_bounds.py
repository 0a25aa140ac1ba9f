"""The evaluator against brute force: the outcomes it allows contain what every row comes to."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.expressions import bounds
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bound import BOUND_FALSE, BOUND_TRUE
from icebench.engine.expressions.bounds import ColumnBounds, Evaluator, Evidence, Presence
from icebench.engine.expressions.literal_intervals import FALSE, NULL, TRUE
from icebench.engine.expressions.partitions import source_evidence
from icebench.engine.expressions.vectors import from_serialized, pack, representation, vector_of
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import (
    Bucket,
    Day,
    Hour,
    Identity,
    Month,
    Transform,
    Truncate,
    UnknownTransform,
    Void,
    Year,
)
from icebench.engine.spec.types import PrimitiveType
from icebench.engine.spec.values import Value, encode_value
from tests.property.evaluate import evaluate, ordering
from tests.property.filter_strategies import columns_of, predicates, rows, schemas

Draw = Callable[[st.SearchStrategy[Any]], Any]
Row = dict[int, Value | None]
BIT = {True: TRUE, False: FALSE, None: NULL}
TRANSFORMS: tuple[Transform, ...] = (
    Identity(),
    Year(),
    Month(),
    Day(),
    Hour(),
    Void(),
    Truncate(1),
    Truncate(3),
    Truncate(10),
    Truncate(1 << 40),
    Bucket(1),
    Bucket(4),
    Bucket(1000),
    UnknownTransform("zorder"),
)


@dataclass
class Source:
    count: int
    known: dict[int, list[Evidence]]

    def evidence(self, field_id: int) -> Sequence[Evidence]:
        return self.known.get(field_id, [])


def _present(values: Sequence[Value | None]) -> list[Value]:
    return [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]


def _least(values: Sequence[Value]) -> Value | None:
    least = None
    for value in values:
        least = value if least is None or ordering(value, least) < 0 else least
    return least


def _greatest(values: Sequence[Value]) -> Value | None:
    greatest = None
    for value in values:
        greatest = value if greatest is None or ordering(value, greatest) > 0 else greatest
    return greatest


def _encoded(draw: Draw, type_: PrimitiveType, value: Value | None, *, upper: bool) -> bytes | None:
    """A bound as some writer may leave it: absent, truncated, narrow, padded, or NaN."""
    if value is None or draw(st.integers(0, 5)) == 0:
        return None
    raw = encode_value(type_, value)
    match type_.name:
        case "string" | "binary" if draw(st.booleans()):
            cut = raw[: draw(st.integers(0, 3))]
            if not upper or cut == raw:
                return cut
            kept = cut.rstrip(b"\xff")
            return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
        case "long" if -(2**31) <= value < 2**31 and draw(st.booleans()):  # type: ignore[operator]
            return struct.pack("<i", value)
        case "double" if struct.unpack("<f", struct.pack("<f", _single(value)))[0] == value and draw(st.booleans()):
            return struct.pack("<f", value)
        case "float" | "double" if draw(st.integers(0, 9)) == 0:
            return struct.pack("<f" if type_.name == "float" else "<d", math.nan)
        case "decimal" if draw(st.booleans()):
            padding = b"\xff" if raw[0] & 0x80 else b"\x00"
            return padding * draw(st.integers(0, 17 - len(raw))) + raw
    return raw


def _single(value: Value) -> float:
    return float(value) if abs(float(value)) < 1e38 or math.isinf(float(value)) else 0.0  # type: ignore[arg-type]


def _metrics(draw: Draw, type_: PrimitiveType, files: Sequence[Sequence[Value | None]]) -> Evidence:
    def side(choose: Callable[[Sequence[Value]], Value | None], *, upper: bool) -> list[bytes | None]:
        return [_encoded(draw, type_, choose(_present(values)), upper=upper) for values in files]

    def flags(certain: Callable[[Sequence[Value | None]], bool]) -> np.ndarray:
        return np.array([certain(values) or draw(st.booleans()) for values in files], dtype=np.bool_)

    vectors = []
    for encoded in (side(_least, upper=False), side(_greatest, upper=True)):
        offsets, data = pack([b"" if e is None else e for e in encoded])
        valid = np.array([e is not None for e in encoded], dtype=np.bool_)
        vectors.append(from_serialized(type_, offsets, data, valid))
    presence = Presence(
        null=flags(lambda values: None in values),
        nan=flags(lambda values: any(isinstance(v, float) and math.isnan(v) for v in values)),
        value=flags(lambda values: bool(_present(values))),
    )
    return ColumnBounds(len(files), vectors[0], vectors[1], presence)


def _check(schema: Schema, draw: Draw, files: list[list[Row]], source: Source) -> None:
    bound = bind(draw(predicates(schema)), schema)
    evaluator = Evaluator(bound)
    leaf_outcomes = evaluator.leaf_outcomes(source)
    outcomes = evaluator.combine(leaf_outcomes, source.count)
    with patch.object(bounds, "_MANY", draw(st.sampled_from([1, 100]))):  # with 1, parts stay whole here, too
        codes, residuals = evaluator.residuals(leaf_outcomes, source.count)
    for i, file in enumerate(files):
        residual = residuals[codes[i]]
        assert (residual == BOUND_TRUE) == (outcomes[i] == TRUE)
        assert (residual == BOUND_FALSE) == (not outcomes[i] & TRUE)
        for row in file:
            found = evaluate(bound, row)
            assert outcomes[i] & BIT[found], (str(bound), row, outcomes[i])
            assert (evaluate(residual, row) is True) == (found is True), (str(bound), str(residual), row)


@given(data=st.data())
def test_metrics_allow_what_every_row_comes_to(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    files = data.draw(st.lists(st.lists(rows(schema), min_size=1, max_size=4), min_size=1, max_size=3))
    known: dict[int, list[Evidence]] = {}
    for column in columns_of(schema).values():
        assert isinstance(column.type, PrimitiveType)
        values = [[row[column.field_id] for row in file] for file in files]
        known[column.field_id] = [_metrics(data.draw, column.type, values)] if data.draw(st.booleans()) else []
    _check(schema, data.draw, files, Source(len(files), known))


def _partition_evidence(
    draw: Draw, type_: PrimitiveType, transform: Transform, groups: Sequence[Sequence[Value | None]]
) -> Evidence | None:
    """From one partition value per group, or from a range over several, as a manifest's summary has."""
    result = transform.result_type(type_)
    found = [[transform.apply(type_, v) for v in values] for values in groups]
    lower, upper = ([choose(_present(v)) for v in found] for choose in (_least, _greatest))
    if any(isinstance(v, int) and not -(2**63) <= v < 2**63 for v in (*lower, *upper)):
        return None  # truncate below the least long; no writer can store it
    bounds = ColumnBounds(
        len(groups),
        vector_of(result, lower),
        vector_of(result, upper),
        Presence(
            null=np.array([None in v for v in found]),
            nan=np.array([any(isinstance(p, float) and math.isnan(p) for p in v) for v in found]),
            value=np.array([bool(_present(v)) or draw(st.booleans()) for v in found]),
        ),
    )
    return source_evidence(transform, type_, bounds)


@given(data=st.data())
def test_partition_values_allow_what_every_row_comes_to(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    every = data.draw(st.lists(rows(schema), min_size=1, max_size=8))
    fields = []
    for column in columns_of(schema).values():
        assert isinstance(column.type, PrimitiveType)
        fields += [
            (column.field_id, column.type, transform)
            for transform in data.draw(st.lists(st.sampled_from(TRANSFORMS), max_size=2))
            if transform.accepts(column.type)
        ]
    groups: dict[str, list[Row]] = {}
    ranges = data.draw(st.booleans())
    for row in every:
        values = [None if isinstance(t, UnknownTransform) else t.apply(type_, row[i]) for i, type_, t in fields]
        groups.setdefault("" if ranges else repr(values).replace("-0.0", "0.0"), []).append(row)
    files = list(groups.values())
    known: dict[int, list[Evidence]] = {}
    for field_id, type_, transform in fields:
        if isinstance(transform, UnknownTransform):
            assert source_evidence(transform, type_, ColumnBounds(len(files))) is None
            continue
        found = _partition_evidence(data.draw, type_, transform, [[row[field_id] for row in file] for file in files])
        if found is not None:
            known.setdefault(field_id, []).append(found)
    _check(schema, data.draw, files, Source(len(files), known))


def test_every_type_with_an_order_is_held() -> None:
    assert representation(PrimitiveType("variant")) is None
