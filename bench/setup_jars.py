"""Fetches the Iceberg Java runtime, the engine that the harness compares with, through Spark's own package resolver.

Spark resolves `spark.jars.packages` in every session; once the jar lies in the Ivy cache that takes no network. Run as
`python -m icebench.bench.setup_jars`, this makes sure that it does, so that no benchmark or test ever pays for the
download.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from icebench.bench.errors import BenchError
from icebench.bench.java_home import find_java_home

ICEBERG_RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
"""Maven coordinates; the value for `spark.jars.packages`."""

IVY_HOME = Path.home() / ".ivy2.5.2"
"""Where Spark 4 keeps the packages that it resolved, unless `spark.jars.ivy` says otherwise."""


def cached_jar(coordinates: str = ICEBERG_RUNTIME, ivy_home: Path = IVY_HOME) -> Path:
    """The path at which Spark keeps the jar of Maven `coordinates` ("group:artifact:version"), present or not."""
    return ivy_home / "jars" / f"{coordinates.replace(':', '_', 1).replace(':', '-')}.jar"


def is_cached(coordinates: str = ICEBERG_RUNTIME, ivy_home: Path = IVY_HOME) -> bool:
    """Whether the jar is there, and whole: an interrupted download leaves a zip without its directory."""
    return zipfile.is_zipfile(cached_jar(coordinates, ivy_home))


class JarMissing(BenchError):
    """Spark could not fetch a package; the message ends with what Spark said."""


def fetch(coordinates: str = ICEBERG_RUNTIME, ivy_home: Path = IVY_HOME) -> None:
    """Has spark-submit resolve `coordinates` for a program that does nothing.

    Raises:
        JarMissing: the jar is not in the cache afterwards.
        JavaMissing: there is no Java to run spark-submit with.
    """
    # Another Spark installation would keep its packages elsewhere.
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    environment |= {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(find_java_home())}
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory, "nothing.py")
        program.touch()
        submit = [str(Path(sys.executable).with_name("spark-submit")), "--packages", coordinates]
        submit += ["--conf", f"spark.jars.ivy={ivy_home}", str(program)]
        done = subprocess.run(submit, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not is_cached(coordinates, ivy_home):
        said = "\n".join([line for line in done.stderr.splitlines() if line.strip()][-20:])
        raise JarMissing(f"spark-submit could not fetch {coordinates} (exit {done.returncode}):\n{said}")


def main(wanted: Sequence[str] = ()) -> None:
    """Fetches the runtime, or what is named, unless it is cached; says so only when there is something to do."""
    for coordinates in wanted or [ICEBERG_RUNTIME]:
        if is_cached(coordinates):
            continue
        sys.stderr.write(f"Fetching {coordinates} into {IVY_HOME}\n")
        try:
            fetch(coordinates)
        except BenchError as error:
            sys.exit(f"icebench: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
