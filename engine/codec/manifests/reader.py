"""Reads manifests: columns for planning, entries for rewriting and inspection (spec: "Manifests").

Every writer schema of format versions 1 to 3 is read by field id, extra fields included; what v1 lacks is null, except
`content`, which is then data.
"""

from __future__ import annotations

from collections.abc import Collection

from icebench.engine.codec.array_views import ManifestColumns, values_of
from icebench.engine.codec.avro.file import read_header
from icebench.engine.codec.avro.reading.block_columns import MapFunction, decode_objects
from icebench.engine.codec.manifests.decoded_entries import WITH_PAIRS, WITH_SLOTS, WITHOUT_METRICS, ManifestReader
from icebench.engine.codec.manifests.entries import entries_of
from icebench.engine.codec.manifests.entry_columns import EntryColumns, entry_columns
from icebench.engine.codec.manifests.header import ManifestHeader, decode_header, spec_of
from icebench.engine.codec.manifests.listed_manifest import Report, check_listed
from icebench.engine.errors import refuse
from icebench.engine.spec.manifest import EntryStatus, ManifestEntry, ManifestFile
from icebench.engine.spec.partitioning import PartitionSpec

__all__ = [
    "ManifestHeader",
    "decode_columns",
    "decode_entries",
    "decode_entry_columns",
    "decode_header",
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
    keys = None if metrics is None else sorted({key for key in metrics if key >= 0})
    selection = WITH_PAIRS if keys is None else WITH_SLOTS if keys else WITHOUT_METRICS
    found = decode_objects(data, header, selection, keys=keys or (), map_chunks=map_chunks)
    columns = ManifestReader(header, found).manifest_columns(keys)
    if listed is not None:
        check_listed(
            listed,
            len(data),
            status=columns.numbers("status"),
            record_count=columns.numbers("record_count"),
            snapshot_id=columns["snapshot_id"],
            report=report,
        )
    return columns


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
