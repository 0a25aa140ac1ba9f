"""Which server signs requests to S3, and for how long a signature serves."""

from __future__ import annotations

import pytest

from icebench.engine.catalog.rest_signing import SIGN, RemoteSigner, remote_signer
from icebench.engine.codec.metadata_json.rest import RemoteSigning
from icebench.engine.storage.signed_s3 import S3Request
from icebench.errors import StorageFailed, Unsupported
from tests.services.scripted_http import Reply
from tests.unit.engine.catalog.rest_answers import error, opened

ASKED = S3Request("GET", "eu-west-1", "https://s3/lake/f", {"range": "bytes=0-3", "x-own": "1"})
PLAIN = RemoteSigning({}, {})
SIGNED = {
    "uri": "https://s3/lake/f?v=1",
    "headers": {"Authorization": ["AWS4 SignedHeaders=host;x-amz-date, Signature=s"], "x-own": ["2"], "Range": ["x"]},
}
KEPT = {"Cache-Control": "private"}


def test_a_signature_serves_half_a_minute() -> None:
    now = [0.0]
    with opened({"POST /sign": [Reply(body=SIGNED, headers=KEPT)]}) as catalog:
        signer = RemoteSigner(f"{catalog.server.address}/sign", PLAIN, catalog.session, clock=lambda: now[0])
        sent = signer(ASKED)
        assert sent.url == "https://s3/lake/f?v=1"
        assert dict(sent.headers) == {
            **ASKED.headers,
            "authorization": "AWS4 SignedHeaders=host;x-amz-date, Signature=s",
        }
        for now[0], count in ((29.9, 1), (30.0, 2)):
            signer(ASKED)
            assert len(catalog.requests()) == count


@pytest.mark.parametrize(
    ("options", "path"),
    [({}, "/v1/namespaces/db/tables/t/sign"), ({"signer.uri": "{address}/other"}, "/other/v1/aws/s3/sign")],
)
def test_a_servers_own_address_stands_above_the_catalogs(options: dict[str, str], path: str) -> None:
    config = {"defaults": {}, "overrides": {}, "endpoints": [str(SIGN)]}
    with opened({f"POST {path}": [Reply(body=SIGNED)]}, config=config) as catalog:
        own = {name: value.replace("{address}", catalog.server.address) for name, value in options.items()}
        remote_signer(catalog.session, ("db", "t"), PLAIN, own)(ASKED)
        assert catalog.requests() == [f"POST {path}"]


@pytest.mark.parametrize("reply", [error(503), error(403, message="not yours")])
def test_a_signature_that_is_not_given_is_an_error_of_storage(reply: Reply) -> None:
    with opened({"POST /sign": [reply]}) as catalog:
        signer = RemoteSigner(f"{catalog.server.address}/sign", PLAIN, catalog.session)
        with pytest.raises(StorageFailed, match=r"a signature for GET https://s3/lake/f"):
            signer(ASKED)


def test_no_token_goes_over_plain_http_where_the_catalog_has_https() -> None:
    with opened({}) as catalog:
        catalog.session.http.base = "https://lake"
        with pytest.raises(Unsupported, match="without encryption"):
            RemoteSigner(f"{catalog.server.address}/sign", PLAIN, catalog.session)(ASKED)
        assert catalog.requests() == []
