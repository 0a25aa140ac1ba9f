"""What is promised of statistics files: they say what is so of their snapshots, stay as long as these, and go with
them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TypeAlias

from tests.simulation.reading import Json, Reader
from tests.simulation.world import Violation

KEYS = ("statistics", "partition-statistics")
"""Of the lists in metadata."""
_KIND = "wrong statistics"

_Key: TypeAlias = "tuple[int, frozenset[object]]"


def check_kept(before: Json, after: Json, *, may_set: bool, who: object) -> None:
    """A snapshot has at most one file of each kind, and those of snapshots that stay are as they were.

    Args:
        before: The version before.
        after: The version.
        may_set: The operation sets statistics: there may be others.
        who: Made the version.
    """
    snapshots = {s["snapshot-id"] for s in after.get("snapshots", ())}
    for key in KEYS:
        files = {file["snapshot-id"]: file for file in after.get(key, ())}
        kept = {file["snapshot-id"]: file for file in before.get(key, ()) if file["snapshot-id"] in snapshots}
        if len(files) != len(after.get(key, ())):
            raise Violation(_KIND, f"{who} left several {key} of a snapshot")
        if kept.keys() - files.keys() if may_set else kept != files:
            raise Violation(_KIND, f"{who} left {key} of {sorted(files)}, after those of {sorted(kept)}")


def check_new(before: Json, after: Json, reader: Reader, who: object, *, may_be_gone: bool) -> None:
    """New files say what is so of their snapshots, which the table has.

    Over REST a snapshot may be gone (`may_be_gone`): no requirement says that there is one, so what is committed after
    an expiry is removed again; see `check_none_gone`.
    """
    snapshots = {s["snapshot-id"]: s for s in after.get("snapshots", ())}
    for key in KEYS:
        old = {file["statistics-path"] for file in before.get(key, ())}
        for file in after.get(key, ()):
            if file["statistics-path"] in old:
                continue
            snapshot = snapshots.get(file["snapshot-id"])
            if snapshot is None and may_be_gone:
                continue
            if snapshot is None:
                raise Violation(_KIND, f"{who}: of snapshot {file['snapshot-id']}, which is gone")
            size = len(reader.data(file["statistics-path"]))
            _expect_equal(file["file-size-in-bytes"], size, f"{who}: bytes of {file['statistics-path']}")
            if key == "statistics":
                blobs = [(each["fields"][0], int(each["properties"]["ndv"])) for each in file["blob-metadata"]]
                _expect_equal(blobs, [(column, reader.distinct(snapshot, column)) for column, _ in blobs], str(who))
            else:
                found = reader.partition_counts(file["statistics-path"])
                _expect_equal(found, _counted(reader, snapshot), f"{who}: files and rows of partitions")


def check_none_gone(metadata: Json, who: object) -> None:
    """The last version of a table has no files of snapshots that it does not have."""
    snapshots = {s["snapshot-id"] for s in metadata.get("snapshots", ())}
    for key in KEYS:
        if gone := {file["snapshot-id"] for file in metadata.get(key, ())} - snapshots:
            raise Violation(_KIND, f"{who}: {key} of snapshots {sorted(gone)} stay, which are gone")


def check_removed(paths: Collection[str], files: Collection[str], who: object) -> None:
    """Files of expired snapshots, which no snapshot that is left has, are deleted."""
    left = sorted(path for path in paths if path in files)
    if left:
        raise Violation("statistics survive", f"{who} left {left[0]}")


def paths_of(metadata: Json) -> set[str]:
    """The statistics files that a version needs."""
    return {file["statistics-path"] for key in KEYS for file in metadata.get(key, ())}


def _counted(reader: Reader, snapshot: Json) -> dict[_Key, Counter[str]]:
    counted: dict[_Key, Counter[str]] = {}
    for manifest, entry in reader.entries(snapshot):
        file = entry["data_file"]
        names = (
            ("data_file_count", "data_record_count"),
            (
                "dv_count" if file["file_format"].lower() == "puffin" else "position_delete_file_count",
                "position_delete_record_count",
            ),
            ("equality_delete_file_count", "equality_delete_record_count"),
        )[file.get("content") or 0]
        counts = counted.setdefault(reader.partition_of(manifest, file), Counter())
        counts.update(dict(zip(names, (1, file["record_count"]), strict=True)))
    return counted


def _expect_equal(found: object, wanted: object, what: str) -> None:
    if found != wanted:
        raise Violation(_KIND, f"{what}: {found}, not {wanted}")
