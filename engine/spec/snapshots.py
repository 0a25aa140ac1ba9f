"""Snapshots, references and logs (spec: "Snapshots", "Snapshot References", "Snapshot Log", "Metadata Log")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from icebench.engine.display import count_text, html_table, printable, size_text
from icebench.engine.errors import Unsupported
from icebench.engine.spec.calendar import SECONDS_PER_DAY, iso_clock, iso_date

MAIN = "main"
"""The branch that is the table's current state."""

Operation = Literal["append", "replace", "overwrite", "delete"]

MOST_LONG = (1 << 63) - 1
"""The largest snapshot id of the specification."""

COUNT_DIGITS = 19
"""Of the largest long: no writer counts further."""


def count_of(text: str | None) -> int | None:
    """The count in a snapshot summary or a blob property; None for any other text."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > COUNT_DIGITS:
        return None
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of a table at one commit.

    `manifest_list` is None only in v1 tables that list `manifests` inline. `sequence_number` is 0 in v1.
    """

    snapshot_id: int
    parent_snapshot_id: int | None = None
    sequence_number: int = 0
    timestamp_ms: int
    manifest_list: str | None
    manifests: tuple[str, ...] = ()
    operation: Operation | None
    summary: Mapping[str, str] = field(default_factory=dict)
    schema_id: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None

    def __repr__(self) -> str:
        said = [str(self.snapshot_id), printable(self.operation or "no operation"), instant_text(self.timestamp_ms)]
        return f"Snapshot({', '.join([*said, *self._changes(), *self.totals()])})"

    def _repr_html_(self) -> str:
        parent = "none" if self.parent_snapshot_id is None else str(self.parent_snapshot_id)
        rows = [
            ("snapshot", str(self.snapshot_id)),
            ("parent", parent),
            ("operation", self.operation),
            ("time", instant_text(self.timestamp_ms)),
            ("changes", ", ".join(self._changes())),
            ("table", ", ".join(self.totals())),
        ]
        return html_table(("", ""), rows)

    def count(self, name: str) -> int | None:
        """The count of that name in the summary; None where the writer left it out or wrote no count."""
        text = self.summary.get(name)
        return count_of(text) if isinstance(text, str) else None

    def totals(self) -> list[str]:
        """Rows, files, bytes and deletes of the table as the summary counts them, in words; without what it lacks."""
        rows, files, size = (self.count(f"total-{name}") for name in ("records", "data-files", "files-size"))
        deletes = self.count("total-delete-files")
        found = [] if rows is None else [count_text(rows, "row")]
        found += [] if files is None else [count_text(files, "data file")]
        found += [] if size is None else [size_text(size)]
        return [*found, *([count_text(deletes, "delete file")] if deletes else [])]

    def _changes(self) -> list[str]:
        counts = [
            (sign, self.count(f"{verb}-{name}"), noun)
            for name, noun in (("records", "row"), ("data-files", "data file"), ("delete-files", "delete file"))
            for sign, verb in (("+", "added"), ("-", "deleted" if name != "delete-files" else "removed"))
        ]
        return [f"{sign}{count_text(count, noun)}" for sign, count, noun in counts if count]


def instant_text(milliseconds: int) -> str:
    """``2024-02-29 23:59:59 UTC`` of milliseconds since 1970, of any year."""
    days, seconds = divmod(milliseconds // 1_000, SECONDS_PER_DAY)
    return f"{iso_date(days)} {iso_clock(seconds, 1).partition('.')[0]} UTC"


def check_snapshot_ids(snapshots: Iterable[Snapshot], purpose: str) -> None:
    """Raise Unsupported for an id beyond a long: manifests cannot name it, so nothing finds what the snapshot added."""
    for snapshot in snapshots:
        if snapshot.snapshot_id > MOST_LONG:
            raise Unsupported(f"{purpose} with snapshot id {snapshot.snapshot_id}, which is beyond a long")


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRef:
    """A branch or a tag with its retention; None means the table's default."""

    snapshot_id: int
    type: Literal["branch", "tag"]
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotLogEntry:
    """When a snapshot became current."""

    timestamp_ms: int
    snapshot_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLogEntry:
    """A former metadata file."""

    timestamp_ms: int
    metadata_file: str
