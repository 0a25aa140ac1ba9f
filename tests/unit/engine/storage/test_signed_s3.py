"""What is particular to S3 with requests that somebody else signs; the rest is in `tests/contract/`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icebench.engine.storage.object_stores import signed_s3_store
from icebench.engine.storage.signed_s3 import S3Request
from icebench.errors import StorageFailed
from tests.services.scripted_http import Reply, Seen, scripted_server

PLACE = "s3://lake/db/f"


@pytest.mark.parametrize(("breaks", "retries"), [(1, {}), (4, {}), (5, {}), (1, {"s3.retry.num-retries": "0"})])
def test_a_file_that_breaks_off_is_read_again(breaks: int, retries: dict[str, str]) -> None:
    left, attempts = [2] * breaks, 1 if retries else 5

    def answer(_: Seen) -> Reply:
        return Reply(body=b"0123", cut_at=left.pop() if left else None)

    with scripted_server(answer) as server:
        own = {"s3.endpoint": server.address, "s3.region": "eu-west-1", **retries}
        store = signed_s3_store(own, lambda request: request)
        if breaks < attempts:
            assert store.read(PLACE) == b"0123"
        else:
            with pytest.raises(StorageFailed, match=f"cannot read {PLACE}"):
                store.read(PLACE)
        assert len(server.seen) == min(breaks + 1, attempts)


def test_a_missing_bucket_is_reported() -> None:
    body = "<Error><Code>NoSuchBucket</Code><Message>none of that name</Message></Error>"
    with scripted_server(lambda _: Reply(status=404, body=body)) as server:
        store = signed_s3_store({"s3.endpoint": server.address, "s3.region": "eu-west-1"}, lambda request: request)
        with pytest.raises(StorageFailed, match="NoSuchBucket"):
            store.read(PLACE)


def test_no_message_has_a_signature() -> None:
    def signed(request: S3Request) -> S3Request:
        return replace(request, url="http://127.0.0.1:9/lake/db/f?X-Amz-Signature=hidden")

    store = signed_s3_store({"s3.region": "eu-west-1", "s3.retry.num-retries": "0"}, signed)
    with pytest.raises(StorageFailed, match="cannot read s3://lake/db/f: Could not connect") as caught:
        store.read(PLACE)
    assert "hidden" not in str(caught.value)
