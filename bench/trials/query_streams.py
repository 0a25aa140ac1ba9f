"""Streams of queries at once: each asks all of them, one after the other, in an order of its own.

As in the throughput test of TPC-DS (specification 3.2.0, clause 7.4.8), of which LST-Bench has the form for table
formats: a figure of all streams together, from the first query's text to the last answer's last row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from threading import Event
from typing import Any

from icebench.bench.engines.engine import QueryingConcurrently
from icebench.bench.truth.queries import Query
from icebench.bench.truth.query_answers import RankedRows, Row, wrong_answer


def stream_orders(streams: int, queries: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """In which order each stream asks queries, by their numbers from 0: permutations drawn from the seed, of which none
    comes again before all have been drawn."""
    random, most = Random(f"{seed} streams"), math.factorial(queries)
    found: list[tuple[int, ...]] = []
    while len(found) < streams:
        order = tuple(random.sample(range(queries), queries))
        if order not in found or len(found) >= most:
            found.append(order)
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What streams ask.

    Args:
        queries: In the order of the definition.
        right: The right answer to each.
        orders: Of each stream, the places of the queries.
    """

    queries: Sequence[Query]
    right: Sequence[RankedRows]
    orders: Sequence[Sequence[int]]

    @property
    def detail(self) -> Mapping[str, str]:
        """The order of each stream, in names."""
        return {
            f"stream {number}": ", ".join(self.queries[place].name for place in order)
            for number, order in enumerate(self.orders, 1)
        }


@dataclass
class Streams:
    """An engine with a session for each stream.

    Args:
        engine: Who answers.
        tables: Of its `open_tables`.
        asked: What is asked.
    """

    engine: QueryingConcurrently
    tables: Any
    asked: Asked
    _answers: list[list[list[Row]]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._texts = [query.in_dialect(self.engine.dialect) for query in self.asked.queries]
        self._sessions = [self.engine.new_session(self.tables) for _ in self.asked.orders]

    def run(self, seconds: float | None = None) -> None:
        """Ask everything, and keep the answers for `check`. Timed.

        Args:
            seconds: When to give up a query; None waits.

        Raises:
            Exception: What a query raised; the other streams end with the query that they are at.
        """
        is_over = Event()
        with ThreadPoolExecutor(len(self._sessions), "stream") as pool:
            streams = [pool.submit(self._ask, at, is_over, seconds) for at in range(len(self._sessions))]
        self._answers = [stream.result() for stream in streams]

    def _ask(self, stream: int, is_over: Event, seconds: float | None) -> list[list[Row]]:
        found: list[list[Row]] = []
        try:
            for place in self.asked.orders[stream]:
                if is_over.is_set():
                    break
                tables = self.asked.queries[place].tables
                found.append(self.engine.answer(self._sessions[stream], self._texts[place], tables, seconds))
        except BaseException:
            is_over.set()
            raise
        return found

    def check(self) -> int:
        """Look at the answers of the last run, and let them go; gives how many rows they had.

        Raises:
            WrongAnswer: One is not right.
            NoTruth: A value is of a type for which there is no rule.
        """
        answers, self._answers = self._answers, []
        rows = 0
        for number, (order, own) in enumerate(zip(self.asked.orders, answers, strict=True), 1):
            for place, answer in zip(order, own, strict=True):
                rows += len(answer)
                if (fault := self.asked.right[place].fault_of(answer)) is not None:
                    raise wrong_answer(f"answers {self.asked.queries[place].name} wrongly in stream {number}", fault)
        return rows
