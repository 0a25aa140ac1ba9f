"""What is written is read back, and the summaries are what a look at every entry says."""

from __future__ import annotations

import io
import math
import struct
import uuid
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from icebench.engine.codec.avro.compiled.machine_kernels import DECODE_CHUNK, WRITE_ROWS
from icebench.engine.codec.avro.file import read_blocks, read_header
from icebench.engine.codec.manifests import manifest_writer
from icebench.engine.codec.manifests.manifest_writer import (
    Compression,
    EncodedManifest,
    ManifestBuilder,
    ManifestLayout,
    encode_manifest,
    encode_part,
    entry_batches,
)
from icebench.engine.codec.manifests.reader import decode_columns, decode_entries, decode_header
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    NestedField,
    PrimitiveType,
)
from icebench.engine.spec.values import decimal_of, decode_value
from tests.property.manifest_strategies import COLUMN_IDS, INT32, INT64

TYPES: tuple[PrimitiveType, ...] = (
    BOOLEAN,
    INT,
    LONG,
    FLOAT,
    DOUBLE,
    DATE,
    TIMESTAMP,
    TIMESTAMPTZ_NS,
    STRING,
    BINARY,
    UUID,
    FixedType(3),
    DecimalType(9, 2),
    DecimalType(38, 10),
)
COMPRESSIONS: tuple[Compression, ...] = ("gzip", "zstd", "snappy", "uncompressed")


