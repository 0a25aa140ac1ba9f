import shutil
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema

from icebench.bench.cli.run import of_tables
from icebench.bench.errors import ConfigError
from icebench.bench.experiment import Experiment, parse_values
from icebench.bench.runs.run import Finished, Surroundings, run_experiment
from tests.unit.bench.execution.scripted import FIELDS, NOON, no_spark, small_table

ENGINES = ["pyiceberg", "duckdb", "polars"]


@pytest.fixture
def where(tmp_path: Path) -> Surroundings:
    return Surroundings(cache=tmp_path / "cache", results=tmp_path / "runs", session=no_spark, now=lambda: NOON)


def experiment(*paths: str | Path, **more: object) -> Experiment:
    values = {
        **of_tables([{"path": str(path)} for path in paths]).values,
        "engines": ENGINES,
        "repetitions": 1,
        "warmups": 0,
        "warm_seconds": 0,
    }
    return parse_values({**values, **more})


def cases(found: Finished) -> set[tuple[str, str, str]]:
    return {(record.engine, record.measurement, record.case) for record in found.records}


def test_a_table_of_whom_nothing_is_known(tmp_path: Path, where: Surroundings) -> None:
    location = small_table(tmp_path / "wh", partitioned=True, name="mine")
    found = run_experiment(experiment(Path(location).parents[1]), where=where)
    assert found.run.failures == ()
    assert {record.layout for record in found.records} == {"mine"}
    assert found.run.environment["scale"] is None
    # Filters are chosen from the bounds, of the columns of its partitions first.
    filters = list(dict.fromkeys(r.case for r in found.records if r.measurement == "pruning"))
    assert filters[:3] == ["day_equal", "day_range", "name_equal"]
    assert {engine for engine, measurement, _ in cases(found) if measurement == "decimals"} == set(ENGINES)
    assert {(s.measurement, s.reason) for s in found.run.skipped if s.engine == "*"} == {
        ("deletes", "the table has no deletes")
    }
    assert found.run.complete
    # The directory for rewritten metadata is gone.
    assert list(where.cache.iterdir()) == []


def test_a_path_is_taken_from_the_directory_of_the_run(
    tmp_path: Path, where: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = small_table(tmp_path / "wh", name="mine")
    monkeypatch.chdir(tmp_path)
    path = Path(location).parents[1].relative_to(tmp_path)
    found = run_experiment(experiment(path, measurements=["filtered"], engines=["polars"]), where=where)
    assert found.run.failures == ()
    tables = {each.evidence.table for each in found.run.measured if each.evidence.table}
    assert tables == {location}


def test_filters_of_the_caller_are_taken_as_they_are(tmp_path: Path, where: Surroundings) -> None:
    location = small_table(tmp_path / "wh")
    texts = ("id < 10", "name = 'n1' and price > 1.05")
    chosen = experiment(location, filters={text: text for text in texts}, measurements=["pruning"])
    found = run_experiment(chosen, where=where)
    assert {record.case for record in found.records} == set(texts)
    assert {record.samples for record in found.records if record.metric == "recall"} == {(1.0,)}


@pytest.mark.parametrize("explicit", [False, True], ids=["recognised", "explicit"])
def test_a_table_that_was_moved(tmp_path: Path, where: Surroundings, explicit: bool) -> None:
    location = small_table(tmp_path / "wh")
    old, new = Path(location).parents[1], tmp_path / "moved"
    shutil.move(old, new)
    workload = {"kind": "table", "path": str(new)}
    if explicit:
        workload["relocate"] = {f"file://{old}": str(new), str(old): str(new)}  # type: ignore[assignment]
    found = run_experiment(experiment(new, workload=workload, measurements=["pruning", "decimals"]), where=where)
    assert found.run.failures == ()
    assert ("pyiceberg", "pruning", "id_equal") in cases(found)
    assert ("polars", "decimals", "all") in cases(found)


def test_tables_are_compared_under_the_same_filters(tmp_path: Path, where: Surroundings) -> None:
    locations = [small_table(tmp_path / name, partitioned=name == "a", name="mine") for name in ("a", "b")]
    found = run_experiment(experiment(*locations, engines=["pyiceberg"], measurements=["pruning"]), where=where)
    assert found.run.failures == ()
    assert {record.layout for record in found.records} == {"mine", "mine (2)"}
    by_layout = {
        layout: {r.case for r in found.records if r.layout == layout and r.measurement == "pruning"}
        for layout in ("mine", "mine (2)")
    }
    assert by_layout["mine"] == by_layout["mine (2)"] != set()
    assert {record.workload for record in found.records} == {"table"}


def test_what_cannot_be_measured_is_reported_first(tmp_path: Path, where: Surroundings) -> None:
    with pytest.raises(ConfigError, match="no such table"):
        run_experiment(experiment(tmp_path / "nothing"), where=where)
    location = small_table(tmp_path / "wh")
    with pytest.raises(ConfigError, match=r"names column 'nothing', which the table does not have"):
        run_experiment(experiment(location, filters={"x": "nothing = 1"}), where=where)
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/wh/empty.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("db")
    empty = catalog.create_table("db.empty", Schema(*FIELDS))
    catalog.close()
    with pytest.raises(ConfigError, match="the table has no snapshot"):
        run_experiment(experiment(empty.metadata_location), where=where)
    assert not where.results.exists()
