"""Replaces files by others with the same rows: compaction, deletes applied (operation ``replace``)."""

from __future__ import annotations

from dataclasses import dataclass

from icebench.engine.commit.snapshot_producer import SnapshotProducer
from icebench.engine.errors import Invalid


@dataclass(kw_only=True)
class RewriteFiles(SnapshotProducer):
    """Removes data and delete files, and adds others that hold the same live rows.

    `validation.starting_snapshot_id` is the snapshot that the rewrite was *planned* from, whenever it is committed; its
    `referenced` are the data files whose rows were read. Position deletes and deletion vectors that others put on those
    fail the rewrite, for the new files do not know of them. Equality deletes do not: the new data files take
    `data_sequence_number`, the sequence number of the plan's snapshot, so that later equality deletes still apply. But
    equality deletes of a partition apply to files of its spec alone: files that move to another spec take the number of
    the commit, and equality deletes on their rows fail the rewrite, too.
    """

    def __post_init__(self) -> None:
        if self.operation is None:
            self.operation = "replace"
        super().__post_init__()
        if self.data_files and not self.removed_data:
            raise Invalid("a rewrite that adds data files says which ones they replace")
        if not self.removed_data and not self.removed_deletes:
            raise Invalid("a rewrite replaces files")
        if self.removed_data and (self.validation is None or self.validation.refuse_deletes == "none"):
            raise Invalid("a rewrite of data files must refuse concurrent position deletes on them")
        if self.data_files and self.data_sequence_number is None and self._keeps_equality_deletes():
            raise Invalid("rewritten data files keep the sequence number of their plan, or refuse equality deletes too")
        specs = {ref.spec_id for ref in self.removed_data}
        if self._keeps_equality_deletes() and any(file.spec_id not in specs for file in self.data_files):
            raise Invalid("data files that move to another partition spec refuse equality deletes, too")

    def _keeps_equality_deletes(self) -> bool:
        return self.validation is not None and self.validation.refuse_deletes != "all"
