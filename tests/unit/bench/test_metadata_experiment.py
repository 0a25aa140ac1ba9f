"""Definitions of kind metadata: those that come with the project, and what is refused."""

from typing import Any

import pytest

from bench.errors import ConfigError
from bench.experiment import known_experiments
from bench.metadata_experiment import MetadataExperiment, load_metadata_experiment, parse_metadata_experiment


def values(**more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "kind": "metadata",
        "name": "mine",
        "engines": ["icebench", "pyiceberg"],
        "tables": [{"name": "small", "files": 10}, {"name": "large", "files": 20, "columns": 30}],
    }
    return {**made, **more}


def planning() -> MetadataExperiment:
    found = load_metadata_experiment("planning")
    assert found is not None
    return found


def test_definitions_that_come_with_the_project_are_right() -> None:
    found = {name: load_metadata_experiment(name) for name in known_experiments()}
    metadata = {name: experiment for name, experiment in found.items() if experiment is not None}
    assert {"planning", "planning-large"} <= metadata.keys()
    assert found["quick"] is None
    assert all(experiment.name == name for name, experiment in metadata.items())


def test_every_kind_of_deletes_is_planned() -> None:
    assert {table.files.deletes for table in planning().tables} == {"none", "equality", "positions", "vectors"}


def test_only_keeps_tables_and_engines() -> None:
    experiment = parse_metadata_experiment(values()).restricted(["large", "icebench"], repetitions=3)
    assert [table.name for table in experiment.tables] == ["large"]
    assert experiment.engines == experiment.tables[0].engines == ("icebench",)
    assert experiment.repetitions.repetitions == 3


def test_only_an_engine_keeps_all_tables() -> None:
    experiment = parse_metadata_experiment(values()).restricted(["pyiceberg"], repetitions=None)
    assert [table.name for table in experiment.tables] == ["small", "large"]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="--only: unknown name 'larger'; known: icebench, large, pyiceberg, small"):
        parse_metadata_experiment(values()).restricted(["larger"], repetitions=None)


def test_the_digest_follows_the_definition() -> None:
    one, same = (parse_metadata_experiment(values()) for _ in range(2))
    other = parse_metadata_experiment(values(seed=2))
    assert one.digest == same.digest != other.digest


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"tables": []}, "tables: must have at least one table"),
        ({"tables": [{"name": "a", "files": 0}]}, r"tables\[0\].files: 0 is below 1"),
        ({"tables": [{"name": "a", "files": 5, "columns": 3}]}, r"tables\[0\].columns: 3 is below 23"),
        ({"tables": [{"name": "a", "files": 5, "deletes": "some"}]}, r"tables\[0\].deletes: unknown delete 'some'"),
        ({"tables": [{"name": "a", "files": 5, "writers": ["hand"]}]}, "unknown writer 'hand'"),
        ({"tables": [{"name": "a", "files": 5, "engines": ["polars"]}]}, "unknown engine 'polars'"),
        ({"tables": [{"name": "a", "files": 5}, {"name": "a", "files": 6}]}, "two tables are named 'a'"),
        ({"tables": [5]}, r"tables\[0\]: must be a table, not 5"),
        ({"speed": 1}, "unknown key 'speed'"),
        ({"kind": "rows"}, "unknown kind 'rows'"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_metadata_experiment(values(**more))
