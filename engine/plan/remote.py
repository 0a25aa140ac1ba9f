"""Work of a plan on manifests in other processes: the messages that are sent and returned.

A process receives an `Order` and some manifests. It decodes and filters them by `icebench.engine.plan.manifest_work`,
and returns record batches with the surviving entries of each manifest, their row ids assigned, without metrics except
those needed to match deletes. The planning process treats them as manifests without other entries. Work counters are
returned, too, and the first error, which is raised again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from typing import Protocol

import pyarrow as pa

from icebench.engine.codec.array_views import Int64Array, ManifestColumns
from icebench.engine.codec.manifests.decoded_entries import MAPS
from icebench.engine.codec.taking import take
from icebench.engine.errors import Contradiction, EngineError, StorageFailed, refuse
from icebench.engine.expressions.bound import BoundPredicate
from icebench.engine.file_indexes.lookup import INDEXES_UNUSABLE
from icebench.engine.plan.filtering import Filtered
from icebench.engine.plan.key_ranges import key_columns
from icebench.engine.plan.manifest_work import Admits, ManifestWork
from icebench.engine.plan.manifests import LiveEntries, ManifestSource, live_entries
from icebench.engine.plan.written_schemas import WrittenSchemas
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.manifest import ManifestContent, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.metadata_columns import DELETE_FILE_PATH_ID
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.contradictions import CollectingStore
from icebench.engine.storage.counting import CountingStore
from icebench.engine.storage.store import Store

Numbered = tuple[int, ManifestFile]
"""A manifest and its index among those of the plan."""


class Executors(Protocol):
    """Other processes that may do a plan's work on manifests."""

    def take(self, manifests: Sequence[ManifestFile]) -> bool:
        """Whether they take on these manifests of one content; if not, this process does."""
        ...

    def filtered(self, order: Order, manifests: Sequence[ManifestFile], counters: Counters) -> Iterable[Filtered]:
        """The results of `ManifestWork.filtered`, in the order of `manifests`, without empty ones. Counts the work."""
        ...


@dataclass(frozen=True, kw_only=True)
class Order:
    """The description of the work. It can be pickled if the store can.

    Args:
        metadata: The table, as `sent_metadata` makes it.
        schema: The schema that the filter is bound to.
        bound: The filter.
        store: The table's storage.
        needed_by: As `ManifestSource.needed_by`.
        keys: As `ManifestWork.filtered`, like the next.
        admits: As there; a function that can be pickled.
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

    def carried_out(self, manifests: Iterable[Numbered]) -> bytes:
        """Do the work on these manifests, in order, up to the first error.

        Returns:
            An `Answer`.

        Raises:
            StorageFailed: The storage failed, which may be temporary. All other errors are returned in the file.
        """
        counters, requests = Counters(), Counters()
        store = CollectingStore(CountingStore(self.store, requests))
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
                own = work.filtered(manifest, self.keys, self.admits)
                if len(own.entries):
                    found[number] = compact_survivors(own, self.keys)
            except StorageFailed:
                raise
            except EngineError as raised:
                error = number, raised
                break
        survivors = {n: (each.entries.columns.batch, each.residual, each.residuals) for n, each in found.items()}
        return Answer(
            survivors=survivors,
            counters=counters.as_dict(),
            requests=requests.as_dict(),
            contradictions=tuple(store.found),
            error=error,
        ).encode()


def sent_metadata(metadata: TableMetadata, schema: Schema, bound: BoundPredicate) -> TableMetadata:
    """The table as needed for work on its manifests: without history, except the schemas of snapshots if a column of
    the filter is newer than some."""
    needed = WrittenSchemas(metadata, schema, bound.leaf_ids).has_newer_columns
    snapshots = (replace(s, summary={}, manifest_list=None, manifests=()) for s in metadata.snapshots if needed)
    return replace(
        metadata,
        snapshots=tuple(snapshots),
        snapshot_log=(),
        metadata_log=(),
        refs={},
        current_snapshot_id=None,
        partition_statistics=(),
    )


def balance(manifests: Sequence[ManifestFile], group_bytes: int) -> list[list[Numbered]]:
    """Distribute manifests over groups of about this many bytes and about equal size; in order within each.

    The largest manifests are assigned first, each to the smallest group.
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
    """The same survivors as entries of a manifest without others, which releases the memory of those.

    Metrics needed to match deletes are kept: for data files those of the columns `keys`; for delete files those of the
    columns that equality deletes compare, and the bounds of the paths that position deletes name.
    """
    entries = found.entries
    if entries.manifest.content == ManifestContent.DELETES:
        keys = key_columns([entries]) | {DELETE_FILE_PATH_ID}
    return replace(found, entries=live_entries(entries.manifest, _compact_columns(entries, keys)))


