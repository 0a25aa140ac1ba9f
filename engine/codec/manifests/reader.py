"""Reads manifests: columns for planning, entries for rewriting and inspection (spec: "Manifests").

Every writer schema of format versions 1 to 3 is read by field id, extra fields included; what v1 lacks is null, except
`content`, which is then data.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import pyarrow as pa

from icebench.engine.codec.array_views import ManifestColumns, values_of
from icebench.engine.codec.avro.file import AvroBlock, AvroHeader, read_blocks, read_header, read_headers
from icebench.engine.codec.avro.reading.block_columns import MapFunction, decode_objects
from icebench.engine.codec.avro.reading.program import Selection
from icebench.engine.codec.manifests.decoded_entries import WITH_PAIRS, WITH_SLOTS, WITHOUT_METRICS, ManifestReader
from icebench.engine.codec.manifests.entries import entries_of
from icebench.engine.codec.manifests.entry_columns import EntryColumns, entry_columns
from icebench.engine.codec.manifests.header import ManifestHeader, decode_header, highest_field_id, spec_of
from icebench.engine.codec.manifests.listed_manifest import Report, are_as_listed, check_listed
from icebench.engine.errors import Contradiction, CorruptTable, refuse
from icebench.engine.spec.manifest import EntryStatus, ManifestEntry, ManifestFile
from icebench.engine.spec.partitioning import PartitionSpec

__all__ = [
    "ManifestBytes",
    "ManifestHeader",
    "decode_columns",
    "decode_columns_together",
    "decode_entries",
    "decode_entry_columns",
    "decode_header",
    "decode_listed",
]


def decode_columns(
    data: bytes,
    *,
    location: str | None = None,
    metrics: Collection[int] | None = (),
    map_chunks: MapFunction = map,
    listed: ManifestFile | None = None,
    report: Report = refuse,
) -> ManifestColumns:
    """Decode the entries of a manifest to columns.

    Args:
        data: The whole file.
        location: For messages.
        metrics: The column ids whose sizes, counts and bounds are wanted; None means all that occur. Asking for fewer
            is faster: unwanted metrics are skipped.
        map_chunks: Maps a function over parts of a large manifest, in order; a thread pool's `map` uses several cores.
        listed: Its entry in the manifest list, with which the manifest is compared.
        report: Called where its length or counts differ though its entries are certain; by default that raises too. See
            `icebench.engine.codec.manifests.listed_manifest`.

    Raises:
        CorruptTable: The bytes contradict the Avro or the Iceberg specification, or the manifest list; `path` says
            which block and entry.
        Unsupported: An Avro codec or schema that Iceberg does not use.
    """
    header = read_header(data, location=location)
    keys, selection = _selected(metrics)
    found = decode_objects(data, header, selection, keys=keys or (), map_chunks=map_chunks)
    columns = replace(ManifestReader(header, found).manifest_columns(keys), highest_field_id=highest_field_id(header))
    if listed is not None:
        _check_columns(columns, listed, len(data), report)
    return columns


@dataclass(frozen=True, slots=True)
class ManifestBytes:
    """A whole manifest, and its entry in the manifest list."""

    data: bytes
    listed: ManifestFile


def decode_columns_together(
    manifests: Sequence[ManifestBytes], metrics: Collection[int] | None = (), *, map_chunks: MapFunction = map
) -> list[ManifestColumns]:
    """Decode small manifests as `decode_listed` does each, those of one writer schema in one run: what is done once a
    run takes longer than decoding a few entries.

    Raises:
        As `decode_columns`: the error of the first manifest that has one. What together decodes to more than a file may
        is decoded one by one.
    """
    try:
        headers = read_headers((each.data, each.listed.manifest_path) for each in manifests)
        alike: dict[tuple[bytes, str], list[int]] = {}
        for place, header in enumerate(headers):
            alike.setdefault((header.schema_json, header.codec), []).append(place)
        found: dict[int, ManifestColumns] = {}
        for places in alike.values():
            own, of_own = [manifests[place] for place in places], [headers[place] for place in places]
            found |= zip(places, _decoded_together(own, of_own, metrics, map_chunks), strict=True)
    except CorruptTable:
        # Whatever is wrong, its error names the manifest, the block and the entry when each is decoded alone.
        return [decode_listed(each, metrics) for each in manifests]
    return [found[place] for place in range(len(manifests))]


def _decoded_together(
    manifests: Sequence[ManifestBytes],
    headers: Sequence[AvroHeader],
    metrics: Collection[int] | None,
    map_chunks: MapFunction,
) -> list[ManifestColumns]:
    """Of one writer schema and codec."""
    keys, selection = _selected(metrics)
    blocks: list[AvroBlock] = []
    counts = []
    start = 0
    for each, header in zip(manifests, headers, strict=True):
        own = read_blocks(each.data, header)
        blocks += [replace(block, start=start + block.start, end=start + block.end) for block in own]
        counts.append(sum(block.count for block in own))
        start += len(each.data)
    joined = b"".join(each.data for each in manifests)
    found = decode_objects(joined, headers[0], selection, keys=keys or (), map_chunks=map_chunks, blocks=blocks)
    columns = ManifestReader(headers[0], found).manifest_columns(keys)
    is_as_listed = are_as_listed(
        [each.listed for each in manifests],
        [len(each.data) for each in manifests],
        counts,
        status=columns.numbers("status"),
        record_count=columns.numbers("record_count"),
    )
    firsts = accumulate(counts, initial=0)
    # Concatenating one batch copies it: a manifest that a cache keeps does not keep the memory of the others.
    parts = [
        ManifestColumns(
            pa.concat_batches([columns.batch.slice(first, count)]), highest_field_id=highest_field_id(header)
        )
        for first, count, header in zip(firsts, counts, headers, strict=False)
    ]
    return [
        part if as_listed else _checked(part, each)
        for part, each, as_listed in zip(parts, manifests, is_as_listed.tolist(), strict=True)
    ]


def decode_listed(
    manifest: ManifestBytes, metrics: Collection[int] | None = (), *, map_chunks: MapFunction = map
) -> ManifestColumns:
    """As `decode_columns`, with the contradictions between a manifest and its list in the columns."""
    columns = decode_columns(
        manifest.data, location=manifest.listed.manifest_path, metrics=metrics, map_chunks=map_chunks
    )
    return _checked(columns, manifest)


def _checked(columns: ManifestColumns, manifest: ManifestBytes) -> ManifestColumns:
    found: list[Contradiction] = []
    _check_columns(columns, manifest.listed, len(manifest.data), found.append)
    return replace(columns, contradictions=tuple(found)) if found else columns


def _selected(metrics: Collection[int] | None) -> tuple[list[int] | None, Selection]:
    """The sorted columns whose metrics are wanted, None for all, and what to decode for that."""
    keys = None if metrics is None else sorted({key for key in metrics if key >= 0})
    return keys, WITH_PAIRS if keys is None else WITH_SLOTS if keys else WITHOUT_METRICS


def _check_columns(columns: ManifestColumns, listed: ManifestFile, size_bytes: int, report: Report) -> None:
    check_listed(
        listed,
        size_bytes,
        status=columns.numbers("status"),
        record_count=columns.numbers("record_count"),
        snapshot_id=columns["snapshot_id"],
        report=report,
    )


def decode_entries(
    data: bytes,
    *,
    location: str | None = None,
    map_chunks: MapFunction = map,
    listed: ManifestFile | None = None,
    report: Report = refuse,
) -> list[ManifestEntry]:
    """Decode the complete entries of a manifest, for rewriting and inspection.

    Partition tuples are in the order of the manifest's own partition spec. What is null is left null: inheritance is
    the planner's business. Arguments and errors are those of `decode_columns`; a file format that Iceberg does not use
    is Unsupported.
    """
    reader, spec = _whole(data, location, map_chunks, listed, report)
    return entries_of(reader, spec)


def decode_entry_columns(
    data: bytes, *, location: str | None = None, listed: ManifestFile | None = None, report: Report = refuse
) -> tuple[ManifestColumns, EntryColumns]:
    """Decode the complete entries of a manifest to columns: without metrics, as `decode_columns` does, and whole, for
    writing them again. All else as `decode_entries`."""
    reader, spec = _whole(data, location, map, listed, report)
    return entry_columns(reader, spec)


def _whole(
    data: bytes, location: str | None, map_chunks: MapFunction, listed: ManifestFile | None, report: Report
) -> tuple[ManifestReader, PartitionSpec]:
    header = read_header(data, location=location)
    spec = spec_of(header)
    reader = ManifestReader(header, decode_objects(data, header, WITH_PAIRS, map_chunks=map_chunks))
    if listed is not None:
        check_listed(
            listed,
            len(data),
            status=values_of(reader.code("status", EntryStatus)),
            record_count=values_of(reader.number("record_count")),
            snapshot_id=reader.number("snapshot_id"),
            report=report,
        )
    return reader, spec
