"""The jars of the REST catalog servers which the catalog contract runs against: Iceberg's own, and Nessie.

Iceberg's server is a part of its tests (`RESTCatalogAdapter`, in the ``tests`` jar of iceberg-core) in a Jetty. Spark's
own resolver takes no classifiers, so Ivy, which comes with PySpark, is run by itself. `python -m
tests.services.rest_jars` fetches the jars unless they are there; `make test` does so.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bench.errors import BenchError
from bench.java_home import find_java_home
from bench.setup_jars import IVY_HOME

_DESCRIPTION = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="icebench" module="rest-server"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconfmapping="default->master,runtime">{}  </dependencies>
</ivy-module>
"""


@dataclass(frozen=True)
class Jars:
    """Jars that are fetched together: what they are for, and Ivy's description of what they depend on."""

    name: str
    dependencies: str

    @property
    def description(self) -> str:
        return _DESCRIPTION.format(self.dependencies)


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
    return sorted(_directory(ICEBERG, ivy_home).glob("sqlite-jdbc-*.jar"))


def fetched(jars: Jars, ivy_home: Path = IVY_HOME) -> list[Path]:
    """The files of `jars`, fetched where they are missing.

    Raises:
        BenchError: They cannot be fetched, or there is no Java.
    """
    directory = _directory(jars, ivy_home)
    if not directory.is_dir():
        fetch(jars, ivy_home)
    return sorted(directory.glob("*.jar"))


def fetch(jars: Jars, ivy_home: Path = IVY_HOME) -> None:
    """Have Ivy collect the jars in a directory, which comes to be whole or not at all; raises BenchError."""
    target = _directory(jars, ivy_home)
    ivy_home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ivy_home) as temporary:
        description = Path(temporary, "ivy.xml")
        description.write_text(jars.description)
        collected = Path(temporary, "jars")
        ivy = [str(find_java_home() / "bin" / "java"), "-jar", str(spark_jars("ivy-*.jar")[0]), "-warn"]
        ivy += ["-ivy", str(description), "-cache", str(ivy_home / "cache")]
        ivy += ["-retrieve", f"{collected}/[artifact]-[revision](-[classifier]).[ext]"]
        done = subprocess.run(ivy, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not collected.is_dir():
            said = "\n".join([line for line in (done.stdout + done.stderr).splitlines() if line.strip()][-20:])
            raise BenchError(f"Ivy could not fetch {jars.name} (exit {done.returncode}):\n{said}")
        if not target.exists():
            shutil.move(collected, target)


def _directory(jars: Jars, ivy_home: Path) -> Path:
    return ivy_home / f"{jars.name}-{hashlib.sha256(jars.description.encode()).hexdigest()[:12]}"


def spark_jars(pattern: str) -> list[Path]:
    """Jars of PySpark, by name; raises BenchError where there are none."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise BenchError("PySpark is not installed")
    found = sorted(Path(spec.origin).with_name("jars").glob(pattern))
    if not found:
        raise BenchError(f"PySpark comes without {pattern}")
    return found


def main() -> None:
    """Fetches what is not there; says so only when there is something to do."""
    for jars in (ICEBERG, NESSIE):
        if _directory(jars, IVY_HOME).is_dir():
            continue
        sys.stderr.write(f"Fetching {jars.name}, a REST catalog server for the tests, into {IVY_HOME}\n")
        try:
            fetch(jars)
        except BenchError as error:
            sys.exit(f"icebench: {error}")


if __name__ == "__main__":
    main()
