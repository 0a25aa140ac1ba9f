"""How the files of a run's tables are reached: by options that their catalogs give, which are kept in memory alone.

A run's file has the name of the catalog; each process of the run asks it again, as credentials of a REST server end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

import icebench
from icebench.bench.errors import DatasetFailed
from icebench.bench.s3_jars import S3_SCHEMES
from icebench.engine.errors import EngineError, secrets_of, without_secrets

_PYICEBERG = {
    "client.access-key-id": "s3.access-key-id",
    "client.secret-access-key": "s3.secret-access-key",
    "client.session-token": "s3.session-token",
    "client.region": "s3.region",
    "client.role-arn": "s3.role-arn",
    "client.role-session-name": "s3.role-session-name",
    "client.assume-role.arn": "s3.role-arn",
    "client.assume-role.session-name": "s3.role-session-name",
}
_ENVIRONMENT = {
    "s3.endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "s3.access-key-id": ("AWS_ACCESS_KEY_ID",),
    "s3.secret-access-key": ("AWS_SECRET_ACCESS_KEY",),
    "s3.session-token": ("AWS_SESSION_TOKEN",),
    "s3.region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
}
_PATH_STYLE, _VIRTUAL = "s3.path-style-access", "s3.force-virtual-addressing"
_KEPT_SECONDS = 60.0


@dataclass(frozen=True)
class Access:
    """What opens the files of a table.

    Args:
        scheme: Of the table's location; empty for a local path.
        options: By PyIceberg's or Iceberg Java's names, such as ``s3.endpoint``. There are secrets among them.
    """

    scheme: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def in_pyiceberg_names(self) -> dict[str, str]:
        """The options, with one name for each."""
        found = {to: self.options[name] for name, to in _PYICEBERG.items() if name in self.options}
        if _PATH_STYLE in self.options:
            found[_VIRTUAL] = str(self.options[_PATH_STYLE].lower() != "true").lower()
        renamed = {*_PYICEBERG, _PATH_STYLE}
        return found | {name: value for name, value in self.options.items() if name not in renamed}


LOCAL = Access()
"""Of local files."""


def with_environment(access: Access) -> Access:
    """The same, with the endpoint of S3 that AWS's variables name, if no option does, and with the keys beside it: some
    engines read all of these variables, some only keys, and some none."""
    given = {option: next(filter(None, map(os.environ.get, names)), None) for option, names in _ENVIRONMENT.items()}
    is_ignored = os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true"
    if access.scheme not in S3_SCHEMES or given["s3.endpoint"] is None or is_ignored or "s3.endpoint" in access.options:
        return access
    if access.in_pyiceberg_names.keys() & {"s3.access-key-id", "s3.role-arn", "s3.anonymous"}:
        given = {"s3.endpoint": given["s3.endpoint"]}
    found = {option: value for option, value in given.items() if value is not None}
    return replace(access, options={**found, **access.options})


class TableAccess:
    """The access to tables, by their metadata files; those that are not known here are opened without options.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ask: dict[str, Callable[[], Access]] = {}
        self._asked: dict[str, tuple[float, Access]] = {}
        self._secrets: set[str] = set()

    def __call__(self, metadata_location: str) -> Access:
        """What opens the files of a table now.

        Raises:
            EngineError: The catalog does not answer, or gives no credentials.
        """
        ask = self._ask.get(metadata_location)
        if ask is None:
            return with_environment(Access(scheme_of(metadata_location)))
        at, found = self._asked.get(metadata_location, (0.0, None))
        if found is None or self._clock() - at > _KEPT_SECONDS:
            found = with_environment(ask())
            self._asked[metadata_location] = self._clock(), found
            self._secrets.update(secrets_of(found.options))
        return found

    def open(
        self,
        catalog: str,
        name: str,
        warehouse: str | None,
        metadata_location: str = "",
        *,
        catalog_name: str | None = None,
    ) -> str:
        """Look a table up in its catalog.

        Args:
            catalog: Its address, or the name of its configuration.
            name: The table's there.
            warehouse: Of an SQL catalog.
            metadata_location: The metadata file that is to be measured; empty for the current one.
            catalog_name: Of a catalog that shares an SQL database.

        Returns:
            That metadata file.

        Raises:
            EngineError: There is no such table.
        """
        opened = icebench.load_catalog(catalog, warehouse=warehouse, name=catalog_name)
        table = opened.load_table(name)
        scheme = scheme_of(table.location)
        location = metadata_location or table.metadata_location
        self._ask[location] = lambda: Access(scheme, opened.storage_options(name))
        return location

    def add(self, metadata_location: str, access: Access) -> None:
        """A table that `access` opens."""
        self._ask[metadata_location] = lambda: access

    def copied(self, metadata_location: str, copy: str) -> str:
        """Gives `copy`, another metadata file of the same table's files."""
        if metadata_location in self._ask:
            self._ask[copy] = self._ask[metadata_location]
        return copy

    def reader(self, metadata_location: str) -> Callable[[str], bytes] | None:
        """Reads a whole file of a table by its location, and raises DatasetFailed; None for tables not known here."""
        if metadata_location not in self._ask:
            return None

        kept: list[tuple[Access, icebench.Table]] = []

        def read(location: str) -> bytes:
            try:
                access = self(metadata_location)
                if not kept or kept[0][0] is not access:
                    table = icebench.load_table(metadata_location, relocate={}, properties=access.options)
                    kept[:] = [(access, table)]
                return kept[0][1].store.read(location)
            except EngineError as error:
                raise DatasetFailed(str(error)) from error

        return read

    def without_secrets(self, text: str) -> str:
        """The text without secrets of options that were given out."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return without_secrets(text)


def absolute(location: str) -> str:
    """A location that is right in every working directory."""
    has_scheme = "://" in location or location.startswith("file:")
    return location if has_scheme else str(Path(location).absolute())


def scheme_of(location: str) -> str:
    """The scheme of a location; empty for local ones."""
    scheme = urlsplit(location).scheme if "://" in location else ""
    return "" if scheme == "file" else scheme.lower()
