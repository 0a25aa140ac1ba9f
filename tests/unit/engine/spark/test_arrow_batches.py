"""Batches in the types that Spark accepts."""

from __future__ import annotations

from uuid import UUID

import pyarrow as pa
import pytest

from icebench.engine.columnar.schemas import from_arrow_schema
from icebench.engine.spark.arrow_batches import spark_batch

ONE, TWO = UUID(int=1), UUID(int=2)
LATE = 3_000_000
"""A day after the year 9999, which Python's dates do not have."""
BESIDE = pa.struct([("u", pa.uuid()), ("d", pa.date32()), ("f", pa.binary(2))])
PLAIN = pa.struct([("u", pa.string()), ("d", pa.date32()), ("f", pa.binary())])


def struct(value: UUID | None) -> pa.StructArray:
    storage = pa.array([None if value is None else value.bytes], pa.binary(16))
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), storage)
    return pa.StructArray.from_arrays(
        [uuids, pa.array([LATE], pa.date32()), pa.array([b"ab"], pa.binary(2))], fields=list(BESIDE)
    )


def plain(value: UUID | None) -> pa.StructArray:
    text = pa.array([None if value is None else str(value)], pa.string())
    return pa.StructArray.from_arrays([text, pa.array([LATE], pa.date32()), pa.array([b"ab"])], fields=list(PLAIN))


def converted(column: pa.Array) -> pa.Array:
    batch = pa.record_batch([column], ["c"])
    return spark_batch(batch, from_arrow_schema(batch.schema)).column(0)


STRUCTS = pa.concat_arrays([struct(ONE), pa.nulls(1, BESIDE), struct(None), struct(TWO)])
PLAINS = pa.concat_arrays([plain(ONE), pa.nulls(1, PLAIN), plain(None), plain(TWO)])
OFFSETS = pa.array([0, 2, 2, 2, 4], pa.int32())
HOLES = pa.array([False, False, True, False])
KEYS = pa.array(["a", "b", "a", "b"])


@pytest.mark.parametrize("start", [0, 1, 3])
def test_uuids_are_texts_beside_days_that_python_has_not(start: int) -> None:
    assert converted(STRUCTS.slice(start)) == PLAINS.slice(start)
    lists = pa.ListArray.from_arrays(OFFSETS, STRUCTS, mask=HOLES)
    found = converted(lists.slice(start))
    found.validate(full=True)
    assert found == pa.ListArray.from_arrays(OFFSETS, PLAINS, mask=HOLES).slice(start)
    maps = pa.MapArray.from_arrays(OFFSETS, KEYS, STRUCTS, mask=HOLES)
    found = converted(maps.slice(start))
    found.validate(full=True)
    assert found == pa.MapArray.from_arrays(OFFSETS, KEYS, PLAINS, mask=HOLES).slice(start)


def test_columns_without_rows_are_converted() -> None:
    for type_ in (BESIDE, pa.list_(BESIDE), pa.map_(pa.string(), BESIDE)):
        assert len(converted(pa.nulls(0, type_))) == 0
