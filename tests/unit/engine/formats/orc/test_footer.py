"""Footers of ORC, looked at before a library is given the file."""

from __future__ import annotations

import io
from random import Random

import pyarrow as pa
import pytest
from pyarrow import orc

from icebench.engine.formats.orc.footer import footers_of
from icebench.engine.formats.orc.tail import decode_orc_footer, varint
from icebench.errors import CorruptTable, TooLarge
from tests.fault.bombs import orc_footer


@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_footers_of_every_codec(codec: str):
    sink = io.BytesIO()
    types = {"b": pa.list_(pa.struct([("c", pa.int32())])), "d": pa.map_(pa.string(), pa.int8())}
    columns = {
        "a": pa.array(range(5000)),
        "b": pa.array([[{"c": i}] for i in range(5000)], types["b"]),
        "d": pa.array([[(str(i), 1)] for i in range(5000)], types["d"]),
    }
    rows = pa.table(columns)
    orc.write_table(rows, sink, compression=codec, stripe_size=10_000, batch_size=500)
    data = sink.getvalue()
    short = footers_of(data[-60:], len(data))
    assert short.footer is None
    found = footers_of(data[-short.end_bytes :], len(data))
    assert found.footer is not None
    stripes = decode_orc_footer(found.footer).stripes
    assert sum(stripe.rows for stripe in stripes) == 5000
    for index, stripe in enumerate(stripes):
        end = stripe.offset + stripe.size_bytes
        found.check_stripe(data[end - stripe.footer_bytes : end], index)
        if codec != "uncompressed":
            with pytest.raises(CorruptTable, match=f"stripe {index}"):
                found.check_stripe(data[end - stripe.footer_bytes : end - 1], index)


def test_types_that_are_no_tree_and_footers_without_end(monkeypatch: pytest.MonkeyPatch):
    reasons = set()
    for seed in range(30):
        data = orc_footer(Random(seed), "zlib")
        with pytest.raises(Exception, match=r"x\.orc") as raised:
            footers_of(data, len(data), location="x.orc")
        reasons.add(type(raised.value).__name__)
    assert reasons == {"TooLarge", "CorruptTable", "Unsupported"}
    sink = io.BytesIO()
    orc.write_table(pa.table({"a": [1]}), sink)
    monkeypatch.setenv("ICEBENCH_DECODE_BYTES", "10")
    whole = sink.getvalue()
    assert footers_of(whole, 1 << 20).footer
    with pytest.raises(CorruptTable, match="no postscript"):
        footers_of(whole[-5:], len(whole))
    with pytest.raises(TooLarge, match="a footer of"):
        footers_of(whole, len(whole))


def test_numbers_end():
    assert varint(b"\xff" * 9 + b"\x01", 0) == ((1 << 64) - 1, 10)
    for data in (b"\x80" * 100_000, b"\x80", b""):
        with pytest.raises(IndexError):
            varint(data, 0)
