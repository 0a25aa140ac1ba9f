import pytest

from bench.definition import Definition
from bench.errors import ConfigError
from bench.experiment import MEASUREMENTS, Repetitions, known_experiments, load_experiment, parse_experiment
from bench.metadata_experiment import load_metadata_experiment
from bench.reading_experiment import load_reading_experiment

MINIMAL = """
name = "small"
layouts = ["monthly"]
engines = ["pyiceberg"]
{root}
[workload]
kind = "tpcds"
scale = 0.01
{workload}
[filters]
one = "ss_item_sk = 1"
{tables}
"""


def text(root: str = "", workload: str = "", tables: str = "") -> str:
    return MINIMAL.format(root=root, workload=workload, tables=tables)


def test_what_is_not_said_has_a_default() -> None:
    found = parse_experiment(text())
    assert found.measurements == MEASUREMENTS
    assert found.workload.skew == 0
    assert found.table.format_version == 2
    assert found.deletes.fractions == (0.01,)
    assert found.repetitions["planning"] == Repetitions(repetitions=5, warmups=1)


def test_a_measurement_may_run_more_often_than_the_others() -> None:
    found = parse_experiment(text(root="repetitions = 3\nwarmups = 0", tables="[planning]\nrepetitions = 20"))
    assert found.repetitions["planning"] == Repetitions(repetitions=20, warmups=0)
    assert found.repetitions["deletes"] == Repetitions(repetitions=3, warmups=0)


OTHER_KINDS = (load_metadata_experiment, load_reading_experiment)


@pytest.mark.parametrize("name", [name for name in known_experiments() if not any(load(name) for load in OTHER_KINDS)])
def test_the_definitions_that_come_with_the_project_are_right(name: str) -> None:
    found = load_experiment(name)
    assert found.name == name
    assert found.filters


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (text(root="color = 1"), "definition: unknown key 'color'; known: decimals, deletes"),
        (text(workload="seeed = 1"), "workload: unknown key 'seeed' (did you mean 'seed'?); known: kind"),
        (text().replace('["monthly"]', '["monthly", "hilbert"]'), "layouts[1]: unknown layout 'hilbert'; known: month"),
        (text().replace('["monthly"]', '"monthly"'), "layouts: must be a list, not 'monthly'"),
        (text().replace('["monthly"]', "[]"), "layouts: must name at least one layout"),
        (text().replace('["monthly"]', '["monthly", "monthly"]'), "layouts[1]: layout 'monthly' is listed twice"),
        (text().replace('["pyiceberg"]', '["pyicebrg"]'), "engines[0]: unknown engine 'pyicebrg' (did you mean 'pyice"),
        (text().replace('["pyiceberg"]', "[7]"), "engines[0]: must be a string, not 7"),
        (text(root='measurements = ["speed"]'), "measurements[0]: unknown measurement 'speed'; known: decimals"),
        (text().replace("0.01", "0"), "workload.scale: 0 is not above 0"),
        (text().replace("0.01", "inf"), "workload.scale: inf is not above 0"),
        (text().replace("0.01", "nan"), "workload.scale: nan is not above 0"),
        (text().replace("0.01", "true"), "workload.scale: must be a number, not True"),
        (text().replace("scale = 0.01", ""), "workload: missing key 'scale'"),
        (text().replace("tpcds", "ssb"), "workload.kind: unknown kind 'ssb'; known: tpcds"),
        (text().replace('one = "ss_item_sk = 1"', ""), "filters: planning and pruning need at least one filter"),
        (text().replace('"ss_item_sk = 1"', '" "'), "filters.one: must not be empty"),
        (text().replace('"ss_item_sk = 1"', "1"), "filters.one: must be a string, not 1"),
        (text(tables="[deletes]\nfractions = [0.1, 1.5]"), "deletes.fractions[1]: 1.5 is not a fraction between 0 an"),
        (text(tables="[deletes]\nfractions = [0.1, 0.1]"), "deletes.fractions[1]: 0.1 is listed twice"),
        (text(tables="[deletes]\nrefresh = 1"), "deletes.refresh: must be true or false, not 1"),
        (text(tables="[planning]\nrepetitions = 0"), "planning.repetitions: 0 is below 1"),
        (text(tables="[planning]\nrounds = 1"), "planning: unknown key 'rounds'; known: repetitions, warmups"),
        (text(tables="[table]\nformat_version = 1"), "table.format_version: row-level deletes need format version 2"),
        (text(tables="[spark.conf]\nx = 1"), "spark.conf.x: must be a string, not 1"),
        (text(root="name = 3"), "not TOML: Cannot overwrite a value"),
        ("", "definition: missing key 'name'"),
        ("workload = 3\nname = 'x'", "workload: must be a table, not 3"),
    ],
)
def test_what_is_wrong_is_said_with_its_path(wrong: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_experiment(wrong)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_file_is_named(tmp_path: pytest.TempPathFactory) -> None:
    path = f"{tmp_path}/mine.toml"
    with pytest.raises(ConfigError, match=r"mine\.toml: no such file, and no experiment of that name; known: .*quick"):
        load_experiment(path)
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - a path as the user types it
        file.write(text(root="color = 1"))
    with pytest.raises(ConfigError, match=r"mine\.toml: definition: unknown key 'color'"):
        load_experiment(path)


def test_an_experiment_can_be_restricted() -> None:
    full = load_experiment("quick")
    some = full.restricted(layouts=["sorted"], measurements=["pruning"])
    assert (some.layouts, some.measurements, some.engines) == (("sorted",), ("pruning",), full.engines)
    assert some.digest != full.digest
    assert full.restricted() == full
    with pytest.raises(ConfigError, match=r"engines\[0\]: unknown engine 'trino'"):
        full.restricted(engines=["trino"])
    with pytest.raises(ConfigError, match="layouts: must name at least one layout"):
        full.restricted(layouts=[])


def test_a_table_of_a_definition_knows_its_path() -> None:
    inner = Definition({"a": {"b": {"c": 1}}}).table("a").table("b")
    with pytest.raises(ConfigError, match=r"^a\.b\.c: must be a string, not 1$"):
        inner.text("c")
