"""Exact work counters: the same work gives the same numbers in every run, on every machine.

A counter says how much work was done, never how long it took. The names are constants, so that a gate's baseline and
the code that counts cannot drift apart. Counting happens per block of work (a manifest, a row group), never per row.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

from icebench.engine.errors import Invalid

# Planning (spec: "Scan Planning").
MANIFESTS_IN_LIST = "manifests_in_list"
MANIFESTS_SKIPPED_BY_SUMMARY = "manifests_skipped_by_summary"
MANIFESTS_DECODED = "manifests_decoded"
MANIFEST_BYTES_DECODED = "manifest_bytes_decoded"
"""The length of those manifests as they are stored."""
ENTRIES_DECODED = "entries_decoded"
ENTRIES_SKIPPED_BY_PARTITION = "entries_skipped_by_partition"
ENTRIES_SKIPPED_BY_METRICS = "entries_skipped_by_metrics"
ENTRIES_SKIPPED_BY_SCHEMA_ID = "entries_skipped_by_schema_id"
ENTRIES_SKIPPED_BY_INDEX = "entries_skipped_by_index"
FILES_PLANNED = "files_planned"
DELETE_FILES_PLANNED = "delete_files_planned"

# Reading.
ROW_GROUPS_READ = "row_groups_read"
ROW_GROUPS_SKIPPED = "row_groups_skipped"
ROWS_DECODED = "rows_decoded"
ROWS_DELETED = "rows_deleted"
ROWS_RETURNED = "rows_returned"
DELETE_FILES_LOADED = "delete_files_loaded"
VECTORS_COALESCED = "vectors_coalesced"
"""Of these the deletion vectors that came with the request of another one."""
DELETE_POSITIONS_APPLIED = "delete_positions_applied"
DELETE_KEYS_APPLIED = "delete_keys_applied"

# Storage.
STORAGE_REQUESTS_READ = "storage_requests_read"
STORAGE_REQUESTS_RANGE_READ = "storage_requests_range_read"
STORAGE_REQUESTS_WRITE = "storage_requests_write"
STORAGE_REQUESTS_LIST = "storage_requests_list"
STORAGE_REQUESTS_DELETE = "storage_requests_delete"
STORAGE_REQUESTS_HEAD = "storage_requests_head"
STORAGE_BYTES_READ = "storage_bytes_read"
STORAGE_BYTES_WRITTEN = "storage_bytes_written"
METADATA_CONTRADICTIONS = "metadata_contradictions"
"""Files that contradict the metadata although their rows are certain; see `icebench.engine.storage.contradictions`."""

# Writing and committing.
FILES_WRITTEN = "files_written"
COMMIT_ATTEMPTS = "commit_attempts"


class Counters:
    """Named whole numbers that only grow. Safe to share between threads."""

    def __init__(self, initial: Mapping[str, int] | None = None) -> None:
        self._lock = Lock()
        self._values: dict[str, int] = {}
        for name, n in (initial or {}).items():
            self.add(name, n)

    def add(self, name: str, n: int = 1) -> None:
        """Count `n` more of `name`; ``add(name, 0)`` makes the name appear. Raises Invalid for a negative `n`."""
        if n < 0:
            raise Invalid(f"counter {name} cannot go down by {-n}")
        with self._lock:
            self._values[name] = self._values.get(name, 0) + n

    def merge(self, other: Counters | Mapping[str, int]) -> None:
        """Add every counter of `other`."""
        for name, n in (other.as_dict() if isinstance(other, Counters) else other).items():
            self.add(name, n)

    def as_dict(self) -> dict[str, int]:
        """A copy: every name that was ever added, sorted by name."""
        with self._lock:
            return dict(sorted(self._values.items()))

    def __getitem__(self, name: str) -> int:
        with self._lock:
            return self._values.get(name, 0)

    def __repr__(self) -> str:
        return f"Counters({self.as_dict()})"
