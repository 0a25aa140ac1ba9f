"""S3 with conditional writes, which a directory catalog commits by: pyarrow has none, botocore does."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from threading import Lock
from typing import Any

from pyarrow import fs

from icebench.engine.errors import AlreadyExists, EngineError, StorageFailed, Unsupported
from icebench.engine.lazy_module import LazyModule
from icebench.engine.storage.arrow import ArrowStore
from icebench.engine.storage.retrying import Retries
from icebench.engine.storage.s3_client import s3_client
from icebench.engine.storage.store import WriteUncertain

_EXCEPTIONS = LazyModule("botocore.exceptions")

PROBE = ".icebench-conditional-put"
"""A file beside the first one that is written: by it, servers that ignore conditions are found out."""

_REQUEST_TIMEOUT, _CONCURRENT, _EXISTS, _TOO_MANY_REQUESTS, _SERVER_ERRORS = 408, 409, 412, 429, 500
_MOST_CONFLICTS = 20
"""While others write the same file, S3 answers 409 and wrote nothing: the request is to be sent again."""
_MIN_WAIT_SECONDS, _MAX_WAIT_SECONDS = 0.01, 0.32
"""The longest wait after the first conflict and after later ones, doubled each time; a random part of it is taken."""


class ConditionalS3Store(ArrowStore):
    """S3 whose `write` creates a file only once: a PUT with ``If-None-Match: *``.

    AWS S3 has that since August 2024, and MinIO, Ceph and others in recent versions; older servers ignore the header,
    so the first write of a store makes sure that a second PUT of a probe is refused. A request whose answer is lost is
    sent again; where that is refused because the file is there, the file is read to see whose it is. Files of
    `open_output` are checked for before they are uploaded, as by `ArrowStore`.

    Args:
        filesystem: For everything else.
        prefixes: As for `ArrowStore`.
        arguments: What the file system was made with.
        retries: As for `ArrowStore`.
    """

    def __init__(
        self,
        filesystem: fs.FileSystem,
        prefixes: Mapping[str, str],
        arguments: Mapping[str, Any],
        retries: Retries | None = None,
    ) -> None:
        super().__init__(filesystem, prefixes, retries)
        self._arguments = dict(arguments)
        self._lock = Lock()
        self._client: Any = None

    def __reduce__(self) -> tuple[object, ...]:
        # Executors only write files named by random ids.
        return ArrowStore, (self._fs, self._prefixes, self._retries)

    @property
    def creates_atomically(self) -> bool:
        return find_spec("botocore") is not None and "role_arn" not in self._arguments

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        if overwrite or not self.creates_atomically:
            super().write(location, data, overwrite=overwrite)
        elif not self._created(self._checked_client(location), location, data):
            raise AlreadyExists(f"{location} exists already")

    def _checked_client(self, location: str) -> Any:  # noqa: ANN401 - botocore has no types
        with self._lock:
            if self._client is None:
                client = s3_client(self._arguments)
                probe = f"{location.rpartition('/')[0]}/{PROBE}"
                if self._put(client, probe, b"")[0] and self._put(client, probe, b"")[0]:
                    raise Unsupported(f"a file-system catalog at {location}: the server ignores If-None-Match")
                self._client = client
            return self._client

    def _created(self, client: Any, location: str, data: bytes) -> bool:  # noqa: ANN401 - botocore has no types
        """Create a file; whether there was none."""
        is_done, lost = self._put(client, location, data)
        if is_done or lost is None:
            return is_done
        try:
            return self.read(location) == data
        except EngineError as error:
            raise WriteUncertain(f"unknown whether {location} was written: {lost}; then {error}") from None

    def _put(self, client: Any, location: str, data: bytes) -> tuple[bool, Exception | None]:  # noqa: ANN401
        """Send a file until there is an answer: whether the last request wrote it, rather than found it there, and the
        error of one before that may have written it."""
        lost: Exception | None = None
        failure: Exception | None = None
        for _ in self._retries.attempts():
            try:
                self._send(client, location, data)
            except _EXCEPTIONS.ClientError as error:
                status, failure = _status(error), error
                if status == _EXISTS:
                    return False, lost
                if status >= _SERVER_ERRORS or status == _REQUEST_TIMEOUT:
                    lost = error
                elif status != _TOO_MANY_REQUESTS:
                    break
            except (_EXCEPTIONS.EndpointConnectionError, _EXCEPTIONS.ConnectTimeoutError) as error:
                failure = error
            except _EXCEPTIONS.HTTPClientError as error:
                failure = lost = error
            except _EXCEPTIONS.BotoCoreError as error:
                failure = error
                break
            else:
                return True, lost
        if lost is not None:
            raise WriteUncertain(f"unknown whether {location} was written: {lost}") from None
        raise StorageFailed(f"cannot write {location}: {failure}") from None

    def _send(self, client: Any, location: str, data: bytes) -> None:  # noqa: ANN401 - botocore has no types
        """Send a file, again where others write it at the moment."""
        bucket, _, key = self._path(location).partition("/")
        for conflicts in range(_MOST_CONFLICTS):
            try:
                client.put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
            except _EXCEPTIONS.ClientError as error:
                if _status(error) != _CONCURRENT or conflicts == _MOST_CONFLICTS - 1:
                    raise
                longest = min(_MIN_WAIT_SECONDS * 2**conflicts, _MAX_WAIT_SECONDS)
                self._retries.sleep(self._retries.chance() * longest)
            else:
                return


def _status(error: Any) -> int:  # noqa: ANN401 - botocore has no types
    status: int = error.response["ResponseMetadata"]["HTTPStatusCode"]
    return status
