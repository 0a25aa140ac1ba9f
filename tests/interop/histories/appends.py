"""Appends of every kind, interleaved."""

from __future__ import annotations

from tests.interop.histories.filters import col
from tests.interop.histories.language import (
    Append,
    Delete,
    History,
    RewriteManifests,
    SetProperties,
    java,
    ours,
    pyiceberg,
)
from tests.interop.histories.shapes import PLAIN, rows

HISTORIES = [
    History(
        name="fast appends, interleaved",
        columns=PLAIN,
        steps=[
            ours(Append(rows(0, 5))),
            java(Append(rows(5, 10))),
            pyiceberg(Append(rows(10, 15))),
            ours(Append(rows(15, 20))),
        ],
        probes=[col("id") < 7, col("p").is_null() & (col("n") > 50)],
        in_sample=True,
    ),
    History(
        name="a table of Java, partitioned",
        columns=PLAIN,
        created_by="java",
        partition=[("p", "identity"), ("id", "bucket[3]")],
        steps=[
            java(Append(rows(0, 12))),
            ours(Append(rows(12, 24))),
            pyiceberg(Append(rows(24, 30))),
            ours(Append([{"id": 99}])),
        ],
        probes=[col("p") == "ccc", col("id").isin(3, 13, 25)],
    ),
    History(
        name="a table of PyIceberg",
        columns=PLAIN,
        created_by="pyiceberg",
        partition=[("p", "truncate[1]")],
        steps=[pyiceberg(Append(rows(0, 8))), ours(Append(rows(8, 16))), java(Append(rows(16, 20)))],
        versions=(1, 2),
    ),
    History(
        name="manifests merged at every commit",
        columns=PLAIN,
        partition=[("p", "identity")],
        properties={"commit.manifest.min-count-to-merge": "2"},
        steps=[
            ours(Append(rows(0, 4))),
            ours(Append(rows(4, 8))),
            java(Append(rows(8, 12))),
            ours(Append(rows(12, 16))),
            pyiceberg(Append(rows(16, 20))),
            ours(Delete(col("id") < 6)),
            java(Append(rows(20, 24))),
            ours(Append(rows(24, 28))),
        ],
        in_sample=True,
    ),
    History(
        name="many small commits, manifests rewritten by both",
        columns=PLAIN,
        properties={"commit.manifest-merge.enabled": "false"},
        steps=[
            *(ours(Append(rows(i, i + 1))) for i in range(6)),
            java(RewriteManifests()),
            *(pyiceberg(Append(rows(i, i + 1))) for i in range(6, 9)),
            ours(RewriteManifests()),
            java(Append(rows(9, 11))),
            java(RewriteManifests()),
            ours(SetProperties({"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"})),
            ours(Append(rows(11, 12))),
        ],
    ),
]
