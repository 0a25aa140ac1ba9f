"""Streams of queries at once: their orders, who takes part, and that a wrong answer of one stream counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Barrier, Event, Lock, current_thread
from time import sleep
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import icebench
from icebench.bench.engines.duckdb_engine import DuckDb
from icebench.bench.engines.engine import Ability, TookTooLong
from icebench.bench.engines.icebench import Icebench
from icebench.bench.errors import WrongAnswer
from icebench.bench.execution.run_file import RunWriter
from icebench.bench.records.case import Case
from icebench.bench.trials.queries import Queries
from icebench.bench.trials.query_streams import Asked, Streams, stream_orders
from icebench.bench.truth.queries import Query, ReferenceAnswers
from tests.unit.bench.execution.scripted import CONTEXT, Clock, ScriptedEngine, recorded

TEXTS = {"low": "select min(id) from t", "high": "select max(id) from t", "all": "select id from t order by id"}
RIGHT = {TEXTS["low"]: [(1,)], TEXTS["high"]: [(3,)], TEXTS["all"]: [(1,), (2,), (3,)]}
QUERIES = [Query(name, text) for name, text in TEXTS.items()]


def answers(_: Any = None) -> ReferenceAnswers:
    found = ReferenceAnswers()
    found.add_rows("t", [pa.record_batch({"id": [1, 2, 3]})])
    return found


@dataclass
class Answering(ScriptedEngine):
    """Answers rightly, but for what `wrong` gives by session and call in it; session 0 is that of single queries."""

    dialect: str = "duckdb"
    wrong: Callable[[int, int], Any] = lambda session, call: None
    lock: Any = field(default_factory=Lock)
    calls: dict[int, list[str]] = field(default_factory=dict)

    def open_tables(self, locations: Mapping[str, str]) -> int:
        return 0

    def new_session(self, tables: int) -> int:
        self.calls.setdefault(0, [])
        self.calls[len(self.calls)] = []
        return len(self.calls) - 1

    def answer(self, tables: int, query: str, names: Any, seconds: float | None = None) -> Any:
        with self.lock:
            self.clock.pass_(0.5)
            own = self.calls.setdefault(tables, [])
            own.append(query)
        given = self.wrong(tables, len(own))
        if isinstance(given, Exception):
            raise given
        return RIGHT[query] if given is None else given


@pytest.fixture
def queries() -> Queries:
    return Queries(
        case=Case(workload="w", layout="l", measurement="queries"),
        locations={"t": "somewhere"},
        queries=QUERIES,
        answers=answers,
        seconds=5,
        streams=2,
        seed=1,
    )


def test_orders_are_permutations_and_differ() -> None:
    orders = stream_orders(4, 12, 1)
    assert all(sorted(order) == list(range(12)) for order in orders)
    assert len(set(orders)) == 4
    assert tuple(range(12)) not in orders
    assert stream_orders(4, 12, 1) == orders
    assert stream_orders(2, 12, 1) == orders[:2]
    assert set(stream_orders(4, 12, 2)).isdisjoint(orders)


def test_orders_come_again_only_when_there_is_no_other() -> None:
    for seed in range(20):
        orders = stream_orders(7, 3, seed)
        assert len(set(orders[:6])) == 6
        assert len(orders) == 7
    assert stream_orders(3, 1, 1) == ((0,), (0,), (0,))


def test_streams_are_timed_beside_single_queries(writer: RunWriter, queries: Queries) -> None:
    clock = Clock()
    made = recorded(writer, clock, engine := Answering("fast", clock))
    made.measure(queries)
    assert not made.failures
    assert not made.skipped
    # Two streams of three queries, half a second each.
    assert made.samples("fast", "2 streams", "streams_time") == [3.0, 3.0, 3.0]
    assert made.samples("fast", "2 streams", "throughput") == [6 * 3600 / 3.0] * 3
    assert made.samples("fast", "low", "query_time") == [0.5, 0.5, 0.5]
    (record,) = [r for r in made.records if (r.case, r.metric) == ("2 streams", "throughput")]
    assert record.unit == "queries/h"
    assert record.counters == {"queries": 6, "rows_returned": 10}
    assert {r.case for r in made.records if r.metric == "query_time"} == set(TEXTS)
    # In every run each stream asks all, in its own order.
    first, second = (engine.calls[stream] for stream in (1, 2))
    orders = [[TEXTS[QUERIES[place].name] for place in order] for order in stream_orders(2, 3, 1)]
    assert first == orders[0] * (len(first) // 3)
    assert second == orders[1] * (len(second) // 3)
    assert record.detail == {
        f"stream {number}": ", ".join(QUERIES[place].name for place in order)
        for number, order in enumerate(stream_orders(2, 3, 1), 1)
    }


def test_without_streams_there_are_none(writer: RunWriter, queries: Queries) -> None:
    clock = Clock()
    made = recorded(writer, clock, engine := Answering("fast", clock))
    made.measure(replace(queries, streams=0))
    assert {record.case for record in made.records} == set(TEXTS)
    assert engine.calls.keys() == {0}


@pytest.mark.parametrize("call", [2, 8], ids=["while checked", "while timed"])
def test_a_wrong_answer_in_one_stream_is_a_failure(writer: RunWriter, queries: Queries, call: int) -> None:
    clock = Clock()
    made = recorded(
        writer,
        clock,
        Answering("right", clock),
        Answering("wrong", clock, wrong=lambda session, at: [(7,)] if (session, at) == (2, call) else None),
    )
    made.measure(queries)
    (failure,) = made.failures
    asked = QUERIES[stream_orders(2, 3, 1)[1][1]].name
    assert (failure.engine, failure.kind, failure.case) == ("wrong", "WrongAnswer", "2 streams")
    assert failure.message.startswith(f"answers {asked} wrongly in stream 2: ")
    assert {r.engine for r in made.records if r.case == "2 streams"} == {"right"}
    # Alone it answers rightly.
    assert {r.case for r in made.records if r.engine == "wrong"} == set(TEXTS)


def test_who_cannot_or_lacks_a_query_is_skipped_by_name(writer: RunWriter, queries: Queries) -> None:
    clock = Clock()
    made = recorded(
        writer,
        clock,
        Answering("right", clock),
        Answering("single", clock, abilities=frozenset({Ability.QUERY})),
        Answering("lacking", clock, wrong=lambda session, call: TookTooLong(5) if call == 2 else None),
        Answering("slow", clock, wrong=lambda session, call: TookTooLong(10) if session else None),
        Answering("broken", clock, wrong=lambda session, call: ValueError("no such thing") if session else None),
    )
    made.measure(queries)
    reasons = {skip.engine: skip.reason for skip in made.skipped if skip.case == "2 streams"}
    assert reasons == {
        "single": "single offers no concurrent queries",
        "lacking": "streams ask all queries, and it does not answer high",
        "slow": "gave no answer within 10 s",
    }
    assert [(failure.engine, failure.message) for failure in made.failures] == [("broken", "no such thing")]
    assert {r.engine for r in made.records if r.case == "2 streams"} == {"right"}


def asked_by(streams: int) -> Asked:
    known = answers()
    return Asked(
        queries=QUERIES, right=[known.answer(query) for query in QUERIES], orders=stream_orders(streams, 3, seed=1)
    )


def test_all_streams_ask_at_the_same_time() -> None:
    together = Barrier(3, timeout=20)

    class Waiting(Answering):
        def answer(self, *args: Any, **kwargs: Any) -> Any:
            together.wait()
            return super().answer(*args, **kwargs)

    streams = Streams(Waiting("a", Clock()), 0, asked_by(3))
    streams.run()
    assert streams.check() == 15


def test_streams_end_when_one_fails() -> None:
    class Failing(Answering):
        def answer(self, tables: int, query: str, names: Any, seconds: float | None = None) -> Any:
            if tables == 1:
                failed.set()
                raise ValueError(current_thread().name)
            failed.wait(20)
            sleep(0.001)
            return super().answer(tables, query, names, seconds)

    failed, engine = Event(), Failing("a", Clock())
    asked = replace(asked_by(1), orders=[(0,), (0, 1, 2) * 1000])
    with pytest.raises(ValueError, match="stream"):
        Streams(engine, 0, asked).run()
    assert len(engine.calls[2]) < 1000


@pytest.mark.parametrize("engine", [Icebench, DuckDb])
def test_engines_answer_rightly_at_once(tmp_path: Path, engine: Any) -> None:
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    rows = pa.table({"id": [1, 2, 3]})
    table = catalog.create_table("db.t", rows.schema)
    for place in range(3):
        table.append(rows.slice(place, 1))
    made = engine(CONTEXT)
    streams = Streams(made, made.open_tables({"t": table.metadata_location}), asked_by(4))
    for _ in range(5):
        streams.run(60)
        assert streams.check() == 20


def test_a_row_that_is_lost_at_once_is_noticed(tmp_path: Path) -> None:
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    catalog.create_table("db.t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1, 2]}))
    engine = Icebench(CONTEXT)
    location = catalog.load_table("db.t").metadata_location
    streams = Streams(engine, engine.open_tables({"t": location}), asked_by(2))
    streams.run()
    with pytest.raises(WrongAnswer, match=r"answers (high|all) wrongly in stream 1: "):
        streams.check()


def test_a_cursor_has_the_views_of_its_connection() -> None:
    connection = duckdb.connect()
    connection.execute("create view one as select 1 as a")
    session = DuckDb(CONTEXT).new_session(connection)
    assert session is not connection
    assert session.execute("from one").fetchall() == [(1,)]
