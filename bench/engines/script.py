"""A case as a stand-alone Python program that imports the engine's packages and nothing of this project, so that the
engine's authors can read, run and correct it.

The query is the engine's own (`Quotable.query`), recorded with the case; the code around it is the engine's `Script`.
Tests check, for every engine, that the program gives the same answer as the code that is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent

from icebench.bench.engines.sql_text import identifier

TABLE = "TABLE"
"""How a query of SQL names the table."""
REPEATED = 5


@dataclass(frozen=True, kw_only=True)
class Script:
    """The code around an engine's query.

    In all parts ``{query}`` stands for the query, ``{sql}`` for it as a literal in which `source` replaces ``TABLE``,
    ``{conf}`` for the properties of the run's Spark session, and ``{filter}`` for the text of the filter as a literal.

    Args:
        setup: Imports, and what is created once.
        after: The same for what needs `TABLE`.
        open: An expression for the handle `table` of the metadata file `TABLE`; empty if the query names the file.
        run: Statements that run the query to its last row, and set `rows` where that is known.
        forget: Statements that empty caches other than those of handles; empty if there are none.
        rows: An expression for the number of rows, or planned files; evaluated once, and not timed.
        source: What SQL selects from, by the location of the metadata file; None if the query is not SQL.
        filter: The filter's text as the engine reads it; None if it is the user's.
    """

    setup: str
    run: str
    after: str = ""
    open: str = ""
    forget: str = ""
    rows: str = "rows"
    source: Callable[[str], str] | None = None
    filter: Callable[[str], str] | None = None


@dataclass(frozen=True, kw_only=True)
class Quoted:
    """A case whose query was recorded.

    Args:
        title: What it is, in words; one or more lines.
        query: As the engine gave it.
        location: The metadata file of its table.
        filter: Its text; None without one.
        cache: ``cold`` or ``warm``.
        is_plan: Whether the table is opened before the clock starts, as it is for plans.
    """

    title: str
    query: str
    location: str
    filter: str | None
    cache: str
    is_plan: bool


def program(script: Script, quoted: Quoted, conf: Mapping[str, str]) -> str:
    """The program, which runs the query `REPEATED` times and prints what each took; `conf` is of a Spark session."""
    location = quoted.location
    source = "" if script.source is None else script.source(location)
    filter = quoted.filter if quoted.filter is None or script.filter is None else script.filter(quoted.filter)
    values = {
        "{sql}": f'"""{quoted.query.replace(f" from {TABLE}", f" from {source}", 1)}"""',
        "{query}": quoted.query,
        "{filter}": literal(filter),
        "{conf}": _mapping(conf),
    }

    def filled(text: str) -> str:
        for name, value in values.items():
            text = text.replace(name, value)
        return text.strip()

    is_warm, is_counted = quoted.cache == "warm", script.rows == "rows"
    opening = [f"table = {script.open}"] if script.open else []
    keeps = bool(opening) and (is_warm or quoted.is_plan)
    parameter = "table" if opening else ""
    argument = "table" if keeps else script.open
    forget = [] if is_warm or not script.forget else script.forget.splitlines()
    lines = [
        *(f"# {line}".rstrip() for line in quoted.title.splitlines()),
        "import time",
        filled(script.setup),
        *(["", f"TABLE = {literal(location)}"] if script.source is None else []),
        *([filled(script.after)] if script.after else []),
        "",
        "",
        f"def query({parameter}):",
        indent(filled(script.run), "    "),
        *(["    return rows"] if is_counted else []),
        "",
        "",
        *([*opening, f"query({parameter})"] if is_warm else []),
        f"for _ in range({REPEATED}):",
        *(f"    {line}" for line in (*forget, *(opening if keeps and not is_warm else ()))),
        "    start = time.perf_counter()",
        f"    {'rows = ' if is_counted else ''}query({argument})",
        '    print(f"{1000 * (time.perf_counter() - start):.2f} ms")',
        *([] if keeps else opening),
        *([] if is_counted else [f"rows = {filled(script.rows)}"]),
        f'print(f"{{rows:,}} {"files" if quoted.is_plan else "rows"}")',
    ]
    return "\n".join([*lines, ""])


def call(what: str, /, **arguments: object) -> str:
    """A call in Python, without the arguments that are None."""
    given = ", ".join(f"{name}={literal(value)}" for name, value in arguments.items() if value is not None)
    return f"{what}({given})"


def literal(value: object) -> str:
    """A value in Python; text in double quotes where it can be."""
    if isinstance(value, str) and '"' not in value and "\\" not in value and value.isprintable():
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def select(columns: Sequence[str] | None, source: str, filter: str | None) -> str:
    """A query in SQL of these columns, None for all, and of the rows that a filter keeps."""
    names = "*" if columns is None else ", ".join(map(identifier, columns))
    where = f" where {filter}" if filter else ""
    return f"select {names} from {source}{where}"  # noqa: S608 - the user's own filter on own files


def _mapping(values: Mapping[str, str]) -> str:
    return "\n".join(["{", *(f"    {literal(name)}: {literal(value)}," for name, value in values.items()), "}"])


SPARK = """
from pyspark.sql import SparkSession

CONF = {conf}
builder = SparkSession.builder
for name, value in CONF.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
"""
"""`Script.setup` of engines on Spark."""
ON_SPARK = Script(
    setup=SPARK,
    open='spark.read.format("iceberg").load(TABLE)',
    run='{query}.write.format("noop").mode("overwrite").save()',
    rows="{query}.toArrow().num_rows",
)
"""Scans by Iceberg's own source."""
IN_BATCHES = "rows = 0\nfor batch in {query}:\n    rows += batch.num_rows"
"""`Script.run` of engines that give Arrow record batches."""
