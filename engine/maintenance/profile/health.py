"""Finds what makes a table expensive: reasons in order of cost, each with a remedy and its gain.

Costs are bytes: those that reading the table, or one filter, reads in vain, or that storage holds in vain. Opening a
file counts as ``read.split.open-file-cost`` bytes, as in the packing of scan tasks. Reasons that cost less than a
hundredth of a read of the whole table are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from icebench.engine.display import size_text
from icebench.engine.maintenance.file_groups import DEFAULT_SORTED_GROUP_SIZE_BYTES
from icebench.engine.maintenance.profile.figures import (
    ColumnFigures,
    DeleteFigures,
    FileFigures,
    HistoryFigures,
    ManifestFigures,
    PartitionFigures,
    Reason,
)
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import (
    CLUSTERING_KEYS,
    METRICS_COLUMN,
    SPLIT_OPEN_FILE_COST,
    TARGET_FILE_SIZE_BYTES,
)
from icebench.engine.spec.transforms import Identity, Void

_LEAST_SHARE = 0.01
_GOOD_DEPTH = 2
"""Files that one value may be in, of files that were sorted together: runs of equal values cross a file's end."""
_USELESS_SHARE = 0.9
"""Bounds of a column exclude next to nothing if a value is in this share of the files on average."""
_MOST_NAMED = 8


@dataclass(frozen=True, kw_only=True)
class Examined:
    """The figures that reasons are derived from.

    Args:
        sorted_groups: Groups into which a sort with default options divides a partition, each sorted by itself: the
            mean over partitions, weighted by their bytes; at least 1.
    """

    metadata: TableMetadata
    files: FileFigures
    deletes: DeleteFigures
    partitions: PartitionFigures | None
    manifests: ManifestFigures
    columns: tuple[ColumnFigures, ...]
    history: HistoryFigures
    sorted_groups: float

    @property
    def open_cost(self) -> int:
        """The cost of opening a file, in bytes."""
        return SPLIT_OPEN_FILE_COST.of(self.metadata.properties)

    @property
    def read_cost(self) -> int:
        """The cost of reading the whole table, in bytes."""
        deletes = sum(kind.size_bytes + kind.files * self.open_cost for kind in self.deletes.kinds)
        return self.files.size_bytes + self.files.files * self.open_cost + deletes


def find_reasons(examined: Examined) -> tuple[Reason, ...]:
    """The reasons worth reporting, most expensive first."""
    found = [
        *_small_files(examined),
        *_small_partitions(examined),
        *_deletes(examined),
        *_dangling_deletes(examined),
        *_manifests(examined),
        *_order(examined),
        *_useless_bounds(examined),
        *_history(examined),
        *_forgotten_metadata(examined),
    ]
    least = max(1, int(_LEAST_SHARE * examined.read_cost))
    return tuple(sorted((each for each in found if each.cost_bytes >= least), key=lambda each: -each.cost_bytes))


def _small_files(examined: Examined) -> Iterator[Reason]:
    files = examined.files
    fewer = files.compaction_files - files.compaction_result_files
    if fewer > 0:
        yield Reason(
            key="small-files",
            statement=f"{files.small_files:,} of {files.files:,} data files are below "
            f"{size_text(files.smallest_bytes)}; the median has {size_text(files.sizes.median)}",
            cost_bytes=fewer * examined.open_cost,
            opens=fewer,
            action="rewrite_data_files",
            gain=f"{files.compaction_files:,} files become about {files.compaction_result_files:,}; "
            f"{size_text(files.compaction_bytes)} are rewritten",
            estimate="files that compaction with default options selects, by partition, over the target size; "
            "each file less saves an open",
        )


