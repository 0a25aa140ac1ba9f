"""A view of a table whose files are elsewhere than its metadata say, or are named by relative locations: what is read
from elsewhere cannot be written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from os.path import realpath

from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.spec.locations import is_relative, moved_location, parts, rest_below, same_storage
from icebench.engine.storage.forwarding import ForwardingStore
from icebench.engine.storage.store import FileInfo, OutputFile, Store


class RelocatedStore(ForwardingStore):
    """Reads ``new + rest`` where the metadata has ``old + rest``.

    Locations keep their old spelling everywhere (position deletes refer to data files by it); only bytes come from
    elsewhere, and `physical` returns the new location. A prefix covers all spellings of locations below it
    (`icebench.engine.spec.locations.rest_below`), the longest one wins, and a location under no prefix is read as it
    is.

    Args:
        store_for: Returns the store of a physical location.
        prefixes: Old prefix -> new prefix.
        root: The directory of relative locations; None if there are none.
    """

    def __init__(self, store_for: Callable[[str], Store], prefixes: Mapping[str, str], root: str | None = None) -> None:
        self._store_for = store_for
        self._prefixes = sorted(
            ((old.rstrip("/"), new) for old, new in prefixes.items()), key=lambda p: -len(parts(p[0])[2])
        )
        self._root = root

    @property
    def creates_atomically(self) -> bool:
        return False

    def physical(self, location: str) -> str:
        for old, new in self._prefixes:
            moved = moved_location(location, old, new)
            if moved is not None:
                return moved
        if self._root is not None and is_relative(location):
            return f"{self._root}/{parts(location)[2]}"
        return location

    def list(self, prefix: str) -> Iterator[FileInfo]:
        store, physical = self._at(prefix)
        cut = len(physical.rstrip("/"))
        for info in store.list(physical):
            yield FileInfo(prefix.rstrip("/") + info.location[cut:], info.size_bytes, info.modified_ms)

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        super().write(self._own(location), data, overwrite=overwrite)

    def delete(self, location: str) -> None:
        super().delete(self._own(location))

    def open_output(self, location: str, *, overwrite: bool = False) -> OutputFile:
        return super().open_output(self._own(location), overwrite=overwrite)

    def _own(self, location: str) -> str:
        """The location, if it is not read from elsewhere; Unsupported otherwise."""
        if self.physical(location) != location:
            elsewhere = f"{location}, read from {self.physical(location)}"
            raise Unsupported(f"a relocated table is read-only: {elsewhere}, cannot be written or deleted")
        return location

    def _at(self, location: str) -> tuple[Store, str]:
        physical = self.physical(location)
        return self._store_for(physical), physical


def home_of(metadata_location: str) -> str | None:
    """The directory whose ``metadata`` directory holds a metadata file; None for metadata kept in another place."""
    home, _, directory = metadata_location.rpartition("/")[0].rpartition("/")
    return home if home and directory == "metadata" else None


def root_of_relative_locations(stated: str, home: str) -> str:
    """Where relative locations begin: at the table's directory, or where its own location does, if that is relative and
    leads to this directory.
    """
    relative = parts(stated.rstrip("/"))[2]
    return home.removesuffix(f"/{relative}") if is_relative(stated) else home


def was_moved(stated: str, home: str, sample: str | None, store_for: Callable[[str], Store]) -> bool:
    """Whether the files of a table that has its metadata in one place and names another are in the first.

    The stated place is only looked at if it is in the same storage as the other: no client is made, and no credentials
    are needed, for storage that a table was copied from.

    Args:
        stated: The table's location according to its metadata.
        home: The directory of its metadata file; see `home_of`.
        sample: A file that the metadata refer to; None if there is none.
        store_for: Returns the store of a location.
    """
    if is_relative(stated) or rest_below(home, stated) == "" or _is_same_directory(stated, home):
        return False
    if sample is None:
        return True
    rest = rest_below(sample, stated)
    if rest is None or not store_for(home).exists(home + rest):
        return False
    if not same_storage(stated, home):
        return True
    try:
        return not store_for(stated).exists(sample)
    except Invalid:
        return True  # such as file://directory/table, where directory is no host


def _is_same_directory(left: str, right: str) -> bool:
    own, other = parts(left), parts(right)
    return own[0] == other[0] == "" and "\0" not in left + right and realpath(own[2]) == realpath(other[2])
