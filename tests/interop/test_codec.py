"""PyIceberg reads the manifests and manifest lists that we write, and we read those that it writes."""

from __future__ import annotations

import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile as PyDataFile
from pyiceberg.manifest import (
    DataFileContent,
    FileFormat,
    ManifestEntryStatus,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.manifest import ManifestEntry as PyManifestEntry
from pyiceberg.partitioning import PartitionField as PyPartitionField
from pyiceberg.partitioning import PartitionSpec as PyPartitionSpec
from pyiceberg.schema import Schema as PySchema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record

from icebench.engine.codec.manifests.manifest_list import decode_manifest_list, encode_manifest_list
from icebench.engine.codec.manifests.manifest_writer import encode_manifest
from icebench.engine.codec.manifests.reader import decode_columns, decode_entries, decode_header
from icebench.engine.codec.metadata_json.schema import schema_from_json, schema_to_json
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry
from icebench.engine.spec.partitioning import partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    UUID,
    DecimalType,
    NestedField,
    PrimitiveType,
)
from tests.property.manifest_batches import metrics_of

COLUMNS: dict[str, tuple[PrimitiveType, Any]] = {
    "i": (INT, 7),
    "l": (LONG, 1 << 40),
    "b": (BOOLEAN, True),
    "f": (DOUBLE, 0.5),
    "d": (DATE, 19_000),
    "s": (STRING, "é"),
    "u": (UUID, uuid.UUID(int=7)),
    "m": (DecimalType(9, 2), Decimal("-1.50")),
}
SCHEMA = Schema(tuple(NestedField(field_id=i + 1, name=n, type=t) for i, (n, (t, _)) in enumerate(COLUMNS.items())))
SPEC = partition_spec(SCHEMA, [(name, Identity()) for name in COLUMNS], spec_id=2)
PARTITION = tuple(value for _, value in COLUMNS.values())
ENTRIES = [
    ManifestEntry(
        status=EntryStatus.ADDED,
        snapshot_id=5,
        data_file=DataFile(
            file_path=f"file:///data/{i}.parquet",
            file_format="parquet",
            spec_id=2,
            partition=PARTITION if i else tuple(None for _ in PARTITION),
            record_count=i,
            file_size_in_bytes=1000 + i,
            column_sizes={k: 10 * k for k in range(1, i)},
            value_counts=dict.fromkeys(range(1, i), i),
            null_value_counts=dict.fromkeys(range(1, i), 0),
            lower_bounds={1: b"\x01\x00\x00\x00", 6: b"a"} if i else {},
            upper_bounds={1: b"\x09\x00\x00\x00", 6: b"z"} if i else {},
            split_offsets=(4, 100),
            sort_order_id=0,
        ),
    )
    for i in range(5)
]


@pytest.mark.parametrize("version", [1, 2])
# PyIceberg takes snappy from a package of its own.
@pytest.mark.parametrize("compression", ["gzip", "zstd", "uncompressed"])
def test_pyiceberg_reads_what_we_write(tmp_path: Path, version: int, compression: Any):
    made = encode_manifest(
        ENTRIES,
        schema=SCHEMA,
        spec=SPEC,
        format_version=version,
        content=ManifestContent.DATA,
        snapshot_id=5,
        compression=compression,
    )
    path = tmp_path / "m.avro"
    path.write_bytes(made.data)
    listed = made.manifest_file(str(path), sequence_number=3 if version > 1 else 0)
    list_path = tmp_path / "list.avro"
    list_path.write_bytes(
        encode_manifest_list(
            [listed], format_version=version, snapshot_id=5, sequence_number=3, compression=compression
        )
    )

    io = PyArrowFileIO()
    (manifest,) = read_manifest_list(io.new_input(str(list_path)))
    assert (manifest.added_files_count, manifest.partition_spec_id) == (5, 2)
    assert manifest.partitions is not None
    assert manifest.partitions[5].lower_bound == manifest.partitions[5].upper_bound == "é".encode()
    entries = manifest.fetch_manifest_entry(io)
    for entry, ours in zip(entries, ENTRIES, strict=True):
        file = entry.data_file
        assert entry.status == ManifestEntryStatus.ADDED
        assert (file.file_path, file.record_count) == (ours.data_file.file_path, ours.data_file.record_count)
        assert file.file_format == FileFormat.PARQUET
        for name in ("column_sizes", "value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
            assert (getattr(file, name) or {}) == getattr(ours.data_file, name)
        found = tuple(file.partition[i] for i in range(len(PARTITION)))
        assert tuple(map(comparable, found)) == tuple(map(comparable, ours.data_file.partition))
        assert tuple(file.split_offsets or ()) == (4, 100)


def comparable(value: Any) -> Any:
    """PyIceberg gives a uuid as its 16 bytes."""
    return value.bytes if isinstance(value, uuid.UUID) else value


@pytest.mark.parametrize("version", [1, 2])
def test_we_read_what_pyiceberg_writes(tmp_path: Path, version: Any):
    io = PyArrowFileIO()
    schema = PySchema.model_validate(schema_to_json(SCHEMA))
    spec = PyPartitionSpec(
        PyPartitionField(source_id=1, field_id=1000, transform=IdentityTransform(), name="i"), spec_id=2
    )
    file = PyDataFile.from_args(
        content=DataFileContent.DATA,
        file_path="file:///data/a.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(7),
        record_count=3,
        file_size_in_bytes=99,
        column_sizes={1: 10},
        value_counts={1: 3, 2: 3},
        null_value_counts={1: 0},
        nan_value_counts={},
        lower_bounds={1: b"\x01\x00\x00\x00"},
        upper_bounds={1: b"\x02\x00\x00\x00"},
        key_metadata=None,
        split_offsets=[4],
        equality_ids=None,
        sort_order_id=None,
    )
    output = io.new_output(str(tmp_path / "m.avro"))
    with write_manifest(version, spec, schema, output, 5, "deflate") as writer:
        entry = PyManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=5, data_file=file)
        writer.add_entry(entry)
    listed = writer.to_manifest_file()
    list_output = io.new_output(str(tmp_path / "list.avro"))
    with write_manifest_list(version, list_output, 5, None, 1, "deflate") as list_writer:
        list_writer.add_manifests([listed])

    (manifest,) = decode_manifest_list((tmp_path / "list.avro").read_bytes())
    data = (tmp_path / "m.avro").read_bytes()
    assert manifest.manifest_length == len(data)
    assert (manifest.added_files_count, manifest.added_rows_count) == (1, 3)
    header = decode_header(data)
    assert header.schema.fields == schema_from_json(schema_to_json(SCHEMA)).fields
    assert header.format_version == version
    (found,) = decode_entries(data)
    assert found.data_file.partition == (7,)
    assert found.data_file.value_counts == {1: 3, 2: 3}
    assert found.data_file.upper_bounds == {1: b"\x02\x00\x00\x00"}
    assert metrics_of(decode_columns(data, metrics=[1]), "lower_bounds")[1] == [b"\x01\x00\x00\x00"]
