"""Queries from a definition to a report: answers are checked, and wrong ones are not timed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import icebench
from icebench.bench.engines.access import LOCAL, Access, TableAccess
from icebench.bench.engines.duckdb_engine import DuckDb
from icebench.bench.engines.duckdb_queries import DuckDbQueries
from icebench.bench.engines.engine import Ability, EngineMissing, TookTooLong
from icebench.bench.engines.icebench import Icebench
from icebench.bench.engines.registry import EngineContext
from icebench.bench.errors import ConfigError
from icebench.bench.execution.context import Context
from icebench.bench.execution.spark_use import SparkDefinition, SparkUse
from icebench.bench.experiment import parse_values
from icebench.bench.measurements.queries import QueryOptions
from icebench.bench.progress import silent
from icebench.bench.records.case import Case
from icebench.bench.report.build import build_report
from icebench.bench.report.charts import DotChart
from icebench.bench.runs.run import Finished, run_experiment, surroundings_of
from icebench.bench.trials.queries import Queries, measurements
from icebench.bench.truth.queries import Query, ReferenceAnswers
from icebench.bench.workloads.definitions import TpcdsTablesWorkload
from tests.unit.bench.execution.scripted import CONTEXT, Clock, Recorded, ScriptedEngine, no_spark

SMALL = {"repetitions": 2, "warmups": 0, "warm_seconds": 0}


def run_of(folder: Path, queries: dict[str, Any], **more: Any) -> Finished:
    values = {
        "name": "x",
        "engines": ["icebench", "duckdb"],
        "workload": {"kind": "tpcds-tables", "scale": 0.01},
        "queries": queries,
        **SMALL,
        **more,
    }
    return run_experiment(parse_values(values), where=surroundings_of(folder))


def timed(found: Finished) -> set[tuple[str, str]]:
    return {(record.case, record.engine) for record in found.records if record.metric == "query_time"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tpcds")


def test_queries_of_tpcds_are_measured_and_reported(folder: Path) -> None:
    years = "select d_year, count(*) as sold from store_sales join date_dim on ss_sold_date_sk = d_date_sk group by all"
    found = run_of(folder, {"numbers": [7, 96], "sql": {"years": f"{years} order by d_year"}, "streams": 2})
    assert not found.run.failures
    assert not found.run.skipped
    assert timed(found) == {(case, name) for case in ("q07", "q96", "years") for name in ("icebench", "duckdb")}
    rows = {m.case.filter: m.evidence.counters["rows_returned"] for m in found.run.measured}
    assert rows["q96"] == 1
    assert rows["years"] == 6
    report = build_report(found.run, results_file="x")
    (section,) = [section for section in report.sections if section.key == "queries"]
    assert [table.title for table in section.tables][:2] == [
        "Power: all queries, relative to icebench; throughput",
        "Time of a query",
    ]
    assert [row[-1].text.endswith("queries/h") for row in section.tables[0].rows] == [True, True]
    axes = [chart.axis for chart in section.charts if isinstance(chart, DotChart)]
    assert [axis.removesuffix(" (logarithmic)") for axis in axes[1:]] == ["queries/h"]  # as far apart as engines are
    orders = {tuple(m.evidence.detail.values()) for m in found.run.measured if m.case.configuration == "2 streams"}
    ((one, other),) = orders
    assert one != other
    assert any("Answering queries" in finding.statement for finding in report.findings)


@pytest.mark.slow
def test_queries_are_asked_again_after_refreshes(folder: Path) -> None:
    workload = {"kind": "tpcds-tables", "scale": 0.01, "refreshes": 2}
    found = run_of(folder, {"numbers": [7, 96], "streams": 2}, workload=workload)
    assert not found.run.failures
    layouts = ["dsdgen", "2 refreshes", "2 refreshes, compacted"]
    assert {m.case.layout for m in found.run.measured} == set(layouts)
    assert len(found.run.measured) == 2 * 3 * 3
    rows = {(m.case.label, m.evidence.counters["rows_returned"]) for m in found.run.measured}
    assert {label for label, _ in rows} == {"q07", "q96", "2 streams"}
    assert len(rows) == 3
    report = build_report(found.run, results_file="x")
    (section,) = [section for section in report.sections if section.key == "queries"]
    (table,) = [table for table in section.tables if table.short == "stability"]
    assert table.columns == ("Engine", *layouts[1:])
    assert [row[0].text for row in table.rows] == ["icebench", "duckdb"]


@pytest.mark.slow
def test_each_layout_has_its_own_tables_of_facts(folder: Path) -> None:
    with ExitStack() as resources:
        context = Context(
            options=QueryOptions(numbers=(96,), texts={}, seconds=5, streams=3),
            engines={},
            asked=(),
            seed=7,
            cache=folder / "datasets" / "cache",
            spark=SparkUse(SparkDefinition(master="local[1]"), folder),
            progress=silent,
            resources=resources,
            access=TableAccess(),
            store=lambda: LOCAL,
        )
        found = [
            each
            for each in measurements(TpcdsTablesWorkload(scale=0.01, files=4, refreshes=2), context)
            if isinstance(each, Queries)
        ]
    assert [(each.streams, each.seed) for each in found] == [(3, 7)] * 3
    deletes = [icebench.load_table(each.locations["store_sales"]).inspect.delete_files().num_rows > 0 for each in found]
    assert deletes == [False, True, False]
    assert len({each.locations["store_sales"] for each in found}) == 3
    assert len({each.locations["item"] for each in found}) == 1


def test_an_answer_that_is_wrong_is_a_failure_and_not_timed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(self: DuckDb, tables: Any, query: str, names: Any, seconds: float | None = None) -> list[Any]:
        return [(row[0] + 1,) for row in tables.execute(query).fetchall()]

    monkeypatch.setattr(DuckDb, "answer", answer)
    found = run_of(folder, {"numbers": [96]})
    (failure,) = found.run.failures
    assert (failure.kind, failure.engine, failure.case) == ("WrongAnswer", "duckdb", "q96")
    assert "answers wrongly: (" in failure.message
    assert timed(found) == {("q96", "icebench")}


def test_duckdb_gives_up_in_time() -> None:
    connection, endless = duckdb.connect(), "select sum(a.range * b.range) from range(1000000) a, range(1000000) b"
    with pytest.raises(TookTooLong, match=r"gave no answer within 0\.2 s"):
        DuckDbQueries().answer(connection, endless, [], 0.2)
    assert DuckDbQueries().answer(connection, "select 1", [], 60) == [(1,)]


# Tables of one's own.


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Two tables, one of which has deletes by position and by key."""
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    zoned = [datetime(2026, 1, day, 23, tzinfo=UTC) for day in (1, 2, 3, 4)]
    rows = pa.table(
        {"ID": [1, 2, 3, 4], "name": ["a", "", None, "b"], "seen": pa.array(zoned, pa.timestamp("us", "UTC"))}
    )
    people = catalog.create_table("db.people", rows.schema)
    people.append(rows)
    people.delete("ID = 4", "merge-on-read")
    stream = people.keyed_stream(["ID"])
    stream.delete(pa.table({"ID": [1]}))
    stream.commit()
    sales = pa.table({"person": [1, 2, 2, 4], "price": [1.5, 0.25, 0.5, 8.0]})
    catalog.create_table("db.sales", sales.schema).append(sales)
    catalog.create_table("db.nothing", sales.schema).append(sales.slice(0, 0))
    return tmp_path / "wh" / "db"


