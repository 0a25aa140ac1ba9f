"""Files that are kept as manifests are those that went in, and few of them are objects at a time."""

from __future__ import annotations

import weakref

import pytest

from icebench.engine.codec.manifests import encoded_files
from icebench.engine.codec.manifests.encoded_files import EncodedFiles
from icebench.engine.codec.manifests.manifest_writer import encode_manifest
from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry
from icebench.engine.spec.partitioning import UNPARTITIONED
from icebench.engine.spec.schema import Schema


def manifest(files: list[DataFile]) -> bytes:
    return encode_manifest(
        [ManifestEntry(status=EntryStatus.ADDED, snapshot_id=1, data_file=file) for file in files],
        schema=Schema(()),
        spec=UNPARTITIONED,
        format_version=3,
        content=ManifestContent.DATA,
        snapshot_id=1,
    ).data


def files(start: int, stop: int) -> list[DataFile]:
    return [
        DataFile(file_path=f"/f{n}", file_format="parquet", record_count=n, file_size_in_bytes=1, value_counts={1: n})
        for n in range(start, stop)
    ]


def test_a_sequence_of_the_files() -> None:
    kept = EncodedFiles([manifest(files(0, 3)), b"", manifest([]), manifest(files(3, 8))])
    assert len(kept) == 8
    assert list(kept) == list(kept) == files(0, 8)
    assert (kept[0], kept[7], kept[-1]) == (*files(0, 1), *files(7, 8), *files(7, 8))
    assert kept[2:5] == files(2, 5)
    assert files(4, 5)[0] in kept
    for place in (8, -9):
        with pytest.raises(IndexError):
            kept[place]
    assert not EncodedFiles([])


def test_one_manifest_at_a_time_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries of a manifest are decoded when the first of them is reached, and let go with the next manifest."""
    decoded: list[weakref.ref[Entries]] = []

    def noted(data: bytes) -> Entries:
        entries = Entries(decode_entries(data))
        decoded.append(weakref.ref(entries))
        return entries

    monkeypatch.setattr(encoded_files, "decode_entries", noted)
    for place, _ in enumerate(EncodedFiles([manifest(files(n * 10, n * 10 + 10)) for n in range(20)])):
        assert len(decoded) == place // 10 + 1
        assert sum(entries() is not None for entries in decoded) == 1
    assert place == 199


class Entries(list[ManifestEntry]):
    """A list that can be referred to weakly."""
