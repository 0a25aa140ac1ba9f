"""What a manifest of each format version may hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from icebench.engine.codec.avro.file import read_blocks, read_header
from icebench.engine.codec.manifests import manifest_writer
from icebench.engine.codec.manifests.manifest_writer import (
    ManifestLayout,
    encode_manifest,
    encode_row_part,
    encode_rows_again,
    entry_batches,
)
from icebench.engine.codec.manifests.reader import decode_entries, decode_entry_columns
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec, partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Identity, Truncate, UnknownTransform
from icebench.engine.spec.types import INT, STRING, DecimalType, FixedType, NestedField, PrimitiveType
from icebench.errors import Invalid

SCHEMA = Schema((NestedField(field_id=1, name="a", type=INT), NestedField(field_id=2, name="s", type=STRING)))
SPEC = partition_spec(SCHEMA, [("a", Identity()), ("s", Truncate(2))], spec_id=3)
FILE = DataFile(
    file_path="s3://b/a.parquet",
    file_format="parquet",
    spec_id=3,
    partition=(1, "ab"),
    record_count=5,
    file_size_in_bytes=100,
    value_counts={1: 5, 2: 5},
    lower_bounds={1: b"\x01\x00\x00\x00"},
    upper_bounds={1: b"\x09\x00\x00\x00"},
)
ENTRY = ManifestEntry(status=EntryStatus.ADDED, snapshot_id=7, data_file=FILE)


def encoded(
    *entries: ManifestEntry, version: int = 2, content: ManifestContent = ManifestContent.DATA, **more: Any
) -> Any:
    arguments = {"schema": SCHEMA, "spec": SPEC, **more}
    return encode_manifest(entries, format_version=version, content=content, snapshot_id=7, **arguments)


def file(**changes: Any) -> ManifestEntry:
    return replace(ENTRY, data_file=replace(FILE, **changes))


def test_the_header_has_what_the_specification_requires():
    keys = set(read_header(encoded(ENTRY).data).metadata) - {"avro.schema", "avro.codec"}
    assert keys == {"schema", "schema-id", "partition-spec", "partition-spec-id", "format-version", "content"}
    header = read_header(encoded(ENTRY, version=1).data)
    assert (header.text("format-version"), header.text("content"), header.text("partition-spec-id")) == ("1", None, "3")


def test_a_manifest_list_entry_is_made_of_it():
    existing = replace(ENTRY, status=EntryStatus.EXISTING, sequence_number=3, file_sequence_number=3)
    deleted = replace(existing, status=EntryStatus.DELETED, sequence_number=1)
    made = encoded(ENTRY, existing, deleted).manifest_file("m.avro", sequence_number=9, first_row_id=4)
    assert (made.manifest_path, made.partition_spec_id, made.sequence_number, made.added_snapshot_id) == (
        "m.avro",
        3,
        9,
        7,
    )
    assert (made.added_files_count, made.existing_files_count, made.deleted_files_count) == (1, 1, 1)
    assert (made.added_rows_count, made.existing_rows_count, made.deleted_rows_count) == (5, 5, 5)
    # Of the live entries that say one; the deleted one does not count.
    assert made.min_sequence_number == 3
    assert made.first_row_id == 4
    assert encoded(ENTRY).manifest_file("m", sequence_number=9).min_sequence_number == 9


def test_a_deleted_entry_that_is_copied_does_not_count_for_the_least_number():
    existing = replace(ENTRY, status=EntryStatus.EXISTING, sequence_number=3, file_sequence_number=3)
    deleted = replace(existing, status=EntryStatus.DELETED, sequence_number=1)
    layout = ManifestLayout(schema=SCHEMA, spec=SPEC, format_version=2, content=ManifestContent.DATA, snapshot_id=8)
    for entries, least in (([existing, deleted], 3), ([deleted], None)):
        _, columns = decode_entry_columns(encoded(*entries).data)
        assert encode_row_part(layout, encode_rows_again(layout, columns)).min_sequence_number == least


def test_no_entries():
    made = encoded()
    assert decode_entries(made.data) == []
    assert [s.contains_null for s in made.partitions] == [False, False]
    assert list(entry_batches([])) == []


def test_blocks_hold_many_entries():
    made = encoded(*[ENTRY] * 5000, compression="uncompressed")
    blocks = read_blocks(made.data, read_header(made.data))
    sizes = [block.end - block.start for block in blocks]
    assert all(44_000 <= size < 98_000 for size in sizes)
    assert sum(block.count for block in blocks) == 5000


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: encoded(file(partition=(1,))), "does not fit partition spec 3"),
        (lambda: encoded(file(partition=(1, 2))), "does not fit"),
        (lambda: encoded(file(partition=("x", "ab"))), "does not fit"),
        (lambda: encoded(file(partition=(1 << 31, "ab"))), "does not fit"),
        (lambda: encoded(file(record_count=1 << 63)), "does not fit"),
        (lambda: encoded(file(record_count=None)), "required"),
        (lambda: encoded(file(value_counts={1 << 31: 1})), "out of range"),
        (lambda: encoded(file(value_counts={1: None})), "does not fit"),
        (lambda: encoded(file(lower_bounds={1: 5})), "does not fit"),
        (lambda: encoded(file(file_path=5)), "not str"),
        (lambda: encoded(replace(ENTRY, snapshot_id=None), version=1), "format version 1 requires"),
        (lambda: encoded(ENTRY, version=1, content=ManifestContent.DELETES), "no delete manifests"),
        (lambda: encoded(ENTRY, version=4), "format version 4"),
        (lambda: encoded(replace(ENTRY, status=EntryStatus.EXISTING)), "no sequence number"),
        (lambda: encoded(file(content=FileContent.EQUALITY_DELETES)), "EQUALITY_DELETES"),
        (lambda: encoded(ENTRY, content=ManifestContent.DELETES), "holds DATA"),
        (lambda: encoded(file(content_offset=4)), "deletion vector"),
    ],
)
def test_entries_that_are_refused(make: Callable[[], Any], reason: str):
    with pytest.raises(Invalid, match=reason):
        make()


@pytest.mark.parametrize(
    ("type_", "value"),
    [(DecimalType(4, 2), Decimal("100.00")), (DecimalType(4, 2), Decimal("1.005")), (FixedType(2), b"abc")],
)
def test_partition_values_that_do_not_fit(type_: PrimitiveType, value: Any):
    schema = Schema((NestedField(field_id=1, name="a", type=type_),))
    with pytest.raises(Invalid, match="does not fit"):
        encoded(file(partition=(value,)), schema=schema, spec=partition_spec(schema, [("a", Identity())]))


def test_a_dropped_source_column_leaves_nulls():
    spec = PartitionSpec((PartitionField(source_ids=(99,), field_id=1000, name="gone", transform=Identity()),), 3)
    made = encoded(file(partition=(None,)), spec=spec)
    assert decode_entries(made.data)[0].data_file.partition == (None,)
    assert made.partitions[0].contains_null
    with pytest.raises(Invalid):
        encoded(file(partition=(1,)), spec=spec)


def test_unknown_transforms_are_not_written():
    field = PartitionField(source_ids=(1,), field_id=1000, name="u", transform=UnknownTransform("zorder"))
    with pytest.raises(Invalid, match="zorder"):
        encoded(spec=PartitionSpec((field,)))


def test_batches_are_bounded_by_metrics_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(manifest_writer, "BATCH_METRICS", 6)
    sizes = [len(batch) for batch in entry_batches([ENTRY] * 5)]
    assert sizes == [2, 2, 1]


def test_keys_that_differ_from_file_to_file():
    entries = [file(value_counts=dict.fromkeys(keys, 1)) for keys in ((1, 2), (2, 1), (), (1, 2), (3,))]
    assert decode_entries(encoded(*entries).data) == entries
    assert [list(e.data_file.value_counts) for e in decode_entries(encoded(*entries).data)][:2] == [[1, 2], [2, 1]]