def own(warehouse: Path, *names: str) -> dict[str, Any]:
    return {"kind": "tables", "table": [{"name": name, "path": str(warehouse / name)} for name in names]}


def test_queries_join_tables_of_ones_own(tmp_path: Path, warehouse: Path) -> None:
    texts = {
        "joined": "select name, sum(price) from People join sales on id = person group by name order by name",
        "all": "select * from people order by seen desc limit 1",
        "none": "select count(*) from nothing",
    }
    found = run_of(
        tmp_path, {"sql": texts}, workload=own(warehouse, "people", "sales", "nothing"), engines=["icebench"]
    )
    assert not found.run.failures
    assert timed(found) == {(name, "icebench") for name in texts}
    rows = {m.case.filter: m.evidence.counters["rows_returned"] for m in found.run.measured}
    assert rows == {"joined": 1, "all": 1, "none": 1}


def test_a_deleted_row_that_comes_back_is_noticed(
    tmp_path: Path, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = icebench.load_table(str(warehouse / "people")).metadata.snapshots[0].snapshot_id
    scan = icebench.Table.scan
    monkeypatch.setattr(icebench.Table, "scan", lambda self, counters=None: scan(self, snapshot_id=first))
    found = run_of(
        tmp_path, {"sql": {"q": "select id from people"}}, workload=own(warehouse, "people"), engines=["icebench"]
    )
    (failure,) = found.run.failures
    assert failure.message == "answers wrongly: 4 rows, not 2"


@pytest.mark.parametrize(
    ("queries", "reason"),
    [
        ({"numbers": [3]}, "queries.numbers: are queries of TPC-DS"),
        ({}, "queries: must give queries"),
        ({"sql": {"q": "select * from people, nobody"}}, r"queries\.sql\.q: reads nobody; there are: people"),
    ],
)
def test_queries_have_to_suit_the_tables(tmp_path: Path, warehouse: Path, queries: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        run_of(tmp_path, queries, workload=own(warehouse, "people"))


# Engines that follow a script.


@dataclass
class Answering(ScriptedEngine):
    """Gives these rows, or raises."""

    answers: list[Any] | Exception = field(default_factory=list)
    dialect: str = "duckdb"

    def open_tables(self, locations: dict[str, str]) -> dict[str, str]:
        return locations

    def answer(self, tables: Any, query: str, names: Any, seconds: float | None = None) -> list[Any]:
        self.clock.pass_(2.0)
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers


@pytest.fixture
def queries() -> Queries:
    def answers(_: Any) -> ReferenceAnswers:
        found = ReferenceAnswers()
        found.add_rows("t", [pa.record_batch({"id": [1, 2, 3], "name": ["a", "", None]})])
        return found

    return Queries(
        case=Case(workload="w", layout="l", measurement="queries"),
        locations={"t": "somewhere"},
        queries=[Query("q", "select id, name from t order by id limit 3")],
        answers=answers,
        seconds=5,
    )


RIGHT = [(1, "a"), (2, ""), (3, None)]


@pytest.mark.parametrize(
    "rows",
    [
        [(1, "a"), (1, "a"), (3, None)],
        [(1, "a"), (2, None), (3, None)],
        [(2, ""), (1, "a"), (3, None)],
        [(1, "a"), (2, "")],
    ],
)
def test_only_right_answers_are_timed(bench_of: Callable[..., Recorded], queries: Queries, rows: list[Any]) -> None:
    clock = Clock()
    made = bench_of(Answering("right", clock, answers=RIGHT), Answering("wrong", clock, answers=rows))
    made.measure(queries)
    assert [(failure.engine, failure.kind) for failure in made.failures] == [("wrong", "WrongAnswer")]
    assert {record.engine for record in made.records} == {"right"}


def test_what_an_engine_cannot_do_concerns_it_alone(bench_of: Callable[..., Recorded], queries: Queries) -> None:
    clock = Clock()
    made = bench_of(
        Answering("right", clock, answers=RIGHT),
        Answering("slow", clock, answers=TookTooLong(5)),
        Answering("broken", clock, answers=ValueError("no such function")),
        Answering("nested", clock, answers=[(1, ["a"]), (2, ""), (3, None)]),
        ScriptedEngine("scans", clock, abilities=frozenset({Ability.SCAN})),
    )
    made.measure(queries)
    assert [(failure.engine, failure.message) for failure in made.failures] == [("broken", "no such function")]
    reasons = {skip.engine: skip.reason for skip in made.skipped}
    assert reasons.keys() == {"slow", "nested", "scans"}
    assert reasons["slow"] == "gave no answer within 5 s"
    assert reasons["nested"].startswith("there is no rule for comparing values")
    assert reasons["scans"] == "scans offers no answering queries"
    assert {record.engine for record in made.records} == {"right"}


def test_tables_that_are_not_there_are_a_failure_of_each_engine(
    bench_of: Callable[..., Recorded], queries: Queries
) -> None:
    made = bench_of(Icebench(CONTEXT), DuckDb(CONTEXT))
    made.measure(queries)
    assert {failure.engine for failure in made.failures} == {"icebench", "duckdb"}
    assert not made.records


def test_tables_of_two_stores_are_not_duckdbs() -> None:
    access = {"a": Access("s3", {"s3.access-key-id": "x"}), "b": Access()}
    with pytest.raises(EngineMissing, match="tables of one store"):
        DuckDb(EngineContext(spark=no_spark, access=access.__getitem__)).open_tables({"x": "a", "y": "b"})
