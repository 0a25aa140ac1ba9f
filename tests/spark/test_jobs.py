"""Jobs on executors: what comes of each item, and errors as they were."""

from __future__ import annotations

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from icebench.engine.spark.jobs import run_job
from icebench.engine.storage.memory import MemoryStore
from icebench.errors import CorruptTable, Unsupported
from tests.spark.job_work import divide_by_zero, echo, fail_at_two


def test_answers_come_in_the_order_of_items(spark: SparkSession) -> None:
    items = [5, 3, 9, 0, 7, 1, 3]
    made = [buffer.to_pybytes().split() for buffer in run_job(spark, echo, items)]
    assert [int(item) for item, _ in made] == items
    assert len({attempt for _, attempt in made}) == len(items)
    assert run_job(spark, echo, []) == []


def test_errors_keep_their_type_text_and_attributes(spark: SparkSession) -> None:
    with pytest.raises(CorruptTable) as raised:
        run_job(spark, fail_at_two, [1, 2, 3])
    with pytest.raises(CorruptTable) as here:
        fail_at_two(2, 0)
    assert (str(raised.value), vars(raised.value)) == (str(here.value), vars(here.value))
    with pytest.raises(PythonException, match="ZeroDivisionError"):
        run_job(spark, divide_by_zero, [1])


def test_what_cannot_be_sent_is_refused(spark: SparkSession) -> None:
    with pytest.raises(Unsupported, match="of this process alone"):
        run_job(spark, echo, [MemoryStore()])  # type: ignore[arg-type]
