"""A plan's work on manifests in other processes: what they are sent, and what they give back.

A process is sent an `Order` and some manifests. It decodes and filters them as `engine.plan.manifest_work` does here,
and gives back one Arrow file: of each manifest the surviving entries alone, with their row ids written out and without
metrics, but for those that matching deletes to data files needs. To this process they are manifests that list nothing
else. Work counters come with them, and the first error, which is raised here as it was raised there.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from heapq import heapify, heapreplace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from engine.codec.columns import BytesColumn, FixedColumn, Int64Array, ListColumn, ManifestColumns
from engine.codec.taking import take_bytes, take_lists, take_numbers
from engine.errors import EngineError, StorageFailed
from engine.expressions.bound import BoundPredicate
from engine.file_indexes.lookup import INDEXES_UNUSABLE
from engine.plan.array_files import METRICS, Array, StoredArrays, arrays_of, columns_of, encode_arrays, open_arrays
from engine.plan.filtering import Filtered
from engine.plan.key_ranges import key_columns
from engine.plan.manifest_work import Admits, ManifestWork
from engine.plan.manifests import LiveEntries, ManifestSource, live_entries
from engine.plan.written_schemas import WrittenSchemas
from engine.runtime.counters import Counters
from engine.runtime.local import LocalRunner
from engine.spec.manifest import ManifestContent, ManifestFile
from engine.spec.metadata import TableMetadata
from engine.spec.metadata_columns import DELETE_FILE_PATH_ID
from engine.spec.schema import Schema
from engine.storage.counting import CountingStore
from engine.storage.store import Store

Numbered = tuple[int, ManifestFile]
"""A manifest and its place among those of the plan."""


class Executors(Protocol):
    """Other processes that may do a plan's work on manifests."""

    def take(self, manifests: Sequence[ManifestFile]) -> bool:
        """Whether they are to do it, for these manifests of one content; if not, it is done here."""
        ...

    def filtered(self, order: Order, manifests: Sequence[ManifestFile], counters: Counters) -> Iterable[Filtered]:
        """What `ManifestWork.filtered` gives, in the order of `manifests`, of those with survivors; counts the work."""
        ...


@dataclass(frozen=True, kw_only=True)
class Order:
    """All that another process needs to know. It can be pickled where the store can.

    Args:
        metadata: The table, as `sent_metadata` makes it.
        schema: The schema that the filter is bound to.
        bound: The filter.
        store: The table's storage.
        needed_by: As `ManifestSource.needed_by`.
        keys: As `ManifestWork.filtered`, like the next.
        admits: See there; a function that can be pickled.
        whole_files: As `ManifestWork`.
    """

    metadata: TableMetadata
    schema: Schema
    bound: BoundPredicate
    store: Store
    needed_by: str | None
    keys: frozenset[int]
    admits: Admits | None
    whole_files: bool

    def carried_out(self, manifests: Iterable[Numbered]) -> pa.Buffer:
        """Do the work on these manifests, in their order, up to the first error.

        Returns:
            An Arrow file for `answers`.

        Raises:
            StorageFailed: The storage refused, which it may not do elsewhere or later. Every other error is told in
                the file.
        """
        counters, requests = Counters(), Counters()
        store = CountingStore(self.store, requests)
        work = ManifestWork(
            metadata=self.metadata,
            schema=self.schema,
            bound=self.bound,
            source=ManifestSource(store=store, runner=LocalRunner(1), needed_by=self.needed_by),
            counters=counters,
            whole_files=self.whole_files,
        )
        found: dict[int, Filtered] = {}
        error: tuple[int, EngineError] | None = None
        for number, manifest in manifests:
            try:
                survivors = work.filtered(manifest, self.keys, self.admits)
                if len(survivors.entries):
                    found[number] = compact_survivors(survivors, self.keys)
            except StorageFailed:
                raise
            except EngineError as raised:
                error = number, raised
                break
        return encode_survivors(found, {"counters": counters.as_dict(), "requests": requests.as_dict()}, error)


def sent_metadata(metadata: TableMetadata, schema: Schema, bound: BoundPredicate) -> TableMetadata:
    """A table as the work on its manifests needs it: without history, but for the schemas of snapshots where a column
    of the filter is newer than some."""
    tells = WrittenSchemas(metadata, schema, bound.field_ids).tells
    snapshots = (replace(s, summary={}, manifest_list=None, manifests=()) for s in metadata.snapshots if tells)
    return replace(
        metadata, snapshots=tuple(snapshots), snapshot_log=(), metadata_log=(), refs={}, current_snapshot_id=None,
        partition_statistics=(),
    )  # fmt: skip


