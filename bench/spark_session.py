"""The one Spark session of a process: on this machine unless a master is named, quiet, with Arrow and UTC.

A Java virtual machine takes most settings only when it starts, so a second session with other settings would silently
run with the first one's. `spark_session` is cached and refuses that instead.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from bench.java_home import use_java_home
from bench.setup_jars import ICEBERG_RUNTIME

MASTER_VARIABLE = "ICEBENCH_SPARK_MASTER"
CONF_VARIABLE = "ICEBENCH_SPARK_CONF"


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
        extra: More settings, as pairs of name and value; they win over all others.
    """

    master: str = "local[*]"
    driver_memory: str = "4g"
    shuffle_partitions: int = 8
    iceberg_warehouse: str | None = None
    iceberg_catalog: str = "iceberg_java"
    extra: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] = os.environ, *, iceberg_warehouse: str | None = None
    ) -> SparkSettings:
        """Settings for where the environment says to run: how a cluster is used without touching code.

        ``ICEBENCH_SPARK_MASTER`` is the master; ``ICEBENCH_SPARK_CONF`` holds more settings, ``name=value`` separated
        by semicolons. `SPARK_CONF_DIR` and the other variables of Spark itself work as always.

        Raises:
            ValueError: A setting has no ``=``.
        """
        pairs = []
        for setting in filter(None, (part.strip() for part in environment.get(CONF_VARIABLE, "").split(";"))):
            name, equals, value = setting.partition("=")
            if not equals:
                raise ValueError(f"{CONF_VARIABLE}: {setting!r} is not name=value")
            pairs.append((name.strip(), value.strip()))
        master = environment.get(MASTER_VARIABLE, cls.master)
        return cls(master=master, iceberg_warehouse=iceberg_warehouse, extra=tuple(pairs))

    @property
    def is_local(self) -> bool:
        """Whether driver and workers are one process on this machine."""
        return self.master.startswith("local")

    def conf(self) -> dict[str, str]:
        """The Spark properties that these settings stand for."""
        properties = {
            "spark.master": self.master,
            "spark.app.name": "icebench",
            "spark.driver.memory": self.driver_memory,
            "spark.log.level": "ERROR",
            "spark.sql.execution.arrow.pyspark.enabled": "true",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": str(self.shuffle_partitions),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        if self.is_local:
            # One address that always exists: no name look-up, nothing open to the network.
            properties |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        if self.iceberg_warehouse is not None:
            catalog = f"spark.sql.catalog.{self.iceberg_catalog}"
            properties |= {
                "spark.jars.packages": ICEBERG_RUNTIME,
                "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
                catalog: "org.apache.iceberg.spark.SparkCatalog",
                f"{catalog}.type": "hadoop",
                f"{catalog}.warehouse": self.iceberg_warehouse,
            }
        return properties | dict(self.extra)


@functools.cache
def spark_session(settings: SparkSettings = SparkSettings()) -> SparkSession:
    """The process's session, started on the first call and kept; who stops it must also call `.cache_clear()`.

    Raises:
        JavaMissing: No Java that Spark can run on is installed.
        ValueError: A session with other settings is running in this process; the message names what differs.
    """
    wanted = settings.conf()
    running = SparkSession.getActiveSession()
    if running is None:
        use_java_home()
        if settings.is_local or "PYSPARK_PYTHON" not in os.environ:
            # Python workers must see the same packages as this process. On a cluster the path may be another.
            os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = SparkSession.builder
        for name, value in wanted.items():
            builder = builder.config(name, value)
        running = builder.getOrCreate()
    differing = {name: running.conf.get(name, None) for name in wanted}
    differing = {name: value for name, value in differing.items() if value != wanted[name]}
    if differing:
        details = ", ".join(f"{name} is {value}, wanted {wanted[name]}" for name, value in differing.items())
        raise ValueError(f"a Spark session with other settings is running in this process: {details}")
    return running
