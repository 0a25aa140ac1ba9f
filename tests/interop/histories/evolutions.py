"""Schemas, partition specs and sort orders that change under the rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa

import icebench
from tests.interop.histories.filters import Row, col
from tests.interop.histories.language import (
    AddColumn,
    AddField,
    Append,
    Delete,
    DropColumn,
    DropField,
    History,
    Move,
    OverwritePartitions,
    Promote,
    RenameColumn,
    RenameField,
    RewriteData,
    Sort,
    Update,
    Upsert,
    WriteDefault,
    java,
    ours,
    pyiceberg,
)
from tests.interop.histories.shapes import ON_READ, PLAIN, rows

NESTED = {
    "id": pa.int64(),
    "s": pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.string())]),
    "l": pa.list_(pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.string())])),
    "m": pa.map_(pa.string(), pa.struct([pa.field("v", pa.int32()), pa.field("w", pa.string())])),
}


def nested(i: int) -> Row:
    return {
        "id": i,
        "s": None if i % 3 == 0 else {"a": i, "b": None if i % 2 else f"b{i}"},
        "l": None if i % 4 == 0 else [{"x": i, "y": "why"}, {"x": None, "y": None}, None][: i % 4],
        "m": None if i % 5 == 0 else [("k", {"v": i, "w": "w"}), ("none", None)],
    }


HISTORIES = [
    History(
        name="columns added, dropped, renamed and moved, interleaved",
        columns=PLAIN,
        steps=[
            ours(Append(rows(0, 6))),
            ours(AddColumn("x", icebench.LONG)),
            java(Append([{"id": 10, "p": "x", "n": 1, "x": 100}])),
            java(RenameColumn("n", "number")),
            ours(Append([{"id": 11, "p": "y", "number": 2, "x": 200}])),
            pyiceberg(AddColumn("n", icebench.STRING)),
            ours(Append([{"id": 12, "n": "text", "number": 3}])),
            java(DropColumn("x")),
            ours(Append([{"id": 13, "n": "more"}])),
            ours(AddColumn("x", icebench.STRING)),
            java(Append([{"id": 14, "x": "another x"}])),
            ours(Move("n", "id")),
            java(Move("p", None)),
            pyiceberg(Move("x", "id")),
            pyiceberg(RenameColumn("p", "part")),
            ours(Append([{"id": 15, "part": "end"}])),
        ],
        probes=[col("x").is_null() & (col("number") > 0), col("n") == "text"],
        in_sample=True,
    ),
    History(
        name="names swapped between columns",
        columns={"id": pa.int64(), "a": pa.int32(), "b": pa.int32()},
        steps=[
            java(Append([{"id": i, "a": i, "b": -i} for i in range(10)])),
            ours(RenameColumn("a", "c")),
            java(RenameColumn("b", "a")),
            ours(RenameColumn("c", "b")),
            ours(Append([{"id": 20, "a": -20, "b": 20}])),
            java(Delete(col("a") == -3)),
            ours(Delete(col("b") == 4)),
        ],
        probes=[col("a") == -20, col("b") > 5],
    ),
    History(
        name="types promoted",
        columns={
            "id": pa.int32(),
            "f": pa.float32(),
            "d": pa.decimal128(7, 2),
            "wide": pa.decimal128(18, 3),
            "k": pa.int32(),
        },
        partition=[("k", "bucket[3]")],
        steps=[
            ours(
                Append(
                    [
                        {"id": i, "f": i / 8, "d": Decimal(i).scaleb(-2), "wide": Decimal(i).scaleb(-3), "k": i}
                        for i in range(6)
                    ]
                )
            ),
            ours(Promote("id", icebench.LONG)),
            java(Promote("f", icebench.DOUBLE)),
            ours(Promote("d", icebench.DecimalType(9, 2))),
            pyiceberg(Promote("wide", icebench.DecimalType(30, 3))),
            java(Promote("k", icebench.LONG)),
            ours(Append([{"id": 2**40, "f": 0.1, "d": Decimal("1234567.89"), "wide": Decimal("-0.500"), "k": 2**40}])),
            java(Append([{"id": 2**41, "f": -0.1, "d": None, "wide": Decimal(f"{10**20}.000"), "k": 3}])),
            ours(Promote("d", icebench.DecimalType(20, 2))),
            java(Append([{"id": 2**42, "f": float("nan"), "d": Decimal("-1.25"), "wide": None, "k": 3}])),
            ours(Delete(col("k") == 3)),
        ],
        probes=[col("id") > 1000, col("f") < 0.5, col("k") == 2],
    ),
    History(
        name="fields inside structs, lists and maps",
        columns=NESTED,
        steps=[
            ours(Append([nested(i) for i in range(8)])),
            ours(AddColumn("s.c", icebench.LONG)),
            java(RenameColumn("s.b", "bb")),
            java(AddColumn("l.element.z", icebench.INT)),
            ours(RenameColumn("m.value.w", "ww")),
            ours(
                Append(
                    [
                        {
                            "id": 20,
                            "s": {"a": 1, "bb": "new", "c": 5},
                            "l": [{"x": 1, "y": "q", "z": 9}],
                            "m": [("k", {"v": 1, "ww": "x"})],
                        }
                    ]
                )
            ),
            pyiceberg(AddColumn("m.value.u", icebench.STRING)),
            java(Promote("s.a", icebench.LONG)),
            java(DropColumn("l.element.x")),
            ours(DropColumn("s.bb")),
            java(Append([{"id": 21, "s": {"a": 2**40, "c": None}, "l": [{"y": "r", "z": None}], "m": []}])),
            ours(AddColumn("s.bb", icebench.INT)),
            ours(Append([{"id": 22, "s": {"a": 3, "c": 4, "bb": 5}, "l": [], "m": None}])),
        ],
        coda=("java", "ours"),
        wrong={"PyIceberg": "null lists and maps of structs are read, and written, as empty ones"},
        probes=[col("s.a") > 4, col("s.bb").is_null() & (col("id") > 20)],
    ),
    History(
        name="a whole struct added and filled",
        columns=PLAIN,
        steps=[
            java(Append(rows(0, 4))),
            ours(AddColumn("s", icebench.StructType((icebench.NestedField(field_id=1, name="a", type=icebench.INT),)))),
            ours(Append([{"id": 10, "s": {"a": 1}}, {"id": 11, "s": {"a": None}}, {"id": 12, "s": None}])),
            java(AddColumn("s.b", icebench.STRING)),
            java(Append([{"id": 13, "s": {"a": 2, "b": "two"}}])),
            ours(DropColumn("s.a")),
            java(Delete(col("s.b") == "two")),
        ],
    ),
    History(
        name="defaults of new columns",
        columns=PLAIN,
        versions=(3,),
        properties=ON_READ,
        steps=[
            java(Append(rows(0, 4))),
            ours(AddColumn("x", icebench.INT, 5)),
            java(AddColumn("t", icebench.STRING, "it's")),
            ours(Append([{"id": 10, "p": "a", "n": 1}])),
            ours(AddColumn("day", icebench.DATE, dt.date(2024, 2, 29))),
            java(AddColumn("price", icebench.DecimalType(9, 2), Decimal("1.50"))),
            ours(AddColumn("at", icebench.TIMESTAMP, dt.datetime(2024, 1, 1, 12, 0, 0, 5))),  # noqa: DTZ001
            ours(AddColumn("utc", icebench.TIMESTAMPTZ, dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC))),
            ours(AddColumn("flag", icebench.BOOLEAN, True)),
            ours(AddColumn("d", icebench.DOUBLE, 0.25)),
            ours(Append([{"id": 11}])),
            java(WriteDefault("x", 6)),
            ours(WriteDefault("t", "later")),
            ours(Append([{"id": 12}])),
            java(Delete(col("x") == 6)),
            ours(Update(col("id") == 1, {"n": 100})),
            ours(RenameColumn("x", "y")),
            java(Update(col("y") == 5, {"n": 200})),
        ],
        probes=[col("y") == 5, col("price") > 1],
    ),
    History(
        name="a default of bytes",
        columns=PLAIN,
        versions=(3,),
        refusals={"ours on Spark": "default of 'raw'"},
        steps=[
            java(Append(rows(0, 4))),
            ours(AddColumn("raw", icebench.BINARY, b"\x00\xff")),
            ours(Append([{"id": 10}])),
        ],
    ),
    History(
        name="dates become timestamps",
        columns={"id": pa.int64(), "day": pa.date32()},
        versions=(3,),
        refusals={"Iceberg Java": "ClassCastException", "PyIceberg": "no attribute 'tz'"},
        steps=[
            ours(Append([{"id": 1, "day": dt.date(2024, 2, 29)}, {"id": 2, "day": None}])),
            ours(Promote("day", icebench.TIMESTAMP, lambda day: dt.datetime(day.year, day.month, day.day))),  # noqa: DTZ001
            ours(Append([{"id": 3, "day": dt.datetime(1969, 12, 31, 23, 59, 59, 999999)}])),  # noqa: DTZ001
        ],
    ),
    History(
        name="partition fields added and dropped",
        columns=PLAIN,
        steps=[
            ours(Append(rows(0, 8))),
            ours(AddField("p", "identity")),
            java(Append(rows(8, 16))),
            java(AddField("id", "bucket[4]")),
            ours(Append(rows(16, 24))),
            pyiceberg(DropField("p")),
            ours(Append(rows(24, 32))),
            java(DropField("id_bucket_4")),
            ours(Append(rows(32, 40))),
            ours(AddField("p", "identity")),
            java(Append(rows(40, 44))),
            ours(Delete(col("p") == "b")),
            java(Delete(col("id") == 30)),
        ],
        probes=[col("p") == "a", (col("id") > 10) & (col("p") == "ccc")],
        # PyIceberg does not write where a column has both a void field, as in v1, and another.
        coda=("java", "ours"),
        in_sample=True,
    ),
    History(
        name="deletes on read across specs",
        columns=PLAIN,
        versions=(2, 3),
        properties=ON_READ,
        partition=[("p", "identity")],
        steps=[
            ours(Append(rows(0, 12))),
            java(DropField("p")),
            ours(Append(rows(12, 24))),
            ours(AddField("id", "truncate[10]")),
            java(Append(rows(24, 36))),
            ours(Delete(col("id").isin(1, 13, 25))),
            java(Delete(col("id").isin(2, 14, 26))),
            ours(Upsert([{"id": 3, "p": "new", "n": 3}, {"id": 15, "p": None, "n": 15}, {"id": 40, "p": "q", "n": 1}])),
            java(RewriteData()),
            ours(Delete(col("id").isin(4, 27))),
        ],
        probes=[col("id") > 20],
    ),
    History(
        name="partition fields renamed, and overwritten by partition",
        columns=PLAIN,
        partition=[("p", "identity")],
        steps=[
            java(Append(rows(0, 12))),
            ours(RenameField("p", "part")),
            # What lies there under the spec of the former name is not replaced, by Java neither.
            ours(OverwritePartitions([{"id": 50, "p": "a", "n": 1}], by=lambda row: row["id"] >= 50 and row["p"])),
            java(OverwritePartitions([{"id": 51, "p": "a", "n": 1}], by=lambda row: row["id"] >= 50 and row["p"])),
            java(RenameField("part", "pp")),
            java(OverwritePartitions([{"id": 60, "p": "b", "n": 2}], by=lambda row: row["id"] >= 60 and row["p"])),
            ours(OverwritePartitions([{"id": 61, "p": "b", "n": 2}], by=lambda row: row["id"] >= 60 and row["p"])),
            ours(Delete(col("p") == "ccc")),
        ],
    ),
    History(
        name="days, months, years and hours",
        versions=(2, 3),  # in version 1, PyIceberg takes a void field and a new one of the same column for redundant
        columns={"id": pa.int64(), "day": pa.date32(), "ts": pa.timestamp("us"), "utc": pa.timestamp("us", "UTC")},
        partition=[("day", "month"), ("ts", "hour")],
        steps=[
            *(
                who(
                    Append(
                        [
                            {
                                "id": base + i,
                                "day": dt.date(1969, 12, 30) + dt.timedelta(days=40 * i + base),
                                "ts": dt.datetime(1969, 12, 31, 22) + dt.timedelta(minutes=45 * i),  # noqa: DTZ001
                                "utc": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC)
                                + dt.timedelta(hours=13 * i),
                            }
                            for i in range(5)
                        ]
                        + [{"id": base + 9, "day": None, "ts": None, "utc": None}]
                    )
                )
                for base, who in ((0, ours), (10, java), (20, pyiceberg))
            ),
            ours(AddField("utc", "day")),
            java(
                Append(
                    [{"id": 30, "day": dt.date(1950, 1, 1), "ts": None, "utc": dt.datetime(1950, 1, 1, tzinfo=dt.UTC)}]
                )
            ),
            java(DropField("ts_hour")),
            ours(AddField("ts", "year")),
            ours(Append([{"id": 31, "day": None, "ts": dt.datetime(1969, 1, 1), "utc": None}])),  # noqa: DTZ001
            ours(Delete(col("day") < dt.date(1970, 1, 1))),
        ],
        probes=[col("day") >= dt.date(1970, 2, 1), col("ts") < dt.datetime(1970, 1, 1)],  # noqa: DTZ001
    ),
    History(
        name="sort orders",
        columns=PLAIN,
        partition=[("p", "identity")],
        steps=[
            ours(Sort([("n", "desc", "nulls-last"), ("id", "asc", "nulls-first")])),
            ours(Append(rows(0, 10))),
            java(Append(rows(10, 20))),
            java(Sort([("id", "desc", "nulls-first")])),
            ours(Append(rows(20, 30))),
            java(RewriteData()),
            pyiceberg(Append(rows(30, 33))),
            ours(Delete(col("id") < 4)),
        ],
    ),
    History(
        name="the source of a dropped partition field is dropped",
        columns=PLAIN,
        versions=(2, 3),
        partition=[("p", "identity"), ("n", "truncate[100]")],
        steps=[
            ours(Append(rows(0, 10))),
            ours(DropField("n_trunc")),
            java(Append(rows(10, 14))),
            java(DropColumn("n")),
            ours(Append([{"id": 20, "p": "a"}])),
            java(Append([{"id": 21, "p": "b"}])),
            ours(Delete(col("id") == 3)),
            java(Delete(col("id") == 4)),
            ours(Delete(col("id").isin(5, 21))),
        ],
    ),
]
