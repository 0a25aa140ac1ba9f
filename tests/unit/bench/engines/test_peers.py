"""The engines that need no Spark, on one table: the same filters mean the same rows and files to all."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg import manifest
from pyspark.sql import SparkSession

from icebench.bench.engines.engine import Ability, AnyEngine, EngineMissing, normalised
from icebench.bench.engines.own_process import OwnProcess
from icebench.bench.engines.registry import ENGINES, EngineContext, make_engine
from icebench.bench.errors import EngineFailed
from icebench.bench.execution.opened import Opened
from icebench.bench.execution.trial import works_in_children
from icebench.bench.processes.process_tree import bytes_read
from icebench.bench.truth.metadata import load_table_json
from tests.unit.bench.engines.uuids import check_uuids, table_of_uuids
from tests.unit.bench.execution.scripted import small_rows, small_table

COLUMNS = ["id", "day", "price", "name", "moment"]
FILTERS = {
    None: 400,
    "id >= 150 and id < 250": 100,
    "day = '2000-01-25'": 9,
    "id between 5 and 9 or name = 'n1'": 61,
    "day in ('2000-01-20', '2000-02-20')": 19,
    "moment < '2000-01-01T05:00:00'": 5,
    "price >= 3.95 and name like 'n%'": 5,
    "price is null": 8,
    "id < 0": 0,
}


def no_session() -> SparkSession:
    raise AssertionError("these engines need no Spark")


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_table(tmp_path_factory.mktemp("peers"), partitioned=True)


@pytest.fixture(scope="module", params=[name for name, entry in ENGINES.items() if not entry.needs_spark])
def engine(request: pytest.FixtureRequest) -> AnyEngine:
    return make_engine(request.param, EngineContext(spark=no_session))


@pytest.mark.parametrize(("filter", "rows"), FILTERS.items(), ids=str)
def test_rows(engine: AnyEngine, location: str, filter: str | None, rows: int) -> None:
    handle = engine.open(location)
    compiled = engine.compile(handle, filter)
    found = engine.checksum(handle, COLUMNS, compiled)
    assert found.rows == rows
    engine.scan(handle, COLUMNS, compiled)
    if filter is None:
        ids = small_rows().column("id").to_pylist()
        assert found.columns["id"].total == sum(ids)
        assert found.columns["price"].nulls == 8


@pytest.mark.parametrize("scheme", ["file:", "file://"])
def test_local_locations_with_a_scheme(engine: AnyEngine, location: str, scheme: str) -> None:
    handle = engine.open(f"{scheme}{location}")
    assert engine.checksum(handle, COLUMNS, engine.compile(handle, None)).rows == len(small_rows())


def test_plans(engine: AnyEngine, location: str) -> None:
    if Ability.PLAN not in engine.abilities:
        pytest.skip(f"{engine.name} does not plan")
    handle = engine.open(location)
    everything = engine.plan(handle, engine.compile(handle, None))
    assert all(Path(path).is_file() for path in everything.files)
    assert everything.counters["files_planned"] == len(everything.files)
    some = engine.plan(handle, engine.compile(handle, "day < '2000-02-01' and name = 'n1'"))
    assert len(some.files) < len(everything.files)
    assert some.files < everything.files
    assert {path for path in some.files if "name=n1" in path} == some.files
    assert normalised(next(iter(some.files))) in everything.files


def test_a_handle_is_good_for_filters_of_another(engine: AnyEngine, location: str) -> None:
    first, second = engine.open(location), engine.open(location)
    compiled = engine.compile(first, "id < 7")
    assert engine.checksum(second, ["id"], compiled).rows == 7


def test_what_pyiceberg_keeps_for_the_process_is_forgotten(location: str) -> None:
    engine = make_engine("pyiceberg", EngineContext(spark=no_session))
    opened = Opened.of(engine, location, None)
    engine.plan(opened.handle, opened.filter)
    assert len(manifest._manifest_cache) > 0
    opened.afresh()
    assert len(manifest._manifest_cache) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much a process read")
def test_a_cold_scan_reads_as_much_as_the_first_and_a_warm_one_less(
    engine: AnyEngine, location: str, tmp_path: Path
) -> None:
    filter = engine.compile(engine.open(location), "id >= 150 and id < 250")
    new = small_table(tmp_path, partitioned=True)
    in_children = works_in_children(engine.name)

    def read(handle: Callable[[], Any]) -> int:
        before = bytes_read(in_children=in_children)
        engine.scan(handle(), COLUMNS, filter)
        return (bytes_read(in_children=in_children) or 0) - (before or 0)

    read(lambda: engine.open(location))  # what is imported, and read once
    first = read(lambda: engine.open(new))
    handle = engine.open(new)
    warm = min([read(lambda: handle) for _ in range(3)][1:])
    opened = Opened(engine, new, handle, filter)
    colds = []
    for _ in range(2):
        opened.forget()
        colds.append(read(lambda: engine.open(new)))
    snapshot = load_table_json(new).snapshot
    assert snapshot is not None
    manifest_list = Path(normalised(snapshot["manifest-list"])).stat().st_size
    # ClickHouse's own threads read, too.
    error = 4 * manifest_list if in_children else manifest_list / 2
    assert max(colds) > first - error
    assert warm < max(colds) - error


def test_clickhouse_answers_after_a_query_that_failed(location: str) -> None:
    engine = make_engine("clickhouse", EngineContext(spark=no_session))
    handle = engine.open(location)
    everything = engine.compile(handle, None)
    for _ in range(2):
        with pytest.raises(EngineFailed, match="no_such_column"):
            engine.scan(handle, ["no_such_column"], everything)
        assert engine.checksum(handle, COLUMNS, everything).rows == 400


def test_a_relative_location_is_one_of_this_process(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(location).parent)
    engine = make_engine("clickhouse", EngineContext(spark=no_session))
    handle = engine.open(Path(location).name)
    assert engine.checksum(handle, COLUMNS, engine.compile(handle, None)).rows == 400


def test_an_engine_in_its_own_process_ends_with_what_refers_to_it(location: str) -> None:
    engine = make_engine("clickhouse", EngineContext(spark=no_session))
    assert isinstance(engine, OwnProcess)
    process = engine.process
    for _ in range(3):
        engine.open(location)
    assert engine.kept() <= 1  # what nothing here refers to is dropped there with the next question
    del engine
    assert process.wait(30) == 0


def test_the_end_of_an_engines_process_is_said(location: str) -> None:
    engine = make_engine("clickhouse", EngineContext(spark=no_session))
    assert isinstance(engine, OwnProcess)
    engine.process.kill()
    with pytest.raises(EngineFailed, match="ended with exit code -9"):
        engine.open(location)


def test_what_is_not_installed_there_is_missing() -> None:
    with pytest.raises(EngineMissing, match="no_such_package is not installed"):
        OwnProcess("no_such_package.engine:Engine", EngineContext(spark=no_session))


def test_uuids_are_the_same_to_all(engine: AnyEngine, tmp_path: Path) -> None:
    check_uuids(engine, table_of_uuids(tmp_path))
