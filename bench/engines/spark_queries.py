"""Queries by Spark SQL over temporary views, of which only what a view reads differs from engine to engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from itertools import count
from threading import Event, Timer
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as st

from icebench.bench.engines.engine import TookTooLong

_GROUP = "spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"
_NUMBERS = count()


def views_session(spark: SparkSession) -> SparkSession:
    """A session for the views of one engine: with the settings that the application was started with, and temporary
    views of its own, so that each engine's tables may have the same names."""
    return spark.newSession()


def spark_rows(session: SparkSession, query: str, seconds: float | None) -> list[tuple[Any, ...]]:
    """The rows of an answer, as `icebench.bench.engines.engine.Querying.answer` gives them."""
    with _given_up_after(session, seconds):
        frame = session.sql(query)
        rows = frame.collect()
    zoned = [place for place, field in enumerate(frame.schema) if isinstance(field.dataType, st.TimestampType)]
    found = [tuple(row) for row in rows]
    if not zoned:
        return found
    # PySpark gives them as local times without a zone.
    return [
        tuple(
            value.astimezone(UTC) if place in zoned and value is not None else value for place, value in enumerate(row)
        )
        for row in found
    ]


@contextmanager
def _given_up_after(session: SparkSession, seconds: float | None) -> Iterator[None]:
    """Cancels the jobs of the context after that time, and raises TookTooLong."""
    if seconds is None:
        yield
        return
    context, group, is_over = session.sparkContext, f"icebench-query-{next(_NUMBERS)}", Event()

    def cancel() -> None:
        is_over.set()
        context.cancelJobGroup(group)

    patience = Timer(seconds, cancel)
    context.setJobGroup(group, "a query", interruptOnCancel=True)
    patience.start()
    try:
        yield
    except Exception as error:
        if is_over.is_set():
            raise TookTooLong(seconds) from error
        raise
    finally:
        patience.cancel()
        for name in _GROUP:
            context.setLocalProperty(name, None)  # type: ignore[arg-type] # PySpark's way to unset one
