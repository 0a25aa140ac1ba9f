"""What definitions say of queries, and what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from icebench.bench.errors import ConfigError
from icebench.bench.execution.measurement import Asked
from icebench.bench.experiment import Experiment, load_experiment, parse_values
from icebench.bench.measurements.queries import KIND
from icebench.bench.records.case import Case
from icebench.bench.runs.check_filters import check_filters
from icebench.bench.runs.estimate import estimate
from icebench.bench.workloads.definitions import TablesWorkload, TpcdsTablesWorkload
from icebench.bench.workloads.workload import TableWorkload

TWO = """
-- name: names
select name from people; -- and no more
select ';' as text, count(*) from people group by 1
;
-- nothing follows
"""


def definition(queries: dict[str, Any] | None = None, **more: Any) -> Experiment:
    values = {"name": "x", "engines": ["icebench", "duckdb"], "workload": {"kind": "tpcds-tables", "scale": 0.01}}
    return parse_values({**values, **({} if queries is None else {"queries": queries}), **more})


def tables(*names: str) -> dict[str, Any]:
    return {"kind": "tables", "table": [{"name": name, "path": f"wh/{name}"} for name in names]}


def test_without_a_word_all_queries_of_tpcds_are_asked() -> None:
    found = definition()
    assert found.measurements == ("queries",)
    assert found.workloads == (TpcdsTablesWorkload(scale=0.01, files=4),)
    options = found.options["queries"]
    assert (options.numbers, options.texts, options.seconds) == ((), {}, 60)
    assert options.streams == 0
    assert estimate(found).cases == 2 * 99


def test_numbers_and_texts_are_asked_beside_each_other() -> None:
    options = definition({"numbers": [96, 3], "sql": {"mine": "select 1"}, "seconds": 2.5}).options["queries"]
    assert (options.numbers, options.texts, options.seconds) == ((96, 3), {"mine": "select 1"}, 2.5)
    assert estimate(definition({"numbers": [96, 3], "sql": {"mine": "select 1"}})).cases == 2 * 3
    assert estimate(definition({"sql": {"mine": "select 1"}})).cases == 2


def test_streams_are_cases_that_take_as_long_as_all_their_queries() -> None:
    plain, found = (definition({"numbers": [96, 3, 7], "streams": streams}) for streams in (0, 4))
    assert found.options["queries"].streams == 4
    assert estimate(plain).cases == 2 * 3
    assert estimate(found).cases == 2 * (3 + 1)
    asked = Asked(engines=found.engines, planners=1, filters=1, options=found.options["queries"])
    assert list(KIND.executions(found.workloads[0], asked)) == [(6, 1.0), (2, 12.0)]
    assert estimate(found).seconds > 3 * estimate(plain).seconds


def test_refreshes_make_three_sets_of_tables() -> None:
    workload = {"kind": "tpcds-tables", "scale": 0.01, "refreshes": 5}
    found = definition({"numbers": [96, 3], "streams": 2}, workload=workload)
    assert found.workloads == (TpcdsTablesWorkload(scale=0.01, files=4, refreshes=5),)
    assert estimate(found).cases == 3 * 2 * (2 + 1)
    with pytest.raises(ConfigError, match=r"workload.refreshes: -1 is below 0"):
        definition(workload={**workload, "refreshes": -1})


def test_streams_may_be_asked_for_on_the_command_line() -> None:
    found = load_experiment("queries")
    assert found.options["queries"].streams == 0
    assert found.adjusted(streams=3).options["queries"].streams == 3
    assert found.adjusted(streams=3).options["queries"].numbers == found.options["queries"].numbers
    assert definition().adjusted(streams=2).options["queries"].streams == 2
    with pytest.raises(ConfigError, match="--streams: planning asks no queries"):
        load_experiment("planning").adjusted(streams=2)


def test_metrics_of_streams_are_their_own() -> None:
    case = Case(measurement="queries", cache="warm", filter="q07")
    assert KIND.names(case) == ("query_time", "query_cpu", "query_memory")
    assert KIND.names(replace(case, configuration="2 streams")) == ("streams_time", "streams_cpu", "streams_memory")


def test_a_file_has_statements_with_names(tmp_path: Path) -> None:
    (tmp_path / "my.sql").write_text(TWO)
    texts = definition({"files": [str(tmp_path / "my.sql")]}).options["queries"].texts
    assert list(texts) == ["names", "query 2"]
    assert texts["names"].endswith("select name from people")
    assert texts["query 2"].endswith("select ';' as text, count(*) from people group by 1")


@pytest.mark.parametrize(
    ("queries", "reason"),
    [
        ({"numbers": [3, 100]}, r"queries.numbers\[1\]: TPC-DS has no query 100, but 1 to 99"),
        ({"numbers": [0]}, r"queries.numbers\[0\]: TPC-DS has no query 0"),
        ({"numbers": [3, 4, 3]}, r"queries.numbers\[2\]: query 3 is listed twice"),
        ({"numbers": ["3"]}, r"queries.numbers\[0\]: .*whole number"),
        ({"streams": -1}, "queries.streams: -1 is below 0"),
        ({"seconds": 0}, "queries.seconds: 0 is not above 0"),
        ({"files": ["no such.sql"]}, r"queries.files\[0\]: no such.sql cannot be read"),
        ({"files": [3]}, r"queries.files\[0\]: .*a file"),
        ({"query": 3}, "queries: unknown key 'query'; known: files, numbers, "),
    ],
)
def test_what_is_wrong_with_a_definition_is_said(queries: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        definition(queries)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("-- name: a\nselect 1; -- name: b\nselect 2;\n-- name: a\nselect 3", "two queries are named 'a'"),
        ("-- only a comment\n", "has no query"),
        ("select 'open", "not SQL of DuckDB"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "my.sql").write_text(text)
    with pytest.raises(ConfigError, match=rf"queries\.files\[0\]: .*{reason}"):
        definition({"files": [str(tmp_path / "my.sql")]})


def test_a_text_and_a_query_of_the_file_have_different_names(tmp_path: Path) -> None:
    (tmp_path / "my.sql").write_text("-- name: mine\nselect 1")
    with pytest.raises(ConfigError, match=r"queries\.files\[0\]: two queries are named 'mine'"):
        definition({"files": [str(tmp_path / "my.sql")], "sql": {"mine": "select 2"}})


def test_tables_of_ones_own_are_named_as_queries_call_them() -> None:
    (found,) = definition({"sql": {"q": "select 1"}}, workload=tables("People", "sales")).workloads
    assert isinstance(found, TablesWorkload)
    assert found.tables == {"people": TableWorkload(path="wh/People"), "sales": TableWorkload(path="wh/sales")}
    with pytest.raises(ConfigError, match=r"workload.table\[1\].name: two tables are named 'people'"):
        definition(workload=tables("people", "PEOPLE"))
    with pytest.raises(ConfigError, match=r"workload.table: must have at least one table"):
        definition(workload=tables())


@pytest.mark.parametrize(
    ("queries", "reason"),
    [
        ({"sql": {"q": "select * from nobody"}}, r"queries\.sql\.q: reads nobody; there are: call_center, "),
        ({"sql": {"q": "select 1; select 2"}}, "q: is not one query"),
        ({"sql": {"q": "select 1 limit 2 + 2"}}, "q: its LIMIT is not a number"),
    ],
)
def test_queries_are_checked_before_anything_is_made(queries: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        check_filters(definition(queries))
    check_filters(definition({"numbers": [1, 99]}))


def test_the_scale_of_a_definition_can_be_another() -> None:
    found = load_experiment("queries")
    assert found.scale == 0.2
    assert found.adjusted(scale=3).scale == 3
    assert estimate(found.adjusted(scale=100)).seconds > 5 * estimate(found).seconds
