"""Checks that the table does not list added files already, since a file that is listed twice is read twice.

The files are known by hashes of their places, eight bytes each, so that a stream of any length can be checked; where
hashes are equal, places are compared. A manifest never changes, so each is looked at once, however often the change is
staged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from icebench.engine.codec.array_views import data_of, offsets_of
from icebench.engine.codec.manifests import schema as ids
from icebench.engine.codec.manifests.data_file_columns import DataFileColumns
from icebench.engine.codec.manifests.reader import decode_columns
from icebench.engine.commit.staging_context import Staging
from icebench.engine.errors import AlreadyExists, Invalid
from icebench.engine.expressions.vectors import pack
from icebench.engine.plan.delete_targets import Hashes, find_delete_targets, is_in, location_hashes
from icebench.engine.plan.location_hashes import hash_locations
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.locations import same_place
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestFile

_AT_ONCE = 1_024
"""How many paths are hashed together."""


class NewFiles:
    """The files of one content that a change adds. A deletion vector is known by its data file, which has only one.

    Args:
        content: Whether they are data or delete files.
    """

    def __init__(self, content: ManifestContent) -> None:
        self._content = content
        self._waiting: list[str] = []
        self._parts: list[Hashes] = [np.zeros(0, np.uint64)]
        self._looked_at: set[str] = set()

    def add(self, file: DataFile) -> None:
        """Take a file that the change adds."""
        target = file.referenced_data_file if file.file_format == "puffin" else None
        self._waiting.append(file.file_path if target is None else target)
        if len(self._waiting) == _AT_ONCE:
            self._hash_waiting()

    def add_columns(self, files: DataFileColumns) -> None:
        """Take data files that are described by column."""
        paths = files.columns[ids.FILE_PATH]
        self._parts.append(hash_locations(offsets_of(paths).astype(np.int64), data_of(paths)))

    def check(self, listed: Sequence[ManifestFile], added: Sequence[str], staging: Staging) -> None:
        """Look for the files in the manifests of a base.

        Args:
            listed: The manifests of the base.
            added: Where the manifests of the files themselves are.
            staging: Storage and threads.

        Raises:
            Invalid: A file is added twice.
            AlreadyExists: The base lists one of them.
        """
        self._hash_waiting()
        if len(self._parts) > 1:
            self._parts = [np.sort(np.concatenate(self._parts))]
            (own,) = self._parts
            self._check_twice(own[1:][own[1:] == own[:-1]], added, staging)
        (own,) = self._parts
        unknown = [m for m in listed if m.content is self._content and m.manifest_path not in self._looked_at]
        found: list[tuple[int, str]] = []
        for hits in staging.runner.map(
            lambda m: list(find_live(m.manifest_path, self._content, own, staging, m)), unknown
        ):
            found += hits
        if found:
            self._check_places(found, added, staging)
        self._looked_at.update(manifest.manifest_path for manifest in unknown)

    def _hash_waiting(self) -> None:
        if self._waiting:
            self._parts.append(hashes_of(self._waiting))
            self._waiting = []

    def _check_twice(self, repeated: Hashes, added: Sequence[str], staging: Staging) -> None:
        if not len(repeated):
            return
        seen: dict[int, list[str]] = {}
        for location in added:
            for value, path in find_live(location, self._content, repeated, staging):
                if any(same_place(path, other) for other in seen.setdefault(value, [])):
                    raise Invalid(f"{path}: this file, or a deletion vector of it, is given twice")
                seen[value].append(path)

    def _check_places(self, found: Sequence[tuple[int, str]], added: Sequence[str], staging: Staging) -> None:
        listed: dict[int, list[str]] = {}
        for value, path in found:
            listed.setdefault(value, []).append(path)
        wanted = np.array(sorted(listed), np.uint64)
        for location in added:
            for value, path in find_live(location, self._content, wanted, staging):
                if any(same_place(path, other) for other in listed[value]):
                    reason = (
                        "the table lists this file already; its rows would count twice"
                        if self._content is ManifestContent.DATA
                        else "the table has this delete file, or a deletion vector of this data file, already"
                    )
                    raise AlreadyExists(f"{path}: {reason}")


def hashes_of(paths: Iterable[str]) -> Hashes:
    """The hashes of places, sorted."""
    return np.sort(hash_locations(*pack([path.encode() for path in paths])))


def find_live(
    location: str, content: ManifestContent, wanted: Hashes, staging: Staging, listed: ManifestFile | None = None
) -> Iterator[tuple[int, str]]:
    """Hash and place of the live files of a manifest that have one of these hashes, which are sorted. A deletion vector
    is known by its data file."""
    store = staging.store
    columns = decode_columns(store.read(location), location=location, listed=listed, report=store.report)
    hashes, paths = location_hashes(columns), columns["file_path"]
    by_target, targets = np.zeros(columns.count, np.bool_), paths
    if content is ManifestContent.DELETES:
        found = find_delete_targets(columns)
        by_target, targets = found.is_vector & found.is_given, found.paths
        hashes = np.where(by_target, found.hashes, hashes)
    is_live = columns.numbers("status") != EntryStatus.DELETED
    for row in np.flatnonzero(is_in(hashes, wanted) & is_live).tolist():
        yield int(hashes[row]), str((targets if by_target[row] else paths)[row].as_py(), "utf-8")
