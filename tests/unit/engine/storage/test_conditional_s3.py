from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from pyarrow import fs

from icebench.engine.storage import conditional_s3
from icebench.engine.storage.conditional_s3 import ConditionalS3Store
from icebench.errors import AlreadyExists, CommitStateUnknown, StorageFailed


class Answers:
    """A client that gives these answers to PUTs, after those of the probe."""

    def __init__(self, *answers: int) -> None:
        self.left = [200, 412, *answers]

    def put_object(self, **_: Any) -> None:
        status = self.left.pop(0)
        if status != 200:
            raise ClientError({"Error": {}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")


def store_of(client: Answers, monkeypatch: pytest.MonkeyPatch, **options: Any) -> ConditionalS3Store:
    store = ConditionalS3Store(fs.LocalFileSystem(), {"s3://": ""}, {}, **options)
    monkeypatch.setattr(conditional_s3, "s3_client", lambda _: client)
    return store


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([200], None),
        ([409, 409, 200], None),
        ([409, 412], AlreadyExists),
        ([409] * 20, StorageFailed),
        ([403], StorageFailed),
        ([409, 503], CommitStateUnknown),
    ],
)
def test_a_file_is_written_once(
    answers: list[int], error: type[Exception] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, waits = Answers(*answers), list[float]()
    store = store_of(client, monkeypatch, sleep=waits.append, chance=lambda: 1.0)
    if error is None:
        store.write("s3://bucket/a", b"x")
    else:
        with pytest.raises(error):
            store.write("s3://bucket/a", b"x")
    assert not client.left
    conflicts = answers[:-1].count(409)
    assert waits == [0.01, 0.02, 0.04, 0.08, 0.16, *[0.32] * 14][:conflicts]
