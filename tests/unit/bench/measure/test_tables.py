import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyspark.sql import SparkSession

from bench.errors import ConfigError
from bench.experiment import Repetitions
from bench.measure.run import Surroundings
from bench.measure.run_file import read_run
from bench.measure.tables import TableRequest, TableRun, run_table
from tests.unit.bench.measure.scripted import FIELDS, NOON, small_table

ENGINES = ("pyiceberg", "duckdb", "polars")
ONCE = Repetitions(repetitions=1, warmups=0)


def no_session() -> SparkSession:
    raise AssertionError("nothing here needs Spark")


@pytest.fixture
def where(tmp_path: Path) -> Surroundings:
    return Surroundings(cache=tmp_path / "cache", results=tmp_path / "runs", session=no_session, now=lambda: NOON)


def request_for(path: str | Path) -> TableRequest:
    return TableRequest(path=str(path), engines=ENGINES, repetitions=ONCE)


def cases(found: TableRun) -> set[tuple[str, str, str]]:
    return {(record.engine, record.measurement, record.case) for record in found.run.records}


def test_a_table_of_whom_nothing_is_known(tmp_path: Path, where: Surroundings) -> None:
    location = small_table(tmp_path / "wh", partitioned=True, name="mine")
    found = run_table(request_for(Path(location).parents[1]), where=where)
    assert found.run.failures == ()
    assert {record.layout for record in found.run.records} == {"mine"}
    assert {record.scale for record in found.run.records} == {None}
    assert [choice.name for choice in found.chosen][:3] == ["day_equal", "day_range", "name_equal"]
    assert ("pyiceberg", "pruning", "day_equal") in cases(found)
    assert {engine for engine, measurement, _ in cases(found) if measurement == "decimals"} == set(ENGINES)
    assert {(s.measurement, s.reason) for s in found.run.skipped if s.engine == "*"} == {
        ("deletes", "the table has no deletes")
    }
    assert read_run(found.run.path).complete
    # The directory for rewritten metadata is gone.
    assert list(where.cache.iterdir()) == []


def test_filters_of_the_caller_are_taken_as_they_are(tmp_path: Path, where: Surroundings) -> None:
    location = small_table(tmp_path / "wh")
    texts = ("id < 10", "name = 'n1' and price > 1.05")
    request = replace(request_for(location), filters=texts, measurements=("pruning",))
    found = run_table(request, where=where)
    assert found.chosen == ()
    assert {record.case for record in found.run.records} == set(texts)
    recalls = {record.samples for record in found.run.records if record.metric == "recall"}
    assert recalls == {(1.0,)}


@pytest.mark.parametrize("explicit", [False, True], ids=["recognised", "told"])
def test_a_table_that_was_moved(tmp_path: Path, where: Surroundings, explicit: bool) -> None:
    location = small_table(tmp_path / "wh")
    old = Path(location).parents[1]
    shutil.move(old, tmp_path / "moved")
    request = request_for(tmp_path / "moved")
    if explicit:
        new = str(tmp_path / "moved")
        request = replace(request, relocate={f"file://{old}": new, str(old): new})
    found = run_table(request, where=where)
    assert found.run.failures == ()
    assert ("pyiceberg", "pruning", "id_equal") in cases(found)
    assert ("polars", "decimals", "scan") in cases(found)


def test_what_cannot_be_measured_is_told_first(tmp_path: Path, where: Surroundings) -> None:
    with pytest.raises(ConfigError, match="no such table"):
        run_table(request_for(tmp_path / "nothing"), where=where)
    location = small_table(tmp_path / "wh")
    with pytest.raises(ConfigError, match=r"names column 'nothing', which the table does not have"):
        run_table(replace(request_for(location), filters=("nothing = 1",)), where=where)
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/wh/empty.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("db")
    empty = catalog.create_table("db.empty", Schema(*FIELDS))
    catalog.close()
    with pytest.raises(ConfigError, match="the table has no snapshot"):
        run_table(request_for(empty.metadata_location), where=where)
    assert not where.results.exists()
