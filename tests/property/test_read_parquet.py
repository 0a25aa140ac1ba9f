"""Flat columns in batches are as pyarrow decodes them whole, and rows are left out of them as its filter does it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from icebench.engine.columnar.decimals import is_narrow
from icebench.engine.columnar.schemas import field_id_of, from_arrow_schema
from icebench.engine.formats.parquet import source as parquet
from icebench.engine.formats.parquet.source import ParquetSource
from icebench.engine.formats.source import keep_rows
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.memory import MemoryStore
from icebench.errors import CorruptTable

PATH = "memory://b/f.parquet"
CODECS = ("none", "snappy", "gzip", "zstd", "lz4", "brotli")
WIDE = 2**63 - 1
TYPES: dict[str, tuple[pa.DataType, int]] = {
    "int": (pa.int32(), 2**31 - 1),
    "long": (pa.int64(), WIDE),
    "date": (pa.date32(), 2**31 - 1),
    "time": (pa.time64("us"), 86_399_999_999),
    "timestamp": (pa.timestamp("us", "UTC"), WIDE),
    "nanos": (pa.timestamp("ns"), WIDE),
    "float": (pa.float32(), 2**31 - 1),
    "double": (pa.float64(), WIDE),
    **{f"decimal{p}": (pa.decimal128(p, min(p, 2)), 10**p - 1) for p in (1, 4, 7, 9, 10, 15, 18, 19, 20, 26, 38)},
    "boolean": (pa.bool_(), 1),
    "string": (pa.string(), WIDE),
}


@pytest.fixture(autouse=True, scope="module", params=["at once", "as they are decoded"])
def fetched(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "at once":
            patch.setattr(parquet, "_AT_ONCE_BYTES", 0)
        yield


ENCODINGS = ("PLAIN", "RLE_DICTIONARY", "BYTE_STREAM_SPLIT", "DELTA_BINARY_PACKED")


def column(type_: pa.DataType, most: int, numbers: list[int | None]) -> pa.Array:
    """Values of the type from unscaled integers, cut to its range."""
    low = 0 if pa.types.is_time64(type_) or pa.types.is_boolean(type_) else -most
    cut = [None if n is None else min(max(n, low), most) for n in numbers]
    if pa.types.is_decimal(type_):
        data = b"".join((n or 0).to_bytes(16, "little", signed=True) for n in cut)
        valid = np.packbits(np.array([n is not None for n in cut], np.bool_), bitorder="little").tobytes()
        return pa.Array.from_buffers(type_, len(cut), [pa.py_buffer(valid), pa.py_buffer(data)])
    if pa.types.is_floating(type_):
        integers = pa.int32() if type_ == pa.float32() else pa.int64()
        return pa.array(cut, integers).view(type_)
    if pa.types.is_boolean(type_) or pa.types.is_string(type_):
        return pa.array(cut, pa.int64()).cast(type_)
    return pa.array(cut, pa.int32() if type_.bit_width == 32 else pa.int64()).cast(type_)


def encoded(name: str, type_: pa.DataType, encoding: str, *, integers: bool) -> str | None:
    """The encoding, where it is one for the physical type; else none of its own."""
    is_fixed = pa.types.is_decimal(type_) and not (integers and type_.precision <= 18)
    if encoding == "BYTE_STREAM_SPLIT" and name not in {"boolean", "string"}:
        return encoding
    is_number = not is_fixed and not pa.types.is_floating(type_) and name not in {"boolean", "string"}
    return encoding if encoding == "DELTA_BINARY_PACKED" and is_number else None


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, dict[str, Any]]:
    """Some columns of one length, and how to write them."""
    rows = draw(st.sampled_from([0, 1, 7, 63, 64, 65, 130, 1023, 1025, 2500]))
    names = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=4, unique=True))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    integers, encoding = draw(st.booleans()), draw(st.sampled_from(ENCODINGS))
    arrays, fields, encodings = [], [], {}
    for place, name in enumerate(names):
        type_, most = TYPES[name]
        spread = draw(st.sampled_from([0, 1, 3, 200, 70_000, most]))
        nulls = draw(st.sampled_from([0.0, 0.0, 0.02, 0.5, 1.0]))
        drawn = random.integers(-min(spread, WIDE), min(spread, WIDE), rows, endpoint=True).tolist()
        scale = max(1, spread // WIDE)
        is_null = random.random(rows) < nulls
        if draw(st.booleans()):
            drawn, is_null = sorted(drawn), np.sort(is_null)  # long runs of one value, and of nulls
        numbers = [None if absent else n * scale for n, absent in zip(drawn, is_null, strict=True)]
        arrays.append(column(type_, most, numbers))
        required = not is_null.any() and draw(st.booleans())
        metadata = {"PARQUET:field_id": str(place + 1)}
        fields.append(pa.field(name, type_, nullable=not required, metadata=metadata))
        own = encoded(name, type_, encoding, integers=integers)
        if own is not None:
            encodings[name] = own
    options: dict[str, Any] = {
        "compression": draw(st.sampled_from(CODECS)),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
        "data_page_size": draw(st.sampled_from([64, 1000, 1 << 20])),
        "dictionary_pagesize_limit": draw(st.sampled_from([100, 1 << 20])),
        "write_batch_size": draw(st.sampled_from([1, 10, 1024])),
        "write_page_checksum": draw(st.booleans()),
        "row_group_size": draw(st.sampled_from([5, 100, 1 << 20])) if rows < 200 else 1 << 20,
        "store_schema": draw(st.booleans()),
        "store_decimal_as_integer": integers,
    }
    if encodings:
        options |= {"use_dictionary": False, "column_encoding": encodings}
    else:
        options["use_dictionary"] = encoding == "RLE_DICTIONARY"
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields)), options


def opened(table: pa.Table, options: dict[str, Any], *, whole: bool) -> tuple[ParquetSource, Schema, pq.ParquetFile]:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    store = MemoryStore()
    store.write(PATH, sink.getvalue())
    schema = from_arrow_schema(table.schema)
    file = pq.ParquetFile(pa.BufferReader(sink.getvalue()), page_checksum_verification=True)
    # A file of a known size is fetched whole, another in spans.
    return ParquetSource(store, PATH, size_bytes=len(sink.getvalue()) if whole else None), schema, file


def keeps(length: int, share: float, seed: int, *, runs: bool) -> np.ndarray[Any, np.dtype[np.bool_]]:
    keep = np.random.default_rng(seed).random(length) < share
    return np.sort(keep) if runs else keep


@given(
    made=tables(),
    share=st.sampled_from([0.0, 0.02, 0.3, 0.9, 0.99, 1.0]),
    rows=st.sampled_from([1, 7, 100, 1 << 20]),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_every_value_and_every_kept_row_is_as_pyarrow_gives_it(
    made: tuple[pa.Table, dict[str, Any]], share: float, rows: int, seed: int, data: st.DataObject
) -> None:
    table, options = made
    assume(rows > 1 or table.num_rows < 200)
    source, schema, file = opened(table, options, whole=data.draw(st.booleans()))
    narrow, threads, runs = (data.draw(st.booleans()) for _ in range(3))
    with source:
        for group in source.row_groups:
            expected = file.read_row_group(group.index)
            check(source.read(group.index, schema), expected, narrow=False)
            parts = list(source.batches(group.index, schema, rows=rows, narrow=narrow, threads=threads))
            assert [part.num_rows for part in parts] == sizes_of(group.num_rows, rows)
            for part, start in zip(parts, range(0, group.num_rows, rows), strict=True):
                part.validate(full=True)
                whole = expected.slice(start, part.num_rows)
                check(part, whole, narrow=narrow)
                keep = keeps(part.num_rows, share, seed, runs=runs)
                # Of a slice too, whose values and nulls do not begin where its memory does.
                for skipped in (0, min(3, part.num_rows)):
                    some = keep_rows(part.slice(skipped), keep[skipped:])
                    some.validate(full=True)
                    check(some, whole.slice(skipped).filter(pa.array(keep[skipped:])), narrow=narrow)


def sizes_of(rows: int, most: int) -> list[int]:
    return [min(most, rows - start) for start in range(0, rows, most)]


@given(made=tables(), rows=st.sampled_from([7, 100, 1 << 20]), threads=st.booleans(), data=st.data())
def test_damaged_pages_are_refused_or_read_as_pyarrow_reads_them(
    made: tuple[pa.Table, dict[str, Any]], rows: int, threads: bool, data: st.DataObject
) -> None:
    table, options = made
    assume(table.num_rows and "string" not in table.schema.names)
    schema = from_arrow_schema(table.schema)
    sink = io.BytesIO()
    pq.write_table(table, sink, **options | {"write_page_checksum": False})
    damaged = bytearray(sink.getvalue())
    end = len(damaged) - 8 - int.from_bytes(damaged[-8:-4], "little")
    # Heads of pages and of runs are at the beginning of small ones.
    places = st.integers(4, end - 1) | st.integers(4, min(end - 1, 60))
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)):
        damaged[place] = value
    store = MemoryStore()
    store.write(PATH, bytes(damaged))
    with ParquetSource(store, PATH) as source:
        for group in source.row_groups:
            try:
                found = pa.concat_tables(source.batches(group.index, schema, rows=rows, threads=threads))
                expected = pq.ParquetFile(pa.BufferReader(damaged)).read_row_group(group.index)
            except (CorruptTable, pa.ArrowException, OSError, ValueError):
                continue
            assert found.num_rows == group.num_rows
            check(found, expected, narrow=False)


def check(found: pa.Table, expected: pa.Table, *, narrow: bool) -> None:
    found.validate()
    assert found.schema.metadata == expected.schema.metadata
    for own, other in zip(found.schema, expected.schema, strict=True):
        assert (own.name, own.nullable, own.metadata) == (other.name, other.nullable, other.metadata)
        assert own.type == other.type or (narrow and is_narrow(own.type) and pa.types.is_decimal128(other.type))
        assert field_id_of(own) is not None
    for own, other in zip(found.columns, expected.columns, strict=True):
        assert own.null_count == other.null_count
        wide = own.cast(other.type)
        if pa.types.is_floating(other.type):
            bits = pa.int32() if other.type == pa.float32() else pa.int64()
            wide, other = wide.combine_chunks().view(bits), other.combine_chunks().view(bits)  # noqa: PLW2901
        assert wide.equals(other)
