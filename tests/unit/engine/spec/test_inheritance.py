from __future__ import annotations

import pytest

from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.inheritance import apply_inheritance
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from icebench.errors import CorruptTable


def entry(status: EntryStatus, *, number: int | None = None, rows: int = 10, first: int | None = None) -> ManifestEntry:
    data_file = DataFile(
        file_path="/t/a.parquet", file_format="parquet", record_count=rows, file_size_in_bytes=1, first_row_id=first
    )
    return ManifestEntry(status=status, sequence_number=number, file_sequence_number=number, data_file=data_file)


def manifest(
    sequence_number: int = 7, first_row_id: int | None = None, content: ManifestContent = ManifestContent.DATA
) -> ManifestFile:
    return ManifestFile(
        manifest_path="/t/m.avro",
        manifest_length=1,
        partition_spec_id=3,
        content=content,
        sequence_number=sequence_number,
        added_snapshot_id=5,
        first_row_id=first_row_id,
    )


def test_added_entries_take_the_numbers_of_their_manifest() -> None:
    (found,) = apply_inheritance([entry(EntryStatus.ADDED)], manifest())
    assert (found.snapshot_id, found.sequence_number, found.file_sequence_number, found.data_file.spec_id) == (
        5,
        7,
        7,
        3,
    )


@pytest.mark.parametrize("status", [EntryStatus.EXISTING, EntryStatus.DELETED])
def test_other_entries_must_say_their_number_but_in_version_1(status: EntryStatus) -> None:
    with pytest.raises(CorruptTable, match="no sequence number"):
        list(apply_inheritance([entry(status)], manifest()))
    assert [e.sequence_number for e in apply_inheritance([entry(status)], manifest(sequence_number=0))] == [0]
    assert [e.sequence_number for e in apply_inheritance([entry(status, number=2)], manifest())] == [2]


def test_live_entries_without_row_ids_take_the_next_ones() -> None:
    entries = [
        entry(EntryStatus.ADDED),
        entry(EntryStatus.DELETED, number=1, rows=100),
        entry(EntryStatus.EXISTING, number=1, rows=5, first=3),
        entry(EntryStatus.EXISTING, number=1, rows=5),
    ]
    found = [e.data_file.first_row_id for e in apply_inheritance(entries, manifest(first_row_id=50))]
    assert found == [50, None, 3, 60]


def test_no_row_ids_without_a_first_one_nor_for_deletes() -> None:
    for each in (manifest(), manifest(first_row_id=50, content=ManifestContent.DELETES)):
        assert [e.data_file.first_row_id for e in apply_inheritance([entry(EntryStatus.ADDED)], each)] == [None]


def test_row_ids_are_longs() -> None:
    entries = [entry(EntryStatus.ADDED)] * 2
    found = [e.data_file.first_row_id for e in apply_inheritance(entries, manifest(first_row_id=2**63 - 21))]
    assert found == [2**63 - 21, 2**63 - 11]
    with pytest.raises(CorruptTable, match="exceed a long"):
        list(apply_inheritance(entries, manifest(first_row_id=2**63 - 20)))
