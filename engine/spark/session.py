"""A session of our own beside the user's: other settings, the same Spark application.

Spark reads some settings when a DataFrame is made (how files are listed) and others when it runs (how Parquet columns
are matched), and always from the session that made the file relation. So settings of a scan can neither be set and
reset around a call, which would be too early for the second kind, nor left set, which would change the user's other
queries. Instead the relation is made in a session derived from the user's, and then handed over.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, MutableMapping
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

SCAN_SETTINGS: Mapping[str, str] = {
    # Columns are found by field id, wherever the read schema has one.
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    # Names of a schema may differ in case only.
    "spark.sql.caseSensitive": "true",
    # The plan names every file, so there is nothing to list: above this many paths Spark would start a job for it.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": str(2**31 - 1),
    # A file that the table refers to must be there and be whole.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
}


_LATEST: MutableMapping[SparkSession, tuple[Mapping[str, str], SparkSession]] = WeakKeyDictionary()
"""The user's session -> its settings when a session was last derived from it, and that session."""


def scan_session(spark: SparkSession) -> SparkSession:
    """A session with the user's settings and those that a scan needs.

    It is never changed again, and so serves all scans until the user changes a setting: making one takes a hundred
    calls into the Java virtual machine.
    """
    settings = dict(spark.conf.getAll)
    known = _LATEST.get(spark)
    if known is not None and known[0] == settings:
        return known[1]
    own = spark.newSession()
    for name, value in {**settings, **SCAN_SETTINGS}.items():
        if name in SCAN_SETTINGS or own.conf.isModifiable(name):
            own.conf.set(name, value)
    _LATEST[spark] = (settings, own)
    return own


def handed_over(frame: DataFrame, spark: SparkSession, new_id: Callable[[], uuid.UUID] = uuid.uuid4) -> DataFrame:
    """The DataFrame as one of `spark`, so that views and queries over it are the user's.

    A global temporary view is what sessions of an application share; it exists only while this function runs.
    """
    name = f"icebench_{new_id().hex}"
    frame.createGlobalTempView(name)
    try:
        return spark.table(f"{_global_database(spark)}.{name}")
    finally:
        frame.sparkSession.catalog.dropGlobalTempView(name)


def _global_database(spark: SparkSession) -> str:
    return str(spark.conf.get("spark.sql.globalTempDatabase", "global_temp"))
