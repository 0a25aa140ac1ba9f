"""Opens object stores and HDFS by the property names of PyIceberg and Iceberg Java.

Of a property is read what the tables below say; `icebench.engine.catalog.properties` refuses names that they lack.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from icebench.engine.errors import EngineError, Invalid, StorageFailed, is_secret
from icebench.engine.lazy_module import LazyModule
from icebench.engine.storage.failures import translate_errors
from icebench.engine.storage.retrying import Retries

if TYPE_CHECKING:
    from pyarrow import fs

    from icebench.engine.storage import arrow, conditional_s3, signed_s3
else:  # loaded with the first location that is not local
    fs = LazyModule("pyarrow.fs")
    arrow = LazyModule("icebench.engine.storage.arrow")
    conditional_s3 = LazyModule("icebench.engine.storage.conditional_s3")
    signed_s3 = LazyModule("icebench.engine.storage.signed_s3")

S3_SCHEMES = ("s3", "s3a", "s3n")
GCS_SCHEMES = ("gs", "gcs")
ADLS_SCHEMES = ("abfs", "abfss")
OBJECT_SCHEMES = frozenset({*S3_SCHEMES, *GCS_SCHEMES, *ADLS_SCHEMES, "hdfs", "viewfs"})

_NEVER_MS = "7258118400000"
"""The year 2200; later times do not fit Arrow's type."""


def flag(name: str, text: str) -> bool:
    """A property that is true or false; raises Invalid."""
    if text.lower() not in ("true", "false"):
        raise Invalid(f"{name}={text!r} is neither true nor false")
    return text.lower() == "true"


def _text(_: str, text: str) -> str:
    return text


