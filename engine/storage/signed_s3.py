"""S3 whose requests somebody else signs, so that this process needs no credentials; by botocore, since pyarrow signs
requests itself."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import IO, Any

from icebench.engine.errors import FileNotFound, Invalid, StorageFailed
from icebench.engine.lazy_module import LazyModule
from icebench.engine.storage.s3_client import s3_client
from icebench.engine.storage.spooled_output import SpooledOutputFile, UploadingStore
from icebench.engine.storage.store import FileInfo, InputFile

_EXCEPTIONS = LazyModule("botocore.exceptions")
_ATTEMPTS = 5
"""Of a request, unless ``s3.retry.num-retries`` says otherwise."""
_NOT_SATISFIABLE = 416


@dataclass(frozen=True, slots=True)
class S3Request:
    """A request to S3, without its body. Names of headers are in lower case."""

    method: str
    region: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


class SignedS3Store(UploadingStore):
    """Files of S3, each request signed by `sign`. Files are uploaded by one PUT, so they have at most 5 GB.

    Args:
        arguments: Of `pyarrow.fs.S3FileSystem`: address, region, times.
        sign: Gives the request as it is to be sent, and raises EngineError if it may not be. Bodies are not signed.
            Called by many threads.
        schemes: Of locations.

    Raises:
        NotInstalled: botocore is not installed.
    """

    def __init__(
        self, arguments: Mapping[str, Any], sign: Callable[[S3Request], S3Request], schemes: tuple[str, ...]
    ) -> None:
        self._arguments, self._sign, self._schemes = dict(arguments), sign, schemes
        retries = arguments.get("retry_strategy")
        self._attempts: int = _ATTEMPTS if retries is None else retries.max_attempts
        self._lock = Lock()
        self._made: Any = None

    def __reduce__(self) -> tuple[object, ...]:
        return SignedS3Store, (self._arguments, self._sign, self._schemes)

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        if length == 0:
            return b""
        wanted = {} if (offset, length) == (0, None) else {"Range": _range(offset, length)}
        for attempt in range(1, self._attempts + 1):
            with self._asking("read", location) as (client, place):
                try:
                    data: bytes = client.get_object(**place, **wanted)["Body"].read()
                except _EXCEPTIONS.ClientError as error:
                    if _status(error) != _NOT_SATISFIABLE:
                        raise
                    return b""  # begins at the end
                except (_EXCEPTIONS.HTTPClientError, _EXCEPTIONS.IncompleteReadError):
                    # The connection broke within the body, for which botocore does not try again.
                    if attempt == self._attempts:
                        raise
                else:
                    return data
        raise AssertionError

    def size(self, location: str) -> int:
        with self._asking("look for", location) as (client, place):
            size: int = client.head_object(**place)["ContentLength"]
            return size

    def exists(self, location: str) -> bool:
        try:
            self.size(location)
        except FileNotFound:
            return False
        return True

    def delete(self, location: str) -> None:
        self.size(location)
        with self._asking("delete", location) as (client, place):
            client.delete_object(**place)

    def list(self, prefix: str) -> Iterator[FileInfo]:
        spelled = prefix.rstrip("/")
        with self._asking("list", spelled) as (client, place):
            root = place["Key"] + "/" if place["Key"] else ""
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=place["Bucket"], Prefix=root)
            found = [each for page in pages for each in page.get("Contents", ())]
        for each in sorted(found, key=lambda each: each["Key"]):
            # What ends with a slash stands for a directory.
            if not each["Key"].endswith("/"):
                modified_ms = int(each["LastModified"].timestamp() * 1000)
                yield FileInfo(f"{spelled}/{each['Key'][len(root) :]}", each["Size"], modified_ms)

    def open_input(self, location: str) -> InputFile:
        return _Input(self, location, self.size(location))

    def open_output(self, location: str, *, overwrite: bool = False) -> SpooledOutputFile:
        self._place(location)
        return super().open_output(location, overwrite=overwrite)

    def upload(self, location: str, data: IO[bytes]) -> None:
        with self._asking("write", location) as (client, place):
            client.put_object(**place, Body=data)

    @contextmanager
    def _asking(self, action: str, location: str) -> Iterator[tuple[Any, dict[str, str]]]:
        """The client, and the arguments that name a file; errors of botocore become the engine's."""
        place, client = self._place(location), self._client()
        try:
            yield client, place
        except _EXCEPTIONS.ClientError as error:
            if _status(error) == 404 and error.response["Error"]["Code"] != "NoSuchBucket":
                raise FileNotFound(location) from None
            raise StorageFailed(f"cannot {action} {location}: {error}") from None
        except _EXCEPTIONS.BotoCoreError as error:
            # It may have the request's address, whose query may be a signature.
            raise StorageFailed(f"cannot {action} {location}: {str(error).partition('?')[0]}") from None

    def _place(self, location: str) -> dict[str, str]:
        scheme, _, rest = location.partition("://")
        if scheme not in self._schemes:
            raise Invalid(f"{location!r} does not begin with {' or '.join(f'{each}://' for each in self._schemes)}")
        bucket, _, key = rest.partition("/")
        return {"Bucket": bucket, "Key": key}

    def _client(self) -> Any:  # noqa: ANN401 - botocore has no types
        with self._lock:
            if self._made is None:
                self._made = s3_client(self._arguments, attempts=self._attempts, sign=self._before_sign)
            return self._made

    def _before_sign(self, request: Any, **_: object) -> None:  # noqa: ANN401 - botocore has no types
        request.headers["X-Amz-Content-SHA256"] = "UNSIGNED-PAYLOAD"
        own = {name.lower(): _text(value) for name, value in request.headers.items()}
        signed = self._sign(S3Request(request.method, request.context["client_region"], request.url, own))
        for name, value in signed.headers.items():
            del request.headers[name]
            request.headers[name] = value
        request.url = signed.url


class _Input(InputFile):
    """A file that is read by requests for its parts, none of which is kept."""

    def __init__(self, store: SignedS3Store, location: str, size: int) -> None:
        self._store, self._location, self._size = store, location, size
        self._at = 0
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def read(self, nbytes: int = -1, /) -> bytes:
        left = max(self._size - self._at, 0)
        data = self._store.read(self._location, self._at, left if nbytes < 0 else min(nbytes, left))
        self._at += len(data)
        return data

    def seek(self, position: int, whence: int = io.SEEK_SET, /) -> int:
        self._at = position + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return self._size

    def close(self) -> None:
        self._closed = True


def _range(offset: int, length: int | None) -> str:
    return f"bytes={offset}-{'' if length is None else offset + length - 1}"


def _status(error: Any) -> int:  # noqa: ANN401 - botocore has no types
    status: int = error.response["ResponseMetadata"]["HTTPStatusCode"]
    return status


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")
