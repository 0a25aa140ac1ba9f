"""Splits of data files, packed into tasks of about equal work.

A file is split at its `split_offsets` (one split per row group), else every `split_bytes`. A split weighs its bytes and
those of its delete files, but at least the cost of opening its files. Splits go, in order, to the first open bin with
room; if more than `lookback` bins are open the heaviest is closed. This is Iceberg's own packing, so tasks are the
same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from icebench.engine.codec.array_views import BoolArray, Int64Array
from icebench.engine.columnar.batch_columns import combined
from icebench.engine.columnar.schemas import storage_of
from icebench.engine.errors import CorruptTable, Invalid
from icebench.engine.kernels.compiling import kernel
from icebench.engine.plan.grouping import codes_of
from icebench.engine.spec.properties import SPLIT_LOOKBACK, SPLIT_OPEN_FILE_COST, SPLIT_SIZE

_MOST_PIECES = 1 << 24
"""The most pieces of a plan: those of two pebibytes at the default split size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPacking:
    """How files are packed into tasks.

    Args:
        split_bytes: The target weight of a task (``read.split.target-size``).
        lookback: The number of bins that stay open (``read.split.planning-lookback``).
        open_file_cost: The least weight of a file, and of each of its delete files (``read.split.open-file-cost``).

    Raises:
        Invalid: A size or lookback that is not positive, or a negative cost.
    """

    split_bytes: int = SPLIT_SIZE.default
    lookback: int = SPLIT_LOOKBACK.default
    open_file_cost: int = SPLIT_OPEN_FILE_COST.default

    def __post_init__(self) -> None:
        if self.split_bytes <= 0 or self.lookback <= 0 or self.open_file_cost < 0:
            raise Invalid(f"tasks cannot be packed so: {self}")

    @classmethod
    def of(cls, properties: Mapping[str, str], split_bytes: int | None = None) -> TaskPacking:
        """The packing according to table properties; `split_bytes` overrides theirs. Raises Invalid, naming the
        property."""
        return cls(
            split_bytes=SPLIT_SIZE.of(properties) if split_bytes is None else split_bytes,
            lookback=SPLIT_LOOKBACK.of(properties),
            open_file_cost=SPLIT_OPEN_FILE_COST.of(properties),
        )


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of files: `length_bytes` from `start` of the file at row `file_index` of the plan."""

    file_index: Int64Array
    start: Int64Array
    length_bytes: Int64Array


@dataclass(frozen=True, slots=True)
class ScanTask:
    """Pieces of files for one reader: a range of all pieces of the plan.

    A row group belongs to the piece that has its first byte.
    """

    pieces: Pieces
    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin

    @property
    def file_index(self) -> Int64Array:
        """For each piece, the row of its file in the plan."""
        return self.pieces.file_index[self.begin : self.end]

    @property
    def start(self) -> Int64Array:
        """The offset of each piece in its file."""
        return self.pieces.start[self.begin : self.end]

    @property
    def length_bytes(self) -> Int64Array:
        """The length of each piece."""
        return self.pieces.length_bytes[self.begin : self.end]

    @property
    def size_bytes(self) -> int:
        """Total bytes of data files."""
        return int(self.length_bytes.sum())


@dataclass(frozen=True)
class Splits:
    """Pieces of files, in order, with their weights."""

    file_index: Int64Array
    start: Int64Array
    length_bytes: Int64Array
    weight: Int64Array


def combined_tasks(files: pa.Table, packing: TaskPacking, *, by_partition: bool = False) -> list[ScanTask]:
    """Pack the files of a plan into tasks.

    Args:
        files: `ScanPlan.files`.
        packing: How to pack them.
        by_partition: Put only files of one spec and partition into a task; tasks of a partition follow one another.
    """
    split_bytes, lookback = packing.split_bytes, packing.lookback
    splits = splits_of(files, split_bytes=split_bytes, open_file_cost=packing.open_file_cost)
    if by_partition:
        bins = _packed_by_group(splits.weight, _partitions(files)[splits.file_index], split_bytes, lookback)
    else:
        bins = _pack(splits.weight, split_bytes, lookback)
    order = np.argsort(bins, kind="stable")
    file_index, start, length = splits.file_index[order], splits.start[order], splits.length_bytes[order]
    bins = bins[order]
    # Neighbouring pieces of one file in one task are one piece.
    same = (bins[1:] == bins[:-1]) & (file_index[1:] == file_index[:-1]) & (start[1:] == start[:-1] + length[:-1])
    first = np.flatnonzero(np.concatenate(([True], ~same))) if len(bins) else np.zeros(0, np.int64)
    merged = np.add.reduceat(length, first) if len(first) else length
    pieces = Pieces(file_index[first], start[first], merged)
    ends = np.flatnonzero(np.diff(bins[first], append=-1)) + 1 if len(first) else first
    return [ScanTask(pieces, a, b) for a, b in pairwise([0, *ends.tolist()])]


def splits_of(files: pa.Table, *, split_bytes: int, open_file_cost: int) -> Splits:
    """Split every file from begin to end, in order.

    Raises:
        CorruptTable: So many pieces that a file's size must be wrong.
    """
    sizes = _numbers(files.column("file_size_in_bytes"))
    offsets, values = _list_parts(files.column("split_offsets"))
    counts = np.diff(offsets)
    by_offsets = _well_defined(offsets, values, sizes)
    pieces = np.where(by_offsets, counts, np.maximum(-(-sizes // split_bytes), 1))
    if pieces.sum(dtype=np.float64) > _MOST_PIECES:
        largest = int(np.argmax(pieces))
        reason = f"says that it has {sizes[largest]} bytes, which are {pieces[largest]} pieces of {split_bytes}"
        raise CorruptTable(reason, location=files.column("file_path")[largest].as_py())
    file_index = np.repeat(np.arange(len(sizes)), pieces)
    first = np.repeat(np.cumsum(pieces) - pieces, pieces)
    within = np.arange(len(file_index)) - first
    offset_at = np.minimum(np.repeat(offsets[:-1], pieces) + within, max(len(values) - 1, 0))
    start = np.where(by_offsets[file_index], values[offset_at] if len(values) else 0, within * split_bytes)
    first_piece = within == 0
    is_last = within == pieces[file_index] - 1
    following = np.where(is_last, sizes[file_index], np.concatenate((start[1:], [0])))
    length = following - start
    delete_count, delete_bytes = _delete_sizes(files.column("deletes"))
    weight = np.maximum(length + delete_bytes[file_index], (1 + delete_count[file_index]) * open_file_cost)
    # The first offset may be wrong, and nothing may be left out.
    length[first_piece] += start[first_piece]
    start[first_piece] = 0
    return Splits(file_index, start, length, weight)


def _partitions(files: pa.Table) -> Int64Array:
    """A code for the spec and partition of each file, in the order of their first files."""
    values = [storage_of(field) for field in combined(files.column("partition")).flatten()]
    codes = [combined(files.column("spec_id")).to_numpy(), *map(codes_of, values)]
    _, first, number = np.unique(np.column_stack(codes), axis=0, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number.reshape(-1)]


def _packed_by_group(weights: Int64Array, groups: Int64Array, target: int, lookback: int) -> Int64Array:
    """As `_pack`, with bins of one group each."""
    order = np.argsort(groups, kind="stable")
    ends = np.flatnonzero(np.diff(groups[order], append=-1)) + 1
    bins = np.zeros(len(weights), np.int64)
    count = 0
    for start, end in pairwise([0, *ends.tolist()]):
        own = order[start:end]
        bins[own] = count + _pack(weights[own], target, lookback)
        count = int(bins[own].max()) + 1
    return bins


def _well_defined(offsets: Int64Array, values: Int64Array, sizes: Int64Array) -> BoolArray:
    """Whether a file has ascending split offsets inside the file."""
    counts = np.diff(offsets)
    found = counts > 0
    owner = np.repeat(np.arange(len(counts)), counts)
    own = values[offsets[0] : offsets[-1]]
    wrong = (own < 0) | (own >= sizes[owner])
    wrong[1:] |= (owner[1:] == owner[:-1]) & (own[1:] <= own[:-1])
    found[owner[wrong]] = False
    return found


def _numbers(column: pa.ChunkedArray) -> Int64Array:
    values: Int64Array = combined(column).to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def _list_parts(column: pa.ChunkedArray) -> tuple[Int64Array, Int64Array]:
    """Offsets and values of a list column, null as empty."""
    chunks = column.chunks or [combined(column)]
    counts = [chunk.value_lengths().fill_null(0).to_numpy(zero_copy_only=False) for chunk in chunks]
    values = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in chunks]
    offsets = np.concatenate(([0], np.cumsum(np.concatenate(counts)))).astype(np.int64)
    return offsets, np.concatenate(values).astype(np.int64)


def _delete_sizes(column: pa.ChunkedArray) -> tuple[Int64Array, Int64Array]:
    """The number and total bytes of each file's delete files; for a deletion vector, the bytes of its blob."""
    counts, sizes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for chunk in column.chunks:
        references = chunk.flatten()
        whole = references.dictionary.field("file_size_in_bytes").to_numpy(zero_copy_only=False)
        part = references.dictionary.field("content_size_in_bytes").fill_null(-1).to_numpy(zero_copy_only=False)
        own = chunk.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
        weights = np.where(part >= 0, part, whole).astype(np.int64)[references.indices.to_numpy()]
        total, ends = np.concatenate(([0], np.cumsum(weights))), np.cumsum(own)
        counts.append(own)
        sizes.append(total[ends] - total[ends - own])
    return np.concatenate(counts), np.concatenate(sizes)