def _small_partitions(examined: Examined) -> Iterator[Reason]:
    partitions, spec = examined.partitions, examined.metadata.spec
    if partitions is None or spec.is_unpartitioned or partitions.small_partitions < 2:
        return
    target = TARGET_FILE_SIZE_BYTES.of(examined.metadata.properties)
    needed = max(1, -(-examined.files.size_bytes // target))
    if 2 * partitions.small_partitions <= partitions.partitions or needed >= partitions.partitions:
        return
    # Files of former specs have values of fields that there is nothing to drop of.
    values = {each.name: each.values for each in examined.manifests.clustering}
    present = [f for f in reversed(spec.fields) if not isinstance(f.transform, Void)]
    field = max(present, key=lambda f: values.get(f.name, 0))
    yield Reason(
        key="small-partitions",
        statement=f"{partitions.small_partitions:,} of {partitions.partitions:,} partitions hold less than "
        f"{size_text(examined.files.smallest_bytes)}, so that compaction cannot make large files",
        cost_bytes=(partitions.partitions - needed) * examined.open_cost,
        opens=partitions.partitions - needed,
        action="drop_partition_field",
        arguments={"field": field.name},
        gain=f"{partitions.partitions:,} partitions could be {needed:,} file{'s' * (needed > 1)} of the target size",
        estimate="one file for each partition at least; the finest field is named, a coarser transform of it may do",
    )


def _deletes(examined: Examined) -> Iterator[Reason]:
    deletes = examined.deletes
    live = [(k.files - k.dangling_files, k.size_bytes - k.dangling_bytes) for k in deletes.kinds]
    opens, size = sum(files for files, _ in live), sum(size for _, size in live)
    if deletes.pairs:
        arguments: dict[str, int | bool] = {"delete_file_threshold": 1, "remove_dangling_deletes": True}
        if deletes.shared_position_files:
            # These apply to all data files of their partition that are as old, rewritten ones included.
            arguments["use_starting_sequence_number"] = False
        dead = examined.files.size_bytes * deletes.deleted_records // max(1, examined.files.records)
        yield Reason(
            key="deletes",
            statement=f"{deletes.data_files:,} of {examined.files.files:,} data files have deletes, "
            f"{deletes.pairs / deletes.data_files:.1f} delete files each; {deletes.deleted_records:,} rows are "
            "deleted by position",
            cost_bytes=opens * examined.open_cost + size + dead,
            opens=opens,
            action="rewrite_data_files",
            arguments=arguments,
            gain=f"{opens:,} delete files need not be opened; {size_text(deletes.data_bytes)} are rewritten",
            estimate="each delete file is opened and read once, and the deleted share of rows is read in vain",
        )


def _dangling_deletes(examined: Examined) -> Iterator[Reason]:
    kinds = examined.deletes.kinds
    files, size = sum(k.dangling_files for k in kinds), sum(k.dangling_bytes for k in kinds)
    if files:
        entries = examined.manifests.live_entries + examined.manifests.deleted_entries
        yield Reason(
            key="dangling-deletes",
            statement=f"{files:,} delete files apply to no data file",
            cost_bytes=size + examined.manifests.size_bytes * files // entries,
            action="rewrite_data_files",
            arguments={"remove_dangling_deletes": True},
            gain=f"{files:,} entries fewer in every plan, and {size_text(size)} of storage once snapshots expire",
            estimate="their size, and their share of the bytes of manifests",
        )


def _manifests(examined: Examined) -> Iterator[Reason]:
    own = examined.manifests
    count = own.opened_manifests
    worst = max(own.clustering, key=lambda each: each.opened - each.possible, default=None)
    scattered = 0.0 if worst is None else max(0.0, worst.opened - worst.possible)
    many = max(0, count - own.target_manifests)
    if count < 2 or max(scattered, many) < 1:
        return
    dead = own.size_bytes * own.deleted_entries // max(1, own.live_entries + own.deleted_entries)
    if worst is not None and scattered >= many:
        statement = (
            f"a filter on one value of {worst.name} opens {worst.opened:.1f} of {own.data_manifests:,} data "
            f"manifests on average, of which {worst.holding:.1f} list such a file"
        )
        gain = f"{worst.opened:.1f} manifests become about {worst.possible:.1f}"
    else:
        statement = f"{count:,} manifests have {size_text(own.sizes.median)} each (median)"
        gain = f"{count:,} manifests become about {own.target_manifests:,}"
    excess = max(scattered, float(many))
    yield Reason(
        key="manifests",
        statement=statement,
        cost_bytes=int(excess * (examined.open_cost + own.size_bytes // count)) + dead,
        opens=round(excess),
        action="rewrite_manifests",
        gain=gain,
        estimate="manifests of the target size with the files of a partition together; each one less saves an open",
    )


def _order(examined: Examined) -> Iterator[Reason]:
    order = examined.metadata.sort_order
    if order.is_unsorted or not isinstance(order.fields[0].transform, Identity):
        return
    first = next((c for c in examined.columns if c.field_id == order.fields[0].source_id), None)
    overlap = None if first is None else first.within_partitions or first.table
    reachable = _GOOD_DEPTH * examined.sorted_groups
    if first is None or overlap is None or overlap.average_depth <= reachable:
        return
    mean = examined.files.size_bytes // max(1, examined.files.files)
    partitions = 1 if examined.partitions is None else examined.partitions.partitions
    excess = (overlap.average_depth - reachable) * partitions
    yield Reason(
        key="order",
        statement=f"the table is to be sorted by {first.name}, yet {overlap.average_depth:.1f} files of a partition "
        "cover a value on average",
        cost_bytes=int(excess * (mean + examined.open_cost)),
        opens=round(excess),
        action="rewrite_data_files",
        arguments={"strategy": "sort", "rewrite_all": True},
        gain=f"a filter {first.name} = value reads at most {math.ceil(reachable):,} files of a partition instead "
        f"of {overlap.average_depth:.1f}",
        estimate="average depth within partitions, less two for each group of up to "
        f"{size_text(DEFAULT_SORTED_GROUP_SIZE_BYTES)} that is sorted by itself (max_file_group_size_bytes), in files "
        "of mean size in every partition",
    )


def _useless_bounds(examined: Examined) -> Iterator[Reason]:
    stored = sum(each.statistics_bytes for each in examined.columns)
    metadata = examined.metadata
    keys = {i for f in metadata.sort_order.fields for i in f.source_ids}
    keys |= {metadata.schema.id_of.get(name, -1) for name in CLUSTERING_KEYS.of(metadata.properties)}
    useless = [
        each
        for each in examined.columns
        if each.field_id not in keys
        and each.is_current
        and each.table is not None
        and each.table.files > 1
        and each.table.average_depth >= _USELESS_SHARE * examined.files.files
        and each.table.constant_files < each.table.files
    ]
    size = sum(each.bounds_bytes for each in useless)
    if size:
        named = sorted(useless, key=lambda each: -each.bounds_bytes)[:_MOST_NAMED]
        yield Reason(
            key="useless-bounds",
            statement=f"bounds of {len(useless):,} columns exclude next to no file: each value is within those of "
            "nine files in ten",
            cost_bytes=examined.manifests.size_bytes * size // stored,
            action="set_properties",
            arguments={METRICS_COLUMN.prefix + each.name: "counts" for each in named},
            gain=f"{size / stored:.0%} of the bytes of statistics in manifests, once files are rewritten",
            estimate="bytes of these bounds before compression, at the rate at which manifests compress",
        )


def _history(examined: Examined) -> Iterator[Reason]:
    history = examined.history
    if history.expirable_snapshots:
        share = history.metadata_bytes * history.expirable_snapshots // history.snapshots
        yield Reason(
            key="snapshots",
            statement=f"{history.expirable_snapshots:,} of {history.snapshots:,} snapshots are older than the table "
            "keeps them",
            cost_bytes=history.expirable_bytes + share,
            action="expire_snapshots",
            gain=f"about {size_text(history.expirable_bytes)} of storage, and {size_text(share)} of a metadata file "
            "that every commit writes again",
            estimate="removed-files-size of the snapshots whose parents would go, and their share of the metadata",
        )


def _forgotten_metadata(examined: Examined) -> Iterator[Reason]:
    history = examined.history
    if history.forgotten_metadata_files:
        yield Reason(
            key="forgotten-metadata",
            statement=f"{history.forgotten_metadata_files:,} former metadata files are in no log any more; storage may "
            "still have them",
            cost_bytes=history.forgotten_metadata_files * history.metadata_bytes // 2,
            action="remove_orphan_files",
            gain=f"up to {size_text(history.forgotten_metadata_files * history.metadata_bytes // 2)} of storage",
            estimate="the number in the metadata file's name less the log, at half the size of the present file; "
            "other orphans cannot be known without listing storage",
        )
