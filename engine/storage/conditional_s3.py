"""S3 with conditional writes, which a directory catalog commits by: pyarrow has none, botocore does."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any

from pyarrow import fs

from icebench.engine.errors import AlreadyExists, CommitStateUnknown, EngineError, StorageFailed, Unsupported
from icebench.engine.storage.arrow import ArrowStore
from icebench.engine.storage.s3_client import s3_client

PROBE = ".icebench-conditional-put"
"""A file beside the first one that is written: by it, servers that ignore conditions are found out."""

_CONCURRENT, _EXISTS, _SERVER_ERRORS = 409, 412, 500
_MOST_REQUESTS = 20
"""While others write the same file, S3 answers 409 and wrote nothing: the request is to be sent again."""
_MIN_WAIT_SECONDS, _MAX_WAIT_SECONDS = 0.01, 0.32
"""The longest wait before the second request and before later ones, doubled each time; a random part of it is taken."""


class ConditionalS3Store(ArrowStore):
    """S3 whose `write` creates a file only once: a PUT with ``If-None-Match: *``.

    AWS S3 has that since August 2024, and MinIO, Ceph and others in recent versions; older servers ignore the header,
    so the first write of a store makes sure that a second PUT of a probe is refused. A request whose answer is lost is
    not sent again: `write` raises CommitStateUnknown, and the file may appear later. Files of `open_output` are checked
    for before they are uploaded, as by `ArrowStore`.

    Args:
        filesystem: For everything else.
        prefixes: As for `ArrowStore`.
        arguments: What the file system was made with.
        sleep: Waits for so many seconds.
        chance: Gives a number between 0 and 1.
    """

    def __init__(
        self,
        filesystem: fs.FileSystem,
        prefixes: Mapping[str, str],
        arguments: Mapping[str, Any],
        *,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(filesystem, prefixes)
        self._sleep, self._chance = sleep, chance
        self._arguments = dict(arguments)
        self._lock = Lock()
        self._client: Any = None

    def __reduce__(self) -> tuple[object, ...]:
        # Executors only write files named by random ids.
        return ArrowStore, (self._fs, self._prefixes)

    @property
    def creates_atomically(self) -> bool:
        return find_spec("botocore") is not None and "role_arn" not in self._arguments

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        if overwrite or not self.creates_atomically:
            super().write(location, data, overwrite=overwrite)
        elif not self._put(self._checked_client(location), location, data):
            raise AlreadyExists(f"{location} exists already")

    def _checked_client(self, location: str) -> Any:  # noqa: ANN401 - botocore has no types
        with self._lock:
            if self._client is None:
                client = s3_client(self._arguments)
                probe = f"{location.rpartition('/')[0]}/{PROBE}"
                if self._put(client, probe, b"") and self._put(client, probe, b""):
                    raise Unsupported(f"a file-system catalog at {location}: the server ignores If-None-Match")
                self._client = client
            return self._client

    def _put(self, client: Any, location: str, data: bytes) -> bool:  # noqa: ANN401 - botocore has no types
        """Create a file; whether there was none."""
        bucket, _, key = self._path(location).partition("/")
        errors = import_module("botocore.exceptions")
        requests = 0
        while True:
            requests += 1
            try:
                client.put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
            except errors.ClientError as error:
                status = error.response["ResponseMetadata"]["HTTPStatusCode"]
                if status == _EXISTS:
                    return False
                if status == _CONCURRENT and requests < _MOST_REQUESTS:
                    self._sleep(self._chance() * min(_MIN_WAIT_SECONDS * 2 ** (requests - 1), _MAX_WAIT_SECONDS))
                    continue
                kind: type[EngineError] = CommitStateUnknown if status >= _SERVER_ERRORS else StorageFailed
                raise kind(f"cannot write {location}: {error}") from None
            except (errors.EndpointConnectionError, errors.ConnectTimeoutError) as error:
                raise StorageFailed(f"cannot write {location}: {error}") from None
            except errors.HTTPClientError as error:
                raise CommitStateUnknown(f"cannot tell whether {location} was written: {error}") from None
            except errors.BotoCoreError as error:
                raise StorageFailed(f"cannot write {location}: {error}") from None
            return True
