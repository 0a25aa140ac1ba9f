"""Canonical paths of locations: spellings are normalised, and symbolic links of directories are resolved.

Code that decides whether to delete a file compares canonical paths, never the text of locations.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from icebench.engine.spec.locations import parts, path_of


class CanonicalPaths:
    """Canonical paths of one table's files. Local directories are resolved once, so use one instance per operation.

    Args:
        table_location: Decides whether the table is on the local file system, where directories may be symbolic links.
    """

    def __init__(self, table_location: str) -> None:
        self._is_local = parts(table_location)[0] == ""
        self._real: dict[str, str] = {}

    def path(self, location: str) -> str:
        """The path that all spellings of a file's location have in common.

        It has no scheme and no bucket: files of two buckets may be taken for one, and are then kept.
        """
        directory, slash, name = path_of(location).rpartition("/")
        return self._directory(directory) + slash + name

    def is_inside(self, location: str, directories: Iterable[str]) -> bool:
        """Whether a file is below one of the directories, with the same scheme and authority. No file counts as below
        the local root directory, since no table owns a whole machine."""
        return any(self._is_below(location, f"{directory.rstrip('/')}/") for directory in directories)

    def _is_below(self, location: str, directory: str) -> bool:
        root = self._directory(path_of(directory))
        if parts(location)[:2] != parts(directory)[:2] or (self._is_local and not root):
            return False
        return self.path(location).startswith(f"{root}/")

    def _directory(self, path: str) -> str:
        if not self._is_local or not path.startswith("/") or "\0" in path:
            return path
        real = self._real.get(path)
        if real is None:
            real = self._real[path] = os.path.realpath(path).rstrip("/")
        return real
