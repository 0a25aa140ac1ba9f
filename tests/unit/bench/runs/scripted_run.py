"""A whole run of scripted engines, two processes of it, whose figures are the same every time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zlib import crc32

import pyarrow.parquet as pq

from icebench.bench.cli import run as command
from icebench.bench.cli.main import main
from icebench.bench.engines.engine import AnyEngine, EngineMissing
from icebench.bench.engines.registry import EngineContext
from icebench.bench.execution import runner
from icebench.bench.execution.run_file import Run
from icebench.bench.execution.trial import Trial
from icebench.bench.experiment import Experiment, parse_values
from icebench.bench.layouts.registry import known_layouts
from icebench.bench.records.case import Cost
from icebench.bench.runs import preparation, run
from icebench.bench.runs.run import Surroundings, resume_run
from icebench.bench.tables.datasets import Dataset
from icebench.bench.tables.raw_files import RawFiles
from icebench.bench.tables.table_builder import BuildCost
from icebench.bench.truth.manifests import live_files
from icebench.bench.truth.metadata import load_table_json
from tests.unit.bench.execution.scripted import NOON, Clock, ScriptedEngine, small_rows

FILTER = "id < 50"
VALUES = {
    "name": "scripted",
    "engines": ["icebench", "iceberg-java", "pyiceberg"],
    "measurements": ["planning", "deletes"],
    "repetitions": 4,
    "warmups": 1,
    "warm_seconds": 0,
    "processes": 2,
    "filters": {"one": FILTER},
    "layouts": ["monthly"],
    "workload": {"kind": "tpcds", "scale": 0.01},
}


@dataclass
class FixedExecutor:
    """Takes what a case always takes, and `pause` by the clock; one case raises whenever it is timed."""

    pause: Callable[[], object] = lambda: None
    ran: list[object] = field(default_factory=list)

    def run(self, trial: Trial) -> Cost:
        self.pause()
        case = trial.case
        if (case.engine, case.filter, case.cache) == ("pyiceberg", "one", "cold"):
            raise RuntimeError("bad page")
        self.ran.append(case)
        seconds = (1 + crc32(repr(case).encode()) % 1000) / 1e6
        return Cost(wall=seconds, cpu=seconds, memory=None)


@contextmanager
def scripted_run(
    folder: Path, location: str, executor: FixedExecutor, **more: Any
) -> Iterator[tuple[Experiment, Surroundings]]:
    """An experiment whose engines are scripted, and where it runs: its further processes in this one.

    Args:
        folder: Of its files.
        location: The metadata file of `small_table`.
        executor: Runs samples.
        more: Of `Surroundings`.
    """
    clock = Clock()
    paths = [file.path for file in live_files(load_table_json(location))]
    rows = small_rows().combine_chunks().to_batches()[0]
    plans = {(location, None): paths, (location, FILTER): paths}

    def make(name: str, context: EngineContext) -> AnyEngine:
        if name == "iceberg-java":
            raise EngineMissing("no Java here")
        return ScriptedEngine(name, clock, plans=plans, rows={location: rows})

    folder.mkdir(parents=True, exist_ok=True)
    raw_path = folder / "raw.parquet"
    pq.write_table(small_rows(), raw_path)
    raw = RawFiles(schema=rows.schema, paths=(raw_path,), rows=400, size_bytes=raw_path.stat().st_size)
    cost = BuildCost(bytes_written=10, bytes_compacted=4, bytes_on_disk=20, files=3, manifests=1)
    dataset = Dataset(layout=known_layouts()["monthly"], metadata_location=location, raw=raw, cost=cost)
    where = Surroundings(
        cache=folder / "cache", results=folder / "runs", executor=executor, clock=clock, now=lambda: NOON, **more
    )
    with (
        patch.object(run, "make_engine", make),
        patch.object(preparation, "find_or_build", lambda *_, **__: [dataset]),
        # Asking the machine takes a second, and walking all objects of the tests half of one.
        patch.object(runner, "out_of_collection", nullcontext),
        patch.object(runner, "keep_out", lambda: None),
        patch.object(run, "fingerprint", lambda versions, **_: {"id": "e", "engines": dict(versions)}),
    ):
        yield parse_values(VALUES), where


def figures(found: Run) -> tuple[object, ...]:
    """What a run says, without the numbers of the processes that said it; fails where it says something twice."""
    processes = VALUES["processes"]
    assert isinstance(processes, int)
    cases = {}
    for each in found.measured:
        samples = {(s.process % processes, s.round): s.cost for s in each.samples}
        assert len(samples) == len(each.samples), each.case
        assert each.case not in cases
        cases[each.case] = (each.evidence, samples)
    assert len(set(found.skipped)) == len(found.skipped)
    assert len(set(found.failures)) == len(found.failures)
    return cases, set(found.skipped), set(found.failures)


def attempt(folder: Path, location: str, pause_seconds: float) -> None:
    """`icebench run` in this process, which it ends: a new run, or what there is of one goes on. What it says is in
    the file ``said`` of the folder."""
    with (folder / "said").open("ab") as said:
        for stream in (1, 2):
            os.dup2(said.fileno(), stream)
    there = [word for path in (folder / "runs").glob("*.jsonl") for word in ("--resume", str(path))]
    executor = FixedExecutor(pause=partial(time.sleep, pause_seconds))
    with scripted_run(folder, location, executor) as (experiment, where):
        fixed = partial(replace, where, results=folder / "runs")

        def launch(path: Path, process: int, lock: int, **of_command: Any) -> None:
            resume_run(path, where=fixed(interruption=of_command["interruption"]), process=process, lock=lock)

        with (
            patch("icebench.bench.runs.run.Surroundings", lambda **own: fixed(**own | {"cache": where.cache})),
            patch("icebench.bench.runs.further_process.launch", launch),
            patch.object(command, "load_experiment", lambda _: experiment),
            patch.object(command, "check_filters", lambda _: None),  # they are of the scripted tables
            patch.object(command, "_conclude", lambda *_: 0),
        ):
            (folder / "began").touch()
            main(["--results", str(folder), "run", *(there or ["scripted"])])
