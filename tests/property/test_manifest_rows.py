"""Entries that are written again by column are those that objects of them would give, in the same order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.codec.manifests.entry_columns import EntryColumns
from icebench.engine.codec.manifests.entry_rows import encode_entry_rows
from icebench.engine.codec.manifests.manifest_writer import (
    ManifestBuilder,
    ManifestLayout,
    encode_manifest,
    encode_row_part,
)
from icebench.engine.codec.manifests.reader import decode_entries, decode_entry_columns
from icebench.engine.commit import manifest_rows
from icebench.engine.commit.manifest_rows import ManifestRewriting
from icebench.engine.commit.staging_context import Staging
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.inheritance import apply_inheritance
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionSpec, partition_key
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import TIMESTAMPTZ_NS
from icebench.engine.storage.memory import MemoryStore
from tests.property.manifest_strategies import WrittenManifest, manifests
from tests.property.test_codec_manifest_writer import bits, entries_of, tables, without_partition
from tests.property.test_data_file_columns import metadata_of

SNAPSHOT = 99


@st.composite
def listed_manifests(
    draw: st.DrawFn, store: MemoryStore, metadata: TableMetadata, content: ManifestContent
) -> list[ManifestFile]:
    """Manifests of this or an earlier format version, whose entries share a few partitions."""
    made = []
    pool: list[Any] = []
    for place in range(draw(st.integers(1, 4))):
        needs_v3 = any(f.type == TIMESTAMPTZ_NS for f in metadata.schema.fields)
        least = 3 if needs_v3 else 2 if content is ManifestContent.DELETES else 1
        version = draw(st.integers(least, metadata.format_version))
        first_row_id = None
        if version == 3 and content is ManifestContent.DATA:
            first_row_id = draw(st.none() | st.integers(0, 1 << 40))
        entries = []
        for entry in draw(entries_of(metadata.schema, metadata.spec, version)):
            pool.append(entry.data_file.partition)
            file = replace(entry.data_file, partition=draw(st.sampled_from(pool[:3])))
            if content is ManifestContent.DELETES:
                file = replace(file, content=draw(st.sampled_from(list(FileContent)[1:])))
            if first_row_id is None:
                # Nothing then has ids, whatever its entry says.
                file = replace(file, first_row_id=None)
            number = entry.file_sequence_number
            if entry.status is not EntryStatus.ADDED:
                number = number or entry.sequence_number
            entries.append(replace(entry, file_sequence_number=number, data_file=file))
        encoded = encode_manifest(
            entries,
            schema=metadata.schema,
            spec=metadata.spec,
            format_version=version,
            content=content,
            snapshot_id=place + 1,
        )
        location = f"memory://wh/t/metadata/m{place}.avro"
        store.write(location, encoded.data)
        number = 0 if version == 1 else draw(st.integers(1, 9))
        made.append(encoded.manifest_file(location, sequence_number=number, first_row_id=first_row_id))
    return made


def expected(listed: list[ManifestFile], store: MemoryStore, how: str) -> list[ManifestEntry]:
    if how == "own":
        return [entry for m in listed for entry in decode_entries(store.read(m.manifest_path))]
    found = [e for m in listed for e in apply_inheritance(decode_entries(store.read(m.manifest_path)), m)]
    live = [replace(e, status=EntryStatus.EXISTING) for e in found if e.status is not EntryStatus.DELETED]
    if how == "by partition":
        places: dict[Any, int] = {}
        keys = [places.setdefault(partition_key(0, e.data_file.partition), len(places)) for e in live]
        return [live[place] for place in sorted(range(len(live)), key=keys.__getitem__)]
    return live


def comparable(entries: list[ManifestEntry]) -> list[Any]:
    return [(without_partition(entry), bits(entry.data_file.partition)) for entry in entries]


@given(st.data())
def test_entries_are_those_of_objects(data: st.DataObject) -> None:
    schema, spec = data.draw(tables())
    needs_v3 = any(f.type == TIMESTAMPTZ_NS for f in schema.fields)
    metadata = metadata_of(schema, spec, 3 if needs_v3 else data.draw(st.integers(1, 3)))
    metadata = replace(metadata, location="memory://wh/t")
    contents = list(ManifestContent) if metadata.format_version > 1 else [ManifestContent.DATA]
    content, store = data.draw(st.sampled_from(contents)), MemoryStore()
    listed = data.draw(listed_manifests(store, metadata, content))
    how = data.draw(st.sampled_from(["by partition", "in order", "own"]))
    if how == "own" and metadata.format_version > 1:
        # Those of v1 have no numbers to inherit, and a commit writes in one version.
        listed = [m for m in listed if m.sequence_number]
    wanted = expected(listed, store, how)
    staging = Staging(store=store, runner=LocalRunner(data.draw(st.integers(1, 2))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_rows, "_GATHERED_BYTES", data.draw(st.sampled_from([1, 1500, 1 << 27])))
        patch.setattr(manifest_rows, "_BATCH_BYTES", data.draw(st.sampled_from([1, 300, 1 << 19])))
        rewriting = ManifestRewriting(
            base=metadata, spec_id=metadata.spec.spec_id, content=content, snapshot_id=SNAPSHOT, staging=staging
        )
        if how == "by partition":
            rows = rewriting.by_partition(listed)
        else:
            rows = map(rewriting.live if how == "in order" else rewriting.own, listed)
        written = rewriting.write(rows)
    found = [entry for each in written for entry in decode_entries(store.read(each.location))]
    in_version = wanted
    if metadata.format_version == 1:
        in_version = [replace(entry, sequence_number=None, file_sequence_number=None) for entry in wanted]
    assert comparable(found) == comparable(in_version)
    assert len(written) == bool(wanted)
    for each in written:
        as_objects = encode_manifest(
            wanted,
            schema=metadata.schema,
            spec=metadata.spec,
            format_version=metadata.format_version,
            content=content,
            snapshot_id=SNAPSHOT,
        )
        assert replace(each.encoded, data=b"", length=0) == replace(as_objects, data=b"", length=0)


@given(manifests())
def test_entries_of_any_writer(manifest: WrittenManifest) -> None:
    """All but partitions, whose types only a table's schema says."""
    _, entries = decode_entry_columns(manifest.data)
    plain = EntryColumns(count=entries.count, columns=entries.columns, partition=())
    layout = ManifestLayout(
        schema=Schema(()), spec=PartitionSpec((), 3), format_version=3, content=ManifestContent.DATA, snapshot_id=1
    )
    builder = ManifestBuilder(layout)
    if entries.count:
        builder.add(encode_row_part(layout, encode_entry_rows(plain, layout.entry_type)))
    found, wanted = decode_entries(builder.finish().data), decode_entries(manifest.data)
    assert [without_partition(e) for e in found] == [without_partition(e) for e in wanted]