def _packing_bytes(weights: NDArray[np.int64], target: int, lookback: int) -> int:
    del target
    return weights.nbytes * (1 + lookback)


@kernel(work=_packing_bytes)
def _pack(weights: NDArray[np.int64], target: int, lookback: int) -> NDArray[np.int64]:  # pragma: no cover - compiled
    """The bin of each item, numbered in the order in which bins are closed."""
    number = np.zeros(weights.shape[0], dtype=np.int64)
    open_bins = np.zeros(lookback + 1, dtype=np.int64)  # in the order of opening, by provisional number
    loads = np.zeros(lookback + 1, dtype=np.int64)
    closed = np.zeros(weights.shape[0], dtype=np.int64)  # provisional number -> final one
    opened = 0
    count = 0
    done = 0
    for item in range(weights.shape[0]):
        place = -1
        for i in range(count):
            if loads[i] + weights[item] <= target:
                place = i
                break
        if place < 0:
            place = count
            open_bins[place] = opened
            loads[place] = 0
            opened += 1
            count += 1
        loads[place] += weights[item]
        number[item] = open_bins[place]
        if count > lookback:
            heaviest = 0
            for i in range(1, count):
                if loads[i] > loads[heaviest]:
                    heaviest = i
            closed[open_bins[heaviest]] = done
            done += 1
            for i in range(heaviest, count - 1):
                open_bins[i] = open_bins[i + 1]
                loads[i] = loads[i + 1]
            count -= 1
    for i in range(count):
        closed[open_bins[i]] = done
        done += 1
    for item in range(weights.shape[0]):
        number[item] = closed[number[item]]
    return number
