"""Footers with fewer columns: pyarrow reads from them what it reads from the whole ones, of the columns that stay."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.formats.parquet import footer as parquet_footer
from icebench.engine.formats.parquet.footer import slim_footer
from icebench.engine.formats.parquet.machine_kernels import LIST_CHUNKS, SLIM_FOOTER
from tests.fault.guarded_kernels import with_children

TYPES = st.recursive(
    st.sampled_from([pa.int32(), pa.int64(), pa.string(), pa.bool_(), pa.decimal128(7, 2), pa.decimal128(25, 2)]),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(lambda value: pa.map_(pa.string(), value)),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda types: pa.struct([(f"f{place}", type_) for place, type_ in enumerate(types)])
        ),
    ),
    max_leaves=4,
)


@pytest.fixture(autouse=True, scope="module")
def kernels() -> Iterator[None]:
    assert LIST_CHUNKS.load()
    assert SLIM_FOOTER.load()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_footer, "_FEWEST_BYTES", 0)
        yield


def footer_of(file: bytes) -> bytes:
    size = int.from_bytes(file[-8:-4], "little")
    return file[-8 - size : -8]


def metadata_of(footer: bytes) -> pq.FileMetaData:
    return pq.read_metadata(pa.BufferReader(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"))


def written(types: list[pa.DataType], rows: int, *, row_group_size: int, seed: int) -> bytes:
    fields = [pa.field(f"c{i}", type_).with_metadata({"PARQUET:field_id": str(i)}) for i, type_ in enumerate(types)]
    random = np.random.default_rng(seed)
    table = pa.table([column(type_, rows, random) for type_ in types], schema=pa.schema(fields))
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        row_group_size=row_group_size,
        sorting_columns=[pq.SortingColumn(0)],
        write_page_index=seed % 2 == 0,
    )
    return sink.getvalue().to_pybytes()


def column(type_: pa.DataType, rows: int, random: np.random.Generator) -> pa.Array:
    """Some values, some nulls."""
    return pa.array([None if random.random() < 0.3 else value(type_, random) for _ in range(rows)], type_)


def value(type_: pa.DataType, random: np.random.Generator) -> object:
    number = int(random.integers(0, 9))
    if pa.types.is_map(type_):
        return [(str(i), value(type_.item_type, random)) for i in range(number % 3)]
    if pa.types.is_list(type_):
        return [value(type_.value_type, random) for _ in range(number % 3)]
    if pa.types.is_struct(type_):
        return {field.name: value(field.type, random) for field in type_}
    if pa.types.is_string(type_):
        return str(number)
    return bool(number % 2) if pa.types.is_boolean(type_) else number


@given(
    types=st.lists(TYPES, min_size=1, max_size=20),
    kept=st.sets(st.integers(0, 22)),
    rows=st.integers(0, 12),
    row_group_size=st.integers(1, 12),
    seed=st.integers(0, 1000),
)
def test_columns_that_stay_read_as_before(types, kept, rows, row_group_size, seed):
    file = written(types, rows, row_group_size=row_group_size, seed=seed)
    made = slim_footer(footer_of(file), kept)
    if kept.isdisjoint(range(len(types))):
        assert made is None
        return
    assert made is not None
    whole, fewer = pq.ParquetFile(pa.BufferReader(file)), metadata_of(made)
    names = [f"c{i}" for i in range(len(types)) if i in kept]
    read = pq.ParquetFile(pa.BufferReader(file), metadata=fewer)
    assert read.schema_arrow.names == names
    assert fewer.num_rows == rows
    assert fewer.num_row_groups == whole.num_row_groups
    for group in range(whole.num_row_groups):
        expected = whole.read_row_group(group, columns=names)
        found = read.read_row_group(group)
        assert fewer.row_group(group).num_rows == whole.metadata.row_group(group).num_rows
        assert found.cast(expected.schema.remove_metadata()).equals(expected.replace_schema_metadata(None))
        assert statistics(fewer, group) == statistics(whole.metadata, group, names)
    assert metadata_of(made).schema.to_arrow_schema().equals(read.schema_arrow)


def statistics(footer: pq.FileMetaData, group: int, names: list[str] | None = None) -> list[object]:
    chunks = [footer.row_group(group).column(i) for i in range(footer.num_columns)]
    return [
        (chunk.path_in_schema, chunk.statistics and chunk.statistics.to_dict(), chunk.total_compressed_size)
        for chunk in chunks
        if names is None or chunk.path_in_schema.split(".")[0] in names
    ]


@given(data=st.data(), seed=st.integers(0, 50))
def test_a_damaged_footer_is_left_alone_or_stays_within_its_bytes(data, seed):
    footer = bytearray(footer_of(written([pa.int32(), pa.list_(pa.string())], 3, row_group_size=2, seed=seed)))
    for _ in range(data.draw(st.integers(1, 4))):
        footer[data.draw(st.integers(0, len(footer) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del footer[data.draw(st.integers(0, len(footer))) :]
    made = slim_footer(bytes(footer), [0])
    assert made is None or len(made) <= len(footer)


@pytest.mark.parametrize("seed", range(40))
def test_a_number_of_children_that_is_none_or_comes_again_is_left_alone(seed):
    """Copied, the latter would take more bytes than it has."""
    footer = footer_of(written([pa.int64()] * 90, 3, row_group_size=2, seed=1))
    assert slim_footer(footer, range(80)) is not None
    assert slim_footer(with_children(Random(seed), footer), range(80)) is None


@pytest.mark.parametrize(
    "footer", [b"", b"\x00", b"\x15", b"\x29\xfc\xff\xff\xff\xff\x7f", b"\x1c" * 100, b"\xff" * 100]
)
def test_what_is_no_footer_is_left_alone(footer):
    assert slim_footer(footer, [1]) in {None, b"\0"}
