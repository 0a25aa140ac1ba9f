"""`icebench sql`: a query of DuckDB over tables that this project's engine scans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
import duckdb

import icebench
from icebench.bench.cli.completion import complete_each_table
from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.naming import open_table, split_catalog, split_name, table_options
from icebench.bench.cli.rows import FOR_PROGRAMS, encodable, grid
from icebench.bench.cli.terminal import write_text
from icebench.bench.engines.duckdb_views import allow_joins, answer_over_copies, create_view
from icebench.bench.engines.sql_text import identifier
from icebench.bench.errors import ConfigError
from icebench.bench.report.quantities import count
from icebench.bench.report.wrapping import Hanging
from icebench.bench.truth.queries import Query

_TABLES = "(tables are named after the query: PLACE, or CATALOG NAMESPACE.TABLE)"
# The query sees the tables and nothing else of this machine.
_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
}
_PLAIN = "main"
"""The schema of names without a schema."""
_RESERVED = {"information_schema", "memory", "pg_catalog", "system", "temp"}
"""Names that DuckDB does not allow, or cannot distinguish, as schemas: tables of such namespaces have plain names."""


@click.command("sql")
@click.argument("query", metavar="QUERY")
@click.argument("tables", metavar="[CATALOG] [NAME=]TABLE...", nargs=-1, shell_complete=complete_each_table)
@table_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="How to print rows; the counters go to standard error unless it is a table.",
)
@pass_context
def sql(
    context: Context, *, query: str, tables: tuple[str, ...], catalog: str | None, warehouse: str | None, form: str
) -> int:
    """Answer QUERY, a select in DuckDB's SQL, over tables that the engine plans and reads, with counters of that work.

    TABLE is a table's directory or one of its metadata.json files; after CATALOG, or with --catalog, its name there. In
    the query it has its name there, the last part of it, or NAME. Columns and filters go into the plan; of several
    tables that are joined, those of at most 2,000,000 rows and 16 MB are read whole.
    """
    counters = icebench.Counters()
    with duckdb.connect(config=_CLOSED) as connection:
        connection.execute("set python_enable_replacements = false")
        allow_joins(connection)
        small = _register(connection, tables, catalog=catalog, warehouse=warehouse, counters=counters)
        connection.execute("set lock_configuration = true")
        rows = _answer(connection, query, small)
    out = context.terminal.out
    if form in FOR_PROGRAMS:
        write_text(out, encodable(FOR_PROGRAMS[form](rows, "QUERY"), out.encoding))
    else:
        out.print(grid(rows, "QUERY"))
    work = ", ".join(f"{name} {number:,}" for name, number in sorted(counters.as_dict().items()) if number)
    beside = out if form == "table" else context.terminal.err
    beside.print(Hanging(f"{count(rows.num_rows, 'row')}; ", work or "no table was read"), crop=False)
    return 0


def _register(
    connection: duckdb.DuckDBPyConnection,
    tables: tuple[str, ...],
    *,
    catalog: str | None,
    warehouse: str | None,
    counters: icebench.Counters,
) -> dict[str, str]:
    """Make each table a view of the connection; one with a namespace also in a schema of that name.

    Returns:
        What a query may call the small ones, in lower case -> the names of their views.
    """
    taken: dict[tuple[str, str], str] = {}
    small: dict[str, str] = {}
    if catalog is None:
        catalog, tables = split_catalog(tables)
    for given in tables:
        name, place = split_name(given)
        table, _ = open_table((place,), catalog, warehouse)
        namespace, _, own = table.name.rpartition(".")
        name = name or own
        names = [(_PLAIN, name)]
        if namespace and catalog is not None and namespace.lower() not in _RESERVED:
            names.append((namespace, own))
        keys = [(schema.lower(), view.lower()) for schema, view in names]
        for key, (_, view) in zip(keys, names, strict=True):
            if (other := taken.setdefault(key, place)) != place:
                raise ConfigError(f"{other} and {place} are both {view!r}; name one with NAME=TABLE", path="TABLE")
        is_small = create_view(connection, name, table, counters)
        if keys[-1] != keys[0]:
            schema, view, plain = map(identifier, (*names[-1], name))
            connection.execute(f"create schema if not exists {schema}")
            # While there is a copy, a temporary table, its main.NAME is that.
            connection.execute(f"create or replace view {schema}.{view} as from main.{plain}")
        if is_small:
            small |= {name.lower(): name, ".".join(keys[-1]): name}
    return small


def _answer(connection: duckdb.DuckDBPyConnection, query: str, small: Mapping[str, str]) -> Any:  # noqa: ANN401 - a pyarrow.Table, which has no types
    """The rows of a select; small tables are copied where several are read, which may be joined."""
    try:
        statements = connection.extract_statements(query)
        if len(statements) != 1 or statements[0].type not in (
            duckdb.StatementType.SELECT,
            duckdb.StatementType.EXPLAIN,
        ):
            raise ConfigError("is not one select", path="QUERY")
        read = _tables_read(query) if statements[0].type == duckdb.StatementType.SELECT else ()
        copied = dict.fromkeys(small[name] for name in read if name in small) if len(read) > 1 else ()
        return answer_over_copies(connection, query, copied, lambda answered: answered.to_arrow_table())
    except duckdb.CatalogException as error:
        raise ConfigError(f"{_message(error)} {_TABLES}", path="QUERY") from error
    except duckdb.Error as error:
        raise ConfigError(_message(error), path="QUERY") from error


def _tables_read(query: str) -> tuple[str, ...]:
    """Their names in lower case, as the query has them; none of a query that only DuckDB can parse."""
    try:
        return Query("QUERY", query).tables
    except ConfigError:
        return ()


def _message(error: duckdb.Error) -> str:
    """What is wrong and what may be meant, without the query, which the user has."""
    said = " ".join(str(error).partition("\nLINE ")[0].split())
    return said or type(error).__name__
