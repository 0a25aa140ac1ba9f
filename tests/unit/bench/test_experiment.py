import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from icebench.bench.definition import DEFINITIONS, Definition
from icebench.bench.errors import ConfigError
from icebench.bench.experiment import (
    Experiment,
    find_experiment,
    known_experiments,
    load_experiment,
    parse_experiment,
    parse_values,
)
from icebench.bench.layouts.registry import known_layouts
from icebench.bench.runs.estimate import estimate
from icebench.bench.workloads.dated_sales import DatedSales
from icebench.bench.workloads.definitions import MaintenanceWorkload, ReadingWorkload, RowsWorkload
from icebench.bench.workloads.described import DescribedWorkload
from icebench.bench.workloads.tpcds import Tpcds

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


def described(**more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": "mine",
        "engines": ["icebench", "pyiceberg"],
        "workload": [
            {"kind": "described-files", "name": "small", "files": 10},
            {"kind": "described-files", "name": "large", "files": 20, "columns": 30},
        ],
    }
    return {**made, **more}


def one_of_files(**more: Any) -> dict[str, Any]:
    return described(workload={"kind": "described-files", "name": "a", "files": 5, **more})


def reading(**more: Any) -> dict[str, Any]:
    workload: dict[str, Any] = {
        "kind": "reading",
        "decimals": {"rows": 500, "precisions": [7, 38], "nulls": [0.0, 0.5]},
        "deletes": {"rows": 1000, "files": 2, "fractions": [0.01, 0.5], "equality_files": [1, 3]},
        "small": {"rows": 50, "files": [1, 3], "filtered": 0.1, "deleted": 0.02},
        "wide": {"rows": 100, "columns": 40, "selected": 4},
    }
    return described(workload={**workload, **more})


def tpcds(experiment: Experiment) -> Tpcds:
    (found,) = experiment.workloads
    assert isinstance(found, RowsWorkload)
    assert isinstance(found.rows, DatedSales)
    return found.rows.tpcds


def test_what_is_not_said_has_a_default() -> None:
    found = parse_experiment(text())
    assert found.measurements == ("planning", "pruning", "decimals", "deletes", "filtered")
    assert tpcds(found).skew == 0
    assert [(each.name, each.files, each.properties) for each in found.layouts] == [
        ("monthly", 61, {"format-version": "2"})
    ]
    assert found.options["deletes"].fractions == (0.01,)
    assert (found.pace.repetitions["planning"], found.pace.warmups["planning"]) == (6, 1)
    assert found.pace.case_seconds == math.inf


def test_a_measurement_may_run_more_often_than_the_others() -> None:
    pace = parse_experiment(text(root="repetitions = 3\nwarmups = 0", tables="[planning]\nrepetitions = 20")).pace
    assert pace.repetitions == {
        "planning": 20,
        "decimals": 3,
        "deletes": 3,
        "filtered": 3,
        "remote": 3,
        "writing": 3,
        "build": 3,
    }
    assert set(pace.warmups.values()) == {0}


def test_what_is_written_is_asked_for() -> None:
    plain = parse_experiment(text()).options["writing"]
    assert (plain.rows, plain.levels, plain.narrow, plain.sort, plain.upserts) == (1_000_000, (), (), (), ())
    assert (plain.overwrite, plain.most_keys) == (False, {})
    asked = 'levels = [3]\nnarrow = ["a"]\nsort = ["b", "c"]\nupserts = [0.5]\noverwrite = true\nmost_keys.polars = 7'
    found = parse_experiment(text(tables=f"[writing]\n{asked}")).options["writing"]
    assert (found.levels, found.narrow, found.sort, found.upserts) == ((3,), ("a",), ("b", "c"), (0.5,))
    assert (found.overwrite, found.most_keys) == (True, {"polars": 7})


def test_tables_are_built_thrice_small_ones_and_twice_large_ones() -> None:
    pace = parse_experiment(text(root="repetitions = 9\ncase_seconds = 1")).pace
    assert [pace.rounds("build", seconds) for seconds in (0.1, 4.0, 10.0, 10.1, 500.0)] == [3, 3, 3, 2, 2]
    assert pace.warming("build") == 0
    assert pace.warming("planning") == pace.warm_seconds > 0
    more = parse_experiment(text(tables="[build]\nrepetitions = 8\nseconds = 20")).pace
    assert [more.rounds("build", seconds) for seconds in (0.1, 4.0, 500.0)] == [8, 5, 2]
    for few in (0, 1):
        none = parse_experiment(text(tables=f"[build]\nrepetitions = {few}")).pace
        assert none.rounds("build", 500.0) == few


