"""Which catalog properties are honoured: none is silently ignored.

A property is read by the catalog or its storage, or only tunes how another engine works (a warning), or says what this
engine does anyway, or it is refused by name. What a server sends to all its clients is not checked.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from icebench.engine.errors import IgnoredPropertyWarning, Unsupported
from icebench.engine.storage.object_stores import STORAGE_PROPERTIES

TABLE_DEFAULT, TABLE_OVERRIDE = "table-default.", "table-override."
"""Prefixes of properties of new tables; read by `icebench.engine.opening.catalog.Catalog`."""

METRICS_REPORTER = "metrics-reporter-impl"
"""What scans and commits are reported to; read by `icebench.engine.opening.metrics_reporters`."""

INIT_TABLES = "init_catalog_tables"
"""Whether a SQL catalog creates its database and tables; others have none. Read by `icebench.engine.opening.load`."""

_TUNING = frozenset(
    {
        "adls.read.block-size-bytes", "adls.write.block-size-bytes", "app-id", "app-name", "auth.session-timeout-ms",
        "cache-enabled", "cache.", "client-pool-cache-keys", "client.factory", "client.pool.cache.", "clients", "echo",
        "gcs.analytics-core.enabled", "gcs.cache-timeout", "gcs.channel.", "gcs.client-lib-token",
        "gcs.consistency", "gcs.delete.batch-size", "http-client.apache.", "http-client.type",
        "http-client.urlconnection.", "io-impl", "io.manifest.", "lock-check-max-wait-time", "lock-check-min-wait-time",
        "lock-check-retries", "pool_pre_ping",
        "py-io-impl", "rest-metrics-reporting-enabled", "rest-table-cache.", "rest.client.connections-per-route",
        "rest.client.max-connections", "rest.client.user-agent", "s3.analytics-accelerator.", "s3.crt.",
        "s3.delete.batch-size", "s3.delete.num-threads", "s3.multipart.", "s3.preload-client-enabled",
        "s3.retry.max-wait-ms", "s3.retry.min-wait-ms", "s3.staging-dir",
    }
)  # fmt: skip
"""How another engine works: caches, pools, sizes of parts. Neither rows, nor who may see them, depend on it."""

_SAYS_NOTHING = {
    "client.refresh-credentials-enabled": "true",
    "adls.refresh-credentials-enabled": "true",
    "gcs.oauth2.refresh-credentials-enabled": "true",
    "glue.lakeformation-enabled": "false",
    "hive.kerberos-authentication": "false",
    "jdbc.init-catalog-tables": "true",
    "jdbc.schema-version": "v1",
    "jdbc.strict-mode": "false",
    "list-all-tables": "false",
    "s3.checksum-enabled": "false",
    "s3.cross-region-access-enabled": "false",
    "s3.acceleration-enabled": "false",
    "s3.access-grants.enabled": "false",
    "s3.delete-enabled": "true",
    "s3.dualstack-enabled": "false",
    "s3.remote-signing-enabled": "false",
    "s3.resolve-region": "false",
    "s3.sse.type": "none",
    "s3.use-arn-region-enabled": "false",
    "scan-planning-mode": "client",
    "snapshot-loading-mode": "all",
    "unique-table-location": "false",
}
"""Values that ask for what is done anyway."""


def check_properties(given: Mapping[str, str], read: Iterable[str] = (), *, subject: str) -> None:
    """Reject unknown properties.

    Args:
        given: By name; messages have the names, never the values.
        read: Names that the catalog itself reads, in addition to those of storage; a prefix ends with a dot.
        subject: Whose properties, for messages.

    Raises:
        Unsupported: Nothing reads a property, and what it asks for may matter.
    """
    known = {*read, *STORAGE_PROPERTIES}
    for name, value in given.items():
        if _is_among(name, known) or _SAYS_NOTHING.get(name) == value.lower():
            continue
        if _is_among(name, _TUNING):
            ignored = f"property {name} of {subject} is ignored: it tunes other engines"
            warnings.warn(ignored, IgnoredPropertyWarning, stacklevel=3)
            continue
        near = get_close_matches(name, known, n=1, cutoff=0.85)
        hint = f"did you mean {near[0]}?" if near else "nothing reads it; leave it out if it does not matter"
        if name == "warehouse":
            hint = "give it as the argument warehouse"
        raise Unsupported(f"property {name} of {subject}: {hint}")


def is_property(name: str, read: Iterable[str] = ()) -> bool:
    """Whether `check_properties` knows a property of this name, whatever its value."""
    return _is_among(name, {*read, *STORAGE_PROPERTIES, *_TUNING, *_SAYS_NOTHING})


def _is_among(name: str, known: Iterable[str]) -> bool:
    return any(name == each or (each.endswith(".") and name.startswith(each)) for each in known)