def _seconds(name: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1
    if not 0 < found < float("inf"):
        raise Invalid(f"{name}={text!r} is not a number of seconds")
    return found


def _retries(name: str, text: str) -> fs.S3RetryStrategy:
    if not text.isdecimal():
        raise Invalid(f"{name}={text!r} is not a number of retries")
    return fs.AwsStandardS3RetryStrategy(max_attempts=int(text) + 1)


def _not(name: str, text: str) -> bool:
    return not flag(name, text)


_Readings = Mapping[str, tuple[str, Callable[[str, str], object]]]
"""By a property's name: the argument of pyarrow's file system, and how name and text become its value. Of two names for
one argument, the later one counts."""

_PROXY = "s3.proxy-uri"
_S3: _Readings = {
    "client.access-key-id": ("access_key", _text),
    "client.secret-access-key": ("secret_key", _text),
    "client.session-token": ("session_token", _text),
    "client.region": ("region", _text),
    "client.role-arn": ("role_arn", _text),
    "client.role-session-name": ("session_name", _text),
    "client.assume-role.arn": ("role_arn", _text),
    "client.assume-role.external-id": ("external_id", _text),
    "client.assume-role.session-name": ("session_name", _text),
    "s3.access-key-id": ("access_key", _text),
    "s3.secret-access-key": ("secret_key", _text),
    "s3.session-token": ("session_token", _text),
    "s3.region": ("region", _text),
    "s3.role-arn": ("role_arn", _text),
    "s3.role-session-name": ("session_name", _text),
    "s3.endpoint": ("endpoint_override", _text),
    "s3.anonymous": ("anonymous", flag),
    "s3.connect-timeout": ("connect_timeout", _seconds),
    "s3.request-timeout": ("request_timeout", _seconds),
    "s3.retry.num-retries": ("retry_strategy", _retries),
    _PROXY: ("proxy_options", _text),
    "s3.path-style-access": ("force_virtual_addressing", _not),
    "s3.force-virtual-addressing": ("force_virtual_addressing", flag),
}
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_GCS: _Readings = {
    "gcs.project-id": ("project_id", _text),
    "gcs.default-bucket-location": ("default_bucket_location", _text),
    "gcs.no-auth": ("anonymous", flag),
}
_GCS_TOKEN, _GCS_ENDS_AT, _GCS_HOST = "gcs.oauth2.token", "gcs.oauth2.token-expires-at", "gcs.service.host"
_ADLS: _Readings = {
    "adls.auth.shared-key.account.name": ("account_name", _text),
    "adls.auth.shared-key.account.key": ("account_key", _text),
    "adls.account-name": ("account_name", _text),
    "adls.account-key": ("account_key", _text),
    "adls.sas-token": ("sas_token", _text),
    "adls.tenant-id": ("tenant_id", _text),
    "adls.client-id": ("client_id", _text),
    "adls.client-secret": ("client_secret", _text),
    "adls.blob-storage-authority": ("blob_storage_authority", _text),
    "adls.dfs-storage-authority": ("dfs_storage_authority", _text),
    "adls.blob-storage-scheme": ("blob_storage_scheme", _text),
    "adls.dfs-storage-scheme": ("dfs_storage_scheme", _text),
}
_ADLS_SAS = "adls.sas-token."
"""With the account's name or host: the form in which REST catalogs vend tokens."""

STORAGE_PROPERTIES = frozenset({*_S3, *_GCS, _GCS_TOKEN, _GCS_ENDS_AT, _GCS_HOST, *_ADLS, _ADLS_SAS})
"""Every name that is read here; one that ends with a dot is a prefix."""


def is_storage_property(name: str) -> bool:
    """Whether a property of that name is read here."""
    return name in STORAGE_PROPERTIES or name.startswith(_ADLS_SAS)


def object_store(
    scheme: str, location: str, properties: Mapping[str, str], *, is_catalog: bool = False
) -> arrow.ArrowStore:
    """The store of a location of one of the `OBJECT_SCHEMES`; raises Invalid, StorageFailed.

    For a directory catalog, on S3, it creates files atomically, at the cost of a second client.
    """
    try:
        with translate_errors("open", location):
            return _opened(scheme, location, properties, is_catalog=is_catalog)
    except EngineError as error:
        hidden = _without_secrets(str(error), properties)
        if hidden == str(error):
            raise
        raise StorageFailed(hidden) from None


def signed_s3_store(
    properties: Mapping[str, str], sign: Callable[[signed_s3.S3Request], signed_s3.S3Request]
) -> signed_s3.SignedS3Store:
    """S3 whose requests `sign` signs; raises Invalid, NotInstalled."""
    return signed_s3.SignedS3Store(_s3_arguments(properties), sign, S3_SCHEMES)


def authority(location: str) -> str:
    """What stands between ``//`` and the next slash; raises Invalid."""
    try:
        return urlsplit(location).netloc
    except ValueError as error:
        raise Invalid(f"{location!r} is no location: {error}") from error


def _opened(scheme: str, location: str, properties: Mapping[str, str], *, is_catalog: bool) -> arrow.ArrowStore:
    if "@" in authority(location) and scheme in (*S3_SCHEMES, *GCS_SCHEMES):
        raise Invalid(f"{location!r} has a user; keys are properties, such as s3.access-key-id")
    if scheme in S3_SCHEMES:
        arguments, prefixes = _s3_arguments(properties), dict.fromkeys(_prefixes(S3_SCHEMES), "")
        # Small files are one PUT: without a delay, an upload of parts is begun before there is anything to send.
        filesystem = fs.S3FileSystem(allow_delayed_open=True, **arguments)
        strategy = arguments.get("retry_strategy")
        retries = Retries(strategy.max_attempts - 1) if isinstance(strategy, fs.S3RetryStrategy) else None
        if is_catalog:
            return conditional_s3.ConditionalS3Store(filesystem, prefixes, arguments, retries)
        return arrow.ArrowStore(filesystem, prefixes, retries)
    if scheme in GCS_SCHEMES:
        return arrow.ArrowStore(fs.GcsFileSystem(**_gcs_options(properties)), dict.fromkeys(_prefixes(GCS_SCHEMES), ""))
    root = f"{scheme}://{authority(location)}"
    if scheme in ADLS_SCHEMES:
        container, at, host = authority(location).partition("@")
        if not (container and at and host):
            raise Invalid(f"{location!r} is not written {scheme}://container@account.dfs.core.windows.net/path")
        filesystem = fs.AzureFileSystem(**_adls_options(host, properties))
        return arrow.ArrowStore(filesystem, {f"{each}://{container}@{host}": container for each in ADLS_SCHEMES})
    return arrow.ArrowStore(fs.FileSystem.from_uri(root + "/")[0], {root: ""})


def _prefixes(schemes: tuple[str, ...]) -> list[str]:
    return [f"{scheme}://" for scheme in schemes]


def _read(readings: _Readings, properties: Mapping[str, str]) -> dict[str, object]:
    return {to: read(name, properties[name]) for name, (to, read) in readings.items() if name in properties}


def _s3_arguments(properties: Mapping[str, str]) -> dict[str, object]:
    """Without an endpoint among the properties, that of the environment, as AWS's SDKs have it. pyarrow's client reads
    none there and botocore's would, and the files of a table must be where its commits are."""
    endpoint = next((found for name in _ENDPOINTS if (found := os.environ.get(name))), None)
    is_ignored = os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true"
    return ({} if endpoint is None or is_ignored else {"endpoint_override": endpoint}) | _read(_S3, properties)


def _gcs_options(properties: Mapping[str, str]) -> dict[str, object]:
    """Use the token if one is given, else the credentials that Google's libraries find."""
    options = _read(_GCS, properties)
    token, ends_at_ms = properties.get(_GCS_TOKEN), properties.get(_GCS_ENDS_AT, "")
    if token:
        # A time is required; if unknown, one in the far future.
        ends_at_ms = ends_at_ms if ends_at_ms.isdecimal() else _NEVER_MS
        options["access_token"] = token
        options["credential_token_expiration"] = datetime.fromtimestamp(int(ends_at_ms) // 1000, UTC)
    if host := properties.get(_GCS_HOST):
        scheme, _, rest = host.rpartition("://")
        options |= {"endpoint_override": rest.rstrip("/"), "scheme": scheme or "https"}
    return options


def _adls_options(host: str, properties: Mapping[str, str]) -> dict[str, object]:
    """Those of the account and the domain in a location, unless endpoints of the user's own are given."""
    account, _, domain = host.partition(".")
    kind, _, rest = domain.partition(".")
    given = _read(_ADLS, properties)
    if not given.keys() & {"blob_storage_authority", "dfs_storage_authority"}:
        if given.setdefault("account_name", account) != account:
            raise Invalid(f"the location is in the account {account!r}, and adls.account-name is another")
        if kind in ("dfs", "blob"):
            given |= {f"{each}_storage_authority": f".{each}.{rest}" for each in ("blob", "dfs")}
    lent = properties.get(f"{_ADLS_SAS}{host}") or properties.get(f"{_ADLS_SAS}{account}")
    return {"account_name": account} | given | ({"sas_token": lent} if lent else {})


def _without_secrets(text: str, properties: Mapping[str, str]) -> str:
    for name, value in properties.items():
        if value and (is_secret(name) or name == _PROXY):
            text = text.replace(value, "***")
    return text
