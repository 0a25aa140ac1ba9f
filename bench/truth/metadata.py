"""metadata.json as JSON: where it is, and the little of it that checking needs."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
from pyarrow import fs

from icebench.bench.errors import ConfigError, DatasetFailed

_VERSION = re.compile(r"v?(\d+)(?:-[^/]*)?(?:\.gz)?\.metadata\.json(?:\.gz)?$")


@dataclass(frozen=True)
class Column:
    """A top-level column of the current schema. `type` is the spec's text; "nested" stands for struct, list and map."""

    field_id: int
    name: str
    type: str
    initial_default: Any = None


Read = Callable[[str], bytes]
"""Gives all bytes of the file at a location; raises DatasetFailed."""


@dataclass(frozen=True)
class TableJson:
    """A table's metadata file.

    Args:
        location: The file, as given.
        values: Its JSON.
        read: Reads the table's files.
    """

    location: str
    values: Mapping[str, Any]
    read: Read = field(default=lambda location: read_bytes(location), repr=False, compare=False)  # noqa: PLW0108 - defined below

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Top-level columns of the current schema, in order."""
        schema = self.values.get("schema")
        for candidate in self.values.get("schemas", ()):
            if candidate["schema-id"] == self.values.get("current-schema-id", 0):
                schema = candidate
        assert schema is not None
        return tuple(
            Column(
                field["id"],
                field["name"],
                field["type"] if isinstance(field["type"], str) else "nested",
                field.get("initial-default"),
            )
            for field in schema["fields"]
        )

    @cached_property
    def snapshot(self) -> Mapping[str, Any] | None:
        """The current snapshot; None for a table without one."""
        wanted = self.values.get("current-snapshot-id")
        return next((s for s in self.values.get("snapshots", ()) if s["snapshot-id"] == wanted), None)

    @cached_property
    def partition_columns(self) -> tuple[str, ...]:
        """Source columns of the default partition spec."""
        default = self.values.get("default-spec-id", 0)
        specs = [s["fields"] for s in self.values.get("partition-specs", ()) if s["spec-id"] == default]
        return self._names(specs[0] if specs else self.values.get("partition-spec", ()))

    @cached_property
    def sort_columns(self) -> tuple[str, ...]:
        """Source columns of the default sort order."""
        default = self.values.get("default-sort-order-id", 0)
        orders = [o["fields"] for o in self.values.get("sort-orders", ()) if o["order-id"] == default]
        return self._names(orders[0] if orders else ())

    def _names(self, fields: Any) -> tuple[str, ...]:  # noqa: ANN401 - JSON
        name_of = {column.field_id: column.name for column in self.columns}
        found = [name_of.get(f["source-id"]) for f in fields if "source-id" in f and f.get("transform") != "void"]
        return tuple(dict.fromkeys(name for name in found if name is not None))


def load_table_json(path: str, read: Read | None = None) -> TableJson:
    """The metadata at a path or URI: a metadata file, or a table's directory, whose newest metadata file is taken.

    Args:
        path: Where; with `read` a metadata file.
        read: Reads the table's files, where they need credentials; None opens them by their locations alone.

    Raises:
        ConfigError: There is no table.
        DatasetFailed: The file is not table metadata.
    """
    location = metadata_file(path) if read is None else path
    data = (read or read_bytes)(location)
    try:
        values = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        if not isinstance(values, dict) or "format-version" not in values:
            raise ValueError("no format-version")
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise DatasetFailed(f"{location} is not table metadata: {error}") from error
    return TableJson(location, values, read or read_bytes)


def metadata_file(path: str) -> str:
    """The metadata file of a table: `path` itself, or in ``path/metadata`` what version-hint.text names, or the highest
    version.

    Raises:
        ConfigError: There is none.
    """
    with _readable(path):
        system, inner = filesystem(path)
        info = system.get_file_info(inner)
    if info.type == fs.FileType.File:
        return path
    if info.type != fs.FileType.Directory:
        raise ConfigError("no such table", path=path)
    folder = inner if PurePosixPath(inner).name == "metadata" else f"{inner.rstrip('/')}/metadata"
    files = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    versions = {f.base_name: int(m[1]) for f in files if (m := _VERSION.match(f.base_name))}
    if not versions:
        raise ConfigError("no metadata/*.metadata.json: not an Iceberg table", path=path)
    hinted = _hinted(system, f"{folder}/version-hint.text", versions)
    # Of two files of one version, one lost the race to commit; their modification times show which came later.
    times = {f.base_name: f.mtime_ns for f in files}
    newest = hinted or max(versions, key=lambda name: (versions[name], times[name]))
    base = path.rstrip("/") if folder == inner else f"{path.rstrip('/')}/metadata"
    return f"{base}/{newest}"


def filesystem(location: str) -> tuple[fs.FileSystem, str]:
    """The file system of a location, and the path in it; locations without a scheme are local.

    Percent signs and spaces stay as they are: Iceberg's locations are not encoded, as URIs are.
    """
    if location.startswith("file:"):
        return fs.LocalFileSystem(), _local_path(location)
    scheme, separator, rest = location.partition("://")
    if not separator:
        return fs.LocalFileSystem(), location
    authority, _, path = rest.partition("/")
    system, root = fs.FileSystem.from_uri(f"{scheme}://{authority}/")
    return system, f"{root.rstrip('/')}/{path}"


def _local_path(location: str) -> str:
    """The path of ``file:/a``, ``file:///a`` or ``file://localhost/a``."""
    rest = location.removeprefix("file:")
    if not rest.startswith("//"):
        return rest
    host, slash, path = rest[2:].partition("/")
    if host not in ("", "localhost"):
        raise DatasetFailed(f"{location} names the host {host!r}: a local file is file:///path")
    return slash + path


def read_bytes(location: str) -> bytes:
    """All bytes of a file.

    Raises:
        DatasetFailed: There is no such file, or it cannot be read.
    """
    with _readable(location):
        system, inner = filesystem(location)
        with system.open_input_stream(inner, compression=None) as stream:
            return stream.read()


@contextmanager
def _readable(location: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise DatasetFailed(f"no such file: {location}") from error
    except (OSError, pa.ArrowException) as error:
        raise DatasetFailed(f"{location} cannot be read: {' '.join(str(error).split())}") from error


def _hinted(system: fs.FileSystem, hint: str, versions: Mapping[str, int]) -> str | None:
    if system.get_file_info(hint).type != fs.FileType.File:
        return None
    with system.open_input_stream(hint) as stream:
        text = stream.read().decode().strip()
    return next((name for name, version in versions.items() if text in (name, str(version))), None)