@pytest.mark.parametrize("name", known_experiments())
def test_the_definitions_that_come_with_the_project_are_right(name: str) -> None:
    found = load_experiment(name)
    assert found.name == name.replace("/", "-")
    assert found.description != "no description"


def test_experiments_of_the_study_are_known_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = known_experiments()
    assert {path.relative_to(DEFINITIONS) for path in known.values()} == {Path(f"{name}.toml") for name in known}
    assert {"default", "quick", "study/sizes"} <= set(known)
    assert not {"layouts", "sizes"} & set(known)  # the one is no experiment, the other has another name
    assert list(known) == sorted(known, key=lambda name: "/" in name)
    monkeypatch.chdir(tmp_path)
    assert find_experiment("study/sizes") == DEFINITIONS / "study" / "sizes.toml"
    with pytest.raises(ConfigError, match=r"study/no: no such file, and no experiment of that name; known: .*study/"):
        find_experiment("study/no")


def test_only_files_of_definitions_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.toml", "study/b.toml", "cache/c.toml", "study/more/d.toml", "study/e.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr("icebench.bench.experiment.DEFINITIONS", tmp_path)
    assert known_experiments() == {"a": tmp_path / "a.toml", "study/b": tmp_path / "study" / "b.toml"}


def test_every_kind_of_deletes_is_planned() -> None:
    found = [each for each in load_experiment("planning").workloads if isinstance(each, DescribedWorkload)]
    assert {each.files.deletes for each in found} == {"none", "equality", "positions", "vectors"}


def test_the_matrix_of_decimals_has_every_storage_that_writers_use() -> None:
    (found,) = load_experiment("reading").workloads
    assert isinstance(found, ReadingWorkload)
    cells = {(cell.precision, cell.storage) for cell in found.cells}
    assert cells == {(7, "INT32"), (7, "FIXED"), (15, "INT64"), (15, "FIXED"), (20, "FIXED"), (38, "FIXED")}
    assert len(found.cells) == 6 * 2 * 3


