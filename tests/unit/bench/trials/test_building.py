"""Tables that are built again to be timed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icebench.bench.errors import Disagreement
from icebench.bench.execution.measurement import BUILD
from icebench.bench.execution.pace import Pace
from icebench.bench.execution.recorder import Recorder
from icebench.bench.execution.run_file import RunWriter
from icebench.bench.execution.runner import ClockExecutor, Runner
from icebench.bench.execution.trial import Bench, Trial
from icebench.bench.layouts.layout import Layout, Term
from icebench.bench.progress import silent
from icebench.bench.records.case import Case, Cost
from icebench.bench.tables import datasets
from icebench.bench.tables.cache import MARKER, DatasetCache
from icebench.bench.tables.datasets import Dataset, DatasetRequest, find_or_build
from icebench.bench.tables.raw_files import RawFiles
from icebench.bench.tables.table_builder import TableBuild
from icebench.bench.trials.building import Building
from icebench.bench.workloads.dated_sales import DatedSales
from icebench.bench.workloads.tpcds import Tpcds

V2 = {"format-version": "2"}
LAYOUTS = (
    Layout(name="arrival", files=2, properties=V2),
    Layout(name="sorted", sort=(Term(column="item"),), files=2, properties=V2),
)


def no_session() -> NoReturn:
    raise AssertionError("nothing is distributed")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Dataset]]:
    """Finds or builds both layouts of a few rows, in the same cache each time."""
    rows = pa.table({"item": [n * 7919 % 1000 for n in range(4_000)], "id": list(range(4_000))})
    path = tmp_path / "raw.parquet"
    pq.write_table(rows, path)
    raw = RawFiles(schema=rows.schema, paths=(path,), rows=len(rows), size_bytes=path.stat().st_size)
    monkeypatch.setattr(datasets, "find_or_write", lambda *_: raw)
    request = DatasetRequest(rows=DatedSales.of(Tpcds(scale=0.01)), layouts=LAYOUTS, deletes=None)
    return lambda: find_or_build(request, DatasetCache(tmp_path / "cache"), spark=no_session, progress=silent)


def building(dataset: Dataset, folder: Path) -> Building:
    make = partial(TableBuild.prepare, dataset.layout, dataset.raw, spark=no_session, enlarged=dataset.enlarged)
    case = Case(workload="w", layout=dataset.layout.name, measurement=BUILD.name)
    return Building(case=case, cost=dataset.cost, workspace=folder, prepare=make, seconds=dataset.build_seconds)


def test_builds_are_samples_of_the_run_interleaved_and_leave_nothing(
    made: Callable[[], list[Dataset]], tmp_path: Path
) -> None:
    pace = Pace(repetitions={BUILD.name: 3}, warmups={BUILD.name: 0}, warm_seconds=2.0, build_seconds=30.0)
    ran: list[str] = []

    class Noting(ClockExecutor):
        def run(self, trial: Trial) -> Cost:
            ran.append(trial.case.layout)
            return super().run(trial)

    with RunWriter(tmp_path / "run.jsonl", run_id="r", environment={"id": "e"}) as writer:
        recorder = Recorder(writer, versions={"icebench": "1"})
        made()
        with Bench(engines={}, recorder=recorder, progress=silent, pace=pace).resources as held:
            bench = Bench(engines={}, recorder=recorder, progress=silent, pace=pace, resources=held)
            trials = [trial for each in made() for trial in building(each, tmp_path / "work").trials(bench)]
            for trial in trials:
                recorder.case(trial.case, trial.evidence)
            Runner(pace=pace, executor=Noting(), recorder=recorder, progress=silent, seed=1).run("w", trials)
            assert not [path for path in (tmp_path / "work").glob("*/*") if path.exists()]
    # The tables were found: what an earlier process took is no sample, and the first builds here are not, either.
    assert sorted(ran[:2]) == sorted(ran[2:4]) == sorted(ran[4:6]) == ["arrival", "sorted"]
    assert len(ran) == 8
    assert list((tmp_path / "work").iterdir()) == []
    by_name = {(r.layout, r.metric): r for r in recorder.records}
    for layout in ("arrival", "sorted"):
        for metric in ("build_seconds", "build_cpu_seconds", "build_compaction_seconds"):
            assert by_name[layout, metric].unit == "s"
            assert by_name[layout, metric].places == ((0, 0), (0, 1), (0, 2))
        assert min(by_name[layout, "build_cpu_seconds"].samples) > 0
        assert by_name[layout, "build_files"].samples == (2,)
    assert min(by_name["sorted", "build_compaction_seconds"].samples) > 0
    assert set(by_name["arrival", "build_compaction_seconds"].samples) == {0}


def test_what_is_kept_with_a_table_is_no_sample(made: Callable[[], list[Dataset]], tmp_path: Path) -> None:
    """Another machine, or another revision, may have built it."""
    first = made()
    assert all(each.build_seconds is not None and each.build_seconds > 0 for each in first)
    for marker in (tmp_path / "cache").glob(f"*/{MARKER}"):
        values = json.loads(marker.read_text())
        assert not [key for key in (*values["content"], *values["content"]["cost"]) if "seconds" in key]
        values["content"]["seconds"] = 99.0
        marker.write_text(json.dumps(values))
    found = made()
    assert [each.build_seconds for each in found] == [None, None]
    assert [each.cost for each in found] == [each.cost for each in first]


def test_another_table_than_the_one_that_is_asked_is_no_sample(
    made: Callable[[], list[Dataset]], tmp_path: Path
) -> None:
    dataset = made()[0]
    other = replace(dataset, cost=replace(dataset.cost, files=3))
    bench = Bench(engines={}, recorder=None, progress=silent, pace=None)  # type: ignore[arg-type]
    (trial,) = building(other, tmp_path).trials(bench)
    with pytest.raises(Disagreement, match="building it again gave 2 files, not 3"):
        ClockExecutor().run(trial)
    bench.resources.close()


def test_who_distributes_rows_by_spark_is_measured_with_spark(
    made: Callable[[], list[Dataset]], tmp_path: Path
) -> None:
    bench = Bench(engines={}, recorder=None, progress=silent, pace=None)  # type: ignore[arg-type]
    for on_spark in (False, True):
        (trial,) = replace(building(made()[0], tmp_path), on_spark=on_spark).trials(bench)
        assert trial.in_children is on_spark
    bench.resources.close()
