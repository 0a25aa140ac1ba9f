"""The figures of a table profile. Sizes are bytes, ages milliseconds; docs/design/profile.md has the formulas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """Quantiles of integers by nearest rank; all 0 if there are none."""

    least: int = 0
    p25: int = 0
    median: int = 0
    p75: int = 0
    p95: int = 0
    most: int = 0
    mean: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """Files by a number: bin i has those of at least `lower[i]` and below `lower[i + 1]`; empty bins at both ends are
    left out."""

    lower: tuple[int, ...] = ()
    files: tuple[int, ...] = ()
    size_bytes: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FileFigures:
    """Data files.

    Args:
        files: How many.
        records: Rows in them, deleted ones included.
        size_bytes: Their size.
        sizes: Quantiles of the size of a file.
        histogram: By size.
        small_files: Below `smallest_bytes`.
        large_files: Above `largest_bytes`.
        smallest_bytes: Compaction considers smaller files small: 75 % of the table's target.
        largest_bytes: Compaction considers larger files large: 180 % of it.
        compaction_files: Files that compaction with default options would rewrite.
        compaction_bytes: Their size.
        compaction_result_files: About how many files they would become.
        age: The average age of a file in commits, its own included; 0 if there is none.
        compaction_age: The same for those that compaction would rewrite for their size.
    """

    files: int
    records: int
    size_bytes: int
    sizes: Quantiles
    histogram: Histogram
    small_files: int
    large_files: int
    smallest_bytes: int
    largest_bytes: int
    compaction_files: int
    compaction_bytes: int
    compaction_result_files: int
    age: float
    compaction_age: float


@dataclass(frozen=True, kw_only=True)
class DeleteKind:
    """Delete files of one kind; `size_bytes` of deletion vectors is that of their blobs.

    Args:
        files: How many.
        records: Positions or keys in them.
        size_bytes: Their size.
        dangling_files: Those that apply to no data file.
        dangling_records: Their positions or keys.
        dangling_bytes: Their size.
        age: The average age in commits, their own included, of those that apply to a data file; 0 if there are none.
    """

    files: int = 0
    records: int = 0
    size_bytes: int = 0
    dangling_files: int = 0
    dangling_records: int = 0
    dangling_bytes: int = 0
    age: float = 0.0


@dataclass(frozen=True, kw_only=True)
class DeleteFigures:
    """Deletes.

    Args:
        positions: Position-delete files.
        equality: Equality-delete files.
        vectors: Deletion vectors.
        histogram: Delete files and vectors that are no part of a larger file, by size.
        data_files: Data files with deletes.
        data_bytes: Their size.
        pairs: Pairs of a data file and a delete file that applies to it.
        most_on_a_file: The most delete files of one data file.
        deleted_records: Rows deleted by positions of delete files of one data file.
        shared_position_files: Position-delete files that may concern any data file of a partition.
        heavy_files: Data files with at least 30 % of their rows deleted by such positions, which compaction rewrites.
    """

    positions: DeleteKind
    equality: DeleteKind
    vectors: DeleteKind
    histogram: Histogram
    data_files: int
    data_bytes: int
    pairs: int
    most_on_a_file: int
    deleted_records: int
    shared_position_files: int
    heavy_files: int

    @property
    def kinds(self) -> tuple[DeleteKind, ...]:
        """All three."""
        return self.positions, self.equality, self.vectors


@dataclass(frozen=True, kw_only=True)
class PartitionSize:
    """One partition: its path as in directories, and its data files."""

    path: str
    files: int
    records: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class PartitionFigures:
    """Partitions with data files. Partition tuples of different specs are different partitions.

    Args:
        partitions: How many.
        files: Data files of a partition.
        sizes: Bytes of a partition.
        skew: Bytes of the largest partition over their mean; 1 is even.
        small_partitions: Those whose bytes together are less than a small file.
        largest: The largest few.
    """

    partitions: int
    files: Quantiles
    sizes: Quantiles
    skew: float
    small_partitions: int
    largest: tuple[PartitionSize, ...]


@dataclass(frozen=True, kw_only=True)
class ManifestClustering:
    """How many data manifests a filter ``field = value`` opens, on average over the distinct values of a partition
    field.

    Args:
        name: The partition field.
        values: Its distinct values, without nulls and NaN.
        opened: Manifests that their summaries do not exclude.
        holding: Those that list a file of the value.
        possible: `opened` with manifests of the target size, and each value's files together.
    """

    name: str
    values: int
    opened: float
    holding: float
    possible: float


@dataclass(frozen=True, kw_only=True)
class ManifestFigures:
    """Manifests of the current snapshot.

    Args:
        data_manifests: How many list data files.
        delete_manifests: How many list delete files.
        size_bytes: Their size.
        sizes: Quantiles of the size of a manifest.
        live_entries: Entries of live files.
        deleted_entries: Entries of removed files, which plans decode and drop.
        opened_manifests: Those that list a live file; plans skip the others by their counts.
        target_manifests: What a rewrite could make of these: manifests of ``commit.manifest.target-size-bytes``, at
            least one for each partition spec and content, as a manifest has files of one spec and content.
        age: The average age in commits, their own included, of those that a plan opens; 0 if there is none.
        clustering: By partition field.
    """

    data_manifests: int
    delete_manifests: int
    size_bytes: int
    sizes: Quantiles
    live_entries: int
    deleted_entries: int
    opened_manifests: int
    target_manifests: int
    age: float
    clustering: tuple[ManifestClustering, ...]


@dataclass(frozen=True, kw_only=True)
class PartitionOverlap:
    """The files of one partition with bounds of a column."""

    path: str
    files: int
    average_overlaps: float
    average_depth: float


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Files with bounds of a column, by Snowflake's definitions; see `icebench.engine.maintenance.profile.overlap`.

    Args:
        files: How many.
        constant_files: Those whose bounds are equal: no order of rows could separate their values.
        average_overlaps: Other files that share a value with a file's range.
        average_depth: The most files that cover one value of a file's range.
        most_depth: Of any file.
        depths: Files by depth.
        worst: The few partitions with the most depth to lose; empty for the whole table.
    """

    files: int
    constant_files: int
    average_overlaps: float
    average_depth: float
    most_depth: int
    depths: Histogram
    worst: tuple[PartitionOverlap, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ColumnFigures:
    """A primitive column of any of the table's schemas.

    Args:
        field_id: Its id.
        name: Its full name in the newest schema that has it.
        is_current: Whether the current schema has it.
        type: Its type as text.
        data_bytes: Its bytes in data files, by their metrics; 0 if they have none.
        statistics_bytes: Bytes of its metrics in data manifests, before compression.
        bounds_bytes: The part of these that are lower and upper bounds.
        files_without_bounds: Files that may have values of it, but lack a bound.
        files_of_nulls: Files where it is null in every row.
        table: Overlap of files in the whole table; None if no file has both bounds, for types without order,
            and for columns in lists and maps.
        within_partitions: Overlap among the files of a partition; None for unpartitioned tables, too.
        distinct_values: The estimated number, from the newest sketch of the snapshot and its ancestors; None without.
    """

    field_id: int
    name: str
    is_current: bool
    type: str
    data_bytes: int
    statistics_bytes: int
    bounds_bytes: int
    files_without_bounds: int
    files_of_nulls: int
    table: Overlap | None = None
    within_partitions: Overlap | None = None
    distinct_values: int | None = None


@dataclass(frozen=True, kw_only=True)
class StatisticsFigures:
    """The newest statistics of one kind, of the snapshot or an ancestor.

    Args:
        snapshot_id: Of which snapshot.
        changed_share: Rows that were added and deleted since then, by the snapshot summaries, over its rows.
    """

    snapshot_id: int
    changed_share: float


@dataclass(frozen=True, kw_only=True)
class SortOrderFigures:
    """A sort order that is recorded for data files.

    Args:
        order_id: Its id; None for files that claim none.
        order: Its keys as text; empty for unsorted and for ids that the table does not have.
        is_default: Whether writers should use it now.
        files: How many claim it.
        size_bytes: Their size.
    """

    order_id: int | None
    order: str
    is_default: bool
    files: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class RowGroupFigures:
    """Row groups of data files, by their split offsets.

    Args:
        files: Files that state their split offsets.
        unknown_files: Files that do not.
        row_groups: All of them.
        row_groups_of_file: Row groups of one file.
        average_bytes: The size of a row group: bytes of these files over row groups.
    """

    files: int
    unknown_files: int
    row_groups: int
    row_groups_of_file: Quantiles
    average_bytes: int


@dataclass(frozen=True, kw_only=True)
class AgeFigures:
    """Ages of data files, from the snapshots that added them.

    Args:
        ages_ms: Of files whose snapshot is known.
        unknown_files: Files of expired snapshots.
    """

    ages_ms: Quantiles
    unknown_files: int


@dataclass(frozen=True, kw_only=True)
class HistoryFigures:
    """Snapshots and table metadata.

    Args:
        snapshots: How many.
        branches: How many.
        tags: How many.
        oldest_age_ms: Age of the oldest snapshot; 0 for none.
        snapshots_per_day: Over the time that the snapshots span; 0.0 for fewer than two.
        expirable_snapshots: Those that expiry by the table's own properties would remove.
        retained_bytes: Bytes of files that are not in the current snapshot, but in a retained ancestor of it, by the
            summaries (``removed-files-size``); a lower bound where summaries do not say.
        expirable_bytes: The part of these that expiry would free.
        metadata_bytes: Size of the metadata file.
        metadata_bytes_per_snapshot: The same over snapshots.
        metadata_log_files: Former metadata files that the log still has.
        forgotten_metadata_files: Former metadata files that the log has forgotten, by the number in the file's name.
            Storage may still have them: the orphans that metadata alone knows of.
        schemas: How many.
        partition_specs: How many.
    """

    snapshots: int
    branches: int
    tags: int
    oldest_age_ms: int
    snapshots_per_day: float
    expirable_snapshots: int
    retained_bytes: int
    expirable_bytes: int
    metadata_bytes: int
    metadata_bytes_per_snapshot: int
    metadata_log_files: int
    forgotten_metadata_files: int
    schemas: int
    partition_specs: int


@dataclass(frozen=True, kw_only=True)
class ColumnStorage:
    """Storage of a leaf column in Parquet files, from their footers.

    Args:
        field_id: Its id; None where no schema has the column.
        name: Its full name in the newest schema that has it; its path in the files where none has.
        chunks: Its column chunks.
        compressed_bytes: In the files.
        uncompressed_bytes: Before compression.
        pages: Its pages, of chunks whose footers count them.
        codecs: Compressed bytes by codec.
        encodings: Compressed bytes of the chunks with pages of an encoding; a chunk may have several.
    """

    field_id: int | None
    name: str
    chunks: int
    compressed_bytes: int
    uncompressed_bytes: int
    pages: int
    codecs: Mapping[str, int]
    encodings: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """A file that contradicts its manifest entry.

    Args:
        file_path: Which.
        what: ``missing``, ``unreadable``, ``size``, ``records`` or ``bounds``.
        detail: What was found.
    """

    file_path: str
    what: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class FooterFigures:
    """Figures from the footers of data files.

    Args:
        files: How many were opened.
        row_groups: Of Parquet files.
        row_group_rows: Rows of one.
        row_group_bytes: Compressed bytes of one.
        pages: Of column chunks whose footers count them.
        chunks: Column chunks.
        chunks_without_pages: Those whose footers do not.
        columns: Storage by column, the largest first.
        contradicting_files: Files that are not as their manifest entries say.
        contradictions: The first of them.
    """

    files: int
    row_groups: int
    row_group_rows: Quantiles
    row_group_bytes: Quantiles
    pages: int
    chunks: int
    chunks_without_pages: int
    columns: tuple[ColumnStorage, ...]
    contradicting_files: int
    contradictions: tuple[Contradiction, ...]


@dataclass(frozen=True, kw_only=True)
class OrderFigures:
    """Files with a recorded sort order, and how many of a sample are sorted.

    Args:
        claiming_files: Files that claim an order that the table has, other than unsorted.
        uncomparable_files: Of these, files whose order is not compared: by floating-point numbers, uuids, several
            columns at once or columns that the schema lacks.
        read_files: Files of the sample.
        unsorted_files: Files of the sample whose rows are in another order.
        unsorted_paths: The first of them.
    """

    claiming_files: int
    uncomparable_files: int
    read_files: int
    unsorted_files: int
    unsorted_paths: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Reason:
    """One cause of cost, and its remedy.

    Args:
        key: Which.
        statement: What is wrong, with its figures.
        cost_bytes: Its cost: bytes that a read of the table, a filter or storage would save; opening a file counts as
            ``read.split.open-file-cost`` bytes.
        opens: File opens that a read, or a filter, would save; included in `cost_bytes`.
        action: The method of `table.maintenance` that fixes it; otherwise ``set_properties`` or
            ``drop_partition_field``.
        arguments: For the action, by name.
        gain: What changes.
        estimate: How cost and gain were estimated.
    """

    key: str
    statement: str
    cost_bytes: int
    opens: int = 0
    action: str
    arguments: Mapping[str, str | int | bool | tuple[str, ...]] = field(default_factory=dict)
    gain: str
    estimate: str
