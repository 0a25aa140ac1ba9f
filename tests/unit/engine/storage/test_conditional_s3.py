from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from pyarrow import fs

from engine.errors import AlreadyExists, StorageFailed
from engine.storage import conditional_s3
from engine.storage.arrow import ArrowStore
from engine.storage.conditional_s3 import ConditionalS3Store
from engine.storage.retrying import Retries
from engine.storage.store import WriteUncertain

PROBE = [200, 412]
Answer = int | str
"""A status, or how the connection fails."""


class Answers:
    """A client that gives these answers to PUTs; ``lost`` and ``written`` are lost, and ``written`` was carried out, as
    was 200. ``other`` is 412 for the file of somebody else."""

    def __init__(self, root: Path, *answers: Answer) -> None:
        self.root = root
        self.left = list(answers)

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, IfNoneMatch: str) -> None:  # noqa: N803 - botocore's
        assert IfNoneMatch == "*"
        answer = self.left.pop(0)
        place = self.root / Bucket / Key
        if answer in (200, "written", "other"):
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(b"of somebody else" if answer == "other" else Body)
        if answer == "unsent":
            raise EndpointConnectionError(endpoint_url="x")
        if answer in ("lost", "written"):
            raise ReadTimeoutError(endpoint_url="x")
        status = 412 if answer == "other" else answer
        if status != 200:
            raise ClientError({"Error": {}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")


@pytest.fixture
def store_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[ConditionalS3Store, Answers]]:
    def make(*answers: Answer, **options: Any) -> tuple[ConditionalS3Store, Answers]:
        client = Answers(tmp_path, *answers)
        given: dict[str, Any] = {"sleep": lambda _: None, **options}
        inner = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
        monkeypatch.setattr(conditional_s3, "s3_client", lambda _: client)
        return ConditionalS3Store(inner, {"s3://": ""}, {}, Retries(**given)), client

    return make


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([200], None),
        ([409, 409, 200], None),
        ([409, 412], AlreadyExists),
        ([409] * 20, StorageFailed),
        ([403], StorageFailed),
        ([412], AlreadyExists),
        ([503, 200], None),
        ([500, "lost", 429, "unsent", 200], None),
        ([503, 409, 412], WriteUncertain),  # gone again
        (["written", 412], None),
        (["written", 409, 503, 412], None),
        (["lost", "other"], AlreadyExists),
        (["unsent", "other"], AlreadyExists),
        (["lost", 403], WriteUncertain),
        (["unsent"] * 6, StorageFailed),
        (["lost"] + ["unsent"] * 5, WriteUncertain),
        ([503] * 6, WriteUncertain),
    ],
)
def test_a_file_is_written_once(
    answers: list[Answer], error: type[Exception] | None, store_of: Callable[..., tuple[ConditionalS3Store, Answers]]
) -> None:
    store, client = store_of(*PROBE, *answers)
    if error is None:
        store.write("s3://bucket/a", b"x")
        assert store.read("s3://bucket/a") == b"x"
    else:
        with pytest.raises(error) as caught:
            store.write("s3://bucket/a", b"x")
        assert type(caught.value) is error
    assert not client.left


def test_waits_between_conflicts(store_of: Callable[..., tuple[ConditionalS3Store, Answers]]) -> None:
    waits: list[float] = []
    store, _ = store_of(*PROBE, *[409] * 19, 200, sleep=waits.append, chance=lambda: 1.0)
    store.write("s3://bucket/a", b"x")
    assert waits == [0.01, 0.02, 0.04, 0.08, 0.16, *[0.32] * 14]


@pytest.mark.parametrize("probe", [[200, 503, 412], ["written", 412], [412], ["lost", 200, "written", 412]])
def test_a_faulted_probe_finds_that_conditions_are_honoured(
    probe: list[Answer], store_of: Callable[..., tuple[ConditionalS3Store, Answers]]
) -> None:
    store, client = store_of(*probe, 200)
    store.write("s3://bucket/a", b"x")
    assert not client.left


def test_executors_send_requests_again_too(store_of: Callable[..., tuple[ConditionalS3Store, Answers]]) -> None:
    store, _ = store_of(most=7)
    copy = pickle.loads(pickle.dumps(ConditionalS3Store(fs.LocalFileSystem(), {"s3://": ""}, {}, store._retries)))
    assert type(copy) is ArrowStore
    assert copy._retries.most == 7
