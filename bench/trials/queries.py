"""Queries over several tables: every answer is checked, then timed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from icebench.bench.engines.engine import Ability, AnyEngine, Querying, QueryingConcurrently
from icebench.bench.errors import BenchError, ConfigError
from icebench.bench.execution.context import Context
from icebench.bench.execution.opened import try_each
from icebench.bench.execution.trial import Bench, Measurement, Trial
from icebench.bench.records.case import Case, Evidence
from icebench.bench.tables.cache import DatasetCache
from icebench.bench.tables.tpcds_by_day import find_or_arrange
from icebench.bench.tables.tpcds_refreshes import find_or_refresh
from icebench.bench.tables.tpcds_tables import find_or_build
from icebench.bench.trials.query_streams import Asked, Streams, stream_orders
from icebench.bench.truth.queries import Query, ReferenceAnswers, unknown_tables
from icebench.bench.truth.query_answers import RankedRows, wrong_answer
from icebench.bench.truth.sql import NoTruth
from icebench.bench.workloads.definitions import TablesWorkload, TpcdsTablesWorkload
from icebench.bench.workloads.dsdgen import DSDGEN_TABLES, TPCDS_QUERIES, tpcds_queries
from icebench.bench.workloads.workload import Workload

NAME = "queries"
GENERATED, FOUND = "dsdgen", "as they are"
"""Layouts of tables."""

Answers = Callable[[Sequence[Query]], ReferenceAnswers]
"""Gives what knows the right answers to these queries; may raise NoTruth."""


@dataclass(frozen=True, kw_only=True)
class Database:
    """Tables under the names that queries call them.

    Args:
        workload: Which.
        locations: Name -> metadata file.
        answers: Gives what knows the right answers.
    """

    workload: Workload
    locations: Mapping[str, str]
    answers: Answers


@dataclass(frozen=True, kw_only=True)
class Queries:
    """Queries over the same tables.

    Args:
        case: Of all of them, whatever the query and engine.
        locations: Name -> metadata file of each table.
        queries: What is asked.
        answers: Gives what knows the right answers.
        seconds: An engine that has no answer by then skips a query.
        streams: How many ask all queries at once, besides.
        seed: Draws the order of each stream.
    """

    case: Case
    locations: Mapping[str, str]
    queries: Sequence[Query]
    answers: Answers
    seconds: float
    streams: int = 0
    seed: int = 0

    def trials(self, bench: Bench) -> Iterator[Trial]:
        every = replace(self.case, filter="*")
        engines = bench.able(every, Ability.QUERY)
        opened = try_each(engines, lambda engine: _querying(engine).open_tables(self.locations), bench.recorder, every)
        try:
            answers = self.answers(self.queries)
        except NoTruth as reason:
            bench.recorder.skip(every, f"the right answers are not known: {reason}")
            return
        known: dict[str, RankedRows] = {}
        answered: dict[str, set[str]] = {name: set() for name in opened}
        for done, query in enumerate(self.queries):
            case = replace(self.case, filter=query.name, cache="warm")
            bench.progress(self.case.measurement, f"{query.name}, checking answers", done, len(self.queries))
            try:
                right = answers.answer(query)
            except BenchError as error:
                bench.recorder.fail(case.of("oracle"), error)
                continue
            if self.streams:
                known[query.name] = right
            found = try_each(
                {name: engines[name] for name in opened},
                lambda engine: self._answered(_querying(engine), opened[engine.name], query, self.seconds),  # noqa: B023
                bench.recorder,
                case,
            )
            for name, rows in found.items():
                if self._is_right(bench, case.of(name), right, rows):
                    answered[name].add(query.name)
                    yield self._trial(case.of(name), _querying(engines[name]), opened[name], query, len(rows))
        if self.streams:
            yield from self._of_streams(bench, opened, known, answered)

    def _of_streams(
        self,
        bench: Bench,
        opened: Mapping[str, object],
        known: Mapping[str, RankedRows],
        answered: Mapping[str, Collection[str]],
    ) -> Iterator[Trial]:
        """All queries in streams at once, by the engines that answer each of them alone.

        Args:
            bench: What it works with.
            opened: Tables by engine.
            known: The right answers, by query.
            answered: By engine, the queries that it answers.
        """
        case = replace(self.case, configuration=f"{self.streams} streams", cache="warm")
        complete = {}
        for name, engine in bench.able(case, Ability.CONCURRENT_QUERIES, among=list(opened)).items():
            if lacking := [query.name for query in self.queries if query.name not in answered[name]]:
                reason = f"streams ask all queries, and it does not answer {', '.join(lacking)}"
                bench.recorder.skip(case.of(name), reason)
            else:
                complete[name] = engine
        if not complete:
            return
        asked = Asked(
            queries=self.queries,
            right=[known[query.name] for query in self.queries],
            orders=stream_orders(self.streams, len(self.queries), self.seed),
        )
        bench.progress(self.case.measurement, f"{case.label}, checking answers", len(known), len(known))

        def checked(engine: AnyEngine) -> Trial:
            streams = Streams(cast("QueryingConcurrently", engine), opened[engine.name], asked)
            start = bench.clock()
            streams.run(self.seconds * self.streams)
            return _trial_of_streams(case.of(engine.name), streams, bench.clock() - start)

        yield from try_each(complete, checked, bench.recorder, case).values()

    def _answered(
        self, engine: Querying, tables: object, query: Query, seconds: float | None = None
    ) -> list[tuple[Any, ...]]:
        return engine.answer(tables, query.in_dialect(engine.dialect), query.tables, seconds)

    @staticmethod
    def _is_right(bench: Bench, case: Case, right: RankedRows, rows: Sequence[tuple[Any, ...]]) -> bool:
        try:
            fault = right.fault_of(rows)
        except NoTruth as reason:
            bench.recorder.skip(case, str(reason))
            return False
        if fault is not None:
            bench.recorder.fail(case, wrong_answer("answers wrongly", fault))
        return fault is None

    def _trial(self, case: Case, engine: Querying, tables: object, query: Query, rows: int) -> Trial:
        text = query.in_dialect(engine.dialect)

        def prepare() -> Callable[[], object]:
            return partial(engine.answer, tables, text, query.tables)

        evidence = Evidence(counters={"rows_returned": rows}, detail={"SQL": " ".join(query.text.split())})
        return Trial(case=case, evidence=evidence, prepare=prepare)


def _trial_of_streams(case: Case, streams: Streams, seconds: float) -> Trial:
    """Raises WrongAnswer unless the answers of a first run, which took `seconds`, are right; so they must be after each
    run that is timed."""

    def after() -> Mapping[str, float]:
        streams.check()
        return {}

    asked = streams.asked
    counters = {"queries": len(asked.orders) * len(asked.queries), "rows_returned": streams.check()}
    evidence = Evidence(counters=counters, detail=asked.detail)
    return Trial(case=case, evidence=evidence, prepare=lambda: streams.run, after=after, seconds=seconds)


def _querying(engine: object) -> Querying:
    return cast("Querying", engine)


def measurements(subject: object, context: Context) -> Iterator[Measurement]:
    """The queries of a definition over the tables of a workload, made if they have to be."""
    if isinstance(subject, TpcdsTablesWorkload):
        databases = dict(_generated(subject, context))
    else:
        assert isinstance(subject, Database)
        databases = {FOUND: subject}
    options = context.options
    for layout, database in databases.items():
        yield Queries(
            case=Case(workload=database.workload.name, layout=layout, measurement=NAME),
            locations=database.locations,
            queries=chosen_queries(database.workload, options.numbers, options.texts),
            answers=database.answers,
            seconds=options.seconds,
            streams=options.streams,
            seed=context.seed,
        )


def _generated(workload: TpcdsTablesWorkload, context: Context) -> Iterator[tuple[str, Database]]:
    """The tables of dsdgen by layout, all with the same rows: as they were made, by day, after refreshes."""
    cache = DatasetCache(context.cache)
    made = find_or_build(workload.scale, workload.files, cache, context.progress)

    def database(locations: Mapping[str, str]) -> Database:
        spilled = Path(context.resources.enter_context(TemporaryDirectory(prefix="answers-", dir=context.cache)))
        answers = partial(_answers_of_files, made.raw, spilled)
        return Database(workload=workload, locations=locations, answers=answers)

    yield GENERATED, database(made.locations)
    for order in workload.by_day:
        yield f"{order} by day", database(find_or_arrange(workload, made, cache, context.progress, order))
    for compacted in (False, True) if workload.refreshes else ():
        found = find_or_refresh(workload, made, cache, context.progress, compacted=compacted)
        yield f"{workload.refreshes} refreshes{', compacted' if compacted else ''}", database(found)


def _answers_of_files(files: Mapping[str, Path], folder: Path, _: Sequence[Query]) -> ReferenceAnswers:
    found = ReferenceAnswers(folder)
    for name, path in files.items():
        found.add_files(name, [path])
    return found


def chosen_queries(workload: Workload, numbers: Sequence[int], texts: Mapping[str, str]) -> list[Query]:
    """The queries that a definition asks of a workload: those of TPC-DS, in the order of its list, then the others.

    Args:
        workload: Whose tables they read.
        numbers: Of TPC-DS; none for all of them, unless there are others.
        texts: Others by name.

    Raises:
        ConfigError: There are none, they are not of these tables, or one is not one query; or DuckDB is not installed.
    """
    own = [Query(name, text) for name, text in texts.items()]
    of_tpcds = isinstance(workload, TpcdsTablesWorkload)
    if not of_tpcds and numbers:
        raise ConfigError("are queries of TPC-DS, which these tables are not", path=f"{NAME}.numbers")
    if not of_tpcds and not own:
        raise ConfigError("must give queries: files, or a table 'sql'", path=NAME)
    found = own
    if of_tpcds and (numbers or not own):
        by_number = tpcds_queries()
        found = [Query(f"q{number:02}", by_number[number]) for number in numbers or TPCDS_QUERIES] + own
    known = workload.tables if isinstance(workload, TablesWorkload) else DSDGEN_TABLES
    for name, tables in unknown_tables(found, known).items():
        reads = f"reads {', '.join(tables)}; there are: {', '.join(known)}"
        raise ConfigError(reads, path=f"{NAME}.sql.{name}")
    return found
