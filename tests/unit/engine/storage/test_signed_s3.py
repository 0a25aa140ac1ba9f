"""What is particular to S3 with requests that somebody else signs; the rest is in `tests/contract/`."""

from __future__ import annotations

import pytest

from engine.errors import StorageFailed
from engine.storage.object_stores import signed_s3
from tests.services.scripted_http import Reply, Seen, scripted_server

PLACE = "s3://lake/db/f"


@pytest.mark.parametrize("breaks", [1, 4, 5])
def test_a_file_that_breaks_off_is_read_again(breaks: int) -> None:
    left = [2] * breaks

    def answer(_: Seen) -> Reply:
        return Reply(body=b"0123", cut_at=left.pop() if left else None)

    with scripted_server(answer) as server:
        store = signed_s3({"s3.endpoint": server.address, "s3.region": "eu-west-1"}, lambda request: request)
        if breaks < 5:
            assert store.read(PLACE) == b"0123"
        else:
            with pytest.raises(StorageFailed, match=f"cannot read {PLACE}"):
                store.read(PLACE)
        assert len(server.seen) == min(breaks + 1, 5)


def test_a_missing_bucket_is_told() -> None:
    body = "<Error><Code>NoSuchBucket</Code><Message>none of that name</Message></Error>"
    with scripted_server(lambda _: Reply(status=404, body=body)) as server:
        store = signed_s3({"s3.endpoint": server.address, "s3.region": "eu-west-1"}, lambda request: request)
        with pytest.raises(StorageFailed, match="NoSuchBucket"):
            store.read(PLACE)
