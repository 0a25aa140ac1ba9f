"""Plans of tables whose metrics are wrong as released writers have left them, against brute force."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.predicate import Not
from icebench.engine.plan.scan import table_scan
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import (
    BINARY,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    NestedField,
    PrimitiveType,
    StructType,
)
from icebench.engine.spec.values import Value, encode_value
from tests.property.evaluate import evaluate, ordering
from tests.property.filter_strategies import columns_of, leaves, rows
from tests.property.table_builder import TableBuilder, added, data_file

Row = dict[int, Value | None]
Metrics = dict[str, Any]
NAMED_BY_PYICEBERG = "memory://t/data/00000-{}-9c12d441-03fe-4693-9a96-a0705ddf69c1.parquet"


def metrics_of(schema: Schema, some: Sequence[Row]) -> Metrics:
    """What a careful writer says of rows."""
    found: Metrics = {
        name: {} for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    }
    for column in columns_of(schema).values():
        assert isinstance(column.type, PrimitiveType)
        values = [row[column.field_id] for row in some]
        present = [v for v in values if v is not None]
        nans = [v for v in present if isinstance(v, float) and math.isnan(v)]
        found["value_counts"][column.field_id] = len(values)
        found["null_value_counts"][column.field_id] = len(values) - len(present)
        if schema.primitive(column.field_id).name in ("float", "double"):
            found["nan_value_counts"][column.field_id] = len(nans)
        ordered = sorted((v for v in present if v == v), key=cmp_to_key(ordering))  # noqa: PLR0124 - NaN
        if ordered:
            found["lower_bounds"][column.field_id] = encode_value(column.type, ordered[0])
            found["upper_bounds"][column.field_id] = encode_value(column.type, ordered[-1])
    return found


Writer = Callable[[Schema, Sequence[Row], Sequence[Row]], Metrics]
"""Takes the schema, the rows of a file and those of all files."""


def _null_structs_not_counted(schema: Schema, own: Sequence[Row], _: Sequence[Row]) -> Metrics:
    found = metrics_of(schema, own)
    for i in set(found["null_value_counts"]) & set(schema.parent_of):
        found["value_counts"][i] -= found["null_value_counts"][i]
        found["null_value_counts"][i] = 0
    return found


def _null_structs_not_counted_nor_values(schema: Schema, own: Sequence[Row], every: Sequence[Row]) -> Metrics:
    return {**_null_structs_not_counted(schema, own, every), "value_counts": {}}


def _null_counts_less_one_a_row_group(schema: Schema, own: Sequence[Row], _: Sequence[Row]) -> Metrics:
    found = metrics_of(schema, own)
    return {**found, "null_value_counts": dict.fromkeys(found["null_value_counts"], 0), "split_offsets": None}


def _metrics_of_the_manifest(schema: Schema, own: Sequence[Row], every: Sequence[Row]) -> Metrics:
    return {**metrics_of(schema, every), "value_counts": metrics_of(schema, own)["value_counts"]}


def _values_counted_without_nulls(schema: Schema, own: Sequence[Row], _: Sequence[Row]) -> Metrics:
    found = metrics_of(schema, own)
    counts = {i: n - found["null_value_counts"][i] for i, n in found["value_counts"].items()}
    return {**found, "value_counts": counts}


def _bounds_swapped(schema: Schema, own: Sequence[Row], _: Sequence[Row]) -> Metrics:
    found = metrics_of(schema, own)
    uuids = {c.field_id for c in columns_of(schema).values() if schema.primitive(c.field_id).name == "uuid"}
    swapped = {n: {i: b for i, b in found[n].items() if i not in uuids} for n in ("lower_bounds", "upper_bounds")}
    return {**found, "lower_bounds": swapped["upper_bounds"], "upper_bounds": swapped["lower_bounds"]}


def _nan_stays_in_a_bound(which: str) -> Writer:
    def write(schema: Schema, own: Sequence[Row], _: Sequence[Row]) -> Metrics:
        found = metrics_of(schema, own)
        for column in columns_of(schema).values():
            if column.field_id in found["nan_value_counts"] and column.field_id in found[which]:
                wide = schema.primitive(column.field_id).name == "double"
                nan, wrong = (struct.pack("<d" if wide else "<f", x) for x in (math.nan, 0.5))
                for name in ("lower_bounds", "upper_bounds"):
                    found[name][column.field_id] = nan if name == which else wrong
                found["nan_value_counts"].pop(column.field_id)
        return found

    return write


def _a_row_group_without_bounds(schema: Schema, own: Sequence[Row], _: Sequence[Row]) -> Metrics:
    found = metrics_of(schema, own)
    first = metrics_of(schema, own[: len(own) // 2])
    for column in columns_of(schema).values():
        for name in ("lower_bounds", "upper_bounds"):
            if schema.primitive(column.field_id).name in ("string", "binary"):
                found[name].pop(column.field_id, None)
                found[name] |= {i: b for i, b in first[name].items() if i == column.field_id}
    return {**found, "split_offsets": (4, 999)}


def _timestamps_scaled(to: Callable[[int], int | None]) -> Writer:
    def write(schema: Schema, own: Sequence[Row], _: Sequence[Row]) -> Metrics:
        found = metrics_of(schema, own)
        for column in columns_of(schema).values():
            if schema.primitive(column.field_id).name not in ("timestamp", "timestamptz"):
                continue
            for name in ("lower_bounds", "upper_bounds"):
                raw = found[name].pop(column.field_id, None)
                value = None if raw is None else to(struct.unpack("<q", raw)[0])
                if value is not None:
                    found[name][column.field_id] = struct.pack("<q", value)
        return found

    return write


def _milliseconds(micros: int) -> int | None:
    millis, rest = divmod(micros, 1000)
    return millis if rest == 0 and abs(millis) < 10**13 else None


FLOATING = (FLOAT, DOUBLE)
MICROS = (TIMESTAMP, TIMESTAMPTZ)
SOME = (INT, DOUBLE, STRING)
WRITERS: dict[str, tuple[Writer, tuple[PrimitiveType, ...]]] = {
    "a careful writer": (lambda schema, own, _: metrics_of(schema, own), SOME),
    "null structs are not counted": (_null_structs_not_counted, FLOATING),
    "null structs are not counted, nor values": (_null_structs_not_counted_nor_values, FLOATING),
    "-1 for each row group without a null count": (_null_counts_less_one_a_row_group, SOME),
    "metrics of the manifest for each file": (_metrics_of_the_manifest, SOME),
    "values are counted without nulls": (_values_counted_without_nulls, SOME),
    "bounds are swapped": (_bounds_swapped, (*SOME, BINARY, DecimalType(9, 2), DecimalType(38, 2))),
    "NaN stays in the lower bound": (_nan_stays_in_a_bound("lower_bounds"), FLOATING),
    "NaN stays in the upper bound": (_nan_stays_in_a_bound("upper_bounds"), FLOATING),
    "row groups without bounds are passed over": (_a_row_group_without_bounds, (STRING, BINARY)),
    "timestamps are cut to milliseconds": (
        _timestamps_scaled(lambda micros: max(micros // 1000 * 1000, -(1 << 63))),
        MICROS,
    ),
    "milliseconds are taken for microseconds": (_timestamps_scaled(_milliseconds), MICROS),
}


@pytest.mark.parametrize("name", WRITERS)
@given(data=st.data())
def test_wrong_metrics_lose_no_row_and_match_none(name: str, data: st.DataObject) -> None:
    writer, types = WRITERS[name]
    inner = NestedField(field_id=1, name="x", type=data.draw(st.sampled_from(types)), required=data.draw(st.booleans()))
    around = NestedField(field_id=3, name="s", type=StructType((inner,)))
    schema = Schema((around, NestedField(field_id=2, name="y", type=data.draw(st.sampled_from(types)))))
    contents = data.draw(st.lists(st.lists(rows(schema), min_size=1, max_size=4), min_size=1, max_size=3))
    every = [row for some in contents for row in some]
    files = {NAMED_BY_PYICEBERG.format(i): some for i, some in enumerate(contents)}
    builder = TableBuilder(schema)
    builder.add_manifest(
        [added(data_file(p, records=len(some), **writer(schema, some, every))) for p, some in files.items()]
    )
    predicate = data.draw(leaves(schema).flatmap(lambda leaf: st.sampled_from([leaf, Not(leaf)])))
    bound = bind(predicate, schema)
    plan = table_scan(builder.metadata(), builder.store, filter=predicate, runner=LocalRunner(1)).plan()
    left = dict(zip(plan.files["file_path"].to_pylist(), plan.residual_codes.tolist(), strict=True))
    for path, some in files.items():
        residual = plan.residuals[left[path]] if path in left else None
        for row in some:
            found = residual is not None and evaluate(residual, row) is True
            assert found == (evaluate(bound, row) is True), (str(bound), str(residual))
