"""Settings with which Spark takes less processor time for many small queries; the rows and plans are the same."""

from __future__ import annotations

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
    from icebench.bench.spark_session import SparkSettings  # local import: services need no PySpark

    log = SparkSettings().conf().get("spark.driver.extraJavaOptions", "")
    return (
        ("spark.driver.extraJavaOptions", " ".join([log, *JAVA_OPTIONS, *heap]).strip()),
        ("spark.executor.extraJavaOptions", " ".join(JAVA_OPTIONS)),
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