def _compact_columns(entries: LiveEntries, keys: frozenset[int]) -> ManifestColumns:
    """The columns of these entries alone, to which `live_entries` can be applied again."""
    chosen: dict[str, pa.Array] = {}
    for name in entries.columns.batch.schema.names:
        field, _, key = name.partition("/")
        if field not in MAPS or (int(key) in keys and field != "column_sizes"):
            column = entries.columns[name]
            chosen[name] = column if len(entries) == len(column) else take(column, entries.rows)
    # The only inherited value that depends on the entries before.
    chosen["first_row_id"] = entries.first_row_id
    return ManifestColumns(pa.RecordBatch.from_arrays(list(chosen.values()), list(chosen)))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The result of another process, pickled and compressed.

    Args:
        survivors: Batches of compacted survivors with their residuals, by the number of their manifest.
        counters: The work.
        requests: Requests to storage.
        contradictions: Those of its manifests.
        error: The number of the manifest that failed, and its error.
    """

    survivors: Mapping[int, tuple[pa.RecordBatch, Int64Array, tuple[BoundPredicate, ...]]]
    counters: dict[str, int]
    requests: dict[str, int]
    contradictions: tuple[Contradiction, ...] = ()
    error: tuple[int, EngineError] | None = None

    def encode(self) -> bytes:
        """The answer as bytes."""
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            pickle.dump(self, stream, protocol=pickle.HIGHEST_PROTOCOL)
        data: bytes = sink.getvalue().to_pybytes()
        return data

    @staticmethod
    def decode(data: bytes) -> Answer:
        """What `encode` made, in a process that this one started."""
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            answer = pickle.loads(stream.read())  # noqa: S301 - of a process that this one started
        assert isinstance(answer, Answer)
        return answer

    def filtered(self, manifests: Sequence[ManifestFile]) -> Iterator[tuple[int, Filtered]]:
        """The survivors by the number of their manifest."""
        for number, (batch, residual, residuals) in self.survivors.items():
            entries = live_entries(manifests[number], ManifestColumns(batch))
            yield number, Filtered(entries=entries, residual=residual, residuals=residuals)


def answers(
    given: Iterable[bytes],
    manifests: Sequence[ManifestFile],
    counters: Counters,
    requests: Counters | None = None,
    *,
    report: Callable[[Contradiction], None] = refuse,
) -> list[Filtered]:
    """The survivors of all manifests, in order, from the files of `Order.carried_out`.

    Args:
        given: One answer for each group of manifests.
        manifests: All of them.
        counters: Count the work.
        requests: Count requests to storage.
        report: Called with contradictions.

    Raises:
        EngineError: The error of the first manifest that failed, with its type, text and attributes.
    """
    found: list[tuple[int, Filtered]] = []
    failed: list[tuple[int, EngineError]] = []
    unusable = 0
    for data in given:
        answer = Answer.decode(data)
        if answer.error is not None:
            failed.append(answer.error)
        # Each process looks at the same indexes, and a plan counts one that it cannot use once.
        unusable = max(unusable, answer.counters.pop(INDEXES_UNUSABLE, 0))
        counters.merge(answer.counters)
        if requests is not None:
            requests.merge(answer.requests)
        for contradiction in answer.contradictions:
            report(contradiction)
        found += answer.filtered(manifests)
    if failed:
        raise min(failed, key=lambda each: each[0])[1]
    if unusable:
        counters.add(INDEXES_UNUSABLE, unusable)
    return [each for _, each in sorted(found, key=lambda each: each[0])]