def balance(manifests: Sequence[ManifestFile], group_bytes: int) -> list[list[Numbered]]:
    """The manifests in groups of about this many bytes, none much heavier than another; in order within each.

    Heaviest first, each to the lightest group.
    """
    total = sum(manifest.manifest_length for manifest in manifests)
    groups: list[list[Numbered]] = [[] for _ in range(min(len(manifests), max(1, -(-total // group_bytes))))]
    weights = [(0, place) for place in range(len(groups))]
    heapify(weights)
    for number, manifest in sorted(enumerate(manifests), key=lambda each: -each[1].manifest_length):
        weight, place = weights[0]
        groups[place].append((number, manifest))
        heapreplace(weights, (weight + manifest.manifest_length, place))
    return [sorted(group, key=lambda each: each[0]) for group in groups]


def compact_survivors(found: Filtered, keys: frozenset[int]) -> Filtered:
    """The same survivors as all that their manifest lists, holding no memory of the others.

    Of metrics those stay that matching deletes needs: of data files those of the columns `keys`; of delete files those
    of the columns that equality deletes compare, and the bounds of the paths that position deletes name.
    """
    entries = found.entries
    if entries.manifest.content == ManifestContent.DELETES:
        keys = key_columns([entries]) | {DELETE_FILE_PATH_ID}
    return replace(found, entries=live_entries(entries.manifest, _compact_columns(entries, keys)))


def _compact_columns(entries: LiveEntries, keys: frozenset[int]) -> ManifestColumns:
    """The columns of these entries alone, from which `live_entries` makes them again."""
    chosen: dict[str, Any] = {}
    for field in fields(ManifestColumns):
        value = getattr(entries.columns, field.name)
        if isinstance(value, Mapping):
            wanted = [i for i in value if field.name not in METRICS or (i in keys and field.name != "column_sizes")]
            chosen[field.name] = {i: _take(value[i], entries.rows) for i in wanted}
        elif not isinstance(value, int):
            chosen[field.name] = _take(value, entries.rows)
    # The only thing inherited that depends on the entries before.
    chosen["first_row_id"] = entries.first_row_id
    return ManifestColumns(count=len(entries), **chosen)


def _take(column: FixedColumn | BytesColumn | ListColumn, rows: Int64Array) -> FixedColumn | BytesColumn | ListColumn:
    if len(rows) == len(column):
        return column
    match column:
        case FixedColumn():
            return take_numbers(column, rows)
        case BytesColumn():
            return take_bytes(column, rows)
    return take_lists(column, rows)


def encode_survivors(
    found: Mapping[int, Filtered], about: Mapping[str, object], error: tuple[int, EngineError] | None = None
) -> pa.Buffer:
    """Compacted survivors by the number of their manifest as a compressed Arrow file.

    Args:
        found: The survivors.
        about: For the file's reader.
        error: The number of the manifest that failed, and how.
    """
    arrays: dict[str, Array] = {
        "residuals": np.frombuffer(pickle.dumps([each.residuals for each in found.values()]), np.uint8),
        "error": np.frombuffer(pickle.dumps(error), np.uint8),
    }
    for number, each in found.items():
        arrays[f"{number}:residual"] = each.residual
        arrays.update((f"{number}:{name}", array) for name, array in arrays_of(each.entries.columns))
    counts = [(number, len(each.entries)) for number, each in found.items()]
    return encode_arrays({**about, "counts": counts}, arrays, compression="zstd")


def decode_survivors(stored: StoredArrays, manifests: Sequence[ManifestFile]) -> Iterator[tuple[int, Filtered]]:
    """What `encode_survivors` was given; the arrays are the file's memory."""
    names: dict[int, list[str]] = {}
    for name in stored.index:
        number, colon, own = name.partition(":")
        if colon and own != "residual":
            names.setdefault(int(number), []).append(own)
    residuals = pickle.loads(stored.array("residuals").tobytes())  # noqa: S301 - of a process that this one started
    for (number, count), left in zip(stored.about["counts"], residuals, strict=True):
        arrays = {own: stored.array(f"{number}:{own}") for own in names[number]}
        entries = live_entries(manifests[number], columns_of(count, arrays, arrays.__getitem__))
        yield number, Filtered(entries=entries, residual=stored.array(f"{number}:residual"), residuals=left)


def answers(
    given: Iterable[pa.Buffer], manifests: Sequence[ManifestFile], counters: Counters, requests: Counters | None = None
) -> list[Filtered]:
    """The survivors of all manifests, in their order, out of what `Order.carried_out` gave.

    Args:
        given: One Arrow file for each group of manifests.
        manifests: All of them.
        counters: Count the work.
        requests: Count requests to storage.

    Raises:
        EngineError: What was raised for the first manifest that failed, with its type, text and attributes.
    """
    found: list[tuple[int, Filtered]] = []
    failed: list[tuple[int, EngineError]] = []
    unusable = 0
    for data in given:
        stored = open_arrays(data)
        about = stored.about
        error = pickle.loads(stored.array("error").tobytes())  # noqa: S301 - of a process that this one started
        if error is not None:
            failed.append(error)
        # Each process looks at the same indexes, and a plan counts one that it cannot use once.
        unusable = max(unusable, about["counters"].pop(INDEXES_UNUSABLE, 0))
        counters.merge(about["counters"])
        if requests is not None:
            requests.merge(about["requests"])
        found += decode_survivors(stored, manifests)
    if failed:
        raise min(failed, key=lambda each: each[0])[1]
    if unusable:
        counters.add(INDEXES_UNUSABLE, unusable)
    return [each for _, each in sorted(found, key=lambda each: each[0])]
