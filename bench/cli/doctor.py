"""`icebench doctor`: is this machine fit to measure on, or: do the files of a table agree with its metadata?"""

from __future__ import annotations

import click
from rich.text import Text

from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.ignored_options import refuse_options
from icebench.bench.cli.naming import open_table, table_argument, table_options
from icebench.bench.doctor import Check, Status, examine
from icebench.bench.machine import Machine
from icebench.bench.report.quantities import count
from icebench.bench.report.wrapping import Hanging

_STYLE = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red"}


@click.command("doctor")
@table_argument(metavar="[PLACE [TABLE]]", required=False)
@table_options
@pass_context
def doctor(context: Context, *, words: tuple[str, ...], catalog: str | None, warehouse: str | None) -> int:
    """Examine Java, Spark, packages, memory, disk and CPU; exit code 1 when something essential is missing.

    With a table, as `icebench profile` takes it: list the data and delete files that cannot be read, and those whose
    length or counts are not those that its metadata state, though they are whole. Exit code 1 if there are any.
    """
    out = context.terminal.out
    if words or catalog is not None:
        return _examine_table(context, words, catalog, warehouse)
    refuse_options("warehouse", "catalog_name", because="needs a table")
    worst = dict.fromkeys(Status, 0)
    for check in examine(Machine(), context.places.results):
        worst[check.status] += 1
        out.print(line(check), crop=False)
        if check.advice:
            out.print(Hanging("      -> ", check.advice), crop=False)
    summary = ", ".join(f"{count} {status.value}" for status, count in worst.items() if count)
    out.print(f"{summary}: " + ("not fit to measure" if worst[Status.FAIL] else "fit to measure"))
    return 1 if worst[Status.FAIL] else 0


def _examine_table(context: Context, words: tuple[str, ...], catalog: str | None, warehouse: str | None) -> int:
    table, _ = open_table(words, catalog, warehouse)
    examined = table.maintenance.examine_files()
    out = context.terminal.out
    for error in examined.unreadable:
        out.print(Hanging("", str(error)), crop=False)
    for each in examined.contradictions:
        out.print(Hanging("", f"{each.location}: {each.reason}"), crop=False)
    lost, contradicting = len(examined.unreadable), len(examined.contradictions)
    found = f"{count(lost, 'file')} that cannot be read, {count(contradicting, 'contradiction')} of metadata and files"
    out.print(Hanging("", f"{table.name}: {found}"), crop=False)
    return 1 if lost or contradicting else 0


def line(check: Check) -> Hanging:
    """One check: the status, its subject, what was found."""
    lead = Text.assemble((f"{check.status.value:<5}", _STYLE[check.status]), " ", (f"{check.subject:<14}", "bold"), " ")
    return Hanging(lead, check.found)
