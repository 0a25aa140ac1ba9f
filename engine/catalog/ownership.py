"""Checks which files belong to a table, and may be deleted with it, and that tables do not share directories."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from icebench.engine.catalog.versions import VERSION_HINT, version_of
from icebench.engine.codec.metadata_json.files import parse_json_file
from icebench.engine.commit.committer import TableState
from icebench.engine.errors import CorruptTable, FileNotFound, Invalid
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.locations import lies_inside, parts, path_of
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import METADATA_PATH
from icebench.engine.storage.canonical_paths import CanonicalPaths
from icebench.engine.storage.store import FileInfo, Store

_METADATA_FILES = (".metadata.json", ".metadata.json.gz")
_HEAD_BYTES = 4096
STAGED = "staged-"
"""Begins the name of the metadata file that a transaction writes before it creates its table."""
_UNTIDY = ("", ".", "..")
_UUID = re.compile(r'"(?:table|view)-uuid"\s*:\s*"([^"\\]*)"')
"""Inside a string the quotes are escaped, so that this matches members alone."""


def overlapping(tables: Iterable[tuple[str, str]], location: str) -> str | None:
    """The name of a table or view that has its files in a directory, or has that directory in its own.

    A catalog says of a table's directory only where its metadata file is: ``metadata/`` below it, unless
    ``write.metadata.path`` says otherwise, where only that directory is known. All tables are looked at: prefixes of
    text do not find other spellings.

    Args:
        tables: Names and metadata files.
        location: The directory.
    """
    segments = path_of(location).split("/")
    for name, metadata_location in tables:
        directory, last = _directory_of(metadata_location)
        # Normalising is expensive: most tables have nothing in common, in whatever spelling.
        if segments[-1] not in metadata_location and last not in segments and last not in _UNTIDY:
            continue
        if lies_inside(metadata_location, location) or _holds(directory, location):
            return name
    return None


def overlap_error(name: str, location: str, other: str) -> Invalid:
    """The error of a table whose directory overlaps with another one's."""
    return Invalid(
        f"the location {location} of {name} is inside that of {other}, or {other} is inside it: "
        "maintenance of one would delete files of the other; choose another with location="
    )


def around(tables: Iterable[tuple[str, str]], location: str) -> Iterator[tuple[str, str]]:
    """The tables and views in whose directory a location seems to be, as far as `overlapping` knows directories: names
    and metadata files, of which those in a ``write.metadata.path`` may prove otherwise."""
    segments = path_of(location).split("/")
    for name, metadata_location in tables:
        directory, last = _directory_of(metadata_location)
        if (last in segments or last in _UNTIDY) and _holds(directory, location):
            yield name, metadata_location


def _directory_of(metadata_location: str) -> tuple[str, str]:
    """A table's directory by its metadata file, and the name of that directory."""
    directory = metadata_location.rpartition("/")[0].removesuffix("/metadata")
    return directory, directory.rpartition("/")[2]


def _holds(directory: str, location: str) -> bool:
    is_root = parts(f"{directory}/")[1:] == ("", "/")
    return not is_root and lies_inside(location, directory)


def new_write_paths(metadata: TableMetadata, base: TableMetadata | None) -> list[str]:
    """The directories that ``write.data.path`` and its kind name outside the table's location, and that they did not
    name in `base`."""
    former = () if base is None else base.own_locations[1:]
    return [
        path for path in metadata.own_locations[1:] if path not in former and not lies_inside(path, metadata.location)
    ]


def write_path_error(name: str, path: str, other: str) -> Invalid:
    """The error of a table that would write into the directory of another one."""
    return Invalid(
        f"{name} may not write to {path}, which is in the directory of {other}: removing orphan files of {other} would "
        "delete what is written there"
    )


