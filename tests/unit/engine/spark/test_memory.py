"""The memory of a task, from Spark's settings."""

from __future__ import annotations

import pytest

from engine.errors import Invalid
from engine.spark.memory import LEAST_BYTES, task_memory_bytes

MIB = 1 << 20
WORKER = 200


@pytest.mark.parametrize(
    ("settings", "cores", "python"),
    [
        # PySpark's own memory, whatever else there is.
        ({"spark.executor.pyspark.memory": "2g", "spark.executor.memoryOverhead": "9g"}, 1, 2048),
        ({"spark.executor.pyspark.memory": "2g"}, 4, 512),
        ({"spark.executor.pyspark.memory": "2g", "spark.executor.cores": "2"}, 4, 1024),
        ({"spark.executor.pyspark.memory": "2g", "spark.executor.cores": "4", "spark.task.cpus": "4"}, 1, 2048),
        ({"spark.executor.pyspark.memory": "2g", "spark.executor.cores": "1", "spark.task.cpus": "2"}, 1, 2048),
        # Half of the overhead.
        ({"spark.executor.memoryOverhead": "3072"}, 1, 1536),
        ({"spark.executor.memoryOverhead": "3G", "spark.executor.memoryOverheadFactor": "0.9"}, 1, 1536),
        ({"spark.executor.memory": "8g", "spark.executor.memoryOverheadFactor": "0.5"}, 2, 1024),
        ({"spark.executor.memory": "20480m"}, 1, 1024),
        ({"spark.executor.minMemoryOverhead": "1g"}, 1, 512),
    ],
)
def test_a_task_has_its_part(settings: dict[str, str], cores: int, python: int) -> None:
    assert task_memory_bytes(settings, cores=cores) == (python - WORKER) // 2 * MIB


def test_small_executors_have_the_least() -> None:
    assert task_memory_bytes({}, cores=1) == LEAST_BYTES
    assert task_memory_bytes({"spark.executor.pyspark.memory": "300000k"}, cores=8) == LEAST_BYTES
    assert task_memory_bytes({"spark.executor.pyspark.memory": "1073741824b"}, cores=1) == 412 * MIB


def test_a_size_that_is_none() -> None:
    with pytest.raises(Invalid, match="'lots' is no size"):
        task_memory_bytes({"spark.executor.pyspark.memory": "lots"}, cores=1)
