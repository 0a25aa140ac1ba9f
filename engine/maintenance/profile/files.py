"""Figures of data and delete files: sizes, pending compaction, row groups, ages, sort orders."""

from __future__ import annotations

import numpy as np

from icebench.engine.codec.array_views import BoolArray, Int64Array
from icebench.engine.maintenance.file_groups import Selection
from icebench.engine.maintenance.profile.commits import Commits, mean
from icebench.engine.maintenance.profile.figures import (
    AgeFigures,
    DeleteFigures,
    DeleteKind,
    FileFigures,
    RowGroupFigures,
    SortOrderFigures,
)
from icebench.engine.maintenance.profile.live_files import (
    NO_ORDER,
    LiveFiles,
    histogram,
    lengths_of,
    numbers_of,
    quantiles,
    sum_by,
)
from icebench.engine.plan.delete_targets import find_delete_targets
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import TARGET_FILE_SIZE_BYTES
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.spec.table_text import order_text

SIZE_STEP = 4
"""Bins of sizes grow by this factor."""


def default_selection(metadata: TableMetadata) -> Selection:
    """What `rewrite_data_files` selects with default options."""
    target = TARGET_FILE_SIZE_BYTES.of(metadata.properties)
    return Selection(target_file_size_bytes=target, output_spec_id=metadata.default_spec_id)


def deleted_rows(files: LiveFiles) -> Int64Array:
    """For each data file, its rows deleted by file-scoped position deletes or deletion vectors, at most all rows."""
    if not len(files.matches.indices):
        return np.zeros(len(files), np.int64)
    own = [
        find_delete_targets(e.columns).is_given[e.rows]
        & (e.columns.numbers("content")[e.rows] == FileContent.POSITION_DELETES)
        for e in files.deletes
    ]
    positions = np.where(np.concatenate(own), numbers_of(files.deletes, "record_count"), 0)
    owner = np.repeat(np.arange(len(files)), np.diff(files.matches.offsets))
    return np.minimum(sum_by(owner, positions[files.matches.indices], len(files)), files.records)


def file_figures(files: LiveFiles, metadata: TableMetadata, deleted: Int64Array, commits: Commits) -> FileFigures:
    """File sizes, and what compaction with default options would rewrite."""
    sizes, selection = files.size_bytes, default_selection(metadata)
    small, large = sizes < selection.smallest, sizes > selection.largest
    ages = commits.ages_of(files.data)
    chosen, result = _compaction(files, selection, small | large, is_heavy(files, deleted, selection))
    return FileFigures(
        files=len(files),
        records=int(files.records.sum()),
        size_bytes=int(sizes.sum()),
        sizes=quantiles(sizes),
        histogram=histogram(sizes, sizes, step=SIZE_STEP),
        small_files=int(small.sum()),
        large_files=int(large.sum()),
        smallest_bytes=selection.smallest,
        largest_bytes=selection.largest,
        compaction_files=int(chosen.sum()),
        compaction_bytes=int(sizes[chosen].sum()),
        compaction_result_files=result,
        age=mean(ages),
        compaction_age=mean(ages[chosen & (small | large)]),
    )


def is_heavy(files: LiveFiles, deleted: Int64Array, selection: Selection) -> BoolArray:
    """Mask of data files that compaction would rewrite because of their share of deleted rows."""
    found: BoolArray = (deleted > 0) & (deleted >= selection.delete_ratio_threshold * files.records)
    return found


