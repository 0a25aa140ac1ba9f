"""What a run provides to a measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icebench.bench.engines.access import Access, TableAccess
from icebench.bench.engines.engine import AnyEngine
from icebench.bench.execution.spark_use import SparkUse
from icebench.bench.progress import Progress

NO_DELAY = "no-delay"
"""The bucket that answers at once."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a run provides to a measurement.

    Args:
        options: What `MeasurementKind.parse` returned for the definition.
        engines: Those that could be created, by name.
        asked: The names of all engines in the definition.
        seed: The definition's, for orders that are drawn.
        cache: Directory of generated tables.
        spark: The run's session.
        progress: Reports every step.
        resources: Holds what is needed until the end of the run.
        access: Records what opens the files of tables that are not local.
        store: Starts the run's S3 server, once, and returns what opens files there. The server has a bucket for each of
            `icebench.bench.costs.object_store.PROFILES`, with its delays, and `NO_DELAY`. Raises EngineMissing.
    """

    options: Any
    engines: Mapping[str, AnyEngine]
    asked: tuple[str, ...]
    seed: int
    cache: Path
    spark: SparkUse
    progress: Progress
    resources: ExitStack
    access: TableAccess
    store: Callable[[], Access]
