"""Finds the data files that delete files refer to, and the delete files that may concern given data files.

Both sides are identified by a hash of their location without scheme and authority, so that every spelling is
found (`icebench.engine.plan.location_hashes`). Results are kept as long as the decoded columns of the manifest: with a
cache, from one plan to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from icebench.engine.codec.array_views import BoolArray, ManifestColumns, data_of, offsets_of, valid_of
from icebench.engine.codec.taking import take
from icebench.engine.plan.grouping import codes_of
from icebench.engine.plan.location_hashes import hash_locations
from icebench.engine.plan.manifests import LiveEntries
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.metadata_columns import DELETE_FILE_PATH_ID

T = TypeVar("T")
Hashes = NDArray[np.uint64]

_PUFFIN = np.frombuffer(b"puffin", np.uint8)
_TO_LOWER = np.uint8(0x20)
_NOTHING: Hashes = np.zeros(0, np.uint64)


@dataclass(frozen=True, eq=False)
class DeleteTargets:
    """For each entry of a delete manifest: the only data file that it refers to, if any, and its location hash; whether
    the entry is a deletion vector."""

    paths: pa.Array
    hashes: Hashes
    is_given: BoolArray
    is_vector: BoolArray


def find_delete_targets(columns: ManifestColumns) -> DeleteTargets:
    """Find the targets of a manifest's entries.

    A position-delete file has one target if `referenced_data_file` names it, or if both bounds of its ``file_path``
    column are the same path.
    """
    return _remembered(_TARGETS, columns, _targets)


def location_hashes(columns: ManifestColumns) -> Hashes:
    """The location hashes of a manifest's files."""
    return _remembered(_HASHES, columns, lambda c: _hashes(c["file_path"]))


def select_concerning(data: Sequence[LiveEntries], deletes: Sequence[LiveEntries]) -> list[LiveEntries]:
    """Select the deletes that refer to one of these data files or to several data files. May select others, if there
    are so many data files that looking them up is not worthwhile."""
    if sum(len(each) for each in data) >= sum(len(each) for each in deletes):
        return list(deletes)
    planned = np.sort(np.concatenate([location_hashes(each.columns)[each.rows] for each in data] or [_NOTHING]))
    found = []
    for each in deletes:
        targets = find_delete_targets(each.columns)
        given, hashes = targets.is_given[each.rows], targets.hashes[each.rows]
        kept = ~given | is_in(hashes, planned)
        chosen = each if kept.all() else each.take(np.flatnonzero(kept))
        if len(chosen):
            found.append(chosen)
    return found


def is_in(values: Hashes, ordered: Hashes) -> BoolArray:
    """Which values are among the others, which are sorted."""
    places = np.minimum(np.searchsorted(ordered, values), max(len(ordered) - 1, 0))
    return ordered[places] == values if len(ordered) else np.zeros(len(values), np.bool_)


def _targets(columns: ManifestColumns) -> DeleteTargets:
    said = columns["referenced_data_file"]
    is_equality = columns.numbers("content") == FileContent.EQUALITY_DELETES
    is_said = _is_given(said)
    lower, upper = (columns.get(bounds, DELETE_FILE_PATH_ID) for bounds in ("lower_bounds", "upper_bounds"))
    paths = said
    if lower is not None and upper is not None and not is_said.all():
        codes = codes_of(pa.concat_arrays([lower, upper]))
        is_one = (codes[: len(lower)] == codes[len(lower) :]) & _is_given(lower)
        rows = np.arange(columns.count)
        chosen = np.where(is_said, rows, np.where(is_one, rows + columns.count, -1))
        paths = take(pa.concat_arrays([said, lower]), chosen)
    is_puffin = ~is_equality & _is_puffin(columns["file_format"])
    return DeleteTargets(paths, _hashes(paths), ~is_equality & _is_given(paths), is_puffin)


def _hashes(paths: pa.Array) -> Hashes:
    found: Hashes = hash_locations(offsets_of(paths), data_of(paths))
    return found


def _is_given(array: pa.Array) -> BoolArray:
    valid = valid_of(array)
    return np.ones(len(array), np.bool_) if valid is None else valid


def _is_puffin(formats: pa.Array) -> BoolArray:
    ends = offsets_of(formats)
    found: BoolArray = np.diff(ends) == len(_PUFFIN)
    letters = data_of(formats)[ends[:-1][found][:, None] + np.arange(len(_PUFFIN))] | _TO_LOWER
    found[found] = (letters == _PUFFIN).all(axis=1)
    return found


_LOCK = Lock()
_TARGETS: WeakKeyDictionary[ManifestColumns, DeleteTargets] = WeakKeyDictionary()
_HASHES: WeakKeyDictionary[ManifestColumns, Hashes] = WeakKeyDictionary()


def _remembered(
    store: WeakKeyDictionary[ManifestColumns, T], columns: ManifestColumns, make: Callable[[ManifestColumns], T]
) -> T:
    with _LOCK:
        known = store.get(columns)
    if known is None:
        known = make(columns)
        with _LOCK:
            store[columns] = known
    return known
