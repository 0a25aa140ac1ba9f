"""`icebench table`: a table's metadata tables, in a short form or whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Literal

import click
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.cells import cell_len
from rich.console import Console

import icebench
from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.metadata_tables import (
    Column,
    Read,
    column_of,
    legend,
    lines_of,
    short_texts,
    with_short_columns,
)
from icebench.bench.cli.naming import open_table, table_argument, table_options
from icebench.bench.cli.places import write_whole
from icebench.bench.cli.rows import FOR_PROGRAMS, encodable
from icebench.bench.cli.terminal import write_text
from icebench.bench.errors import ConfigError
from icebench.bench.report.wrapping import Hanging

SHOWN_ROWS = 50


@click.command("table")
@click.argument("name", metavar="X")
@table_argument()
@table_options
@click.option("--snapshot", type=int, metavar="ID", help="As of this snapshot; the current one by default.")
@click.option("--wide", is_flag=True, help="All columns, however long lines get; only what is nested is cut.")
@click.option("--columns", metavar="A,B", help="These columns; fields of structs with dots, as in partition.day.")
@click.option("--sort", metavar="A,-B", help="Sort the rows by these columns; '-' before one: the greatest first.")
@click.option("--where", metavar="SQL", help="Only the rows for which this filter is true.")
@click.option("--limit", type=click.IntRange(min=1), help=f"At most that many rows; {SHOWN_ROWS} where it is a table.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", *FOR_PROGRAMS, "parquet"]),
    default="table",
    show_default=True,
    help="For programs, there are all rows and the metadata table's own columns.",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write to this file."
)
@pass_context
def table(
    context: Context,
    *,
    name: str,
    words: tuple[str, ...],
    catalog: str | None,
    warehouse: str | None,
    snapshot: int | None,
    wide: bool,
    columns: str | None,
    sort: str | None,
    where: str | None,
    limit: int | None,
    form: Literal["table", "csv", "json", "parquet"],
    output: Path | None,
) -> int:
    """Show metadata table X of an Iceberg table: files, snapshots, manifests, partitions, refs, history, ...

    PLACE is the table's directory or one of its metadata.json files; with --catalog, its name there. What is shown
    fits 80 columns: --wide, --columns and the formats for programs have the rest. --columns, --sort and --where take
    the columns of both.
    """
    if wide and columns:
        raise click.UsageError("--wide shows all columns: it leaves --columns nothing to choose")
    if form == "parquet" and output is None:
        raise click.UsageError("--format parquet needs a file: --output FILE")
    loaded = open_table(words, catalog, warehouse)[0]
    read = Read(loaded, metadata_table(loaded, name, snapshot), snapshot)
    rows, short = with_short_columns(name, read)
    rows = _sorted(icebench.filter_rows(rows, where) if where else rows, sort)
    own = [*read.rows.column_names] if wide or form != "table" else [column.name for column in short]
    names = own if columns is None else [each.strip() for each in columns.split(",")]
    shown = rows.slice(0, limit or (SHOWN_ROWS if form == "table" else rows.num_rows))
    chosen = [column_of(shown, each, "--columns") for each in names]
    if form != "table":
        _write(context.terminal.out, pa.table(chosen, names), form, output)
        return 0
    known = {} if wide else {column.name: column for column in short}
    headings = [known.get(each) or _plain_column(each, values) for each, values in zip(names, chosen, strict=True)]
    texts = [short_texts(read, column, values) for column, values in zip(headings, chosen, strict=True)]
    out, err = context.terminal.out, context.terminal.err
    _show(out, lines_of(headings, texts, None if wide or not out.is_terminal else out.width), output)
    for line in legend(loaded, headings):
        err.print(Hanging("", line), crop=False)
    if shown.num_rows < rows.num_rows:
        err.print(f"{shown.num_rows} of {rows.num_rows:,} rows; --limit shows more")
    return 0


def metadata_table(loaded: icebench.Table, name: str, snapshot_id: int | None) -> pa.Table:
    """The metadata table of that name.

    Raises:
        ConfigError: There is none, or it is not of one snapshot.
    """
    inspector = loaded.inspect
    names = [n for n in dir(inspector) if not n.startswith("_") and callable(getattr(inspector, n))]
    if name not in names:
        near = get_close_matches(name, names, n=1)
        meant = f"did you mean {near[0]!r}? " if near else ""
        raise ConfigError(f"no metadata table {name!r}; {meant}there are: {', '.join(names)}", path="X")
    method = getattr(inspector, name)
    if snapshot_id is None:
        return method()
    if "snapshot_id" not in signature(method).parameters:
        raise ConfigError(f"{name} is of the whole table, not of a snapshot", path="--snapshot")
    return method(snapshot_id)


def _sorted(rows: pa.Table, sort: str | None) -> pa.Table:
    if sort is None:
        return rows
    keys, order = [], []
    for place, each in enumerate(text.strip() for text in sort.split(",")):
        name = each.removeprefix("-")
        column = column_of(rows, name, "--sort")
        if pa.types.is_nested(column.type):
            fields = (
                f": {', '.join(f'{name}.{f.name}' for f in column.type)}" if pa.types.is_struct(column.type) else ""
            )
            raise ConfigError(f"rows cannot be sorted by {name}, which is nested{fields}", path="--sort")
        keys.append(column)
        order.append((str(place), "descending" if each.startswith("-") else "ascending"))
    return rows.take(pc.sort_indices(pa.table(keys, [name for name, _ in order]), order))


def _plain_column(name: str, values: pa.ChunkedArray) -> Column:
    is_text = not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type))
    return Column(name, name, "text" if is_text else "id")


def _write(out: Console, rows: pa.Table, form: str, output: Path | None) -> None:
    if form == "parquet" and output is not None:
        schema = pa.schema(_without_empty_structs(rows.schema))
        file = pa.BufferOutputStream()
        pq.write_table(rows.select(schema.names).cast(schema), file)
        write_whole(output, file.getvalue().to_pybytes())
        return
    text = FOR_PROGRAMS[form](rows, "--columns")
    if output is not None:
        write_whole(output, text)
    else:
        write_text(out, encodable(text, out.encoding))


def _without_empty_structs(fields: Iterable[pa.Field]) -> list[pa.Field]:
    """The fields but for structs without fields, which Parquet does not have: the partition of a table without one."""
    found = []
    for field in fields:
        if pa.types.is_struct(field.type):
            own = _without_empty_structs(field.type)
            found += [field.with_type(pa.struct(own))] if own else []
        else:
            found.append(field)
    return found


def _show(out: Console, lines: Sequence[str], output: Path | None) -> None:
    if output is not None:
        write_whole(output, "".join(f"{line}\n" for line in lines))
        return
    is_wide = any(cell_len(line) > out.width for line in lines)
    with ExitStack() as pages:
        if out.is_terminal and (is_wide or len(lines) >= out.height):
            # As git's: what is on one screen stays there (F), unless its lines go on beyond the right edge (S), where
            # the arrow keys lead.
            os.environ.setdefault("LESS", "RSX" if is_wide else "FRSX")
            pages.enter_context(out.pager())
        for line in lines:
            out.print(line, markup=False, soft_wrap=True)
