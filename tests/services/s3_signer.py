"""An S3 server that takes signed requests alone, and a service that signs requests for clients without credentials."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, urlsplit

import urllib3
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from icebench.engine.storage.signed_s3 import S3Request
from tests.services.s3_server import REGION, S3Server
from tests.services.scripted_http import Reply, Seen

POLICY = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}'
NOT_SIGNED = {"range", "x-amz-date", "amz-sdk-invocation-id", "amz-sdk-retry", "amz-sdk-request", "user-agent"}
"""Headers that differ between requests for the same bytes; Iceberg Java's test server leaves the same ones out."""


@contextmanager
def signed_requests_only(server: S3Server) -> Iterator[Credentials]:
    """Has the server check each signature; gives the credentials of a user who may do everything on S3."""
    client = server.client("iam")
    name = f"signer-{len(server.buckets)}"
    client.create_user(UserName=name)
    client.put_user_policy(UserName=name, PolicyName="all", PolicyDocument=POLICY)
    key = client.create_access_key(UserName=name)["AccessKey"]
    _let_pass(server, "0")
    try:
        yield Credentials(key["AccessKeyId"], key["SecretAccessKey"])
    finally:
        _let_pass(server, "inf")


def _let_pass(server: S3Server, requests: str) -> None:
    answer = urllib3.request("POST", f"{server.address}/moto-api/reset-auth", body=requests)
    assert answer.status == 200, answer.data


def sign(credentials: Credentials, request: S3Request, left_out: Collection[str] = NOT_SIGNED) -> S3Request:
    """The request with all its headers and a signature, which leaves out some of them."""
    kept = {name: value for name, value in request.headers.items() if name.lower() not in left_out}
    signed = AWSRequest(method=request.method, url=request.url, headers=kept)
    _Unsigned(credentials, "s3", request.region).add_auth(signed)
    return replace(request, headers={**request.headers, **dict(signed.headers.items())})


class _Unsigned(S3SigV4Auth):  # type: ignore[misc] # botocore has no types
    """Signs headers, and not the body, which the service does not see."""

    def payload(self, request: AWSRequest) -> str:
        return "UNSIGNED-PAYLOAD"


@dataclass
class Signer:
    """Answers requests for signatures.

    Args:
        credentials: To sign with.
        below: Only files below this path, of bucket and key, are signed and listed.
        cache_control: Of answers for GET and HEAD.
        signs_range: Whether ranges are signed too.
    """

    credentials: Credentials
    below: str
    cache_control: str = "private"
    signs_range: bool = False

    def __call__(self, request: Seen) -> Reply:
        if request.headers.get("authorization") != "Bearer hidden-token":
            return _refused(401, "NotAuthorizedException", "no token")
        asked = request.json()
        address = urlsplit(asked["uri"])
        listed = "".join(parse_qs(address.query).get("prefix", []))
        if not f"{address.path.rstrip('/')}/{listed}".startswith(f"{self.below}/"):
            return _refused(403, "ForbiddenException", "not a file of the table")
        left_out = NOT_SIGNED - ({"range"} if self.signs_range else set())
        headers = {name: ", ".join(values) for name, values in asked["headers"].items()}
        signed = sign(self.credentials, S3Request(asked["method"], asked["region"], asked["uri"], headers), left_out)
        body = {"uri": signed.url, "headers": {name: [value] for name, value in signed.headers.items()}}
        cache = self.cache_control if asked["method"] in {"GET", "HEAD"} else "no-cache"
        return Reply(body=body, headers={"Cache-Control": cache})


def storage(server: S3Server) -> dict[str, str]:
    """What a catalog says of the server's storage to clients whose requests are signed."""
    return {"s3.remote-signing-enabled": "true", "s3.endpoint": server.address, "s3.region": REGION}


def _refused(status: int, kind: str, message: str) -> Reply:
    return Reply(status=status, body={"error": {"type": kind, "message": message, "code": status}})
