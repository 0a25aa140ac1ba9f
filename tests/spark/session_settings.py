"""Settings of the session that all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Context in which a session has a setting that it has not otherwise."""
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)
