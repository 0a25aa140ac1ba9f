"""Footers of Parquet, looked at before pyarrow is given them."""

from __future__ import annotations

import io
import struct
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icebench.engine.formats.parquet.footer import check_footer
from icebench.engine.formats.parquet.thrift import shape_of
from icebench.errors import TooLarge
from tests.fault.bombs import parquet_footer


def footer_in(data: bytes) -> bytes:
    (length,) = struct.unpack_from("<I", data, len(data) - 8)
    return data[-8 - length : -8]


def written(columns: int, row_groups: int) -> bytes:
    sink = io.BytesIO()
    rows = pa.table({f"c{i}": np.arange(2 * row_groups) * i for i in range(columns)})
    pq.write_table(rows, sink, row_group_size=2)
    return sink.getvalue()


def test_the_shape_of_a_footer():
    nested = pa.table({"a": [1], "b": [[{"c": 1, "d": "x"}]]})
    sink = io.BytesIO()
    pq.write_table(nested, sink)
    assert shape_of(footer_in(sink.getvalue())) == (7, 3, 1)
    assert shape_of(footer_in(written(20, 3))) == (21, 20, 3)
    for broken in (b"", footer_in(written(5, 1))[:40]):
        with pytest.raises((IndexError, ValueError)):
            shape_of(broken)


def test_a_wide_footer_is_no_bomb(monkeypatch: pytest.MonkeyPatch):
    """Its zeros might be the ends of structs: only counting them shows how many."""
    data = written(400, 4)
    footer = footer_in(data)
    monkeypatch.setenv("ICEBENCH_DECODE_BYTES", "2000000")
    check_footer(footer, len(data))
    monkeypatch.setenv("ICEBENCH_DECODE_BYTES", "1000000")
    with pytest.raises(TooLarge, match=r"x.parquet at footer: a footer of \d+ bytes takes more than 1"):
        check_footer(footer, 100, location="x.parquet")


@pytest.mark.parametrize("seed", range(4))
def test_bombs(seed: int):
    data = parquet_footer(Random(seed))
    footer = footer_in(data)
    if len(footer) > 1 << 22:
        with pytest.raises(TooLarge):
            check_footer(footer, len(data))
