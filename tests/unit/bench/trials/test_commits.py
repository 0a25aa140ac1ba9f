"""Committing described files: what is recorded, and that a table which says something else is a failure."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.bench.engines.engine import Ability
from icebench.bench.engines.icebench import Icebench
from icebench.bench.engines.pyiceberg_engine import PyIceberg
from icebench.bench.records.case import Case
from icebench.bench.tables.cache import DatasetCache
from icebench.bench.tables.metadata_tables import find_or_build
from icebench.bench.trials.commits import Commits
from icebench.bench.workloads.metadata_files import MetadataFiles
from tests.unit.bench.execution.scripted import CONTEXT, Clock, Recorded, ScriptedEngine

FILES = MetadataFiles(files=240)


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    return find_or_build(FILES, DatasetCache(tmp_path_factory.mktemp("cache")), report=lambda _: None)


@pytest.fixture
def place(location: str, tmp_path: Path) -> Commits:
    return Commits(
        case=Case(workload="t", layout="t", measurement="commits"),
        location=location,
        files=FILES,
        engines=("icebench", "pyiceberg"),
        workspace=tmp_path / "tables",
    )


def test_engines_commit_the_same_files(bench_of: Callable[..., Recorded], place: Commits) -> None:
    made = bench_of(Icebench(CONTEXT), PyIceberg(CONTEXT))
    made.measure(place)
    assert not made.failures
    assert {(r.engine, r.metric, r.case, len(r.samples)) for r in made.records} == {
        (name, metric, case, 3)
        for name in ("icebench", "pyiceberg")
        for metric in ("latency_commit", "cpu_commit")
        for case in ("append", "append, overtaken")
    }
    # Whoever is overtaken writes another metadata file and list; the manifest of its files may stay as it is.
    counted = {(r.engine, r.case): dict(r.counters) for r in made.records}
    once = {"files_committed": 240, "manifests_written": 1, "manifest_lists_written": 1, "metadata_files_written": 1}
    for name in ("icebench", "pyiceberg"):
        assert counted[name, "append"] == once
    assert counted["icebench", "append, overtaken"] == once
    assert list(place.workspace.iterdir()) == []


class Altering(Icebench):
    """Commits something else."""

    def __init__(self, change: Callable[[pa.Table], pa.Table]) -> None:
        super().__init__(CONTEXT)
        self.change = change

    def commit_files(self, table: icebench.Table, files: pa.Table) -> None:
        super().commit_files(table, self.change(files))


def with_column(name: str, change: Callable[[pa.ChunkedArray], pa.Array]) -> Callable[[pa.Table], pa.Table]:
    return lambda files: files.set_column(files.schema.get_field_index(name), name, change(files.column(name)))


@pytest.mark.parametrize(
    ("reader", "change", "reason"),
    [
        ("pyiceberg", lambda files: files.slice(1), "'files': 239"),
        ("pyiceberg", lambda files: pa.concat_tables([files.slice(1), files.slice(9, 1)]), "'distinct files': 239"),
        ("pyiceberg", with_column("record_count", lambda c: pa.array([1] * len(c))), "another record_count"),
        ("icebench", with_column("lower_bounds", lambda c: pa.nulls(len(c), c.type)), "another lower_bounds"),
    ],
)
def test_what_is_committed_is_read_back(
    bench_of: Callable[..., Recorded],
    place: Commits,
    reader: str,
    change: Callable[[pa.Table], pa.Table],
    reason: str,
) -> None:
    made = bench_of(Altering(change), *([PyIceberg(CONTEXT)] if reader == "pyiceberg" else []))
    made.measure(replace(place, engines=("icebench",)))
    failure, overtaken = made.failures
    assert overtaken.kind == failure.kind
    assert failure.kind == "Disagreement"
    assert failure.message.startswith(f"{reader} reads ")
    assert reason in failure.message
    assert not made.records


def test_an_engine_that_commits_nothing_is_skipped(bench_of: Callable[..., Recorded], place: Commits) -> None:
    made = bench_of(ScriptedEngine("reads", Clock(), abilities=frozenset({Ability.SCAN})))
    made.measure(replace(place, engines=("reads",)))
    assert [s.reason for s in made.skipped] == ["reads offers no committing files that are described"]
