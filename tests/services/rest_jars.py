"""The jars of the REST catalog servers which the catalog contract runs against: Iceberg's own, and Nessie.

Iceberg's server is a part of its tests (`RESTCatalogAdapter`, in the ``tests`` jar of iceberg-core) in a Jetty.
`python -m tests.services.rest_jars` fetches the jars unless they are there; `make test` does so.
"""

from __future__ import annotations

import sys
from pathlib import Path

from icebench.bench.errors import BenchError
from icebench.bench.ivy_jars import Jars, directory_of, fetch, fetched, spark_jars
from icebench.bench.setup_jars import IVY_HOME

ICEBERG = Jars(
    "iceberg-rest-server",
    """
    <dependency org="org.apache.iceberg" name="iceberg-core" rev="1.11.0">
      <artifact name="iceberg-core" type="jar" ext="jar"/>
      <artifact name="iceberg-core" type="jar" ext="jar" m:classifier="tests"/>
    </dependency>
    <dependency org="org.eclipse.jetty.ee10" name="jetty-ee10-servlet" rev="12.1.8"/>
    <dependency org="org.eclipse.jetty" name="jetty-xml" rev="12.1.8"/>
    <dependency org="org.xerial" name="sqlite-jdbc" rev="3.53.2.1"/>
    <dependency org="org.slf4j" name="slf4j-simple" rev="2.0.17"/>
""",
)
NESSIE = Jars(
    "nessie",
    """
    <dependency org="org.projectnessie.nessie" name="nessie-quarkus" rev="0.99.0" transitive="false">
      <artifact name="nessie-quarkus" type="jar" ext="jar" m:classifier="runner"/>
    </dependency>
""",
)

_FROM_SPARK = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar")
"""Jars of PySpark that the server uses too: Hadoop's configuration and file systems."""


def class_path(ivy_home: Path = IVY_HOME) -> list[Path]:
    """The jars of Iceberg's server, fetched where they are missing; raises BenchError."""
    return [*fetched(ICEBERG, ivy_home), *(jar for pattern in _FROM_SPARK for jar in spark_jars(pattern))]


def sqlite_driver(ivy_home: Path = IVY_HOME) -> list[Path]:
    """The JDBC driver of SQLite, if the jars are there."""
    return sorted(directory_of(ICEBERG, ivy_home).glob("sqlite-jdbc-*.jar"))


def main() -> None:
    """Fetches what is not there; says so only when there is something to do."""
    for jars in (ICEBERG, NESSIE):
        if directory_of(jars).is_dir():
            continue
        sys.stderr.write(f"Fetching {jars.name}, a REST catalog server for the tests, into {IVY_HOME}\n")
        try:
            fetch(jars)
        except BenchError as error:
            sys.exit(f"icebench: {error}")


if __name__ == "__main__":
    main()
