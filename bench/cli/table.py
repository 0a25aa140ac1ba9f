"""`icebench table`: a table's metadata tables, printed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from inspect import signature
from typing import Any

import click
import pyarrow as pa
from rich.markup import escape
from rich.table import Table as Grid

import icebench
from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.failures import printable
from icebench.bench.cli.naming import WORDS, open_table, table_options
from icebench.bench.errors import ConfigError

SHOWN_ROWS = 50
_TEXT_WIDTH = 60
_NULL = "NULL"


@click.command("table")
@click.argument("name", metavar="X")
@click.argument("words", metavar=WORDS, nargs=-1, required=True)
@table_options
@click.option("--snapshot", type=int, metavar="ID", help="As of this snapshot; the current one by default.")
@click.option("--column", "columns", multiple=True, metavar="NAME", help="Only this column. Repeatable.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help=f"Print at most that many rows; {SHOWN_ROWS} by default, all with --json.",
)
@click.option("--json", "as_json", is_flag=True, help="Print an object a row, for other programs.")
@pass_context
def table(
    context: Context,
    *,
    name: str,
    words: tuple[str, ...],
    catalog: str | None,
    warehouse: str | None,
    snapshot: int | None,
    columns: tuple[str, ...],
    limit: int | None,
    as_json: bool,
) -> int:
    """Print metadata table X (snapshots, files, manifests, partitions, ...) of an Iceberg table.

    PLACE is the table's directory or one of its metadata.json files; with --catalog, its name there.
    """
    found = metadata_table(open_table(words, catalog, warehouse)[0], name, snapshot)
    unknown = set(columns) - set(found.column_names)
    if unknown:
        known = ", ".join(found.column_names)
        raise ConfigError(f"{name} has no column {min(unknown)!r}; it has: {known}", path="--column")
    chosen = found.select(list(columns)) if columns else found
    out = context.terminal.out
    if as_json:
        for row in values_of(shown := chosen.slice(0, limit)):
            out.print(json_object(shown.column_names, row), markup=False, soft_wrap=True)
        return 0
    shown = chosen.slice(0, limit or SHOWN_ROWS)
    out.print(grid(shown))
    if shown.num_rows < chosen.num_rows:
        context.terminal.err.print(f"{shown.num_rows} of {chosen.num_rows:,} rows; --limit shows more")
    return 0


def metadata_table(loaded: icebench.Table, name: str, snapshot_id: int | None) -> pa.Table:
    """The metadata table of that name.

    Raises:
        ConfigError: There is none, or it is not of one snapshot.
    """
    inspector = loaded.inspect
    names = [n for n in dir(inspector) if not n.startswith("_") and callable(getattr(inspector, n))]
    if name not in names:
        raise ConfigError(f"no metadata table {name!r}; there are: {', '.join(names)}", path="X")
    method = getattr(inspector, name)
    if snapshot_id is None:
        return method()
    if "snapshot_id" not in signature(method).parameters:
        raise ConfigError(f"{name} is of the whole table, not of a snapshot", path="--snapshot")
    return method(snapshot_id)


def grid(rows: pa.Table) -> Grid:
    """Rows for a terminal; null looks like no other value."""
    grid = Grid(box=None, pad_edge=False)
    for field in rows.schema:
        is_number = pa.types.is_integer(field.type)
        grid.add_column(field.name, justify="right" if is_number else "left", overflow="fold")
    for row in values_of(rows):
        grid.add_row(*(escape(printable(_text(value))) for value in row))
    return grid


def values_of(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    """The rows as Python values, also of columns that share a name; times beyond those of Python are text."""
    return zip(*map(_column_values, rows.columns), strict=True)


def _column_values(column: pa.ChunkedArray) -> list[Any]:
    try:
        return column.to_pylist(maps_as_pydicts="strict")
    except (KeyError, TypeError):  # a key that comes twice, or is nested
        return column.to_pylist()
    except (OverflowError, ValueError):
        try:
            return column.cast(pa.string()).to_pylist()
        except pa.ArrowNotImplementedError as error:
            raise ConfigError(f"values of {column.type} that cannot be shown", path="QUERY") from error


def json_object(names: Sequence[str], row: Sequence[Any]) -> str:
    """A row as an object of JSON; raises ConfigError for columns that share a name."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"two columns are named {twice!r}; an object needs other names", path="QUERY")
    return json_text(dict(zip(names, row, strict=True)))


def json_text(value: Any) -> str:  # noqa: ANN401 - any value that Arrow holds
    """JSON of a value; keys of maps are text."""
    return json.dumps(_with_text_keys(value), default=plain)


def _with_text_keys(value: Any) -> Any:  # noqa: ANN401 - nested as it comes
    if isinstance(value, dict):
        return {k if isinstance(k, str) else plain(k): _with_text_keys(v) for k, v in value.items()}
    return [_with_text_keys(v) for v in value] if isinstance(value, list | tuple) else value


def _text(value: Any) -> str:  # noqa: ANN401 - any value that Arrow holds
    if isinstance(value, dict | list):
        text = json_text(value)
        return text if len(text) <= _TEXT_WIDTH else f"{text[: _TEXT_WIDTH - 1]}…"
    if value is None:
        return _NULL
    text = plain(value)
    return f"'{text}'" if text == _NULL else text


def plain(value: object) -> str:
    """The text of a value that is not nested: of bytes, hexadecimal digits."""
    return value.hex() if isinstance(value, bytes) else str(value)
