"""What is read of column chunks out of a footer: what pyarrow's objects say, by compiled code and by Python alike."""

from __future__ import annotations

import struct
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.formats.parquet.chunk_storage import chunk_storages
from icebench.engine.formats.parquet.content_end import end_of_content
from icebench.engine.formats.parquet.footer_chunks import FooterChunks, listed_by_kernel, listed_in_python
from icebench.engine.formats.parquet.machine_kernels import LIST_CHUNKS, SLIM_FOOTER
from tests.property.test_parquet_footer import TYPES, footer_of, metadata_of, written

FLAT = st.sampled_from(
    [
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.bool_(),
        pa.string(),
        pa.date32(),
        pa.timestamp("us"),
        pa.decimal128(7, 2),
        pa.decimal128(25, 2),
        pa.binary(3),
    ]
)
FORMS = {"BOOLEAN": "<?", "INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}


@pytest.fixture(autouse=True, scope="module")
def kernels() -> None:
    assert LIST_CHUNKS.load()
    assert SLIM_FOOTER.load()


def plain(value: object, physical_type: str) -> bytes:
    if physical_type in FORMS:
        return struct.pack(FORMS[physical_type], value)
    return value.encode() if isinstance(value, str) else bytes(value)  # type: ignore[call-overload]


def value(type_: pa.DataType, random: np.random.Generator) -> object:
    number = int(random.integers(-9, 9))
    if pa.types.is_string(type_):
        return "é" * abs(number)
    if pa.types.is_boolean(type_):
        return number > 0
    is_binary = pa.types.is_fixed_size_binary(type_) and not pa.types.is_decimal(type_)
    return bytes([number + 9] * 3) if is_binary else number


@given(
    types=st.lists(FLAT, min_size=1, max_size=6),
    row_group_size=st.integers(1, 6),
    nulls=st.sampled_from([0.0, 0.4, 1.0]),
    is_dictionary=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_offsets_and_statistics_are_those_of_pyarrow(types, row_group_size, nulls, is_dictionary, seed):
    random = np.random.default_rng(seed)
    columns = [[None if random.random() < nulls else value(t, random) for _ in range(12)] for t in types]
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    table = pa.table(arrays, names=list("abcdef")[: len(types)])
    sink = pa.BufferOutputStream()
    pq.write_table(
        table, sink, row_group_size=row_group_size, use_dictionary=is_dictionary, store_decimal_as_integer=True
    )
    footer = footer_of(sink.getvalue().to_pybytes())
    theirs = metadata_of(footer)
    ours = FooterChunks(footer, theirs.num_row_groups, theirs.num_columns)
    for group in range(theirs.num_row_groups):
        for leaf in range(theirs.num_columns):
            chunk = theirs.row_group(group).column(leaf)
            physical = theirs.schema.column(leaf).physical_type
            found = ours.statistics(group, leaf, physical)
            assert found is not None
            assert not found.is_signed
            assert found.values == chunk.num_values
            assert found.nulls == chunk.statistics.null_count
            bounds = (
                (chunk.statistics.min_raw, chunk.statistics.max_raw) if chunk.statistics.has_min_max else (None, None)
            )
            assert (found.lower, found.upper) == tuple(b if b is None else plain(b, physical) for b in bounds)
        first = theirs.row_group(group).column(0)
        start = first.dictionary_page_offset if first.has_dictionary_page else first.data_page_offset
        assert ours.offset(group) == start


@given(
    types=st.lists(TYPES, min_size=1, max_size=8),
    row_group_size=st.integers(1, 12),
    seed=st.integers(0, 1000),
    damage=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=4),
    cut=st.floats(0.5, 1) | st.none(),
)
def test_kernel_and_python_read_the_same(types, row_group_size, seed, damage, cut):
    whole = footer_of(written(types, 12, row_group_size=row_group_size, seed=seed))
    metadata = metadata_of(whole)
    footer = bytearray(whole)
    for place, byte in damage:
        footer[int(place * len(footer))] = byte
    if cut is not None:
        del footer[int(cut * len(footer)) :]
    found, orders = listed_by_kernel(bytes(footer), metadata.num_row_groups, metadata.num_columns)
    expected, expected_orders = listed_in_python(bytes(footer), metadata.num_row_groups, metadata.num_columns)
    assert orders == expected_orders
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.tolist() == expected.tolist()


def test_storage_and_end_of_damaged_footers_are_found_or_refused():
    whole = footer_of(written([pa.int64(), pa.string()], 12, row_group_size=4, seed=0))
    assert end_of_content(whole) is not None
    random = np.random.default_rng(0)
    for _ in range(1_000):
        footer = bytearray(whole)
        for place in random.integers(0, len(footer), 3):
            footer[place] = random.integers(256)
        end = end_of_content(bytes(footer))
        assert end is None or end > 0
        with suppress(IndexError, ValueError):
            assert all(each.compressed_bytes >= 0 for each in chunk_storages(bytes(footer)))
