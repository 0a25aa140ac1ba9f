"""Rows and a layout of another package, built on executors and measured."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from tomllib import loads

import pytest
from pyspark.sql import SparkSession

from icebench.bench import plugins
from icebench.bench.engines.registry import ENGINES
from icebench.bench.execution.measurement import MEASUREMENTS
from icebench.bench.experiment import parse_values
from icebench.bench.layouts.registry import ADDED, known_layouts
from icebench.bench.runs.run import Surroundings, run_experiment
from icebench.bench.workloads.definitions import WORKLOADS

PACKAGE = Path(__file__).resolve().parents[1] / "example_package"


@pytest.fixture
def installed(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package where this process and the executors import it."""
    spark.sparkContext.addPyFile(str(PACKAGE / "icebench_example.py"))
    monkeypatch.syspath_prepend(PACKAGE)
    groups = loads((PACKAGE / "pyproject.toml").read_text())["project"]["entry-points"]
    made = EntryPoints(EntryPoint(name, value, group) for group, own in groups.items() for name, value in own.items())
    monkeypatch.setattr(plugins, "entry_points", lambda group: made.select(group=group))
    registries = (ENGINES, MEASUREMENTS, WORKLOADS, ADDED)

    def forget() -> None:
        known_layouts.cache_clear()
        for registry in registries:
            registry.__dict__.pop("_added", None)

    forget()
    yield
    monkeypatch.undo()
    forget()


@pytest.mark.usefixtures("installed")
def test_rows_and_a_layout_of_a_package_are_built_and_measured(spark: SparkSession, tmp_path: Path) -> None:
    definition = {
        "name": "sensors", "engines": ["icebench", "whole-table"], "layouts": ["by-value", "unpartitioned"],
        "measurements": ["narrow", "pruning"], "repetitions": 1, "warmups": 0, "warm_seconds": 0.0,
        "table": {"files": 2}, "workload": {"kind": "sensors", "rows": 5_000},
    }  # fmt: skip
    where = Surroundings(cache=tmp_path / "cache", results=tmp_path, session=lambda: spark)
    made = run_experiment(parse_values(definition), where=where)
    assert not made.run.failures
    counted = {(r.layout, r.engine): r.counters["rows_returned"] for r in made.records if r.measurement == "narrow"}
    assert counted == {
        (layout, engine): 5_000 for layout in ("by-value", "unpartitioned") for engine in ("icebench", "whole-table")
    }
    matching = {r.counters["rows_matching"] for r in made.records if r.measurement == "pruning"}
    assert matching == {50}
