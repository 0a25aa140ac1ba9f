"""What the benchmarks share: the quick experiment's tables, engines made once a process, the counted truth.

asv calls `setup` before every timed call, in a temporary working directory and a process of its own for each parameter;
so everything dear is behind a cache here, and data is found from this file's own place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.engines.engine import AnyEngine
from bench.engines.registry import EngineContext, make_engine
from bench.errors import BenchError
from bench.experiment import Experiment, load_experiment
from bench.measure.brute.metadata import load_table_json
from bench.measure.cache import DatasetCache
from bench.measure.datasets import DatasetRequest, delete_variants, find_or_build
from bench.measure.opened import Opened
from bench.measure.progress import silent
from bench.measure.run import Surroundings, run_experiment
from bench.measure.spark_use import SparkUse
from bench.measure.subject import decimal_columns
from bench.workloads.definitions import RowsWorkload
from bench.workloads.rows import Rows

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "datasets" / "cache"
OWN_ENGINES = ("icebench", "icebench-spark")
"""asv follows this project's own code through its history; peers are compared by `icebench run`, interleaved."""

ALL = "all"
NONE = "none"

Key = tuple[str, str]
"""Layout and filter."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What `setup_cache` leaves for every benchmark: small, and picklable.

    Args:
        tables: Layout -> metadata file.
        with_deletes: (layout, variant) -> metadata file; the variant without deletes is `NONE`.
        figures: (layout, filter) -> figures of the pruning measurement by metric or counter.
        decimal_columns: Of every table, which all have the same columns.
    """

    tables: Mapping[str, str]
    with_deletes: Mapping[Key, str]
    figures: Mapping[Key, Mapping[str, float]]
    decimal_columns: tuple[str, ...]


@cache
def experiment() -> Experiment:
    """The definition that all benchmarks measure."""
    return load_experiment(ROOT / "datasets" / "quick.toml")


def variants() -> list[str]:
    """The variants of deletes, the one without first."""
    return [NONE, *(variant.name for variant in delete_variants(experiment().deletes, rows()))]


def rows() -> Rows:
    """What makes the rows that all benchmarks measure."""
    return next(each.rows for each in experiment().workloads if isinstance(each, RowsWorkload))


def prepare() -> Prepared:
    """Build what is missing of the tables, and measure pruning once, which has no clock.

    Raises:
        BenchError: A table could not be built, or a plan lost files.
    """
    chosen = experiment()
    with TemporaryDirectory() as folder:
        where = Surroundings(cache=CACHE, results=Path(folder))
        spark = SparkUse(chosen.spark, CACHE / "iceberg_java")
        request = DatasetRequest(
            rows=rows(),
            layouts=chosen.layouts,
            deletes=chosen.deletes,
        )
        datasets = find_or_build(request, DatasetCache(CACHE), spark=spark, progress=silent)
        run = run_experiment(chosen.adjusted(only=["icebench", "pruning"]), where=where)
    if run.failed:
        raise BenchError("; ".join(str(failure) for failure in run.run.failures))
    figures: dict[Key, dict[str, float]] = {}
    for record in run.records:
        found = figures.setdefault((record.layout, record.case), {})
        found[record.metric] = record.samples[0]
        found |= record.counters
    return Prepared(
        tables={d.layout.name: d.metadata_location for d in datasets},
        with_deletes={(d.layout.name, NONE): d.metadata_location for d in datasets}
        | {(d.layout.name, name): location for d in datasets for name, location in d.with_deletes.items()},
        figures=figures,
        decimal_columns=decimal_columns(load_table_json(datasets[0].metadata_location)),
    )


@cache
def made(name: str) -> AnyEngine:
    """The engine of that name, with a Spark session when it needs one, once a process."""
    return make_engine(name, EngineContext(SparkUse(experiment().spark, CACHE / "iceberg_java")))


@cache
def opened(engine: str, location: str, filter: str | None) -> Opened:
    """A table and filter in an engine's hands, once a process."""
    return Opened.of(made(engine), location, filter)


class Quick:
    """What all benchmarks have: the tables, made once for the suite, and room for a slow machine.

    asv compares results of one `version` only; it changes when what is timed does.
    """

    version = "1"
    timeout = 600.0

    def setup_cache(self) -> Prepared:
        """The tables and the counted truth; asv runs this once, because all classes have the same function."""
        return prepare()
