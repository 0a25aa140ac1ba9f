"""Metadata tables ``entries`` and ``all_entries``: manifest entries, including deleted ones."""

from __future__ import annotations

import pyarrow as pa

from icebench.engine.inspect.contents import Contents
from icebench.engine.inspect.files import file_columns
from icebench.engine.inspect.readable_metrics import readable_metrics
from icebench.engine.spec.manifest import ManifestEntry
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.snapshots import Snapshot


def entries(contents: Contents, snapshot: Snapshot | None) -> pa.Table:
    """One row per entry of the snapshot's manifests: status (0 existing, 1 added, 2 deleted), snapshot_id,
    sequence_number, file_sequence_number, data_file (a struct), readable_metrics."""
    return _table(contents.metadata, list(contents.snapshot_entries(snapshot)))


def all_entries(contents: Contents) -> pa.Table:
    """As `entries`, for every manifest that any snapshot lists, each once."""
    return _table(contents.metadata, list(contents.all_entries()))


def _table(metadata: TableMetadata, rows: list[ManifestEntry]) -> pa.Table:
    files = [e.data_file for e in rows]
    columns = file_columns(metadata, files)
    data_file = pa.StructArray.from_arrays(
        list(columns.values()), fields=[pa.field(name, array.type) for name, array in columns.items()]
    )
    return pa.table(
        {
            "status": pa.array([int(e.status) for e in rows], pa.int32()),
            "snapshot_id": pa.array([e.snapshot_id for e in rows], pa.int64()),
            "sequence_number": pa.array([e.sequence_number for e in rows], pa.int64()),
            "file_sequence_number": pa.array([e.file_sequence_number for e in rows], pa.int64()),
            "data_file": data_file,
            "readable_metrics": readable_metrics(metadata.schema, files),
        }
    )
