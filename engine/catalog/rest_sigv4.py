"""Requests signed with AWS Signature Version 4, as the REST endpoints of AWS Glue and S3 Tables demand.

Signing is botocore's, which is an optional package: ``icebench[aws]``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from icebench.engine.errors import Invalid, StorageFailed
from icebench.engine.lazy_module import LazyModule
from icebench.engine.storage.s3_client import botocore_session

_AUTH, _AWSREQUEST = LazyModule("botocore.auth"), LazyModule("botocore.awsrequest")
_EXCEPTIONS = LazyModule("botocore.exceptions")
_KEYS = (
    ("rest.access-key-id", "rest.secret-access-key", "rest.session-token"),
    ("client.access-key-id", "client.secret-access-key", "client.session-token"),
)
_REGIONS = ("rest.signing-region", "client.region")
_PROFILES = ("client.profile-name",)
SIGV4_PROPERTIES = frozenset({*_KEYS[0], *_KEYS[1], *_REGIONS, *_PROFILES, "rest.signing-name"})
"""Properties that are read here."""


def aws_session(properties: Mapping[str, str], subject: str) -> Any:  # noqa: ANN401 - botocore has no types
    """A session of botocore, of the profile that the properties name; raises NotInstalled, Invalid."""
    session = botocore_session(properties.get("client.profile-name"))
    try:
        session.get_scoped_config()
    except _EXCEPTIONS.BotoCoreError as error:
        raise Invalid(f"{subject}: {error}") from None
    return session


class SigV4Signer:
    """Signs requests. Credentials are those of the properties, or what AWS's own chain finds, and renews.

    Args:
        properties: ``rest.signing-region`` (or ``client.region``, or the profile's), ``rest.signing-name``
            ("execute-api"; Glue's is "glue", that of S3 Tables "s3tables"), ``rest.access-key-id`` with
            ``rest.secret-access-key`` and ``rest.session-token``, or the same of ``client.``, ``client.profile-name``.
        subject: What is signed, for messages.

    Raises:
        NotInstalled: botocore is not installed.
        Invalid: No region.
    """

    def __init__(self, properties: Mapping[str, str], *, subject: str) -> None:
        self._session = aws_session(properties, subject)
        self._subject = subject
        self._service = properties.get("rest.signing-name", "execute-api")
        region = next((properties[name] for name in _REGIONS if name in properties), None)
        self._region = region or self._session.get_config_variable("region")
        if not self._region:
            raise Invalid(f"{subject} is signed for a region: give rest.signing-region")
        for key, secret, token in _KEYS:
            if key in properties:
                if secret not in properties:
                    raise Invalid(f"{key} without {secret}")
                self._session.set_credentials(properties[key], properties[secret], properties.get(token))
                break

    def sign(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> dict[str, str]:
        """The headers of a request with its signature; an ``Authorization`` that was there is sent as
        ``Original-Authorization``, as Iceberg Java does. Raises StorageFailed without credentials."""
        credentials = self._session.get_credentials()
        if credentials is None:
            raise StorageFailed(f"{self._subject} is signed, and there are no AWS credentials")
        own = {f"Original-{name}" if name.lower() == "authorization" else name: text for name, text in headers.items()}
        own["x-amz-content-sha256"] = hashlib.sha256(body or b"").hexdigest()
        request = _AWSREQUEST.AWSRequest(method=method, url=url, data=body, headers=own)
        frozen = credentials.get_frozen_credentials()
        _AUTH.SigV4Auth(frozen, self._service, self._region).add_auth(request)
        return dict(request.headers.items())
