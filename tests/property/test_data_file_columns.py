"""Files that are described by column are written as those that are described by objects."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.codec.manifests.manifest_writer import (
    ManifestBuilder,
    ManifestLayout,
    encode_added_part,
    encode_part,
)
from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.columnar import data_file_columns as file_tables
from icebench.engine.columnar.data_file_columns import check_file_table, data_file_columns, file_batches
from icebench.engine.commit.summary import FileCounts
from icebench.engine.inspect.files import file_columns
from icebench.engine.spec.creation import new_table_metadata
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import TIMESTAMPTZ_NS
from tests.property.test_codec_manifest_writer import bits, data_files, tables, without_partition

SNAPSHOT = 77


def metadata_of(schema: Schema, spec: PartitionSpec, version: int) -> TableMetadata:
    return new_table_metadata(schema, spec, location="/t", format_version=version, uuid=uuid.UUID(int=1), now_ms=0)


@given(st.data())
def test_columns_are_written_as_objects_are(data: st.DataObject) -> None:
    schema, spec = data.draw(tables())
    needs_v3 = any(f.type == TIMESTAMPTZ_NS for f in schema.fields)
    version = 3 if needs_v3 else data.draw(st.integers(1, 3))
    sequence_number = data.draw(st.sampled_from([None, 5]))
    metadata = metadata_of(schema, spec, version)
    drawn = data.draw(st.lists(data_files(metadata.schema, metadata.spec, version), min_size=1, max_size=8))
    files = [
        replace(f, equality_ids=None, referenced_data_file=None, content_offset=None, content_size_in_bytes=None)
        for f in drawn
    ]
    layout = ManifestLayout(
        schema=metadata.schema,
        spec=metadata.spec,
        format_version=version,
        content=ManifestContent.DATA,
        snapshot_id=SNAPSHOT,
    )
    expected = ManifestBuilder(layout)
    # Row ids of another table are not this one's.
    expected.add(encode_part(layout, [entry(replace(file, first_row_id=None), sequence_number) for file in files]))
    made, counts = ManifestBuilder(layout), FileCounts()
    described = as_table(metadata, files, data.draw(st.integers(0, 3)))
    check_file_table(described.schema)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_tables, "BATCH_ENTRIES", data.draw(st.sampled_from([1, 3, 1024])))
        patch.setattr(file_tables, "BATCH_METRICS", data.draw(st.sampled_from([1, 1024])))
        for batch in file_batches(described):
            for columns in data_file_columns(batch, metadata):
                made.add(encode_added_part(layout, columns, sequence_number=sequence_number))
                counts.add_columns(columns)
    one, other = made.finish(), expected.finish()
    found, wanted = decode_entries(one.data), decode_entries(other.data)
    assert [without_partition(e) for e in found] == [without_partition(e) for e in wanted]
    assert [bits(e.data_file.partition) for e in found] == [bits(e.data_file.partition) for e in wanted]
    assert replace(one, data=b"", length=0) == replace(other, data=b"", length=0)
    by_object = FileCounts(files)
    assert counts.entries("added") == by_object.entries("added")
    assert {repr(p) for p in counts.partitions} == {repr(p) for p in by_object.partitions}


def entry(file: DataFile, sequence_number: int | None) -> ManifestEntry:
    return ManifestEntry(
        status=EntryStatus.ADDED, snapshot_id=SNAPSHOT, sequence_number=sequence_number, data_file=file
    )


def as_table(metadata: TableMetadata, files: list[DataFile], sliced: int) -> pa.Table:
    """A table of files in chunks, as slices of a longer one: buffers then begin before the values."""
    table = pa.table(file_columns(metadata, [*files[:sliced], *files]))
    chunks = [table.slice(min(sliced, len(files)), 1), table.slice(min(sliced, len(files)) + 1)]
    return pa.concat_tables([chunk for chunk in chunks if chunk.num_rows])
