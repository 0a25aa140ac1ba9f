"""Deletes of everybody that we rewrite: by position into fewer files and vectors, by key into positions."""

from __future__ import annotations

from tests.interop.histories.filters import col
from tests.interop.histories.language import (
    Append,
    ConvertEqualityDeletes,
    Delete,
    DeleteKeys,
    History,
    RewriteData,
    RewritePositionDeletes,
    Upgrade,
    java,
    ours,
    pyiceberg,
)
from tests.interop.histories.row_changes import BY_P
from tests.interop.histories.shapes import ON_READ, PLAIN, rows

HISTORIES = [
    History(
        name="position deletes of Java that we put together",
        columns=PLAIN,
        partition=BY_P,
        properties={**ON_READ, "write.delete.granularity": "partition"},
        versions=(2,),
        steps=[
            java(Append(rows(0, 20))),
            java(Append(rows(20, 40))),
            java(Delete(col("id").isin(1, 5, 21))),
            java(Delete(col("id").isin(9, 29))),
            ours(RewritePositionDeletes()),
            java(Delete(col("id").isin(13, 33, 2))),
            ours(Delete(col("id").isin(6, 26))),
            java(RewritePositionDeletes()),
            ours(RewritePositionDeletes()),
            pyiceberg(Append(rows(40, 44))),
            java(Delete(col("id") == 41)),
            java(RewriteData()),
        ],
        probes=[col("p") == "b"],
        in_sample=True,
    ),
    History(
        name="position deletes that become vectors",
        columns=PLAIN,
        partition=BY_P,
        properties={**ON_READ, "write.delete.granularity": "partition"},
        versions=(2,),
        steps=[
            java(Append(rows(0, 20))),
            ours(Append(rows(20, 40))),
            java(Delete(col("id").isin(1, 5, 21, 2))),
            ours(Delete(col("id").isin(9, 29, 26))),
            ours(Upgrade(3)),
            java(Delete(col("id") == 13)),
            ours(RewritePositionDeletes()),
            java(Delete(col("id").isin(33, 6))),
            ours(Delete(col("id") == 17)),
        ],
        probes=[col("p") == "b"],
        in_sample=True,
        coda=("java", "ours"),
    ),
    History(
        name="deletes by key of Java that we convert",
        columns=PLAIN,
        partition=BY_P,
        versions=(2, 3),
        properties=ON_READ,
        steps=[
            java(Append(rows(0, 16))),
            java(Delete(col("id") == 8)),
            java(DeleteKeys([{"id": 1}, {"id": 4}], ("b",), within=lambda row: row["p"] == "b")),
            ours(ConvertEqualityDeletes()),
            java(DeleteKeys([{"id": 0}, {"id": 12}], ("a",), within=lambda row: row["p"] == "a")),
            ours(Append([{"id": 12, "p": "a", "n": 6}])),
            java(Append(rows(16, 24))),
            ours(ConvertEqualityDeletes()),
            java(Delete(col("id") == 13)),
            java(RewriteData()),
            ours(Delete(col("id") == 17)),
        ],
        probes=[col("id") < 10],
        in_sample=True,
        coda=("java", "ours"),
    ),
]
