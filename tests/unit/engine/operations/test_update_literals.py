"""Literals that an update assigns: the value is stored that is given, or it is refused."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import icebench
from icebench.errors import Invalid

UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
EAST = dt.timezone(dt.timedelta(hours=2))
NAIVE, AWARE = dt.datetime(2021, 2, 3, 1), dt.datetime(2021, 2, 3, 1, tzinfo=EAST)  # noqa: DTZ001
US, NS = pa.timestamp("us"), pa.timestamp("ns")
ZONED = pa.timestamp("us", "UTC")
INT, TEXT = pa.int32(), pa.string()
STRUCT = pa.struct([("a", INT), ("t", US)])
MAP = pa.map_(TEXT, INT)


def stored(tmp_path: Path, type_: pa.DataType, value: Any) -> Any:
    """What a scan returns after an update."""
    rows = pa.table([pa.array([1]), pa.nulls(1, type_)], names=["id", "c"])
    properties = {"format-version": "3"} if pa.types.is_timestamp(type_) and type_.unit == "ns" else {}
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", rows.schema, properties=properties)
    table.append(rows)
    table.update("id = 1", {"c": value})
    return table.scan().to_arrow()["c"][0]


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (pa.int64(), np.int32(7), 7),
        (pa.int64(), pa.scalar(8), 8),
        (pa.float32(), 0.1, float(np.float32(0.1))),
        (pa.float64(), -math.inf, -math.inf),
        (pa.float64(), 3, 3.0),
        (pa.decimal128(9, 2), Decimal("2.5"), Decimal("2.50")),
        (pa.decimal128(9, 2), 3, Decimal("3.00")),
        (pa.date32(), dt.date(2021, 2, 3), dt.date(2021, 2, 3)),
        (pa.time64("us"), dt.time(1, 2, 3, 4), dt.time(1, 2, 3, 4)),
        (US, NAIVE, NAIVE),
        (US, np.datetime64("2021-02-03T01:00:00", "ns"), NAIVE),
        (US, "2021-02-03T01:00:00", NAIVE),
        (ZONED, AWARE, AWARE),
        (NS, pd.Timestamp(2**60 + 1, unit="ns"), pd.Timestamp(2**60 + 1, unit="ns")),
        (pa.binary(), b"", b""),
        (pa.binary(2), b"ab", b"ab"),
        (pa.uuid(), UUID, UUID),
        (pa.uuid(), UUID.bytes, UUID),
        (pa.uuid(), str(UUID), UUID),
        (pa.list_(INT), (1, None), [1, None]),
        (pa.list_(INT), np.array([1, 2]), [1, 2]),
        (pa.list_(pa.uuid()), [UUID, None], [UUID, None]),
        (STRUCT, {"t": NAIVE}, {"a": None, "t": NAIVE}),
        (MAP, {"k": 5}, [("k", 5)]),
        (MAP, [("k", None)], [("k", None)]),
    ],
)
def test_values_of_the_type_are_stored(tmp_path: Path, type_: pa.DataType, value: Any, expected: Any) -> None:
    assert stored(tmp_path, type_, value).as_py() == expected


def test_zeros_keep_their_sign_and_nan_is_a_value(tmp_path: Path) -> None:
    for place, type_ in enumerate((pa.float32(), pa.float64())):
        assert math.copysign(1, stored(tmp_path / f"zero-{place}", type_, -0.0).as_py()) == -1
        assert math.isnan(stored(tmp_path / f"nan-{place}", type_, math.nan).as_py())


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (pa.int64(), 1.9),
        (pa.int64(), Decimal("1.5")),
        (pa.int64(), True),
        (pa.int64(), "5"),
        (pa.int64(), 2**63),
        (pa.float32(), 1e300),
        (pa.float64(), True),
        (pa.decimal128(9, 2), Decimal("0.001")),
        (pa.decimal128(9, 2), 10**8),
        (pa.bool_(), 1),
        (pa.date32(), 5),
        (pa.date32(), dt.datetime(2021, 2, 3, 23, 59)),  # noqa: DTZ001
        (pa.time64("us"), 5),
        (pa.time64("us"), dt.time(1, tzinfo=EAST)),
        (US, 5),
        (US, AWARE),
        (US, pd.Timestamp(1, unit="ns")),
        (ZONED, NAIVE),
        (TEXT, b"x"),
        (pa.binary(), "x"),
        (pa.binary(2), b"abc"),
        (pa.uuid(), 1),
        (pa.uuid(), b"short"),
        (pa.list_(INT), [2.7]),
        (pa.list_(INT), 5),
        (pa.list_(TEXT), "ab"),
        (STRUCT, {"a": 2.5}),
        (STRUCT, {"t": AWARE}),
        (STRUCT, [1]),
        (MAP, {"k": 1.5}),
        (MAP, {5: 1}),
    ],
)
def test_other_values_are_refused(tmp_path: Path, type_: pa.DataType, value: Any) -> None:
    with pytest.raises(Invalid, match="is no value of column 'c'"):
        stored(tmp_path, type_, value)
