"""Planning on described tables: what is recorded, what is a failure, and how slow engines are spared."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import icebench
from icebench.bench.engines.engine import Ability, Plan
from icebench.bench.engines.icebench import Icebench
from icebench.bench.engines.inflate import Inflate
from icebench.bench.errors import ConfigError
from icebench.bench.execution.opened import Opened
from icebench.bench.execution.pace import Pace
from icebench.bench.execution.run_file import RunWriter
from icebench.bench.experiment import parse_values
from icebench.bench.records.case import EVERYTHING, Case
from icebench.bench.runs.estimate import estimate
from icebench.bench.runs.run import Surroundings, run_experiment
from icebench.bench.tables.cache import DatasetCache
from icebench.bench.tables.metadata_tables import commits_of, find_or_build, rewritten_by_java
from icebench.bench.trials.planning import DescribedFiles, Planning, _from_disk
from icebench.bench.workloads.metadata_files import MetadataFiles, path_of
from tests.unit.bench.execution.scripted import CONTEXT, Clock, ScriptedEngine, no_spark, pace_of, recorded

FILES = MetadataFiles(files=900)
FILTERS = FILES.filters()


def planning(*engines: str, location: str = "m", fresh: bool = False) -> Planning:
    return Planning(
        case=Case(workload="t", layout="t", measurement="planning"),
        location=location,
        filters=FILTERS,
        truth=DescribedFiles(FILES),
        engines=engines,
        fresh=(EVERYTHING, "metric") if fresh else (),
        floorless=("partition",),
    )


def pace(*, warm_seconds: float = 0, case_seconds: float = 100) -> Pace:
    return pace_of(4, warm_seconds=warm_seconds, case_seconds=case_seconds)


def paths(filter: str | None, *, but: int = 0, more: Sequence[int] = ()) -> list[str]:
    """What bounds leave room for, without the first few and with others."""
    kept = np.flatnonzero(FILES.kept(filter)).tolist()[but:]
    return [path_of("/t", n) for n in {*kept, *more}]


def right(
    name: str, clock: Clock, *, seconds: float = 1.0, abilities: frozenset[Ability] | None = None
) -> ScriptedEngine:
    return ScriptedEngine(
        name,
        clock,
        plans={("m", text): paths(None if text is None else key) for key, text in [("all", None), *FILTERS.items()]},
        seconds={"m": seconds},
        abilities=abilities or frozenset({Ability.PLAN}),
    )


def test_every_filter_is_timed_cold_and_warm(writer: RunWriter) -> None:
    clock = Clock()
    made = recorded(writer, clock, right("one", clock), pace=pace())
    made.measure(planning("one"))
    for case in ("all", "metric", "partition"):
        assert made.samples("one", case, "latency_cold") == [1.0] * 4
        assert made.samples("one", case, "latency_warm") == [0.25] * 4
        assert len(made.samples("one", case, "cpu_cold")) == len(made.samples("one", case, "cpu_warm")) == 4
    assert not made.failures
    assert {r.counters["files_beyond_bounds"] for r in made.records} == {0}


def test_a_plan_that_lacks_a_file_is_a_failure(writer: RunWriter) -> None:
    clock = Clock()
    loses = right("loses", clock)
    loses.plans = {**loses.plans, ("m", FILTERS["metric"]): paths("metric", but=1)}
    made = recorded(writer, clock, loses, pace=pace())
    made.measure(planning("loses"))
    kept = int(FILES.kept("metric").sum())
    (failure,) = made.failures
    assert failure.message == f"does not plan 1 of {kept} files that may hold matching rows"
    assert {r.case for r in made.records} == {"all", "partition"}


def test_a_looser_plan_is_reported(writer: RunWriter) -> None:
    clock = Clock()
    loose = right("loose", clock)
    others = np.flatnonzero(~FILES.kept("metric"))[:3].tolist()
    loose.plans = {**loose.plans, ("m", FILTERS["metric"]): paths("metric", more=others)}
    made = recorded(writer, clock, loose, pace=pace())
    made.measure(planning("loose"))
    assert not made.failures
    assert {r.case: r.counters["files_beyond_bounds"] for r in made.records} == {"all": 0, "metric": 3, "partition": 0}


def test_an_engine_that_reports_only_how_many_is_counted_and_has_no_warm_plan(writer: RunWriter) -> None:
    clock = Clock()
    few = right("few", clock, abilities=frozenset({Ability.COUNT_PLAN}))
    few.plans = {**few.plans, ("m", FILTERS["partition"]): paths("partition", but=2)}
    made = recorded(writer, clock, few, pace=pace())
    made.measure(planning("few"))
    (failure,) = made.failures
    assert (failure.case, failure.message[:21]) == ("partition", "plans 2 files too few")
    assert {r.metric for r in made.records} == {"latency_cold", "cpu_cold"}


def test_slow_engines_run_fewer_rounds(writer: RunWriter) -> None:
    clock = Clock()
    made = recorded(
        writer,
        clock,
        right("quick", clock),
        right("slow", clock, seconds=40),
        right("slowest", clock, seconds=500),
        pace=pace(),
    )
    made.measure(planning("quick", "slow", "slowest"))
    rounds = {name: len(made.samples(name, "all", "latency_cold")) for name in ("quick", "slow", "slowest")}
    assert rounds == {"quick": 4, "slow": 2, "slowest": 1}
    assert "slowest" not in {r.engine for r in made.records if r.metric == "latency_warm"}


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    return find_or_build(FILES, DatasetCache(tmp_path_factory.mktemp("cache")), report=lambda done: None)


def test_the_floor_inflates_every_data_manifest(location: str) -> None:
    floor = Inflate()
    pieces = floor.open(location)
    inflated = floor.plan(pieces, None).counters["bytes_inflated"]
    assert inflated == sum(block.inflated for piece in pieces for block in piece.blocks)
    compressed = sum(block.length for piece in pieces for block in piece.blocks)
    on_disk = sum(path.stat().st_size for path in {piece.path for piece in pieces})
    assert 0.9 * on_disk < compressed < on_disk < inflated


def test_fresh_processes_are_timed_and_their_memory_is_taken(location: str, writer: RunWriter) -> None:
    clock = Clock()
    own = right("icebench", clock)
    own.plans = {(location, text): files for (_, text), files in own.plans.items()}
    made = recorded(writer, clock, own, pace=pace_of(1, 0))
    made.measure(planning("icebench", location=location, fresh=True))
    assert not made.failures
    for case in ("all", "metric"):
        assert made.samples("icebench", case, "cpu_fresh")[0] > 0
        assert 1 << 16 < made.samples("icebench", case, "memory_peak")[0] < 1 << 30


def test_tables_are_made_once_and_by_small_commits(tmp_path: Path) -> None:
    cache = DatasetCache(tmp_path)
    files = MetadataFiles(files=1_500, deletes="positions")
    seen: list[int] = []
    assert find_or_build(files, cache, report=seen.append) == find_or_build(files, cache, report=seen.append)
    assert seen == [1_000, 1_500] * 2
    assert commits_of(files) == [range(1_000), range(1_000, 1_500)]
    assert commits_of(MetadataFiles(files=10_000_000))[0] == range(10_000)
    assert commits_of(MetadataFiles(files=10_000, columns=10_000))[0] == range(100)


def test_a_table_that_was_made_again_is_rewritten_again(tmp_path: Path) -> None:
    cache = DatasetCache(tmp_path)
    java = Mock(version="1", rewrite_manifests=Mock(side_effect=lambda at: at))
    for _ in range(2):
        for _ in range(2):
            base = find_or_build(MetadataFiles(files=10), cache, report=lambda done: None)
            rewritten_by_java(base, java, cache)
        shutil.rmtree(next(tmp_path.glob("metadata-????????????????")))
    assert java.rewrite_manifests.call_count == 2


def test_a_table_has_as_many_manifests_as_asked(tmp_path: Path) -> None:
    location = find_or_build(MetadataFiles(files=250, manifests=120), DatasetCache(tmp_path), report=lambda done: None)
    manifests = icebench.load_table(location).inspect.manifests().to_pylist()
    assert sorted({m["added_data_files_count"] for m in manifests}) == [2, 3]
    assert (len(manifests), sum(m["added_data_files_count"] for m in manifests)) == (120, 250)


def test_one_manifest_is_one_however_large(tmp_path: Path) -> None:
    files = MetadataFiles(files=4_000, columns=400, manifests=1)
    location = find_or_build(files, DatasetCache(tmp_path), report=lambda done: None)
    (manifest,) = icebench.load_table(location).inspect.manifests().to_pylist()
    assert manifest["length"] > 8 << 20
    wide = {"kind": "described-files", "name": "x", "files": 10_000, "columns": 5_000, "manifests": 1}
    values = {"name": "x", "engines": ["icebench"], "measurements": ["planning"], "workload": [wide]}
    with pytest.raises(ConfigError, match="10,000 files of 5,000 columns in a manifest take too much memory"):
        parse_values(values)


def test_plans_from_the_disk_cache_are_measured_where_asked(tmp_path: Path) -> None:
    files = {"kind": "described-files", "name": "few", "files": 60, "manifests": 6, "disk_cache": True}
    experiment = parse_values(
        {
            "name": "few",
            "engines": ["icebench", "pyiceberg"],
            "measurements": ["planning"],
            "repetitions": 2,
            "warm_seconds": 0,
            "workload": [files],
        }
    )
    where = Surroundings(cache=tmp_path / "cache", results=tmp_path / "runs", session=no_spark)
    found = run_experiment(experiment, where=where)
    assert not found.run.failures
    measured = {(r.engine, r.case) for r in found.records if r.metric == "latency_disk"}
    assert measured == {("icebench", case) for case in ("all", "metric", "partition")}
    cases = {(r.engine, r.case, r.cache) for r in found.records if r.engine != "inflate"}
    assert len(cases) == estimate(experiment).cases == 15
    assert not list((tmp_path / "cache").glob("work-*"))


def test_a_disk_cache_that_is_not_used_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as on a full disk, where the engine plans without it."""
    monkeypatch.setattr(Icebench, "open_with_cache", lambda self, location, directory: self.open(location))
    experiment = parse_values(
        {
            "name": "few",
            "engines": ["icebench"],
            "measurements": ["planning"],
            "repetitions": 1,
            "workload": [{"kind": "described-files", "name": "few", "files": 60, "manifests": 6, "disk_cache": True}],
        }
    )
    where = Surroundings(cache=tmp_path / "cache", results=tmp_path / "runs", session=no_spark)
    failures = run_experiment(experiment, where=where).run.failures
    assert [each.message.partition(" and reads ")[0] for each in failures] == ["claims a plan from the disk cache"] * 3


def test_a_plan_from_the_disk_cache_reads_no_manifest(tmp_path: Path) -> None:
    files = MetadataFiles(files=60, manifests=6)
    location = find_or_build(files, DatasetCache(tmp_path / "cache"), report=lambda done: None)
    engine = Icebench(CONTEXT)
    opened = Opened.of(engine, location, None)
    kept = tmp_path / "kept"
    kept.mkdir()
    _from_disk(engine, opened, kept)
    for manifest in Path(location).parent.glob("*.avro"):
        manifest.unlink()
    plan = _from_disk(engine, opened, kept)()
    assert isinstance(plan, Plan)
    assert len(plan.files) == 60
