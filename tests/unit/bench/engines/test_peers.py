"""The engines that need no Spark, on one table: the same filters mean the same rows and files to all."""

from pathlib import Path

import pytest
from pyiceberg import manifest
from pyspark.sql import SparkSession

from icebench.bench.engines.engine import Ability, AnyEngine, EngineMissing, normalised
from icebench.bench.engines.own_process import OwnProcess
from icebench.bench.engines.registry import ENGINES, EngineContext, make_engine
from icebench.bench.errors import EngineFailed
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


def test_opening_forgets_what_pyiceberg_keeps(location: str) -> None:
    engine = make_engine("pyiceberg", EngineContext(spark=no_session))
    handle = engine.open(location)
    engine.plan(handle, engine.compile(handle, None))
    assert len(manifest._manifest_cache) > 0
    engine.open(location)
    assert len(manifest._manifest_cache) == 0


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
