"""Files of the local file system, written atomically.

A file is written under a temporary name in its own directory, flushed to the disk, and then given its name in one step:
a hard link, which fails when the name is taken, or a rename, which replaces it. Readers see all of a file or none.
"""

from __future__ import annotations

import errno
import os
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import pyarrow as pa

from icebench.engine.errors import AlreadyExists, Contradiction, Invalid
from icebench.engine.storage.contradictions import warn
from icebench.engine.storage.failures import storage_error, translate_errors
from icebench.engine.storage.store import FileInfo, InputFile, OutputFile, WriteUncertain

_NOT_FLUSHED = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
"""What file systems answer, some of networks among them, that cannot flush a directory."""


def local_path(location: str) -> Path:
    """The path of ``/a/b``, ``file:/a/b``, ``file:///a/b`` or ``file://localhost/a/b``; raises Invalid for others.

    Percent signs stay as they are: Iceberg writers put raw paths behind ``file:``, not encoded ones.
    """
    if location.startswith("file:"):
        rest = location.removeprefix("file:")
        if rest.startswith("//"):
            authority, slash, path = rest[2:].partition("/")
            if authority not in ("", "localhost"):
                raise Invalid(f"{location} names the host {authority!r}; a local file is file:///path")
            rest = slash + path
    else:
        rest = location
    if not rest.startswith("/"):
        raise Invalid(f"{location!r} is not an absolute local path")
    return Path(rest)


@dataclass(frozen=True)
class LocalStore:
    """The local file system.

    Args:
        durable: Flush files and directories to the disk before a write returns, so that a commit survives a power cut
            on file systems that can flush directories.
        new_id: Makes the unique part of temporary names.
    """

    durable: bool = True
    new_id: Callable[[], uuid.UUID] = uuid.uuid4

    @property
    def creates_atomically(self) -> bool:
        return True

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        with translate_errors("read", location):
            # Opening a named pipe would wait for a writer.
            descriptor = os.open(local_path(location), os.O_RDONLY | os.O_NONBLOCK)
            try:
                wanted = max(_regular(os.fstat(descriptor)).st_size - offset, 0)
                return _pread(descriptor, wanted if length is None else min(wanted, length), offset)
            finally:
                os.close(descriptor)

    def size(self, location: str) -> int:
        with translate_errors("read", location):
            return _regular(local_path(location).stat()).st_size

    def exists(self, location: str) -> bool:
        with translate_errors("look for", location):
            try:
                return stat.S_ISREG(local_path(location).stat().st_mode)
            except (FileNotFoundError, NotADirectoryError):
                return False

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        with self.open_output(location, overwrite=overwrite) as output:
            output.write(data)

    def delete(self, location: str) -> None:
        with translate_errors("delete", location):
            local_path(location).unlink()

    def list(self, prefix: str) -> Iterator[FileInfo]:
        root = str(local_path(prefix))
        with translate_errors("list", prefix):
            found = sorted(_walk(root), key=lambda entry: entry[0])
        spelled = prefix.rstrip("/")
        for path, info in found:
            yield FileInfo(spelled + path[len(root) :], info.st_size, info.st_mtime_ns // 1_000_000)

    def open_input(self, location: str) -> InputFile:
        with translate_errors("read", location):
            path = local_path(location)
            _regular(path.stat())
            file: InputFile = pa.OSFile(str(path), "rb")
            return file

    def open_output(self, location: str, *, overwrite: bool = False) -> LocalOutputFile:
        path = local_path(location)
        if not overwrite and self.exists(location):
            raise AlreadyExists(f"{location} exists already")
        # A long name is cut so that the temporary one stays within the 255 bytes that file systems allow.
        end = os.fsencode(path.name)[-150:].decode(errors="ignore")
        temporary = path.with_name(f".{end}.{self.new_id().hex}.tmp")
        with translate_errors("write", location):
            try:
                file = temporary.open("xb", buffering=0)
            except FileNotFoundError:
                _make_directory(path.parent, durable=self.durable)
                file = temporary.open("xb", buffering=0)
        return LocalOutputFile(location, path, temporary, file, overwrite=overwrite, durable=self.durable)

    def physical(self, location: str) -> str:
        return location

    def report(self, contradiction: Contradiction) -> None:
        warn(contradiction)


def _regular(status: os.stat_result) -> os.stat_result:
    """The status of a regular file; raises OSError for others, since reading a pipe or a device may never end."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, not a file")
    return status


def _make_directory(directory: Path, *, durable: bool) -> None:
    """Make a directory and those that it is in; `durable` ones outlast a power cut."""
    if directory.is_dir():
        return
    _make_directory(directory.parent, durable=durable)
    try:
        directory.mkdir(exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory)) from error
    if durable:
        _flush_directory(directory.parent)


def _pread(descriptor: int, wanted: int, offset: int) -> bytes:
    parts = []
    while wanted > 0:
        # One call moves at most 2 GiB on Linux.
        part = os.pread(descriptor, wanted, offset)
        if not part:
            break
        parts.append(part)
        wanted -= len(part)
        offset += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _walk(directory: str) -> Iterator[tuple[str, os.stat_result]]:
    """Walk the regular files below a directory. Files that vanish meanwhile are left out, symbolic links are not
    followed."""
    try:
        entries = list(os.scandir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path)
            continue
        with suppress(FileNotFoundError):
            info = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(info.st_mode):
                yield entry.path, info


def _link(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        if not temporary.samefile(path):  # NFS may have sent the request twice, and answers the second (open(2))
            raise


def _flush_directory(directory: Path) -> None:
    """Flush a directory to the disk, where its file system can."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOT_FLUSHED:
            raise
    finally:
        os.close(descriptor)


class LocalOutputFile(OutputFile):
    """A temporary file that takes its name at `close`."""

    def __init__(
        self, location: str, path: Path, temporary: Path, file: FileIO, *, overwrite: bool, durable: bool
    ) -> None:
        self._location = location
        self._path = path
        self._temporary = temporary
        self._file = file
        self._overwrite = overwrite
        self._durable = durable
        self._size = 0

    @property
    def closed(self) -> bool:
        return self._file.closed

    def write(self, data: bytes, /) -> int:
        rest = memoryview(data).cast("B")
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.abort()
            raise storage_error("write", self._location, error) from error
        written = memoryview(data).nbytes
        self._size += written
        return written

    def tell(self) -> int:
        return self._size

    def close(self) -> None:
        """Make the file visible. A second call does nothing.

        Raises:
            AlreadyExists: Someone else made the file meanwhile, and it is not to be replaced.
            StorageFailed: The disk refused; nothing is left behind.
            WriteUncertain: The file is visible, but its directory could not be flushed: a power cut may undo it.
        """
        if self._file.closed:
            return
        try:
            if self._durable:
                os.fsync(self._file.fileno())
            self._file.close()
            if self._overwrite:
                self._temporary.replace(self._path)
            else:
                _link(self._temporary, self._path)
                self._drop_temporary()
        except OSError as error:
            self.abort()
            raise storage_error("write", self._location, error) from error
        if self._durable:
            try:
                _flush_directory(self._path.parent)
            except OSError as error:
                failure = storage_error("flush the directory of", self._location, error)
                raise WriteUncertain(f"unknown whether a written file stays: {failure}") from error

    def abort(self) -> None:
        """Discard everything written; does nothing after `close`."""
        with suppress(OSError):
            self._file.close()
        self._drop_temporary()

    def _drop_temporary(self) -> None:
        # A leftover is harmless: readers never see it, and `list` shows it.
        with suppress(OSError):
            self._temporary.unlink()
