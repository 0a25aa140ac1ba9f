"""What tests on Spark share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

ADAPTIVE = "spark.sql.adaptive.enabled"


@pytest.fixture(params=["adaptive", "not adaptive"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    """The shared session by Spark's defaults, adaptive execution and compiled queries, and with neither."""
    if request.param == "adaptive":
        yield request.getfixturevalue("compiling_spark")
        return
    spark.conf.set(ADAPTIVE, "false")
    yield spark
    spark.conf.unset(ADAPTIVE)
