"""Columns and rows that many histories share."""

from __future__ import annotations

import pyarrow as pa

from tests.interop.histories.filters import Row

PLAIN = {"id": pa.int64(), "p": pa.string(), "n": pa.int32()}
"""A key, something to partition by, something to change."""

ON_READ = dict.fromkeys(("write.delete.mode", "write.update.mode", "write.merge.mode"), "merge-on-read")
ON_WRITE = dict.fromkeys(("write.delete.mode", "write.update.mode", "write.merge.mode"), "copy-on-write")


def rows(start: int, stop: int) -> list[Row]:
    """Rows of `PLAIN`: three values of p and null, one n in five null."""
    return [
        {"id": i, "p": ("a", "b", "ccc", None)[i % 4], "n": None if i % 5 == 0 else i * 10} for i in range(start, stop)
    ]


EQUALITY_DELETES_REFUSED = {
    "PyIceberg": "equality",
}
