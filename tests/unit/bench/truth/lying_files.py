"""Parquet files whose every statistic lies: written with other values of the same width, which are then overwritten."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 1000
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
        pa.field("whole", pa.int64(), metadata={"PARQUET:field_id": "2"}),
        pa.field("real", pa.float64(), metadata={"PARQUET:field_id": "3"}),
        pa.field("name", pa.string(), metadata={"PARQUET:field_id": "4"}),
        pa.field("gone", pa.int32(), metadata={"PARQUET:field_id": "5"}),
        pa.field("coded", pa.int64(), metadata={"PARQUET:field_id": "6"}),
        pa.field("mixed", pa.int64(), metadata={"PARQUET:field_id": "7"}),
    ]
)

CLAIMED = pa.table(
    {
        "id": np.arange(ROWS) + 5000,
        "whole": np.arange(ROWS) % 10,
        "real": (np.arange(ROWS) % 10) / 4,
        "name": [f"a{i % 10:03}" for i in range(ROWS)],
        "gone": pa.array(np.arange(ROWS) % 7, pa.int32()),
        "coded": np.arange(ROWS) % 10,
        "mixed": np.arange(ROWS) * 3,
    },
    SCHEMA,
)
"""What the statistics say."""

ACTUAL = pa.table(
    {
        "id": np.arange(ROWS) + 5000,
        "whole": np.arange(ROWS) % 10 + 500,
        "real": [math.nan if i % 3 == 0 else 90.0 + i % 5 for i in range(ROWS)],
        "name": [f"z{i % 10:03}" for i in range(ROWS)],
        "gone": pa.nulls(ROWS, pa.int32()),
        "coded": np.arange(ROWS) % 10 + 700,
        "mixed": np.arange(ROWS) * 3,
    },
    SCHEMA,
)
"""What the rows are."""

FILTERS = {
    "whole = 503": 100, "whole > 100": ROWS, "whole in (3, 505)": 100, "whole = 3": 0, "whole between 0 and 9": 0,
    "real > 80": ROWS, "real is nan": 334, "real = 91.0": 133, "real < 5": 0,
    "name = 'z004'": 100, "name > 'b'": ROWS, "name = 'a004'": 0, "name like 'z%'": ROWS,
    "gone is null": ROWS, "gone is not null": 0, "gone = 3": 0,
    "coded = 703": 100, "coded = 3": 0, "coded >= 700": ROWS,
    "mixed = 2997": 1, "mixed in (2994, 2997)": 2, "id = 5003 and whole = 503": 1,
}  # fmt: skip
"""Filters, and the rows that they keep."""


def write_lying(path: Path) -> None:
    """Write `ACTUAL` with the footer, page index, page headers and Bloom filters of `CLAIMED`.

    The null count of `gone` lies as its definition levels are overwritten, and the footer says of `mixed` that all its
    pages are coded by the dictionary, which has its first values alone.
    """
    pq.write_table(
        CLAIMED,
        path,
        compression="none",
        use_dictionary=["coded", "mixed"],
        dictionary_pagesize_limit=400,
        data_page_size=1000,
        write_batch_size=100,
        write_page_index=True,
        write_page_checksum=False,
        store_schema=False,
        bloom_filter_options={name: {"ndv": ROWS} for name in SCHEMA.names if name != "gone"},
    )
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    body, tail = data[:footer], data[footer:]
    for name in ("whole", "real"):
        body = _replaced_values(body, CLAIMED[name].to_numpy().tobytes(), ACTUAL[name].to_numpy().tobytes(), 8)
    body = _replaced_values(body, _texts("name", CLAIMED), _texts("name", ACTUAL), 8)
    codes = np.arange(10).tobytes()
    assert body.count(codes) == 1
    body = body.replace(codes, (np.arange(10) + 700).tobytes())
    body = _all_null(body, path)
    path.write_bytes(body + _all_coded(tail))


def _texts(name: str, rows: pa.Table) -> bytes:
    return b"".join(len(text).to_bytes(4, "little") + text.encode() for text in rows[name].to_pylist())


def _replaced_values(body: bytes, before: bytes, after: bytes, width: int) -> bytes:
    """The file with other values in its pages, which have 100 values or a multiple of it each."""
    assert len(before) == len(after)
    step = 100 * width
    at = 0
    for start in range(0, len(before), step):
        at = body.index(before[start : start + step], at)
        body = body[:at] + after[start : start + step] + body[at + step :]
        at += step
    return body


def _all_null(body: bytes, path: Path) -> bytes:
    """Every definition level of `gone` is 0 in place of 1; each page has one run of them."""
    chunk = pq.read_metadata(path).row_group(0).column(SCHEMA.get_field_index("gone"))
    start, end = chunk.data_page_offset, chunk.data_page_offset + chunk.total_compressed_size
    values = body[start:end]
    runs = 0
    at = 0
    while (at := values.find(b"\x03\x00\x00\x00", at)) >= 0:
        if values[at + 6] == 1 and values[at + 5] in (1, 2, 3, 4, 5, 6, 7):
            values = values[: at + 6] + b"\x00" + values[at + 7 :]
            runs += 1
        at += 1
    assert runs
    return body[:start] + values + body[end:]


def _all_coded(tail: bytes) -> bytes:
    """The encoding statistics of plain data pages say that they are coded by the dictionary."""
    plain = b"\x15\x00\x15\x00\x15"  # page type: data, encoding: plain, count: …
    at = tail.rindex(plain)
    return tail[:at] + b"\x15\x00\x15\x10\x15" + tail[at + 5 :]