def test_a_definition_comes_back_from_what_it_was_parsed_from() -> None:
    for name in known_experiments():
        found = load_experiment(name)
        assert parse_values(found.values) == found


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (text(root="color = 1"), "definition: unknown key 'color'; known: axes, baseline, build, case_seconds"),
        (text(workload="seeed = 1"), "workload: unknown key 'seeed' (did you mean 'seed'?); known: corr"),
        (
            text().replace('["monthly"]', '["monthly", "hilbrt"]'),
            "layouts[1]: unknown layout 'hilbrt' (did you mean",
        ),
        (text(tables='[deletes]\nlayouts = ["montly"]'), "deletes.layouts[0]: unknown layout 'montly' (did you mean"),
        (text(tables="[deletes]\nlayouts = []"), "deletes.layouts: must name at least one layout"),
        (text().replace('["monthly"]', '"monthly"'), "layouts: must be a list, not 'monthly'"),
        (text().replace('["monthly"]', "[]"), "layouts: must name at least one layout"),
        (text().replace('["monthly"]', '["monthly", "monthly"]'), "layouts[1]: layout 'monthly' is listed twice"),
        (text().replace('["pyiceberg"]', '["pyicebrg"]'), "engines[0]: unknown engine 'pyicebrg' (did you mean 'pyice"),
        (text().replace('["pyiceberg"]', "[7]"), "engines[0]: must be a string, not 7"),
        (text(root='measurements = ["speed"]'), "measurements[0]: unknown measurement 'speed'; known: commits, de"),
        (text().replace("0.01", "0"), "workload.scale: 0 is not above 0"),
        (text().replace("0.01", "inf"), "workload.scale: inf is not above 0"),
        (text().replace("0.01", "nan"), "workload.scale: nan is not above 0"),
        (text().replace("0.01", "true"), "workload.scale: must be a number, not True"),
        (text().replace("scale = 0.01", ""), "workload: missing key 'scale'"),
        (
            text().replace("tpcds", "ssb"),
            "workload.kind: unknown kind 'ssb'; known: described-files, events",
        ),
        (text(tables='[deletes]\nkinds = ["positions"]'), "deletes.kinds[0]: unknown kind 'positions' (did you mean"),
        (text(tables='[deletes]\nspreads = ["even"]'), "deletes.spreads[0]: unknown spread 'even'; known: clustered"),
        (text(tables="[deletes]\ncommits = [1, 0]"), "deletes.commits: 0 is below 1"),
        (text(tables='[[layout]]\nname = "a"\nsort = ["b c"]'), "layout[0].sort[0]: 'b c' is not a term such as"),
        (text(tables='[[layout]]\nname = "a"\n[[layout]]\nname = "a"'), "layout[1].name: two layouts are named 'a'"),
        (
            text(tables='[[layout]]\nname = "monthly"\nsort = ["ss_itm_sk"]'),
            "layouts[0]: unknown column of layout monthly: 'ss_itm_sk' (did you mean 'ss_item_sk'?)",
        ),
        (
            text(tables='[[layout]]\nname = "monthly"\nproperties.format-version = 1'),
            "layouts[0]: row-level deletes need format version 2 or 3",
        ),
        (text().replace('"ss_item_sk = 1"', '" "'), "filters.one: must not be empty"),
        (text().replace('"ss_item_sk = 1"', "1"), "filters.one: must be a string, not 1"),
        (text(tables="[deletes]\nfractions = [0.1, 1.5]"), "deletes.fractions[1]: 1.5 is not a fraction between 0 an"),
        (text(tables="[deletes]\nfractions = [0.1, 0.1]"), "deletes.fractions[1]: 0.1 is listed twice"),
        (text(tables="[deletes]\nrefresh = 1"), "deletes.refresh: must be true or false, not 1"),
        (text(tables="[planning]\nrepetitions = 0"), "planning.repetitions: 0 is below 1"),
        (text(tables="[writing]\nlevels = [1, 23]"), "writing.levels: levels of zstd are 1 to 22"),
        (text(tables="[writing]\nlevels = [0]"), "writing.levels: levels of zstd are 1 to 22"),
        (text(tables="[writing]\nlevels = [3, 3]"), "writing.levels: the same value is listed twice"),
        (text(tables="[writing]\nupserts = [0.6]"), "writing.upserts: 0.6 is more than half of the rows"),
        (text(tables="[writing]\nupserts = [0]"), "writing.upserts[0]: 0 is not a fraction between 0 and 1"),
        (text(tables="[writing]\nrows = 3\nupserts = [0.5]"), "writing.rows: 3 is below 4, which upserts need"),
        (text(tables="[writing]\nnarrow = 3"), "writing.narrow: must be a list, not 3"),
        (
            text(tables="[writing]\nmost_keys.pyicberg = 3"),
            "writing.most_keys.pyicberg: unknown engine 'pyicberg' (did",
        ),
        (text(tables="[writing]\nmost_keys.pyiceberg = 0"), "writing.most_keys.pyiceberg: 0 is below 1"),
        (text(tables="[writing]\noverwrite = 1"), "writing.overwrite: must be true or false, not 1"),
        (text(tables="[planning]\nrounds = 1"), "planning: unknown key 'rounds'; known: repetitions, warmups"),
        (text(tables="[table]\nformat_version = 1"), "table.format_version: row-level deletes need format version 2"),
        (text(tables="[spark.conf]\nx = 1"), "spark.conf.x: must be a string, not 1"),
        (text(root="name = 3"), "not TOML: Cannot overwrite a value"),
        ("", "definition: missing key 'name'"),
        ("workload = 3\nname = 'x'\nengines = ['polars']", "workload: must be a table, not 3"),
        (text(root="measurements = ['commits']"), "measurements: no commits of tpcds, which have: planning, pruning"),
        (text(tables="[commits]\nrepetitions = 3"), "definition: unknown key 'commits'; known: "),
    ],
)
def test_what_is_wrong_is_said_with_its_path(wrong: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_experiment(wrong)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_file_is_named(tmp_path: Path) -> None:
    path = f"{tmp_path}/mine.toml"
    with pytest.raises(ConfigError, match=r"mine\.toml: no such file, and no experiment of that name; known: .*quick"):
        load_experiment(path)
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - a path as the user types it
        file.write(text(root="color = 1"))
    with pytest.raises(ConfigError, match=r"mine\.toml: definition: unknown key 'color'"):
        load_experiment(path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (described(workload=[]), "workload: must have at least one workload"),
        (described(workload=[5]), "workload[0]: must be a table, not 5"),
        (one_of_files(files=0), "workload.files: 0 is below 1"),
        (one_of_files(columns=3), "workload.columns: 3 is below 23"),
        (one_of_files(deletes="some"), "workload.deletes: unknown delete 'some'"),
        (one_of_files(writers=["hand"]), "workload.writers[0]: unknown writer 'hand'"),
        (one_of_files(engines=["polars"]), "workload.engines: unknown engine of this experiment 'polars'"),
        (described(workload=[one_of_files()["workload"]] * 2), "workload[1].name: two workloads are named 'a'"),
        (described(speed=1), "definition: unknown key 'speed'"),
        (described(layouts=["monthly"], filters={"a": "b = 1"}, deletes={}), "definition: unknown key 'deletes'"),
        (reading(wide={"rows": 1, "columns": 3, "selected": 4}), "workload.wide.selected: more columns than the tab"),
        (reading(decimals={"rows": 1, "precisions": [7], "nulls": [1]}), "workload.decimals.nulls[0]: 1 is not a frac"),
        (reading(parts=["x"]), "workload.parts[0]: unknown part 'x'"),
        (reading(nonsense=1), "workload: unknown key 'nonsense'"),
        (
            described(
                workload={"kind": "events", "keys": 9, "batches": 1, "changes": 9, "policies": ["a/x.toml", "b/x.toml"]}
            ),
            "workload.policies[1]: a policy named 'x' is listed before",
        ),
    ],
)
def test_what_is_wrong_in_a_workload_is_said_with_its_path(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_values(wrong)
    assert str(caught.value).startswith(message)


def test_layouts_are_the_definitions_own_and_those_that_come_with_the_project() -> None:
    own = """
[table]
files = 7
format_version = 3
properties.write.parquet.compression-codec = "gzip"
[[layout]]
name = "mine"
partition = ["year(ss_sold_date)"]
files = 9
properties.format-version = 2
[[layout]]
name = "sized"
properties.write.target-file-size-bytes = 1000
"""
    only_own = parse_experiment(text(tables=own).replace('layouts = ["monthly"]', ""))
    mine, sized = only_own.layouts
    assert (mine.name, mine.files, mine.partition[0].transform) == ("mine", 9, "year")
    assert mine.properties == {"format-version": "2", "write.parquet.compression-codec": "gzip"}
    assert (sized.name, sized.files, sized.properties["format-version"]) == ("sized", None, "3")
    both = parse_experiment(text(tables=own).replace('["monthly"]', '["monthly", "mine"]'))
    assert [(each.name, each.files) for each in both.layouts] == [("monthly", 7), ("mine", 9)]
    assert [each.name for each in both.adjusted(only=["mine"]).layouts] == ["mine"]


def test_an_experiment_can_be_restricted() -> None:
    full = load_experiment("quick")
    some = full.adjusted(only=["sorted", "pruning"])
    assert [layout.name for layout in some.layouts] == ["sorted"]
    assert (some.measurements, some.engines) == (("pruning",), full.engines)
    assert some.digest != full.digest
    assert full.adjusted() == full
    with pytest.raises(ConfigError, match=r"--only: unknown name 'icebensh' \(did you mean 'icebench'\?\); known: "):
        full.adjusted(only=["icebensh"])


def test_a_measurement_may_be_made_on_few_layouts() -> None:
    full = load_experiment("quick")
    measurements = {"measurements": ["decimals", "deletes"], "deletes": {"layouts": ["sorted", "monthly"]}}
    few = parse_values({**full.values, **measurements})
    measured = [
        (name, few.measures("deletes", name), few.measures("decimals", name)) for name in full.values["layouts"]
    ]
    assert measured == [("unpartitioned", False, True), ("monthly", True, True), ("sorted", True, True)]
    assert not few.adjusted(only=["decimals"]).measures("deletes", "sorted")
    assert few.adjusted(only=["sorted", "unpartitioned"]).measured_layouts == {"deletes": ("sorted",)}
    # On a layout that the definition leaves out of a measurement, the others are made.
    assert few.adjusted(only=["unpartitioned"]).measurements == ("decimals",)
    with pytest.raises(ConfigError, match="--only: quick measures deletes on other layouts than unpartitioned"):
        few.adjusted(only=["unpartitioned", "deletes"])
    varied = {"axes": {"files": [3, 9]}, "deletes": {"layouts": ["sorted (files=9)"]}}
    kept = parse_values({**few.values, **varied}).adjusted(only=["sorted"])
    assert kept.measured_layouts == {"deletes": ("sorted (files=9)",)}


def test_and_have_another_scale_and_other_repetitions() -> None:
    changed = load_experiment("default").adjusted(scale=0.5, repetitions=9)
    assert tpcds(changed).scale == changed.scale == 0.5
    assert {name: count for name, count in changed.pace.repetitions.items() if count != 9} == {"build": 3}
    assert load_experiment("default").scale == 0.2
    untimed = {**load_experiment("quick").values, "build": {"repetitions": 0}, "planning": {"repetitions": 3}}
    repeated = parse_values(untimed).adjusted(repetitions=9)
    assert (repeated.pace.repetitions["build"], repeated.pace.repetitions["planning"]) == (0, 9)
    assert not repeated.times_builds
    with pytest.raises(ConfigError, match="--scale: mine has tables of fixed sizes"):
        parse_values(described()).adjusted(scale=2)


def test_only_keeps_workloads_and_their_parts_too() -> None:
    found = parse_values(described()).adjusted(only=["large", "icebench"])
    assert ([each.name for each in found.workloads], found.engines) == (["large"], ("icebench",))
    (kept,) = parse_values(reading()).adjusted(only=["wide"]).workloads
    assert isinstance(kept, ReadingWorkload)
    assert kept.parts == ("wide",)


def test_only_leaves_out_workloads_of_other_engines() -> None:
    planning = load_experiment("planning")
    own = planning.adjusted(only=["icebench"])
    assert [each.name for each in own.workloads] == [each.name for each in planning.workloads]
    assert "100 files" not in [each.name for each in planning.adjusted(only=["polars"]).workloads]
    with pytest.raises(ConfigError, match="--only: no workload has engine pyiceberg"):
        parse_values(one_of_files(engines=["icebench"])).adjusted(only=["pyiceberg"])


def test_only_keeps_actions_of_maintenance() -> None:
    large = load_experiment("maintenance-large").adjusted(only=["zorder", "binpack", "icebench"])
    (kept,) = large.workloads
    assert isinstance(kept, MaintenanceWorkload)
    assert kept.actions == ("zorder", "binpack")
    assert kept.fresh
    assert estimate(large).cases == 2


def test_the_digest_follows_the_definition() -> None:
    one, same, other = (parse_values(described(seed=seed)) for seed in (1, 1, 2))
    assert one.digest == same.digest != other.digest


def test_runs_are_of_a_definition_with_the_content_of_the_files_that_it_names(tmp_path: Path) -> None:
    policy, queries = tmp_path / "ours.toml", tmp_path / "ours.sql"
    events = {"kind": "events", "keys": 9, "batches": 1, "changes": 9, "policies": [str(policy)]}
    tables = {"kind": "tables", "table": [{"name": "a", "path": "a"}]}

    def made(reads: int, query: str) -> Experiment:
        policy.write_text(f"reads = {reads}", encoding="utf-8")
        queries.write_text(f"-- name: top\n{query}", encoding="utf-8")
        given = {"files": [str(queries)], "sql": {"all": "select 1"}}
        return parse_values(described(engines=["icebench"], workload=[events, tables], queries=given))

    first, same, reads, asks = made(3, "select 2"), made(3, "select 2"), made(4, "select 2"), made(3, "select 3")
    assert first.inputs["workloads"]["events"]["policies"][str(policy)]["reads"] == 3
    assert first.inputs["measurements"] == {"queries": {"top": "-- name: top\nselect 2"}}
    environment = {"digest": first.digest, "inputs": first.inputs}
    assert [each.is_of(environment) for each in (first, same, reads, asks)] == [True, True, False, False]
    assert asks.is_of({"digest": first.digest}), "early runs have not recorded it"
    assert not asks.is_of({})
    policy.unlink()
    with pytest.raises(ConfigError, match=r"ours.toml: cannot be read"):
        parse_values(first.values)


def test_and_of_the_layouts_that_it_names_and_does_not_define(monkeypatch: pytest.MonkeyPatch) -> None:
    own = '[[layout]]\nname = "mine"\nfiles = 9\n[axes]\nfiles = [1, 2]'
    asked = text(tables=own).replace('["monthly"]', '["monthly", "mine"]')
    before = parse_experiment(asked)
    assert before.inputs["layouts"].keys() == {"monthly"}
    known = dict(known_layouts())
    monkeypatch.setattr("icebench.bench.experiment.known_layouts", lambda: known)
    known["monthly"] = replace(known["monthly"], description="for people")
    assert parse_experiment(asked).inputs == before.inputs
    known["monthly"] = replace(known["monthly"], files=7)
    assert not parse_experiment(asked).is_of({"digest": before.digest, "inputs": before.inputs})


def test_a_filter_is_not_named_as_what_is_measured_without_one() -> None:
    with pytest.raises(ConfigError, match=r"^filters\.all: is the name of what is measured without a filter"):
        parse_values(described(filters={"some": "id = 1", "all": "id < 500"}))


SECRET_KEY = "spark.hadoop.fs.s3a.secret.key"


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"workload": {"kind": "table", "path": "s3://KEY:hidden@bucket/t"}}, "workload.path"),
        ({"workload": {"kind": "table", "path": "t", "relocate": {"s3://K:hidden@b": "/t"}}}, "workload.relocate"),
        ({"workload": {"kind": "table", "path": "t", "relocate": {"/t": "s3://K:hidden@b"}}}, "workload.relocate"),
        ({"workload": {"kind": "table", "catalog": "a", "table": "t", "path": "s3://K:hidden@b/t"}}, "workload.path"),
        (
            {"workload": {"kind": "table", "catalog": "a", "table": "t", "warehouse": "s3://K:hidden@b/w"}},
            "workload.warehouse",
        ),
        ({"spark": {"conf": {SECRET_KEY: "hidden"}}}, f"spark.conf.{SECRET_KEY}"),
        (
            {"spark": {"conf": {"spark.hadoop.fs.s3a.access.key": "hidden"}}},
            "spark.conf.spark.hadoop.fs.s3a.access.key",
        ),
        ({"spark": {"conf": {"spark.x": "jdbc:x://me:hidden@host"}}}, "spark.conf.spark.x"),
    ],
)
def test_secrets_are_refused_as_run_files_contain_the_definition(more: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError, match="which a run's file would show; put it into") as caught:
        parse_values(described(**more))
    assert str(caught.value).startswith(f"{path}: ")
    assert "hidden" not in str(caught.value)


