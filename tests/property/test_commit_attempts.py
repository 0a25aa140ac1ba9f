"""Changes that are staged again, with manifests of earlier attempts: entries have the numbers of the last attempt."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.commit.changes.change import Change
from icebench.engine.commit.changes.evolution import UpgradeFormat
from icebench.engine.commit.changes.merge_append import MergeAppend
from icebench.engine.commit.changes.overwrite import Overwrite
from icebench.engine.commit.changes.rewrite_manifests import RewriteManifests
from icebench.engine.commit.changes.row_delta import RowDelta
from icebench.engine.commit.commit_loop import Transaction, stage_all
from icebench.engine.commit.file_refs import ref_to
from icebench.engine.commit.manifests import load_manifests
from icebench.engine.commit.retry import Waiting
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.inheritance import apply_inheritance
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry
from icebench.engine.spec.snapshots import Snapshot
from tests.unit.engine.commit.tables import NAME, World, data_file, metadata, world

AT_ONCE = Waiting(sleep=lambda _: None, monotonic=lambda: 0.0, random=lambda: 0.0)
OURS = st.lists(
    st.sampled_from(["append", "append", "remove a former file", "remove our file", "rewrite manifests"]),
    min_size=1,
    max_size=4,
)
THEIRS = st.lists(st.sampled_from(["append", "delete by key", "rewrite manifests", "upgrade"]), max_size=3)


@dataclass
class Table:
    """A table, and which data files should be live in it."""

    w: World
    live: dict[str, DataFile] = field(default_factory=dict)
    made: int = 0

    def new_file(self) -> DataFile:
        self.made += 1
        made = data_file(f"f{self.made}", rows=self.made)
        self.live[made.file_path] = made
        return made

    def remove(self, among: set[str]) -> Change:
        """Of the oldest of these files."""
        gone = self.live.pop(min(self.live.keys() & among, key=lambda path: self.live[path].record_count))
        return Overwrite(removed_data=[ref_to(gone)])

    def ours(self, kind: str, former: set[str]) -> Change | None:
        own = self.live.keys() - former
        match kind:
            case "remove a former file" if former & self.live.keys():
                return self.remove(former)
            case "remove our file" if own:
                return self.remove(set(own))
            case "rewrite manifests" if self.live:
                return RewriteManifests()
            case "append":
                return MergeAppend(data_files=[self.new_file()])
        return None

    def theirs(self, kind: str) -> None:
        version = self.w.metadata.format_version
        change: Change | None = None
        match kind:
            case "append":
                change = MergeAppend(data_files=[self.new_file()])
            case "delete by key" if version > 1:
                change = RowDelta(delete_files=[self.key_deletes()])
            case "rewrite manifests" if self.w.metadata.current_snapshot is not None:
                change = RewriteManifests()
            case "upgrade" if version < 3:
                change = UpgradeFormat(version + 1)
        if change is not None:
            self.w.transaction().commit([change])

    def interrupt(self, kinds: list[str]) -> None:
        """What others commit while ours waits; nobody interrupts them."""
        committer = self.w.committer
        waiting, committer.before = committer.before, []
        for kind in kinds:
            self.theirs(kind)
        committer.before = waiting

    def key_deletes(self) -> DataFile:
        self.made += 1
        return DataFile(
            content=FileContent.EQUALITY_DELETES,
            file_path=f"memory://wh/t/data/d{self.made}.parquet",
            file_format="parquet",
            record_count=1,
            file_size_in_bytes=50,
            equality_ids=(1,),
        )

    def entries(self, snapshot: Snapshot) -> dict[str, ManifestEntry]:
        """Live data files by path."""
        found: dict[str, ManifestEntry] = {}
        for manifest in load_manifests(snapshot, self.w.store):
            if manifest.content is ManifestContent.DATA:
                data = self.w.store.read(manifest.manifest_path)
                for entry in apply_inheritance(decode_entries(data, listed=manifest), manifest):
                    if entry.status is not EntryStatus.DELETED:
                        assert entry.data_file.file_path not in found
                        found[entry.data_file.file_path] = entry
        return found


@given(
    version=st.sampled_from([1, 2, 3]),
    former=st.integers(0, 4),
    ours=OURS,
    while_prepared=THEIRS,
    while_committed=st.lists(THEIRS, max_size=2),
)
def test_entries_have_the_numbers_of_the_snapshots_that_added_them(
    *, version: int, former: int, ours: list[str], while_prepared: list[str], while_committed: list[list[str]]
) -> None:
    t = Table(world(metadata(version, properties={"commit.manifest.min-count-to-merge": "3"})))
    for _ in range(former):
        t.w.transaction().commit([MergeAppend(data_files=[t.new_file()])])
    before = set(t.live)
    changes: list[Change] = []
    staging = t.w.staging()
    for kind in ours:
        change = t.ours(kind, before)
        if change is not None:
            changes.append(change)
            stage_all(changes, t.w.metadata, staging)
    for kind in while_prepared:
        t.theirs(kind)
    t.w.committer.before = [partial(t.interrupt, kinds) for kinds in while_committed]
    Transaction(t.w.committer, NAME, staging, AT_ONCE).commit(changes)
    check(t)


def check(t: Table) -> None:
    table = t.w.metadata
    row_ids: dict[int, str] = {}
    for snapshot in table.snapshots:
        for path, entry in t.entries(snapshot).items():
            assert entry.snapshot_id is not None
            added = table.snapshot(entry.snapshot_id)
            assert (entry.sequence_number, entry.file_sequence_number) == (added.sequence_number,) * 2
            first = entry.data_file.first_row_id
            if snapshot.first_row_id is None:
                assert first is None
                continue
            assert first is not None
            for row_id in range(first, first + entry.data_file.record_count):
                assert row_ids.setdefault(row_id, path) == path
    head = table.current_snapshot
    assert (t.live.keys() if head is None else t.entries(head).keys()) == t.live.keys()
    assert max(row_ids, default=-1) < (table.next_row_id or 0) or not row_ids
    referenced = {m.manifest_path for s in table.snapshots for m in load_manifests(s, t.w.store)}
    assert referenced <= {info.location for info in t.w.store.list("memory://wh")}