def _compaction(
    files: LiveFiles, selection: Selection, wrong_size: BoolArray, heavy: BoolArray
) -> tuple[BoolArray, int]:
    """The files that `Selection.groups` puts into groups, and about how many they become."""
    spec = np.concatenate([np.full(len(e), e.manifest.partition_spec_id) for e in files.data] or [np.zeros(0, int)])
    # Files of other specs than the output's form one group.
    groups = np.where(spec == selection.output_spec_id, files.partition, files.partitions)
    candidates, width = wrong_size | heavy, files.partitions + 1
    own = groups[candidates]
    count = np.bincount(own, minlength=width)
    size = sum_by(own, files.size_bytes[candidates], width)
    has_heavy = np.bincount(groups[heavy], minlength=width) > 0
    is_worth_it = (count > 1) & ((count >= selection.min_input_files) | (size > selection.target_file_size_bytes))
    is_worth_it |= (size > selection.largest) | has_heavy
    target = selection.target_file_size_bytes
    return candidates & is_worth_it[groups], int(np.maximum(1, -(-size // target))[is_worth_it].sum())


def delete_figures(files: LiveFiles, deleted: Int64Array, metadata: TableMetadata, commits: Commits) -> DeleteFigures:
    """Figures of delete files by kind, and their load on data files."""
    contents = numbers_of(files.deletes, "content")
    count = len(contents)
    vectors = _flags([find_delete_targets(e.columns).is_vector[e.rows] for e in files.deletes])
    blobs = numbers_of(files.deletes, "content_size_in_bytes")
    sizes = np.where(vectors, blobs, numbers_of(files.deletes, "file_size_in_bytes"))
    records = numbers_of(files.deletes, "record_count")
    used = np.bincount(files.matches.indices, minlength=count) > 0
    applied = np.diff(files.matches.offsets)
    equality = contents == FileContent.EQUALITY_DELETES
    ages = commits.ages_of(files.deletes)
    targeted = _flags([find_delete_targets(e.columns).is_given[e.rows] for e in files.deletes])

    def kind(own: BoolArray) -> DeleteKind:
        idle = own & ~used
        return DeleteKind(
            files=int(own.sum()),
            records=int(records[own].sum()),
            size_bytes=int(sizes[own].sum()),
            dangling_files=int(idle.sum()),
            dangling_records=int(records[idle].sum()),
            dangling_bytes=int(sizes[idle].sum()),
            age=mean(ages[own & used]),
        )

    return DeleteFigures(
        positions=kind(~equality & ~vectors),
        equality=kind(equality),
        vectors=kind(vectors),
        histogram=histogram(sizes, sizes, step=SIZE_STEP),
        data_files=int((applied > 0).sum()),
        data_bytes=int(files.size_bytes[applied > 0].sum()),
        pairs=len(files.matches.indices),
        most_on_a_file=int(applied.max(initial=0)),
        deleted_records=int(deleted.sum()),
        shared_position_files=int((~equality & ~targeted).sum()),
        heavy_files=int(is_heavy(files, deleted, default_selection(metadata)).sum()),
    )


def _flags(parts: list[BoolArray]) -> BoolArray:
    return np.concatenate(parts) if parts else np.zeros(0, np.bool_)


def row_group_figures(files: LiveFiles) -> RowGroupFigures:
    """Figures of row groups, from split offsets."""
    counts = lengths_of(files.data, "split_offsets")
    known = counts > 0
    row_groups = int(counts.sum())
    size = int(files.size_bytes[known].sum())
    return RowGroupFigures(
        files=int(known.sum()),
        unknown_files=int((~known).sum()),
        row_groups=row_groups,
        row_groups_of_file=quantiles(counts[known]),
        average_bytes=size // row_groups if row_groups else 0,
    )


def age_figures(files: LiveFiles, metadata: TableMetadata, now_ms: int) -> AgeFigures:
    """File ages, from the snapshots that added the files."""
    ids = np.concatenate([each.snapshot_id for each in files.data] or [np.zeros(0, np.int64)])
    known = np.array(sorted(metadata.snapshot_by_id), np.int64)
    times = np.array([metadata.snapshot_by_id[i].timestamp_ms for i in known.tolist()], np.int64)
    if not len(known):
        return AgeFigures(ages_ms=quantiles(known), unknown_files=len(ids))
    places = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    is_known = known[places] == ids
    return AgeFigures(
        ages_ms=quantiles(np.maximum(now_ms - times[places[is_known]], 0)), unknown_files=int((~is_known).sum())
    )


def sort_order_figures(files: LiveFiles, metadata: TableMetadata) -> tuple[SortOrderFigures, ...]:
    """The sort orders recorded for files, most frequent first."""
    claimed = numbers_of(files.data, "sort_order_id", NO_ORDER)
    orders = {order.order_id: order for order in metadata.sort_orders}
    ids, inverse, counts = np.unique(claimed, return_inverse=True, return_counts=True)
    sizes = sum_by(inverse, files.size_bytes, len(ids))
    found = [
        SortOrderFigures(
            order_id=None if own == NO_ORDER else own,
            order=order_text(orders.get(own, SortOrder()), metadata.schema),
            is_default=own == metadata.default_sort_order_id,
            files=count,
            size_bytes=size,
        )
        for own, count, size in zip(ids.tolist(), counts.tolist(), sizes.tolist(), strict=True)
    ]
    return tuple(sorted(found, key=lambda each: -each.files))