def check_ownership(
    listed: Sequence[FileInfo],
    former: TableState,
    state: TableState,
    *,
    canonical: CanonicalPaths,
    store: Store,
    runner: Runner,
) -> None:
    """Check that no other table or view has its files among those of a table.

    Of metadata files that the table does not name the first bytes are read.

    Args:
        listed: All files in the table's directories.
        former: The table before they were listed.
        state: The table afterwards.
        canonical: Compares locations.
        store: The table's storage.
        runner: Reads metadata files side by side.

    Raises:
        Invalid: The listing has metadata of another table or view, or not the table's own.
    """
    metadata = state.metadata
    current = {canonical.path(former.metadata_location), canonical.path(state.metadata_location)}
    own = {canonical.path(each.metadata_file) for each in metadata.metadata_log}
    files = {each.location: canonical.path(each.location) for each in listed if each.location.endswith(_METADATA_FILES)}
    elsewhere = METADATA_PATH.of(metadata.properties)
    if current.isdisjoint(files.values()) and not (
        elsewhere and canonical.is_inside(state.metadata_location, [elsewhere])
    ):
        raise Invalid(
            f"no file is deleted: the table's metadata file {state.metadata_location} is not below its location "
            f"{metadata.location}, so that files there may be another table's"
        )

    def is_own(location: str) -> bool:
        return _is_of(metadata, location, store, canonical)

    others = [location for location, path in files.items() if path not in own | current]
    for location, ours in zip(others, runner.map(is_own, others), strict=True):
        if not ours and location.rpartition("/")[2].startswith(STAGED):
            raise Invalid(
                f"no file is deleted: {location} says that a transaction is creating another table in the directories "
                f"of the table {metadata.table_uuid} at {metadata.location}; if that transaction was killed, delete "
                "this file and try again"
            )
        if not ours:
            raise Invalid(
                f"no file is deleted: {location} is the metadata of another table or view, which has its files in the "
                f"directories of the table {metadata.table_uuid} at {metadata.location}"
            )


def surely_own(listed: Iterable[FileInfo], reached: Collection[str], canonical: CanonicalPaths) -> list[str]:
    """The locations of listed files that a dropped table may take with it: those that its metadata refers to, metadata
    files, the version hint, and Hadoop's checksum files ``.NAME.crc`` of these.

    All other files stay. No name and no directory proves whose they are: another table may have its
    ``write.data.path`` here, and its files are named alike.

    Args:
        listed: Files in the table's directories, after `check_ownership`.
        reached: Canonical paths of the files that the table's metadata refers to.
        canonical: Compares locations.
    """

    def is_own(directory: str, name: str) -> bool:
        return name.endswith(_METADATA_FILES) or name == VERSION_HINT or f"{directory}/{name}" in reached

    found = []
    for each in listed:
        directory, _, name = canonical.path(each.location).rpartition("/")
        checked = name[1:].removesuffix(".crc") if name.startswith(".") and name.endswith(".crc") else name
        if is_own(directory, name) or is_own(directory, checked):
            found.append(each.location)
    return found


def is_own_version(metadata: TableMetadata, location: str, store: Store, canonical: CanonicalPaths) -> bool:
    """Whether a file has a name that nobody else's will ever have, or is a version file ``vN.metadata.json`` that is
    still of this table, or of none."""
    return not version_of(location.rpartition("/")[2]) or _is_of(metadata, location, store, canonical)


def _is_of(metadata: TableMetadata, location: str, store: Store, canonical: CanonicalPaths) -> bool:
    """Whether a metadata file is of this table, or of none."""
    try:
        found = _UUID.search(store.read(location, 0, _HEAD_BYTES).decode("utf-8", "replace"))
        if found is not None:
            return found[1].lower() == metadata.table_uuid.lower()
        document = parse_json_file(store.read(location), location=location)
    except FileNotFound:
        return True
    except CorruptTable:
        # What a writer was about to write when it died: no table can be at it.
        return True
    if not isinstance(document, dict):
        return True
    uuid = document.get("table-uuid", document.get("view-uuid"))
    if uuid is not None:
        return str(uuid).lower() == metadata.table_uuid.lower()
    # Version 1 need not have one.
    return "location" not in document or canonical.path(str(document["location"])) == canonical.path(metadata.location)
