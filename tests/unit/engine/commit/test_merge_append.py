from __future__ import annotations

from dataclasses import replace

import pytest

from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.merge_append import MergeAppend
from icebench.engine.commit.changes.overwrite import Overwrite
from icebench.engine.commit.changes.row_delta import RowDelta
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import ref_to
from icebench.engine.commit.manifests import load_manifests
from icebench.engine.spec.inheritance import apply_inheritance
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from icebench.engine.spec.updates import AddPartitionSpec, SetDefaultSpec
from tests.unit.engine.commit.tables import BY_DAY, World, data_file, deletes_of, metadata, world


def table(format_version: int = 2, **properties: str) -> World:
    given = {"commit.manifest.min-count-to-merge": "4"} | {k.replace("_", "."): v for k, v in properties.items()}
    return world(metadata(format_version, properties=given))


def manifests(w: World) -> tuple[ManifestFile, ...]:
    return load_manifests(w.metadata.current_snapshot, w.store)


def add(w: World, *names: str) -> None:
    w.transaction().commit([MergeAppend(data_files=[data_file(name) for name in names])])


@pytest.mark.parametrize("version", [1, 2, 3])
def test_manifests_merge_at_the_minimum_count(version: int) -> None:
    w = table(version)
    counts = []
    for n in range(8):
        add(w, f"f{n}")
        counts.append(len(manifests(w)))
    assert counts == [1, 2, 3, 1, 2, 3, 1, 2]
    assert w.files() == {f"f{n}": n + 1 if version > 1 else 0 for n in range(8)}
    assert w.metadata.snapshots[-1].summary["total-data-files"] == "8"


def test_entries_keep_their_numbers_and_only_its_own_are_added() -> None:
    w = table(3)
    for n in range(4):
        add(w, f"f{n}")
    (merged,) = manifests(w)
    found = list(apply_inheritance(decode_entries(w.store.read(merged.manifest_path)), merged))
    by_name = {e.data_file.file_path[-10:-8]: e for e in found}
    numbers = [(e.status.name, e.snapshot_id, e.sequence_number) for e in found]
    assert sorted(numbers) == [("ADDED", 104, 4), ("EXISTING", 101, 1), ("EXISTING", 102, 2), ("EXISTING", 103, 3)]
    row_ids = [e.data_file.first_row_id for e in by_name.values()]
    assert None not in row_ids
    assert sorted(e.data_file.first_row_id or 0 for e in found)[:3] == [0, 10, 20]
    assert (w.metadata.next_row_id or 0) >= 40
    assert len({e.data_file.first_row_id for e in found}) == 4


def test_not_where_it_is_switched_off() -> None:
    w = world(
        metadata(properties={"commit.manifest-merge.enabled": "false", "commit.manifest.min-count-to-merge": "2"})
    )
    for n in range(5):
        add(w, f"f{n}")
    assert len(manifests(w)) == 5


def test_full_manifests_are_left_alone() -> None:
    w = table(**{"commit.manifest.target-size-bytes": "1"})  # type: ignore[arg-type]
    for n in range(6):
        add(w, f"f{n}")
    assert len(manifests(w)) == 6


def test_specs_stay_apart() -> None:
    w = world(metadata(spec=BY_DAY, properties={"commit.manifest.min-count-to-merge": "2"}))
    w.transaction().commit([MergeAppend(data_files=[data_file("a", day="x")])])
    w.transaction().commit([MergeAppend(data_files=[data_file("b", day="y")])])
    (merged,) = manifests(w)
    assert merged.partitions is not None
    assert (merged.partitions[0].lower_bound, merged.partitions[0].upper_bound) == (b"x", b"y")
    assert (merged.added_files_count, merged.existing_files_count) == (1, 1)


def test_removed_files_and_delete_manifests_are_not_merged_with_data() -> None:
    w = world(metadata(properties={"commit.manifest.min-count-to-merge": "2"}))
    a, b = data_file("a"), data_file("b")
    w.transaction().commit([Append(data_files=[a, b])])
    w.transaction().commit([Overwrite(removed_data=[ref_to(a)])])
    watched = Validation(starting_snapshot_id=102, referenced=[ref_to(b)])
    w.transaction().commit([RowDelta(delete_files=[deletes_of(b, name="d")], validation=watched)])
    before = {m.manifest_path for m in manifests(w) if m.content is ManifestContent.DELETES}
    add(w, "c")
    assert w.files() == {"b": 1, "c": 4, "d": 3}
    found = {m.content: m for m in manifests(w)}
    assert len(manifests(w)) == 2
    assert {found[ManifestContent.DELETES].manifest_path} == before
    merged = decode_entries(w.store.read(found[ManifestContent.DATA].manifest_path))
    assert sorted(entry.status.name for entry in merged) == ["ADDED", "EXISTING"]


def test_manifests_of_another_spec_are_not_merged_with_them_nor_counted() -> None:
    w = world(metadata(properties={"commit.manifest.min-count-to-merge": "2"}))
    w.transaction().commit([MergeAppend(data_files=[data_file("a")])])
    (first,) = manifests(w)
    w.committer.apply([], [AddPartitionSpec(BY_DAY), SetDefaultSpec()])
    w.transaction().commit([MergeAppend(data_files=[replace(data_file("b", day="y"), spec_id=1)])])
    assert {m.manifest_path for m in manifests(w)} > {first.manifest_path}
    assert [m.partition_spec_id for m in manifests(w)] == [1, 0]
    w.transaction().commit([MergeAppend(data_files=[replace(data_file("c", day="z"), spec_id=1)])])
    assert [(m.partition_spec_id, m.added_files_count, m.existing_files_count) for m in manifests(w)] == [
        (1, 1, 1),
        (0, 1, 0),
    ]


def test_another_append_in_between() -> None:
    w = table()
    for n in range(3):
        add(w, f"f{n}")
    w.committer.before = [lambda: w.transaction().commit([Append(data_files=[data_file("theirs")])])]
    add(w, "ours")
    assert w.files() == {"f0": 1, "f1": 2, "f2": 3, "theirs": 4, "ours": 5}
    (merged,) = manifests(w)
    entries = decode_entries(w.store.read(merged.manifest_path))
    assert [e.status for e in entries].count(EntryStatus.ADDED) == 1
    # What the first attempt merged is gone from storage; nothing that is listed is.
    assert {m.manifest_path.rpartition("/")[2] for m in manifests(w)} <= w.stored()
