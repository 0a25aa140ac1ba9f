"""The Spark session of a run: the definition's, and where the environment says to run."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from socket import gethostname
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from icebench.bench.engines.engine import EngineMissing
from icebench.bench.errors import ConfigError
from icebench.bench.execution.interruption import same_handler
from icebench.bench.setup_jars import JarMissing, is_cached
from icebench.bench.spark_session import CONF_VARIABLE, MASTER_VARIABLE, SparkSettings, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECRET = re.compile(r"secret|passwo?r?d|token|(access|account|private)[.-]?key", re.IGNORECASE)
"""In names of settings: what Spark itself masks (`spark.redaction.regex`), and the keys of Azure's accounts."""


def is_secret(name: str) -> bool:
    """Whether the value of a setting of Spark is a secret."""
    return _SECRET.search(name) is not None


@dataclass(frozen=True, kw_only=True)
class SparkDefinition:
    """The Spark session that generation and the Spark engines share."""

    master: str
    conf: Mapping[str, str] = field(default_factory=dict)


class SparkUse:
    """The session of a run, started by the first call, and remembered.

    Args:
        definition: The experiment's.
        warehouse: A directory for Iceberg Java's own catalog, which nothing is put into.
        given: Gives a session that is there; None starts one by the definition.
        files: The directory of the run's tables, which workers read and write; None for tables that are elsewhere.
        on_s3: Whether one of them is on S3; asked when a session is to be started.
    """

    def __init__(
        self,
        definition: SparkDefinition,
        warehouse: Path,
        given: Callable[[], SparkSession] | None = None,
        *,
        files: Path | None = None,
        on_s3: Callable[[], bool] = lambda: False,
    ) -> None:
        self._files = files
        self._on_s3 = on_s3
        self._definition = definition
        self._warehouse = warehouse
        self._given = given
        self._started: SparkSession | None = None

    def __call__(self) -> SparkSession:
        """The session.

        Raises:
            ConfigError: Its workers do not see the run's files.
            EngineMissing: What reads S3 is needed, and cannot be fetched.
        """
        if self._started is None:
            settings = self.settings
            with same_handler():  # Spark's own raises KeyboardInterrupt wherever the interpreter is
                self._started = self._start(settings) if self._given is None else self._given()
            if self._files is not None and not settings.is_local:
                check_shared(self._started, self._files)
        return self._started

    @property
    def settings(self) -> SparkSettings:
        """What a session is started with."""
        return replace(spark_settings(self._definition, self._warehouse), s3=self._on_s3())

    def _start(self, settings: SparkSettings) -> SparkSession:
        try:
            return spark_session(settings)
        except JarMissing as error:
            raise EngineMissing(str(error)) from error

    def stop(self) -> None:
        """Stop the session, unless it was given: a further process of the run needs its memory."""
        if self._started is not None and self._given is None:
            self._started.stop()
            self._started = None

    def facts(self) -> dict[str, str] | None:
        """What of the session bears on figures; None when none was started."""
        if self._started is None:
            return None
        names = ("spark.master", "spark.driver.memory", "spark.sql.shuffle.partitions")
        values = {name: self._started.conf.get(name, None) for name in names}
        values[CONF_VARIABLE] = given_settings()
        return {"version": self._started.version, **{name: value for name, value in values.items() if value}}


def given_settings(environment: Mapping[str, str] = os.environ) -> str:
    """The settings that the environment adds, also by the ``spark-defaults.conf`` in its SPARK_CONF_DIR: their names,
    and a hash of the values of those that are no secrets. Empty without any."""
    given = dict(SparkSettings.from_environment(environment).extra)
    with suppress(OSError, KeyError):
        defaults = Path(environment["SPARK_CONF_DIR"], "spark-defaults.conf").read_text("utf-8", "replace")
        lines = (line.strip() for line in defaults.splitlines())
        pairs = (re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!")
        given = {pair[0]: pair[-1] for pair in pairs} | given
    values = sorted((name, value) for name, value in given.items() if not is_secret(name))
    digest = hashlib.sha256(repr(values).encode()).hexdigest()[:16]
    return f"{', '.join(sorted(given))} (values {digest})" if given else ""


def check_shared(spark: SparkSession, folder: Path) -> None:
    """Raise ConfigError if some workers do not see a directory of this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=folder, prefix=".shared-") as mark:
        hosts = hosts_without(spark, Path(mark.name))
    if hosts:
        raise ConfigError(
            f"Spark's workers on {', '.join(hosts)} do not see {folder}, where the tables of a run are: run in a "
            "directory of a file system that they share, or measure a table in an object store (--catalog)"
        )


def hosts_without(spark: SparkSession, path: Path) -> list[str]:
    """The hosts of Spark's workers that have no such file, sorted."""
    tasks = max(2, spark.sparkContext.defaultParallelism)
    asked = spark.sparkContext.parallelize(range(tasks), tasks)
    found = asked.map(lambda _: (path.exists(), gethostname())).collect()
    return sorted({host for is_there, host in found if not is_there})


def spark_settings(
    definition: SparkDefinition, warehouse: Path, environment: Mapping[str, str] = os.environ
) -> SparkSettings:
    """Settings of the session: the environment's master and settings win over the definition's.

    Iceberg's runtime is part of the session when it is in Spark's cache of packages; without it a session starts all
    the same, offline, and the engine iceberg-java is skipped.

    Args:
        definition: The experiment's.
        warehouse: A directory for Iceberg Java's own catalog, which nothing is put into.
        environment: See `SparkSettings.from_environment`.
    """
    settings = SparkSettings.from_environment(environment, iceberg_warehouse=str(warehouse) if is_cached() else None)
    master = settings.master if MASTER_VARIABLE in environment else definition.master
    extra = {**definition.conf, **dict(settings.extra)}
    return replace(settings, master=master, extra=tuple(sorted(extra.items())))
