"""What a run has for a measurement."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icebench.bench.engines.engine import AnyEngine
from icebench.bench.execution.spark_use import SparkUse
from icebench.bench.progress import Progress


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a run has for a measurement.

    Args:
        options: What `MeasurementKind.parse` made of the definition.
        engines: Those that could be made, by name.
        asked: The names of all that the definition has.
        seed: The definition's, for orders that are drawn.
        cache: Directory of generated tables.
        spark: The run's session.
        progress: Reports every step.
        resources: Holds what is needed until the end of the run.
    """

    options: Any
    engines: Mapping[str, AnyEngine]
    asked: tuple[str, ...]
    seed: int
    cache: Path
    spark: SparkUse
    progress: Progress
    resources: ExitStack
