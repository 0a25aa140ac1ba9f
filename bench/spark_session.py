"""The one Spark session of a process: on this machine unless a master is named, quiet, with Arrow and UTC.

A Java virtual machine takes most settings only when it starts, so a second session with other settings would silently
run with the first one's. `spark_session` is cached and refuses that instead.

Quiet means that errors are all that Spark says. Its own level (`spark.log.level`) counts only once the session stands,
so the machine starts with a configuration of Log4j; what the machine itself says of its modules, before any
configuration is read, is taken out of its standard error; and the table of Spark's package resolver, which no setting
silences, is not printed because Iceberg's runtime is given as the file that `icebench.bench.setup_jars` fetched.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from icebench.bench.errors import ConfigError
from icebench.bench.java_home import use_java_home
from icebench.bench.s3_jars import S3_SCHEMES, s3_jars
from icebench.bench.setup_jars import ICEBERG_RUNTIME, cached_jar, is_cached

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER_VARIABLE = "ICEBENCH_SPARK_MASTER"
CONF_VARIABLE = "ICEBENCH_SPARK_CONF"
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
LOG_CONFIGURATION = Path(__file__).with_name("spark_log4j2.properties")
"""Errors only, to standard error."""
_SAID_OF_MODULES = b"WARNING: Using incubator modules:"
"""What a Java virtual machine says of the vector module, which Spark's launcher adds; no option silences it."""


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """What a session is started with.

    Args:
        master: Spark master, ``local[*]`` for all cores of this machine. A cluster's workers need icebench installed.
        driver_memory: Heap of the driver, which in local mode also does the work.
        shuffle_partitions: `spark.sql.shuffle.partitions`; few, as local data is small.
        iceberg_warehouse: When set, Iceberg's Java runtime is added, with a catalog of type hadoop at this directory
            or location.
        iceberg_catalog: That catalog's name in SQL.
        s3: Add what reads S3, for `icebench.bench.engines.spark_storage.give_access`; it is fetched if it is missing.
        extra: More settings, as pairs of name and value; they win over all others.
    """

    master: str = "local[*]"
    driver_memory: str = "4g"
    shuffle_partitions: int = 8
    iceberg_warehouse: str | None = None
    iceberg_catalog: str = "iceberg_java"
    s3: bool = False
    extra: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] = os.environ, *, iceberg_warehouse: str | None = None
    ) -> SparkSettings:
        """Settings for where the environment says to run: how a cluster is used without touching code.

        ``ICEBENCH_SPARK_MASTER`` is the master; ``ICEBENCH_SPARK_CONF`` holds more settings, ``name=value`` separated
        by semicolons. `SPARK_CONF_DIR` and the other variables of Spark itself work as always.

        Raises:
            ConfigError: A setting has no ``=``.
        """
        pairs = []
        for setting in filter(None, (part.strip() for part in environment.get(CONF_VARIABLE, "").split(";"))):
            name, equals, value = setting.partition("=")
            if not equals:
                raise ConfigError(f"{setting!r} is not name=value", path=CONF_VARIABLE)
            pairs.append((name.strip(), value.strip()))
        master = environment.get(MASTER_VARIABLE, cls.master)
        return cls(master=master, iceberg_warehouse=iceberg_warehouse, extra=tuple(pairs))

    @property
    def is_local(self) -> bool:
        """Whether driver and workers are one process on this machine."""
        return self.master.startswith("local")

    def conf(self) -> dict[str, str]:
        """The Spark properties that these settings stand for.

        Raises:
            JarMissing: What reads S3 cannot be fetched.
        """
        properties = {
            "spark.master": self.master,
            "spark.app.name": "icebench",
            "spark.driver.memory": self.driver_memory,
            "spark.sql.execution.arrow.pyspark.enabled": "true",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": str(self.shuffle_partitions),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        if not _has_log_configuration():
            properties["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}"
        if self.is_local:
            # One address that always exists: no name look-up, nothing open to the network.
            properties |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        if self.iceberg_warehouse is not None:
            catalog = f"spark.sql.catalog.{self.iceberg_catalog}"
            properties |= {
                **_iceberg_runtime(),
                "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
                catalog: "org.apache.iceberg.spark.SparkCatalog",
                f"{catalog}.type": "hadoop",
                f"{catalog}.warehouse": self.iceberg_warehouse,
            }
        if self.s3:
            properties |= self._s3(properties)
        return properties | dict(self.extra)

    def _s3(self, others: Mapping[str, str]) -> dict[str, str]:
        found = {f"spark.hadoop.fs.{scheme}.impl": _S3A for scheme in S3_SCHEMES}
        jars = s3_jars()
        if self.is_local:  # those among spark.jars would be copied in every session
            return found | {"spark.driver.extraClassPath": os.pathsep.join(map(str, jars))}
        named = [others["spark.jars"]] if "spark.jars" in others else []
        return found | {"spark.jars": ",".join([*named, *(jar.as_uri() for jar in jars)])}


def _has_log_configuration(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the user has one of their own where Spark looks for it."""
    directory = environment.get("SPARK_CONF_DIR")
    return directory is not None and any(Path(directory).glob("log4j2.*"))


def _iceberg_runtime() -> dict[str, str]:
    """Iceberg's runtime: the file if it is here, else for Spark to fetch, which then says what it does."""
    if is_cached():
        return {"spark.jars": cached_jar().as_uri()}
    return {"spark.jars.packages": ICEBERG_RUNTIME}


@functools.cache
def spark_session(settings: SparkSettings = SparkSettings()) -> SparkSession:
    """The process's session, started on the first call and kept; who stops it must also call `.cache_clear()`.

    Raises:
        JavaMissing: No Java that Spark can run on is installed.
        JarMissing: What reads S3 is asked for, and cannot be fetched.
        ConfigError: A session with other settings is running in this process; the message names what differs.
    """
    wanted = settings.conf()
    session: type[SparkSession] = import_module("pyspark.sql").SparkSession  # a third of a second to import
    running = session.getActiveSession()
    if running is None:
        use_java_home()
        # Another Spark installation, which this process's PySpark may not fit.
        os.environ.pop("SPARK_HOME", None)
        if settings.is_local or "PYSPARK_PYTHON" not in os.environ:
            # Python workers must see the same packages as this process. On a cluster the path may be another.
            os.environ["PYSPARK_PYTHON"] = sys.executable
        _start_quietly(wanted)
        builder = session.builder
        for name, value in wanted.items():
            builder = builder.config(name, value)
        running = builder.getOrCreate()
    differing = {name: running.conf.get(name, None) for name in wanted}
    differing = {name: value for name, value in differing.items() if value != wanted[name]}
    if differing:
        details = ", ".join(f"{name} is {value}, wanted {wanted[name]}" for name, value in differing.items())
        raise ConfigError(f"a Spark session with other settings is running in this process: {details}")
    return running


def _start_quietly(conf: Mapping[str, str]) -> None:
    """Start the Java virtual machine that a session in this process will use, unless there is one."""
    # local import: as above
    context, launch = import_module("pyspark").SparkContext, import_module("pyspark.java_gateway").launch_gateway
    if context._gateway is not None:  # noqa: SLF001 - PySpark has no other way to ask
        return
    settings = import_module("pyspark").SparkConf(loadDefaults=False).setAll(list(conf.items()))
    reading, writing = os.pipe()
    Thread(target=_pass_on, args=(reading,), name="stderr of Spark", daemon=True).start()
    try:
        gateway = launch(settings, {"stderr": writing})
    finally:
        os.close(writing)
    context._ensure_initialized(gateway=gateway)  # noqa: SLF001 - the session's context then finds it


def _pass_on(said: int, target: int = 2) -> None:
    """Copy lines between descriptors, but for what is said of modules."""
    with open(said, "rb") as lines:
        for line in lines:
            if not line.startswith(_SAID_OF_MODULES):
                os.write(target, line)
