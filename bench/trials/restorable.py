"""A directory that every run finds as it was before the first one, in the same place, as metadata names whole paths."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Restorable:
    """A directory, and the same files once more.

    Args:
        place: The directory.
        aside: Where the files are kept, on the same file system.
    """

    place: Path
    aside: Path

    def keep(self) -> None:
        """Take the files as they are now."""
        shutil.copytree(self.place, self.aside, copy_function=_copied)

    def restore(self) -> None:
        """Put all files where they were, and no others."""
        shutil.rmtree(self.place)
        shutil.copytree(self.aside, self.place, copy_function=_copied)


def _copied(source: str, target: str) -> None:
    """A hard link for files that are never changed in place, else a copy."""
    if source.endswith((".parquet", ".avro")):
        os.link(source, target)
    else:
        shutil.copy2(source, target)
