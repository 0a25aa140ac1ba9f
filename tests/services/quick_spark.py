"""Settings with which Spark takes less processor time for many small queries; the rows and plans are the same."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from icebench.bench.spark_session import SparkSettings

JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)
"""No machine code that takes longer to optimise than it is run, no threads that collect garbage in parallel, and no
proofs about the classes of released jars."""

HEAP_OPTIONS = ("-Xms1g", "-Xmn600m", "-XX:MetaspaceSize=256m")
"""What lives long is half a gigabyte; a heap that only grows to that is collected as a whole again and again."""


def quick_spark(*heap: str) -> tuple[tuple[str, str], ...]:
    """Pairs of name and value for `SparkSettings.extra`; `heap` has options for the driver's memory."""
    from icebench.bench.spark_session import SparkSettings  # local import: the daemon imports PySpark in its own way

    log = SparkSettings().conf().get("spark.driver.extraJavaOptions", "")
    return (
        ("spark.driver.extraJavaOptions", " ".join([log, *JAVA_OPTIONS, *heap]).strip()),
        ("spark.executor.extraJavaOptions", " ".join(JAVA_OPTIONS)),
        ("spark.python.daemon.module", "tests.services.quick_spark"),
    )


def quick_settings(warehouse: Path, *extra: tuple[str, str], memory: str = "2g") -> SparkSettings:
    """Of a session in this process, whose catalog `iceberg_java` has its tables in a directory."""
    from icebench.bench.spark_session import SparkSettings  # local import: as above

    return SparkSettings(
        master="local[2]",
        driver_memory=memory,
        shuffle_partitions=2,
        iceberg_warehouse=str(warehouse),
        extra=(*quick_spark(*HEAP_OPTIONS), *extra),
    )


def main() -> None:
    """Spark's daemon of Python workers, with PySpark as it is installed and not as the archive that Spark names.

    Before each task a worker calls `importlib.invalidate_caches`, which before Python 3.13 reads the directory of every
    imported archive again: 0.16 s of processor time a task.
    """
    sys.path[:] = [place for place in sys.path if not place.endswith((".zip", ".jar"))]
    sys.path_importer_cache.clear()
    # local import: from what is left of the path
    from pyspark import daemon

    vars(daemon)["gc"] = SimpleNamespace(collect=_collect_once)
    daemon.manager()


def _collect_once() -> None:
    """What a worker calls after each task.

    Searches for garbage among what is new since the last task, and not among all modules, which takes 0.2 s.
    """
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    main()
