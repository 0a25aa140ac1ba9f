"""`icebench doctor`: is this machine fit to measure on?"""

from __future__ import annotations

import click
from rich.text import Text

from bench.cli.context import Context, pass_context
from bench.doctor import Check, Status, examine
from bench.machine import ThisMachine

_STYLE = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red"}


@click.command("doctor")
@pass_context
def doctor(context: Context) -> int:
    """Examine Java, Spark, packages, memory, disk and CPU; exit code 1 when something essential is missing."""
    out = context.terminal.out
    worst = dict.fromkeys(Status, 0)
    for check in examine(ThisMachine(), context.places.results):
        worst[check.status] += 1
        out.print(line(check), soft_wrap=True)
        if check.advice:
            out.print(f"      -> {check.advice}", soft_wrap=True, markup=False)
    summary = ", ".join(f"{count} {status.value}" for status, count in worst.items() if count)
    out.print(f"{summary}: " + ("not fit to measure" if worst[Status.FAIL] else "fit to measure"))
    return 1 if worst[Status.FAIL] else 0


def line(check: Check) -> Text:
    """One check as a line: the status, its subject, what was found."""
    return Text.assemble(
        (f"{check.status.value:<5}", _STYLE[check.status]), " ", (f"{check.subject:<14}", "bold"), " ", check.found
    )
