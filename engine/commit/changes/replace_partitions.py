"""Dynamic partition overwrite: replaces the contents of the partitions that new files belong to."""

from __future__ import annotations

from dataclasses import dataclass

from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.commit.conflicts import changed_files, snapshots_since
from icebench.engine.commit.file_refs import FileRef, ref_to
from icebench.engine.commit.manifests import load_manifests
from icebench.engine.commit.removal import Removal
from icebench.engine.commit.snapshot_producer import SnapshotProducer
from icebench.engine.commit.staged_snapshot import Staged, branch_head
from icebench.engine.commit.staging_context import Staging
from icebench.engine.errors import Invalid, ValidationFailed
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.inheritance import apply_inheritance
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import partition_key


@dataclass(kw_only=True)
class ReplacePartitions(SnapshotProducer):
    """Adds data files of the default spec, and removes all files that are in their partitions, deletes too.

    Each attempt finds the files to remove in the current table. With an unpartitioned spec all files are removed. With
    a `validation`, data files that others added to the same partitions since its start fail the change; without, they
    are replaced like the rest.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.data_files:
            raise Invalid("a dynamic overwrite without rows names no partition to replace")
        if self.delete_files or self.removed_data or self.removed_deletes:
            raise Invalid("a dynamic overwrite only adds data files; what goes is found when it is committed")
        self.operation = "overwrite"
        self.properties = {**self.properties, "replace-partitions": "true"}
        self._partitions = {partition_key(file.spec_id, file.partition) for file in self.data_files}

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        if any(file.spec_id != base.default_spec_id for file in self.data_files):
            raise ValidationFailed("the partition spec changed after the rows were written; run the operation again")
        everything = base.spec.is_unpartitioned
        parent = branch_head(base, self.branch)
        if self.validation is not None:
            for snapshot in snapshots_since(base, parent, self.validation.starting_snapshot_id):
                if snapshot.snapshot_id not in self.validation.own_snapshot_ids and snapshot.operation != "replace":
                    for file in changed_files(snapshot, staging.store, ManifestContent.DATA, EntryStatus.ADDED):
                        if everything or self._replaces(file):
                            raise ValidationFailed(
                                f"snapshot {snapshot.snapshot_id} added {file.file_path} to a partition that this "
                                "change replaces; run the operation again, or use snapshot isolation"
                            )

        def found(manifest: ManifestFile) -> list[FileRef]:
            if not everything and manifest.partition_spec_id != base.default_spec_id:
                return []  # another spec's partitions are not these
            data = staging.store.read(manifest.manifest_path)
            path, report = manifest.manifest_path, staging.store.report
            entries = decode_entries(data, location=path, listed=manifest, report=report)
            live = (e.data_file for e in apply_inheritance(entries, manifest) if e.status is not EntryStatus.DELETED)
            return [ref_to(file) for file in live if everything or self._replaces(file)]

        by_content: dict[ManifestContent, list[FileRef]] = {content: [] for content in ManifestContent}
        manifests = load_manifests(parent, staging.store)
        for manifest, refs in zip(manifests, staging.runner.map(found, manifests), strict=True):
            by_content[manifest.content] += refs
        self._removed_data = Removal(by_content[ManifestContent.DATA], ManifestContent.DATA)
        self._removed_deletes = Removal(by_content[ManifestContent.DELETES], ManifestContent.DELETES)
        return super().stage(base, staging)

    def _replaces(self, file: DataFile) -> bool:
        return partition_key(file.spec_id, file.partition) in self._partitions
