"""Object stores and HDFS through pyarrow's file systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from shutil import copyfileobj
from typing import IO

from pyarrow import fs

from engine.errors import FileNotFound, Invalid, Unsupported
from engine.storage.failures import translate_errors
from engine.storage.retrying import Retries
from engine.storage.spooled_output import SpooledOutputFile, UploadingStore
from engine.storage.store import FileInfo, InputFile

_WITHOUT_DIRECTORIES = (fs.S3FileSystem, fs.GcsFileSystem, fs.AzureFileSystem)
_COPY_BYTES = 1 << 20


class ArrowStore(UploadingStore):
    """A `pyarrow.fs.FileSystem` behind locations with a scheme.

    Args:
        filesystem: The file system.
        prefixes: By the prefix of a location, what stands in its place in the file system's own paths; for example
            ``{"s3://": "", "s3a://": ""}``.
        retries: Of requests that fail for the moment.
    """

    def __init__(self, filesystem: fs.FileSystem, prefixes: Mapping[str, str], retries: Retries | None = None) -> None:
        self._fs = filesystem
        self._prefixes = dict(prefixes)
        self._retries = retries or Retries()

    @property
    def filesystem(self) -> fs.FileSystem:
        """The file system."""
        return self._fs

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        path = self._path(location)

        def read() -> bytes:
            with self._fs.open_input_file(path) as file:
                left = max(file.size() - offset, 0)
                wanted = left if length is None else min(left, length)
                # S3 refuses a range that begins at the end.
                data: bytes = file.read_at(wanted, offset) if wanted else b""
            if len(data) < wanted:
                raise OSError(f"the connection broke after {len(data)} of {wanted} bytes")
            return data

        with translate_errors("read", location):
            return self._retries.run(read)

    def size(self, location: str) -> int:
        size: int = self._info(location).size
        return size

    def exists(self, location: str) -> bool:
        found: bool = self._found(location).type == fs.FileType.File
        return found

    def delete(self, location: str) -> None:
        self._info(location)
        path, attempts = self._path(location), 0

        def delete() -> None:
            nonlocal attempts
            attempts += 1
            try:
                self._fs.delete_file(path)
            except FileNotFoundError:
                # The answer to an attempt before was lost.
                if attempts == 1:
                    raise

        with translate_errors("delete", location):
            self._retries.run(delete)

    def list(self, prefix: str) -> Iterator[FileInfo]:
        root = self._path(prefix).rstrip("/")
        spelled = prefix.rstrip("/")
        selector = fs.FileSelector(root, allow_not_found=True, recursive=True)
        with translate_errors("list", prefix):
            found = self._retries.run(lambda: self._fs.get_file_info(selector))
        for info in sorted(found, key=lambda info: info.path):
            if info.type == fs.FileType.File:
                yield FileInfo(spelled + info.path[len(root) :], info.size, (info.mtime_ns or 0) // 1_000_000)

    def open_input(self, location: str) -> InputFile:
        path = self._path(location)
        with translate_errors("read", location):
            file: InputFile = self._retries.run(lambda: self._fs.open_input_file(path))
            return file

    def open_output(self, location: str, *, overwrite: bool = False) -> SpooledOutputFile:
        self._path(location)
        return super().open_output(location, overwrite=overwrite)

    def upload(self, location: str, data: IO[bytes]) -> None:
        path = self._path(location)
        if not isinstance(self._fs, _WITHOUT_DIRECTORIES):
            self._fs.create_dir(path.rpartition("/")[0], recursive=True)

        def upload() -> None:
            data.seek(0)
            with self._fs.open_output_stream(path) as stream:
                copyfileobj(data, stream, _COPY_BYTES)

        try:
            self._retries.run(upload)
        except OSError:
            # A failed upload may have left part of the file.
            with suppress(OSError):
                self._fs.delete_file(path)
            raise

    def _path(self, location: str) -> str:
        for prefix, path in self._prefixes.items():
            if location.startswith(prefix):
                rest = location.removeprefix(prefix)
                if "//" in rest and isinstance(self._fs, _WITHOUT_DIRECTORIES):
                    raise Unsupported(f"{location}: pyarrow reads no path with an empty segment")
                return path + rest
        raise Invalid(f"{location!r} does not begin with {' or '.join(self._prefixes)}")

    def _info(self, location: str) -> fs.FileInfo:
        info = self._found(location)
        if info.type != fs.FileType.File:
            raise FileNotFound(location)
        return info

    def _found(self, location: str) -> fs.FileInfo:
        path = self._path(location)
        with translate_errors("look for", location):
            return self._retries.run(lambda: self._fs.get_file_info(path))
