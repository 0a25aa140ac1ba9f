"""The settings of a run's Spark session: the definition's, and where the environment says to run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bench.experiment import SparkDefinition
from bench.setup_jars import is_cached
from bench.spark_session import MASTER_VARIABLE, SparkSettings


def spark_settings(
    definition: SparkDefinition, warehouse: Path, environment: Mapping[str, str] = os.environ
) -> SparkSettings:
    """Settings of the session: the environment's master and settings win over the definition's.

    Iceberg's runtime is part of the session when it is in Spark's cache of packages; without it a session starts all
    the same, offline, and the engine iceberg-java is skipped.

    Args:
        definition: The experiment's.
        warehouse: A directory for Iceberg Java's own catalog, which nothing is put into.
        environment: See `SparkSettings.from_environment`.
    """
    settings = SparkSettings.from_environment(environment, iceberg_warehouse=str(warehouse) if is_cached() else None)
    master = settings.master if MASTER_VARIABLE in environment else definition.master
    extra = {**definition.conf, **dict(settings.extra)}
    return replace(settings, master=master, extra=tuple(sorted(extra.items())))