@pytest.fixture(params=["interpreted", "compiled"], scope="module", autouse=True)
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways to run the kernels."""
    with pytest.MonkeyPatch.context() as patch:
        for kernel in (DECODE_CHUNK, WRITE_ROWS):
            patch.setattr(kernel, "should_use", lambda _: request.param != "interpreted")
        yield


def partition_values(type_: PrimitiveType) -> st.SearchStrategy[Any]:
    match type_:
        case DecimalType(precision=precision, scale=scale):
            limit = 10**precision - 1
            return st.integers(-limit, limit).map(lambda n: decimal_of(n, scale))
        case FixedType(length=length):
            return st.binary(min_size=length, max_size=length)
    by_name: dict[str, st.SearchStrategy[Any]] = {
        "boolean": st.booleans(),
        "int": INT32,
        "date": INT32,
        "float": st.floats(width=32),
        "double": st.floats(),
        "string": st.text(max_size=5),
        "binary": st.binary(max_size=5),
        "uuid": st.uuids(),
    }
    return by_name.get(type_.name, INT64)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


METRICS = {
    **{
        name: st.dictionaries(COLUMN_IDS, INT64, max_size=6)
        for name in ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
    },
    **{
        name: st.dictionaries(COLUMN_IDS, st.binary(max_size=9), max_size=6)
        for name in ("lower_bounds", "upper_bounds")
    },
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, PartitionSpec]:
    """A schema of partition source columns and a spec of them all."""
    types = draw(st.lists(st.sampled_from(TYPES), max_size=4))
    # Names that Avro refuses are written in another way.
    names = [draw(st.sampled_from(["p", "2x", "a.b-c", "é ", "_"])) + str(i) for i in range(len(types))]
    fields = [NestedField(field_id=i + 1, name=names[i], type=t) for i, t in enumerate(types)]
    spec = [
        PartitionField(source_ids=(f.field_id,), field_id=1000 + i, name=f.name, transform=Identity())
        for i, f in enumerate(fields)
    ]
    return Schema(tuple(fields), 2), PartitionSpec(tuple(spec), 4)


def data_files(schema: Schema, spec: PartitionSpec, format_version: int) -> st.SearchStrategy[DataFile]:
    types = [schema.primitive(f.source_id) for f in spec.fields]
    members: dict[str, st.SearchStrategy[Any]] = {
        "file_path": st.text(max_size=12),
        "file_format": st.sampled_from(["parquet", "avro", "orc"]),
        "spec_id": st.just(spec.spec_id),
        "partition": st.tuples(*(maybe(partition_values(t)) for t in types)),
        "record_count": st.integers(0, 1 << 40),
        "file_size_in_bytes": st.integers(0, 1 << 40),
        "key_metadata": maybe(st.binary(max_size=5)),
        "split_offsets": maybe(st.lists(INT64, max_size=3).map(tuple)),
        "sort_order_id": maybe(INT32),
        **METRICS,
    }
    if format_version >= 2:
        members["equality_ids"] = maybe(st.lists(INT32, max_size=3).map(tuple))
        members["referenced_data_file"] = maybe(st.text(max_size=5))
    if format_version >= 3:
        members |= {name: maybe(INT64) for name in ("first_row_id", "content_offset", "content_size_in_bytes")}
    return st.builds(DataFile, **members)


def entries_of(schema: Schema, spec: PartitionSpec, format_version: int) -> st.SearchStrategy[list[ManifestEntry]]:
    number = st.integers(0, 1 << 40)
    if format_version == 1:
        numbers = st.just((None, None))
        snapshot_id: st.SearchStrategy[Any] = INT64
    else:
        numbers = st.tuples(number, maybe(number))
        snapshot_id = maybe(INT64)
    added = st.one_of(numbers, st.just((None, None)))
    one = st.one_of(
        st.tuples(st.just(EntryStatus.ADDED), added),
        st.tuples(st.sampled_from([EntryStatus.EXISTING, EntryStatus.DELETED]), numbers),
    )
    entry = st.builds(
        lambda status_and_numbers, snapshot_id, file: ManifestEntry(
            status=status_and_numbers[0],
            snapshot_id=snapshot_id,
            sequence_number=status_and_numbers[1][0],
            file_sequence_number=status_and_numbers[1][1],
            data_file=file,
        ),
        one,
        snapshot_id,
        data_files(schema, spec, format_version),
    )
    return st.lists(entry, max_size=8)


@st.composite
def written(draw: st.DrawFn) -> tuple[Schema, PartitionSpec, int, list[ManifestEntry], EncodedManifest]:
    schema, spec = draw(tables())
    version = draw(st.integers(1, 3))
    entries = draw(entries_of(schema, spec, version))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_writer, "_BLOCK_BYTES", draw(st.sampled_from([1, 300, 65536])))
        patch.setattr(manifest_writer, "BATCH_ENTRIES", draw(st.sampled_from([1, 3, 4096])))
        manifest = encode_manifest(
            entries,
            schema=schema,
            spec=spec,
            format_version=version,
            content=ManifestContent.DATA,
            snapshot_id=77,
            compression=draw(st.sampled_from(COMPRESSIONS)),
        )
    return schema, spec, version, entries, manifest


def bits(values: Any) -> Any:
    """Values whose equality distinguishes NaN and the zeros."""
    return [struct.pack("<d", v) if isinstance(v, float) else v for v in values]


@given(written())
def test_entries_are_read_back(case: Any):
    schema, spec, version, entries, manifest = case
    found = decode_entries(manifest.data)
    # NaN is not equal to itself: partitions are compared bit by bit.
    assert [bits(e.data_file.partition) for e in found] == [bits(e.data_file.partition) for e in entries]
    assert [without_partition(e) for e in found] == [without_partition(e) for e in entries]
    header = decode_header(manifest.data)
    assert (header.schema, header.spec, header.format_version) == (schema, spec, version)
    assert decode_columns(manifest.data, metrics=None).count == len(entries)


def without_partition(entry: ManifestEntry) -> tuple[Any, ...]:
    file = entry.data_file
    members = [getattr(file, name) for name in DataFile.__dataclass_fields__ if name != "partition"]
    return entry.status, entry.snapshot_id, entry.sequence_number, entry.file_sequence_number, members


@given(written())
def test_fastavro_reads_the_same(case: Any):
    *_, entries, manifest = case
    # fastavro takes zstandard from a package of its own, and makes dates of what is outside Python's calendar.
    assume(read_header(manifest.data).codec != "zstandard")
    with pytest.MonkeyPatch.context() as patch:
        for logical_type in list(fastavro.read.LOGICAL_READERS):
            patch.delitem(fastavro.read.LOGICAL_READERS, logical_type)
        rows: list[Any] = list(fastavro.reader(io.BytesIO(manifest.data)))
    assert [row["data_file"]["file_path"] for row in rows] == [e.data_file.file_path for e in entries]
    for row, entry in zip(rows, entries, strict=True):
        for name in METRICS:
            pairs = {pair["key"]: pair["value"] for pair in row["data_file"][name] or ()}
            assert pairs == getattr(entry.data_file, name)


@given(written())
def test_counts_and_summaries_are_those_of_the_entries(case: Any):
    schema, spec, _, entries, manifest = case

    def total(status: EntryStatus) -> tuple[int, int]:
        files = [e.data_file for e in entries if e.status is status]
        return len(files), sum(f.record_count for f in files)

    assert total(EntryStatus.ADDED) == (manifest.added_files_count, manifest.added_rows_count)
    assert total(EntryStatus.EXISTING) == (manifest.existing_files_count, manifest.existing_rows_count)
    assert total(EntryStatus.DELETED) == (manifest.deleted_files_count, manifest.deleted_rows_count)
    numbers = [e.sequence_number for e in entries if e.status is not EntryStatus.DELETED]
    assert manifest.min_sequence_number == min((n for n in numbers if n is not None), default=None)
    assert len(manifest.partitions) == len(spec.fields)
    for index, f in enumerate(spec.fields):
        check_summary(schema.primitive(f.source_id), [e.data_file.partition[index] for e in entries], manifest, index)


def check_summary(type_: PrimitiveType, values: list[Any], manifest: EncodedManifest, index: int) -> None:
    summary = manifest.partitions[index]
    numbers = [v for v in values if v is not None and v == v]  # noqa: PLR0124 - NaN is not equal to itself
    assert summary.contains_null == (None in values)
    assert summary.contains_nan == any(isinstance(v, float) and math.isnan(v) for v in values)
    assert (summary.lower_bound is None) == (not numbers) == (summary.upper_bound is None)
    if summary.lower_bound is not None and summary.upper_bound is not None:
        lower, upper = decode_value(type_, summary.lower_bound), decode_value(type_, summary.upper_bound)
        assert bits([lower, upper]) == bits([min(numbers, key=ordered), max(numbers, key=ordered)])


def ordered(value: Any) -> Any:
    if isinstance(value, float):
        return value, math.copysign(1, value)
    if isinstance(value, uuid.UUID):
        return value.bytes
    return value.encode("utf-8") if isinstance(value, str) else value


@given(st.data())
def test_parts_come_together_in_any_division(data: st.DataObject):
    schema, spec = data.draw(tables())
    entries = data.draw(entries_of(schema, spec, 2))
    layout = ManifestLayout(
        schema=schema, spec=spec, format_version=2, content=ManifestContent.DATA, snapshot_id=1, compression="gzip"
    )
    builder = ManifestBuilder(layout)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_writer, "BATCH_ENTRIES", 2)
        patch.setattr(manifest_writer, "_BLOCK_BYTES", 1)
        for batch in entry_batches(iter(entries)):
            assert 1 <= len(batch) <= 2
            builder.add(encode_part(layout, batch))
    manifest = builder.finish()
    assert [e.data_file.file_path for e in decode_entries(manifest.data)] == [e.data_file.file_path for e in entries]
    blocks = read_blocks(manifest.data, read_header(manifest.data))
    assert [block.count for block in blocks] == [1] * len(entries)


def test_delete_manifests_hold_delete_files_only():
    schema, spec = Schema(()), PartitionSpec()
    file = DataFile(
        content=FileContent.POSITION_DELETES, file_path="d", file_format="parquet", record_count=1, file_size_in_bytes=1
    )
    manifest = encode_manifest(
        [ManifestEntry(status=EntryStatus.ADDED, data_file=file)],
        schema=schema,
        spec=spec,
        format_version=2,
        content=ManifestContent.DELETES,
        snapshot_id=1,
    )
    assert decode_header(manifest.data).content is ManifestContent.DELETES
    assert decode_entries(manifest.data)[0].data_file == file
