"""Every type, with the values that go wrong: nulls, NaN, both zeros, extremes, old dates; and imported files."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa

import icebench
from tests.interop.histories.filters import Row, col
from tests.interop.histories.language import (
    AddColumn,
    Append,
    Delete,
    DropColumn,
    History,
    ImportFile,
    RenameColumn,
    RewriteData,
    Update,
    Upsert,
    java,
    ours,
    pyiceberg,
)
from tests.interop.histories.shapes import ON_READ, PLAIN, rows

UTC = dt.UTC

PRIMITIVES = {
    "id": pa.int64(),
    "b": pa.bool_(),
    "i": pa.int32(),
    "f": pa.float32(),
    "d": pa.float64(),
    "small": pa.decimal128(7, 2),
    "middle": pa.decimal128(18, 4),
    "wide": pa.decimal128(38, 10),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "utc": pa.timestamp("us", "UTC"),
    "text": pa.string(),
    "raw": pa.binary(),
    "fixed": pa.binary(4),
}


def primitives(i: int) -> Row:
    """Row `i`; each column has its extremes at rows of their own, and nulls at others."""
    naive = (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.datetime(1969, 12, 31, 23))  # noqa: DTZ001
    found: dict[str, list[Any]] = {
        "b": [True, False],
        "i": [0, -(2**31), 2**31 - 1],
        "f": [float("nan"), -0.0, 0.0, float("-inf"), 1.5],
        "d": [-0.0, float("nan"), float("inf"), 0.0, 1e-300],
        "small": [Decimal("-99999.99"), Decimal("0.00"), Decimal("99999.99")],
        "middle": [Decimal("99999999999999.9999"), Decimal("-0.0001")],
        "wide": [Decimal("-9999999999999999999999999999.9999999999"), Decimal("1E-10")],
        "day": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31), dt.date(1582, 10, 10)],
        "at": list(naive),
        "utc": [v.replace(tzinfo=UTC) for v in naive],
        "text": ["", "a" * 40, "é🙂\U0010ffff", "\x00", "quote'\"\\"],
        "raw": [b"", b"\xff" * 20, b"\x00"],
        "fixed": [b"\x00\x00\x00\x00", b"\xff\xff\xff\xff"],
    }
    values: Row = {name: None if i % 7 == 6 else options[i % len(options)] for name, options in found.items()}
    return {"id": i, **values}


OTHERS = {
    "id": pa.int64(),
    "t": pa.time64("us"),
    "u": pa.uuid(),
    "text": pa.string(),
}


def others(i: int) -> Row:
    times = (dt.time(0), dt.time(23, 59, 59, 999999), dt.time(1, 2, 3))
    return {
        "id": i,
        "t": None if i % 4 == 3 else times[i % 3],
        "u": None if i % 5 == 4 else uuid.UUID(int=(2**127 + i) if i % 2 else i),
        "text": f"t{i}",
    }


NANOS = {"id": pa.int64(), "ns": pa.timestamp("ns"), "utc_ns": pa.timestamp("ns", "UTC")}


def nanos(i: int) -> Row:
    extremes = (0, -1, 1_700_000_000_123_456_789, -(2**63) + 2**40, 2**63 - 1)
    return {"id": i, "ns": None if i % 6 == 5 else extremes[i % 5], "utc_ns": extremes[(i + 2) % 5]}


KEYED = {"id": pa.int64(), "u": pa.uuid(), "v": pa.int32()}


def keyed(i: int) -> Row:
    return {"id": i, "u": uuid.UUID(int=i * 2**64 + 7), "v": i}


DEEP = {
    "id": pa.int64(),
    "l": pa.list_(pa.list_(pa.decimal128(9, 3))),
    "m": pa.map_(
        pa.int32(), pa.list_(pa.struct([pa.field("at", pa.timestamp("us", "UTC")), pa.field("d", pa.date32())]))
    ),
    "s": pa.struct(
        [
            pa.field("in", pa.struct([pa.field("deep", pa.list_(pa.string())), pa.field("f", pa.float64())])),
            pa.field("m", pa.map_(pa.string(), pa.float32())),
        ]
    ),
}


def deep(i: int) -> Row:
    moment = dt.datetime(2024, 1, 1, tzinfo=UTC) + dt.timedelta(days=i)
    return {
        "id": i,
        "l": [None, [], [[]], [None, [Decimal(i).scaleb(-3)]], [[None, Decimal("-0.001")], []]][i % 5],
        "m": [None, [], [(1, None)], [(1, []), (-1, [None, {"at": moment, "d": None}])]][i % 4],
        "s": [
            None,
            {"in": None, "m": None},
            {"in": {"deep": None, "f": float("nan")}, "m": []},
            {"in": {"deep": ["x", None], "f": -0.0}, "m": [("k", None), ("z", 0.5)]},
        ][i % 4],
    }


WHOLE: Row = {
    "id": 20,
    "l": [[Decimal("1.000")]],
    "m": [(1, [{"at": dt.datetime(2024, 1, 1, tzinfo=UTC), "d": dt.date(2024, 1, 1)}])],
    "s": {"in": {"deep": ["x"], "f": 1.0}, "m": [("k", 0.5)]},
}
"""A row of `DEEP` without nulls: PyIceberg writes a null list of structs as an empty list."""

MAPPING = """[{"field-id": 1, "names": ["id", "identifier"]}, {"field-id": 2, "names": ["p"]},
              {"field-id": 3, "names": ["n", "number"]}]"""

HISTORIES = [
    History(
        name="all primitive types that Spark has",
        columns=PRIMITIVES,
        steps=[
            ours(Append([primitives(i) for i in range(8)])),
            java(Append([primitives(i) for i in range(8, 16)])),
            pyiceberg(Append([primitives(i) for i in range(16, 24)])),
            ours(Delete(col("i") == 2**31 - 1)),
            java(Delete(col("text") == "")),
        ],
        probes=[
            col("small") < 0,
            col("day") < dt.date(1900, 1, 1),
            col("d").is_null(),
            col("f") > 1.0,
            col("text") == "\x00",
        ][:4],
        in_sample=True,
    ),
    History(
        name="partitioned by floats, decimals, binaries and booleans",
        columns=PRIMITIVES,
        partition=[("small", "identity"), ("b", "identity"), ("raw", "bucket[3]"), ("text", "truncate[2]")],
        steps=[
            ours(Append([primitives(i) for i in range(12)])),
            java(Append([primitives(i) for i in range(12, 24)])),
            pyiceberg(Append([primitives(i) for i in range(24, 30)])),
            ours(Delete(col("small") < -1)),
            java(Delete(col("text") == "")),
        ],
        probes=[col("small") > 0, col("b").is_null()],
    ),
    History(
        name="partitioned by dates and times of all ages",
        columns=PRIMITIVES,
        partition=[("day", "year"), ("at", "day"), ("utc", "month"), ("middle", "truncate[100]")],
        steps=[
            java(Append([primitives(i) for i in range(12)])),
            ours(Append([primitives(i) for i in range(12, 24)])),
            ours(Delete(col("day") < dt.date(100, 1, 1))),
            java(Delete(col("day") > dt.date(9000, 1, 1))),
        ],
        probes=[col("day") == dt.date(1969, 12, 31)],
    ),
    History(
        name="floats as keys: NaN and both zeros",
        columns={"id": pa.int64(), "d": pa.float64()},
        versions=(2, 3),
        properties=ON_READ,
        steps=[
            ours(Append([{"id": i, "d": v} for i, v in enumerate([float("nan"), -0.0, 0.0, None, 1.0, float("nan")])])),
            java(Append([{"id": i + 10, "d": v} for i, v in enumerate([float("nan"), -0.0, 0.0, None, 1.0])])),
            ours(Delete(col("d") == 1.0)),
            java(Update(col("id") == 2, {"id": 22})),
            java(RewriteData()),
            ours(Delete(col("id") == 3)),
        ],
    ),
    History(
        name="time and uuid",
        columns=OTHERS,
        steps=[
            ours(Append([others(i) for i in range(8)])),
            pyiceberg(Append([others(i) for i in range(8, 14)])),
            java(Append([others(i) for i in range(14, 20)])),
            ours(Delete(col("id") < 3)),
            ours(Delete(col("t") == dt.time(1, 2, 3))),
        ],
        refusals={"ours on Spark": "'t'"},
    ),
    History(
        name="uuid keys, bucketed",
        columns=KEYED,
        partition=[("u", "bucket[4]")],
        steps=[
            ours(Append([keyed(i) for i in range(8)])),
            java(Append([keyed(i) for i in range(8, 16)])),
            pyiceberg(Append([keyed(i) for i in range(16, 20)])),
            ours(Upsert([keyed(3) | {"v": -3}, keyed(30)], on=("u",))),
            java(Delete(col("u") == uuid.UUID(int=4 * 2**64 + 7))),
            ours(Delete(col("u") == uuid.UUID(int=9 * 2**64 + 7))),
        ],
        probes=[col("v") < 0],
    ),
    History(
        name="nanoseconds",
        columns=NANOS,
        versions=(3,),
        steps=[
            ours(Append([nanos(i) for i in range(8)])),
            java(Append([nanos(i) for i in range(8, 14)])),
            ours(Delete(col("id") == 9)),
        ],
        refusals={"ours on Spark": "'ns'", "DuckDB": "Unrecognized primitive type"},
        coda=("java", "ours"),
    ),
    History(
        name="types inside types",
        columns=DEEP,
        steps=[
            ours(Append([deep(i) for i in range(10)])),
            java(Append([deep(i) for i in range(10, 20)])),
            pyiceberg(Append([WHOLE])),
            ours(Delete(col("s.in.f") == -0.0)),
            java(Delete(col("id") == 4)),
        ],
        coda=("java", "ours"),
        probes=[col("id") > 12],
        in_sample=True,
    ),
    History(
        name="imported files, read by a name mapping",
        columns=PLAIN,
        properties={"schema.name-mapping.default": MAPPING},
        unaccounted=["total-files-size"],  # Java appends imported files by manifest, without their sizes
        steps=[
            ours(Append(rows(0, 4))),
            pyiceberg(ImportFile(rows(4, 8))),
            java(ImportFile(rows(8, 12))),
            ours(RenameColumn("n", "m")),
            ours(AddColumn("x", icebench.LONG)),
            java(Append([{"id": 20, "m": 5, "x": 6}])),
            ours(Delete(col("m") == 60)),
            java(Delete(col("m") == 90)),
            ours(Update(col("id") == 7, {"x": 70})),
            java(DropColumn("p")),
        ],
        probes=[col("m") > 60],
    ),
]
