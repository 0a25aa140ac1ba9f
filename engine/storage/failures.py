"""Converts errors of operating systems to the engine's errors: one line each, with a remedy."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from icebench.engine.errors import AlreadyExists, EngineError, FileNotFound, StorageFailed, without_secrets

_ADVICE = {
    errno.ENOSPC: "the disk is full; free some space or use another location",
    errno.EDQUOT: "the disk quota is used up; free some space or use another location",
    errno.EROFS: "the file system is mounted read-only; use another location",
    errno.EACCES: "permission denied; check the owner and mode of the file and its directories",
    errno.EPERM: "the operation is not permitted there; check the file system and the owner of the directory",
    errno.EOPNOTSUPP: "the file system lacks an operation (hard links) that atomic writes need; use another one",
    errno.ENOTDIR: "a part of the path is a file, not a directory",
    errno.EISDIR: "that is a directory, not a file",
    errno.ENAMETOOLONG: "the name is longer than the file system allows",
    errno.EMFILE: "too many open files; raise the limit (ulimit -n)",
    errno.EIO: "the device reported an input/output error",
}


_HDFS_LIBRARIES = ("libhdfs", "libjvm")
_HDFS_ADVICE = (
    "HDFS needs a Java runtime and Hadoop's native client, libhdfs: install both, set JAVA_HOME, HADOOP_HOME and "
    "CLASSPATH=$(hadoop classpath --glob), and start again"
)
_REFUSALS = (OSError, pa.ArrowException, ValueError, MemoryError)
"""What operating systems and pyarrow raise; a path that cannot be one (``s3://bucket//key``, a zero byte) is a
ValueError."""


def storage_error(action: str, location: str, error: Exception) -> EngineError:
    """The engine's error for a failure of `action` ("read", "write", ...) at `location`."""
    if isinstance(error, FileNotFoundError):
        return FileNotFound(location)
    if isinstance(error, FileExistsError):
        return AlreadyExists(f"{location} exists already")
    if isinstance(error, MemoryError):
        return StorageFailed(f"cannot {action} {location}: it is larger than the memory")
    if any(name in str(error) for name in _HDFS_LIBRARIES):
        return StorageFailed(f"cannot {action} {location}: {_HDFS_ADVICE}")
    reason = _ADVICE.get(getattr(error, "errno", None) or 0) or next(iter(str(error).splitlines()), repr(error))
    return StorageFailed(f"cannot {action} {location}: {reason}")


@contextmanager
def translate_errors(action: str, location: str) -> Iterator[None]:
    """Context in which errors of the storage become errors of the engine."""
    try:
        yield
    except _REFUSALS as error:
        # A cause is printed with the error, and Azure's have the address that a token signs.
        has_secrets = without_secrets(str(error)) != str(error)
        raise storage_error(action, location, error) from (None if has_secrets else error)
