"""How much memory a task of Python may take, from what its executor has.

YARN and Kubernetes end an executor that exceeds its heap, its overhead and, where that is set, PySpark's memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.sql import SparkSession

from engine.errors import Invalid

_MIB = 1 << 20
_UNITS = {"": _MIB, "b": 1, "k": 1 << 10, "m": _MIB, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_SIZE = re.compile(r"(\d+)([bkmgtp]?)b?")
_WORKER_BYTES = 200 * _MIB
"""What a worker takes before it has a row: Python, Arrow, and compiled kernels."""
LEAST_BYTES = 16 * _MIB
"""Below that, files would be cut to pieces: a task takes so much, whatever its executor has."""


def row_memory_bytes(spark: SparkSession) -> int | None:
    """Bytes of rows that a task may hold; None without executors of their own, where tasks are on the driver's machine.

    Raises:
        Invalid: A size in the session's settings that is none.
    """
    context = spark.sparkContext
    if (context.master or "").startswith("local"):
        return None
    settings = dict(context.getConf().getAll())
    executors = context._jsc.sc().getExecutorMemoryStatus().size() - 1  # noqa: SLF001
    return task_memory_bytes(settings, cores=-(-context.defaultParallelism // max(executors, 1)))


def task_memory_bytes(settings: Mapping[str, str], *, cores: int) -> int:
    """Bytes of rows that a task may hold.

    ``spark.executor.pyspark.memory`` is for Python alone. Else Python has half of the executor's memory overhead
    (``spark.executor.memoryOverhead``, or ``memoryOverheadFactor`` of its memory), of which the Java virtual machine
    needs the other half. That is divided by the tasks that run at once. Of a task's part, rows take half of what the
    worker leaves: the rest is for keys, readers, and files that are being written.

    Args:
        settings: Spark's.
        cores: Cores of an executor, where the settings do not say.
    """
    own = settings.get("spark.executor.pyspark.memory")
    if own is not None:
        python = _bytes(own)
    elif (overhead := settings.get("spark.executor.memoryOverhead")) is not None:
        python = _bytes(overhead) // 2
    else:
        heap = _bytes(settings.get("spark.executor.memory", "1g"))
        factor = float(settings.get("spark.executor.memoryOverheadFactor", "0.1"))
        python = max(int(heap * factor), _bytes(settings.get("spark.executor.minMemoryOverhead", "384m"))) // 2
    tasks = int(settings.get("spark.executor.cores", cores)) // int(settings.get("spark.task.cpus", "1"))
    return max((python // max(tasks, 1) - _WORKER_BYTES) // 2, LEAST_BYTES)


def _bytes(text: str) -> int:
    """A size as Spark writes it: mebibytes without a unit."""
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None:
        raise Invalid(f"Spark's setting of memory {text!r} is no size such as 512m")
    return int(found[1]) * _UNITS[found[2]]
