"""What tests on Spark share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(params=["true", "false"], ids=["adaptive", "not adaptive"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    """The shared session with and without adaptive execution."""
    spark.conf.set("spark.sql.adaptive.enabled", request.param)
    yield spark
    spark.conf.unset("spark.sql.adaptive.enabled")
