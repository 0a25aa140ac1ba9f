"""Queries: SQL over several tables, from its text to the last row of the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from icebench.bench.definition import Definition, typed
from icebench.bench.errors import ConfigError
from icebench.bench.execution.measurement import ANY, Asked, MeasurementKind, Metric, Race, SectionText
from icebench.bench.records.case import Case, Measured
from icebench.bench.workloads.dsdgen import TPCDS_QUERIES
from icebench.bench.workloads.gives import Gives

if TYPE_CHECKING:
    from icebench.bench.workloads.workload import Workload

STREAMS = ("streams_time", "streams_cpu", "streams_memory")
"""The metrics of streams of queries at once."""
_SECONDS = 60.0
_HOUR = 3_600.0
_NAME = re.compile(r"^\s*--\s*name:\s*(\S.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class QueryOptions:
    """What is asked.

    Args:
        numbers: Queries of TPC-DS; none for all of them where no others are given.
        texts: Further queries by name, in DuckDB's SQL.
        files: Those of them that are from files.
        seconds: An engine that has no answer by then skips a query.
        streams: How many ask all queries at once, besides; 0 for none.
    """

    numbers: tuple[int, ...]
    texts: Mapping[str, str]
    seconds: float
    streams: int
    files: Mapping[str, str] = field(default_factory=dict)


class _Kind(MeasurementKind):
    name = "queries"
    description = "SQL over several tables, from its text to the last row of the answer"
    suits = frozenset({Gives.DATABASE})
    made_by = "icebench.bench.trials.queries:measurements"
    seconds = 1.0
    series: ClassVar = {ANY: ("query_time", "query_cpu", "query_memory")}
    units: ClassVar = {"throughput": "queries/h"}
    section = SectionText(
        title="Queries",
        explanation=(
            "From the text of a query to the last row of its answer: parsing, planning of the query and of every scan, "
            "and reading. Tables were open, their manifests may be in memory. The engine icebench is DuckDB over this "
            "project's scans, icebench-spark is Spark SQL over them. Every answer was first seen to be that of DuckDB "
            "over the raw rows: the same rows, in the order that is asked for. Streams ask all queries at once, each "
            "in an order of its own: from the first text to the last row of the last answer. Their answers are checked "
            "after every run."
        ),
        metrics=(
            Metric(name="query_time", title="Time of a query", caption="Time of a query: median and interval."),
            Metric(name="query_cpu", title="Processor time of a query", folded=True),
            Metric(
                name="throughput",
                caption="Queries that streams at once answer in an hour: median and interval.",
                unit="queries/h",
                more_is_better=True,
            ),
            Metric(name="streams_time", title="Time of streams at once"),
            Metric(name="streams_cpu", title="Processor time of streams at once", folded=True),
        ),
        case="Query",
        summary="icebench.bench.report.power:power_tables",
    )
    races = (
        Race(what="Answering queries", metric="query_time"),
        Race(what="Answering queries in streams at once", metric="streams_time"),
    )

    def parse(self, values: Definition) -> QueryOptions:
        texts, files = values.texts("sql"), dict[str, str]()
        for at, path in values.items("files", []):
            for name, text in _of_file(typed(path, str, "a file", at), at):
                if name in texts or name in files:
                    raise ConfigError(f"two queries are named {name!r}", path=at)
                files[name] = text
        return QueryOptions(
            numbers=_numbers(values),
            texts={**texts, **files},
            seconds=values.number("seconds", _SECONDS, least=0, above=True),
            streams=values.whole("streams", 0, least=0),
            files=files,
        )

    def inputs(self, options: Any) -> Mapping[str, Any]:  # noqa: ANN401 - as the protocol has it
        return cast("QueryOptions", options).files

    def cases(self, workload: Workload, asked: Asked) -> int:
        return sum(count for count, _ in self.executions(workload, asked))

    def executions(self, workload: Workload, asked: Asked) -> Iterator[tuple[int, float]]:
        options: QueryOptions = asked.options
        queries = len(options.numbers) + len(options.texts) or len(TPCDS_QUERIES)
        answering = len(asked.engines) * max(1, workload.tables_made(1))
        yield answering * queries, self.seconds
        if options.streams:
            yield answering, self.seconds * queries * options.streams

    def names(self, case: Case) -> tuple[str, str, str]:
        return STREAMS if case.configuration else super().names(case)

    def further(self, measured: Measured) -> Iterator[tuple[str, str, Mapping[tuple[int, int], float]]]:
        """How many queries streams have answered in an hour."""
        if measured.case.configuration:
            queries = measured.evidence.counters["queries"]
            yield (
                "throughput",
                self.units["throughput"],
                {s.place: queries * _HOUR / s.cost.wall for s in measured.samples},
            )


def _numbers(values: Definition) -> tuple[int, ...]:
    numbers = values.wholes("numbers")
    for index, number in enumerate(numbers):
        path = f"{values.at('numbers')}[{index}]"
        if number not in TPCDS_QUERIES:
            raise ConfigError(f"TPC-DS has no query {number}, but 1 to {TPCDS_QUERIES[-1]}", path=path)
        if number in numbers[:index]:
            raise ConfigError(f"query {number} is listed twice", path=path)
    return numbers


def _of_file(path: str, at: str) -> Iterator[tuple[str, str]]:
    """Names and texts of the queries of a file: statements with semicolons between, each named by a line
    ``-- name: NAME`` before it or else by its number. `at` is where the definition names the file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", path=at) from error
    statements = list(_statements(text, at))
    if not statements:
        raise ConfigError(f"{path} has no query", path=at)
    for number, statement in enumerate(statements, 1):
        named = _NAME.search(statement)
        yield named[1] if named else f"query {number}", statement


def _statements(text: str, at: str) -> Iterator[str]:
    import sqlglot  # local import: who lists measurements need not wait for it

    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
    except sqlglot.errors.SqlglotError as error:
        raise ConfigError(f"not SQL of DuckDB: {str(error).splitlines()[0]}", path=at) from error
    begin, has_any = 0, False
    for token in tokens:
        if token.token_type is sqlglot.TokenType.SEMICOLON:
            if has_any:
                yield text[begin : token.start].strip()
            begin, has_any = token.end + 1, False
        else:
            has_any = True
    if has_any:
        yield text[begin:].strip()


KIND = _Kind()
