"""`icebench TABLE`: a table on one screen."""

from __future__ import annotations

import re
from pathlib import Path

import click

from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.naming import open_table, table_argument, table_options
from icebench.bench.errors import ConfigError
from icebench.bench.report.overview import overview_lines
from icebench.engine.errors import EngineError

UNKNOWN_COMMAND = "icebench.unknown_command"
"""Where the error is that the first word is no command."""
LINES = 23
"""Of a screen of 24, one is for the prompt."""
_BARE_WORD = re.compile(r"[\w-]+")


@click.command("overview", context_settings={"ignore_unknown_options": True})
@table_argument()
@table_options
@pass_context
@click.pass_context
def overview(
    asked: click.Context, context: Context, *, words: tuple[str, ...], catalog: str | None, warehouse: str | None
) -> int:
    """Show a table on one screen: schema, partitioning, order, sizes, snapshots, deletes, and what costs most.

    PLACE is the table's directory or one of its metadata.json files; with --catalog, its name there.
    """
    option = next((word for word in words if word.startswith("-")), None)
    try:
        if option is not None:  # of a command whose name is misspelt, most likely
            raise click.NoSuchOption(option, ctx=asked)
        table, place = open_table(words, catalog, warehouse)
    except (EngineError, ConfigError, click.NoSuchOption) as error:
        is_catalog = option is None and len(words) == 2 and Path(words[0]).exists()
        if is_catalog or not _BARE_WORD.fullmatch(words[0]):
            raise
        unknown = asked.meta[UNKNOWN_COMMAND]
        if option is None and len(words) <= 2:
            unknown.message = f"{unknown.message.rstrip('.')}, and no table: {' '.join(str(error).split())}."
        raise unknown from error
    out = context.terminal.out
    for line in overview_lines(table, table.maintenance.profile(), place, out, lines=LINES):
        out.print(line, crop=False, no_wrap=True, overflow="ignore")
    return 0
