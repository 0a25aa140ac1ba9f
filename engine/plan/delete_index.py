"""Matches delete files to data files (spec: "Scan Planning", "Delete Formats").

All steps work on arrays: the scope of a delete file (a data file, a partition, or the whole table) becomes a number,
deletes are sorted by scope and sequence number, and two binary searches find the range of deletes of each data file.
The rules, with data sequence numbers:

===========================  ====================  ===================================================
deletion vector              its data file         at most one; replaces position-delete files
position deletes of a file   its data file         data file's number <= delete's
other position deletes       spec and partition    data file's number <= delete's
equality deletes             spec and partition    data file's number <  delete's
the same, of an              every data file       data file's number <  delete's
unpartitioned spec
===========================  ====================  ===================================================

`icebench.engine.plan.delete_targets` finds the data file of a position-delete file. Equality deletes are left out where
bounds and counts show that none of their keys can be in the data file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from icebench.engine.codec.array_views import BoolArray, Int64Array, number_array, valid_of
from icebench.engine.codec.taking import take
from icebench.engine.errors import CorruptTable
from icebench.engine.plan.delete_matching import NO_PAIRS, KeyRanges, Pairs, no_ranges, pair_with_deletes
from icebench.engine.plan.delete_targets import Hashes, find_delete_targets, location_hashes
from icebench.engine.plan.grouping import codes_of, partition_codes
from icebench.engine.plan.key_ranges import key_ranges
from icebench.engine.plan.manifests import LiveEntries
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.locations import parts, same_place
from icebench.engine.spec.metadata import TableMetadata


@dataclass(frozen=True)
class DeletesOfFiles:
    """The deletes of data file i are those numbered ``indices[offsets[i]:offsets[i + 1]]``, ascending."""

    offsets: Int64Array
    indices: NDArray[np.int32]


def match_deletes(
    data: Sequence[LiveEntries], deletes: Sequence[LiveEntries], metadata: TableMetadata
) -> DeletesOfFiles:
    """Match deletes to data files; files are numbered across all entries of `data`, and of `deletes`.

    Raises:
        CorruptTable: Two live deletion vectors for one data file; a vector without its fields, or older than its data
            file; a delete file of a data file in another partition; a path that is a data file's but for its authority.
    """
    count, width = sum(len(each) for each in data), sum(len(each) for each in deletes)
    if not count or not width:
        return DeletesOfFiles(np.zeros(count + 1, np.int64), np.zeros(0, np.int32))
    index = _DeleteIndex(data, deletes, metadata)
    vectors = index.vectors()
    has_vector = np.zeros(count, np.bool_)
    has_vector[vectors // width] = True
    positions = np.concatenate([index.positions_of_file(), index.positions_of_partition()])
    pairs = np.concatenate([vectors, positions[~has_vector[positions // width]], index.equality()])
    pairs.sort()
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(pairs // width, minlength=count), out=offsets[1:])
    return DeletesOfFiles(offsets, (pairs % width).astype(np.int32))


class _DeleteIndex:
    def __init__(self, data: Sequence[LiveEntries], deletes: Sequence[LiveEntries], metadata: TableMetadata) -> None:
        self._data = data
        self._deletes = deletes
        self._metadata = metadata
        self._data_seq = np.concatenate([each.sequence_number for each in data])
        self._seq = np.concatenate([each.sequence_number for each in deletes])
        content = np.concatenate([each.columns.numbers("content")[each.rows] for each in deletes])
        targets = [(find_delete_targets(each.columns), each.rows) for each in deletes]
        self._is_equality = content == FileContent.EQUALITY_DELETES
        self._is_vector = np.concatenate([each.is_vector[rows] for each, rows in targets])
        self._has_target = np.concatenate([each.is_given[rows] for each, rows in targets])
        self._target_places = np.concatenate([each.hashes[rows] for each, rows in targets])
        self._targets = pa.concat_arrays([take(each.paths, rows) for each, rows in targets])

    @cached_property
    def _partitions(self) -> tuple[Int64Array, Int64Array]:
        """Codes of the partitions of data files and of delete files."""
        codes = partition_codes([*self._data, *self._deletes], self._metadata)
        return codes[: len(self._data_seq)], codes[len(self._data_seq) :]

    @cached_property
    def _paths(self) -> pa.Array:
        return _column(self._data, "file_path")

    @cached_property
    def _places(self) -> Hashes:
        return np.concatenate([location_hashes(each.columns)[each.rows] for each in self._data])

    @cached_property
    def _path_codes(self) -> tuple[Int64Array, Int64Array]:
        """Codes of the paths of data files, and of the data files that deletes refer to."""
        by_place = self._place_codes()
        if by_place is not None:
            return by_place
        codes = codes_of(pa.concat_arrays([self._paths, self._targets]))
        own, targets = codes[: len(self._data_seq)], codes[len(self._data_seq) :].copy()
        self._find_other_spellings(own, targets)
        return own, targets

    def _place_codes(self) -> tuple[Int64Array, Int64Array] | None:
        """The same codes from location hashes, which is faster; None if a file is spelled in two ways, or two files
        have the same hash."""
        count = len(self._data_seq)
        codes = codes_of(number_array(np.concatenate([self._places, self._target_places]).view(np.int64)))
        own, targets = codes[:count], codes[count:]
        file_of = np.full(int(codes.max()) + 1, -1, np.int64)
        file_of[own] = np.arange(count)
        is_repeated = not np.array_equal(file_of[own], np.arange(count))
        meant = np.flatnonzero(self._has_target & (file_of[targets] >= 0))
        if is_repeated or not take(self._paths, file_of[targets[meant]]).equals(take(self._targets, meant)):
            return None
        return own, targets

    def _find_other_spellings(self, own: Int64Array, targets: Int64Array) -> None:
        """Give each target that is another spelling of a data file's path the code of that data file."""
        unknown = np.flatnonzero(self._has_target & ~np.isin(targets, own))
        if not len(unknown):
            return
        hashes, target_hashes = self._places, self._target_places
        chosen: list[int] = unknown[np.isin(target_hashes[unknown], hashes)].tolist()
        for delete in chosen:
            meant = _text(self._targets, delete)
            candidates = np.flatnonzero(hashes == target_hashes[delete])
            spellings = {i: _text(self._paths, i) for i in candidates.tolist()}
            found = [i for i, path in spellings.items() if same_place(path, meant)]
            near = [path for path in spellings.values() if parts(path)[2] == parts(meant)[2]]
            if found:
                targets[delete] = own[found[0]]
            elif near:
                raise CorruptTable(
                    f"it deletes rows of {meant}, which the table knows as {near[0]}: are they the same file?",
                    location=self._name(delete),
                )

    def vectors(self) -> Pairs:
        """Pair each deletion vector with its data file, if that is planned."""
        chosen = np.flatnonzero(self._is_vector)
        self._check_vectors(chosen)
        found = self._of_file(chosen, np.full(len(self._data_seq), np.iinfo(np.int64).min))
        files, deletes = np.divmod(found, len(self._seq))
        older = self._seq[deletes] < self._data_seq[files]
        if older.any():
            at = deletes[int(np.argmax(older))]
            reason = f"the deletion vector of {_text(self._targets, at)} has a lower sequence number than the file"
            raise CorruptTable(reason, location=self._name(at))
        return found

    def _check_vectors(self, chosen: Int64Array) -> None:
        needed = ("referenced_data_file", "content_offset", "content_size_in_bytes")
        given = [_is_given(self._deletes, name) for name in needed]
        incomplete = ~np.logical_and.reduce(given)[chosen]
        if incomplete.any():
            reason = "a deletion vector without referenced_data_file, content_offset or content_size_in_bytes"
            raise CorruptTable(reason, location=self._name(chosen[int(np.argmax(incomplete))]))
        if not len(chosen):
            return
        codes = self._path_codes[1][chosen]
        counts = np.bincount(codes)
        if (counts > 1).any():
            twice = chosen[int(np.argmax(counts[codes] > 1))]
            raise CorruptTable(f"more than one deletion vector for {_text(self._targets, twice)}")

    def positions_of_file(self) -> Pairs:
        """Pair position-delete files that refer to one data file."""
        return self._of_file(np.flatnonzero(self._has_target & ~self._is_vector), self._data_seq)

    def positions_of_partition(self) -> Pairs:
        """Pair position-delete files that refer to any data file of their partition."""
        chosen = np.flatnonzero(~self._is_equality & ~self._has_target)
        return self._of_partition(chosen, self._data_seq)

    def equality(self) -> Pairs:
        """Pair equality-delete files, of a partition or of the whole table."""
        specs = [self._metadata.spec_by_id[each.manifest.partition_spec_id] for each in self._deletes]
        lengths = [len(each) for each in self._deletes]
        is_global = self._is_equality & np.repeat([spec.has_global_deletes for spec in specs], lengths)
        everywhere = np.zeros(len(self._data_seq), np.int64), np.zeros(len(self._seq), np.int64)
        found = [
            self._of_partition(np.flatnonzero(self._is_equality & ~is_global), self._data_seq + 1),
            self._paired(np.flatnonzero(is_global), self._data_seq + 1, everywhere),
        ]
        return np.concatenate(found)

    def _of_file(self, chosen: Int64Array, least_seq: Int64Array) -> Pairs:
        if not len(chosen):
            return NO_PAIRS
        found = self._paired(chosen, least_seq, self._path_codes)
        files, deletes = np.divmod(found, len(self._seq))
        of_data, of_deletes = self._partitions
        other = of_data[files] != of_deletes[deletes]
        if other.any():
            at = int(np.argmax(other))
            raise CorruptTable(
                f"it deletes rows of {_text(self._paths, files[at])}, which is in another partition",
                location=self._name(deletes[at]),
            )
        return found

    def _of_partition(self, chosen: Int64Array, least_seq: Int64Array) -> Pairs:
        return self._paired(chosen, least_seq, self._partitions) if len(chosen) else NO_PAIRS

    def _paired(self, chosen: Int64Array, least_seq: Int64Array, scopes: tuple[Int64Array, Int64Array]) -> Pairs:
        """Pair data files with the chosen deletes of their scope; equality deletes only if their keys may be in the
        file."""
        if not len(chosen):
            return NO_PAIRS
        unknown = no_ranges(len(self._data_seq), len(self._seq))
        ranges = self._key_ranges if self._is_equality[chosen[0]] else unknown
        return pair_with_deletes(scopes, least_seq, self._seq, chosen, ranges)

    @cached_property
    def _key_ranges(self) -> KeyRanges:
        return key_ranges(self._data, self._deletes, self._metadata)

    def _name(self, delete: int) -> str:
        return _text(_column(self._deletes, "file_path"), delete)


def _column(entries: Sequence[LiveEntries], name: str) -> pa.Array:
    return pa.concat_arrays([take(each.columns[name], each.rows) for each in entries])


def _text(array: pa.Array, row: int) -> str:
    return str(array[int(row)].as_py(), "utf-8", "replace")


def _is_given(entries: Sequence[LiveEntries], name: str) -> BoolArray:
    """Whether each entry has a value of a column."""
    valid = [(valid_of(each.columns[name]), each.rows) for each in entries]
    return np.concatenate([np.ones(len(rows), np.bool_) if mask is None else mask[rows] for mask, rows in valid])