def test_settings_of_spark_that_are_no_secrets_are_taken() -> None:
    conf = {
        "spark.hadoop.fs.s3a.aws.credentials.provider": "a.b.Provider",
        "spark.driver.memory": "1g",
        "spark.sql.catalog.a.warehouse": "s3://bucket/w",
    }
    assert parse_values(described(spark={"conf": conf})).spark.conf == conf


def generated(**workload: Any) -> dict[str, Any]:
    return {"name": "mine", "engines": ["icebench"], "layouts": ["unpartitioned"], "workload": workload}


def test_generated_workloads_have_their_own_filters_and_columns() -> None:
    values = generated(kind="wide", rows=10, columns=300)
    values["workload"] = [values["workload"], {"kind": "log", "rows": 10}]
    experiment = parse_values(values)
    wide, log = experiment.workloads
    assert isinstance(wide, RowsWorkload)
    assert isinstance(log, RowsWorkload)
    assert (wide.name, log.name) == ("wide, 300 columns", "log")
    assert len(wide.scanned) == 20
    assert log.rows.filters.keys() == {"one_hour", "one_request", "url_prefix", "errors"}
    assert not experiment.filters
    assert not experiment.options["filtered"].everything
    only = experiment.adjusted(only=["wide, 300 columns", "reading"])
    assert [each.name for each in only.workloads] == ["wide, 300 columns"]
    assert only.measurements == ("reading",)
    assert parse_values({**values, "filtered": {"everything": True}}).options["filtered"].everything


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "wide", "rows": 10}, "workload: missing key 'columns'"),
        (
            {"kind": "wide", "rows": 10, "columns": 15, "selected": 15},
            "workload.selected: more columns than engines can",
        ),
        ({"kind": "log", "rows": 0}, "workload.rows: 0 is below 1"),
        ({"kind": "log", "rows": 9, "late": 1.5}, "workload.late: 1.5 is above 1"),
    ],
)
def test_what_is_wrong_in_a_generated_workload_is_said(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_values(generated(**wrong))
    assert str(caught.value).startswith(message)


def test_a_table_of_a_definition_knows_its_path() -> None:
    inner = Definition({"a": {"b": {"c": 1}}}).table("a").table("b")
    with pytest.raises(ConfigError, match=r"^a\.b\.c: must be a string, not 1$"):
        inner.text("c")
