"""`icebench history`: what the revisions measured so far took, where that changed, and measuring further ones."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import getsource
from pathlib import Path
from random import Random

import click

from icebench.bench.cli.compare_revisions import CACHE, Wanted, processors, warehouse_of
from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.history_store import read_history, record_revision
from icebench.bench.cli.ignored_options import refuse_options
from icebench.bench.cli.places import write_whole
from icebench.bench.errors import ConfigError
from icebench.bench.execution.environment import cpu_model
from icebench.bench.gate.cases import tables, work
from icebench.bench.gate.decisions.counter_verdict import ExitCode
from icebench.bench.gate.decisions.history import Entry, comparable, series_of
from icebench.bench.gate.revisions.build import CaseProcessFailed, Revision, Unbuildable, build, commit_of
from icebench.bench.gate.revisions.measure import measure
from icebench.bench.gate.revisions.pairs import Pairs
from icebench.bench.report.history_console import print_history
from icebench.bench.report.history_page import ComparableHistory, history_report

CASES = (
    "scan/partitioned/metrics-filter",
    "scan/large/decimals",
    "scan/vectors/no-filter",
    "plan/many/cold/metrics-filter",
    "commit/append",
)
"""What is recorded unless others are asked for: fewer than the gate times, as it is done for many revisions."""
ENGINE = ("engine", "icebench", "requirements.lock")
"""What a range is narrowed to: the commits that changed one of these."""

Progress = Callable[[str], object]


@click.group("history", invoke_without_command=True)
@click.option("--case", "patterns", multiple=True, metavar="REGEX", help="Only these cases. Repeatable.")
@click.option("--long", is_flag=True, help="Name each counter that changed, and what could not be run.")
@click.option("--revisions", is_flag=True, help="List the revisions: date, subject, ratios with 95 % intervals.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page with charts and tables of all revisions.",
)
@click.pass_context
def history(
    click_context: click.Context, *, patterns: tuple[str, ...], long: bool, revisions: bool, html: Path | None
) -> int:
    """Show how work and processor time changed over the revisions that were recorded. `make asv-publish` plots them."""
    if click_context.invoked_subcommand is not None:
        refuse_options("patterns", "long", "revisions", "html", because="is for what is shown: give none before record")
        return ExitCode.PASS
    context: Context = click_context.obj
    path = context.places.asv_results
    try:
        entries = read_history(path)
        if not entries:
            raise ConfigError("no history yet: 'icebench history record' measures revisions", path=str(path))
        wanted = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
    except (ConfigError, re.error) as error:
        context.terminal.err.print(f"icebench: {error}", markup=False, soft_wrap=True)
        return ExitCode.CONFIGURATION
    found = [
        ComparableHistory(entries=own, series=[each for each in series_of(own) if wanted.search(each.case)])
        for own in comparable(entries)
    ]
    if html is not None:
        refuse_options("long", "revisions", because="goes without --html, which writes all")
        from icebench.bench.report.html import render  # local import: matplotlib takes a second

        command = shlex.join(["icebench", "history", *(f"--case={each}" for each in patterns), "--html", str(html)])
        write_whole(html, render(history_report(found, command)))
        context.terminal.out.print(str(html), markup=False, soft_wrap=True)
        return ExitCode.PASS
    for number, each in enumerate(found):
        context.terminal.out.print("\n" if number else "", end="")
        print_history(context.terminal.out, each.entries, each.series, long=long, revisions=revisions)
    return ExitCode.PASS


@history.command("record")
@click.argument("revisions", default="HEAD", metavar="[REV | REV..REV]")
@click.option("--most", type=click.IntRange(min=1), help="Of a range: that many revisions, evenly spread.")
@click.option(
    "--pairs",
    default=15,
    type=click.IntRange(min=1),
    help="Pairs of processes, at most: six, and more while a case's interval is wider than 5 %.",
    show_default=True,
)
@click.option("--reference", metavar="REV", help="The frozen revision.  [default: the last one's]")
@click.option("--case", "patterns", multiple=True, metavar="REGEX", help="Only these cases. Repeatable.")
@pass_context
def record(
    context: Context, *, revisions: str, most: int | None, pairs: int, reference: str | None, patterns: tuple[str, ...]
) -> int:
    """Measure revisions, each interleaved with a fixed baseline, and add them to the history; skip those in it that
    were measured with the cases of now.

    Of a range, the revisions that changed the engine or its packages.
    """
    root, results = Path.cwd(), context.places.asv_results
    try:
        known = read_history(results)
        names = Wanted(patterns).names() if patterns else list(CASES)
        frozen = _reference(reference, known, root)
        chosen = _chosen(revisions, most, root)
        _refuse_changes(root)
        cache = (root / CACHE).absolute()
        measured = {entry.revision: entry for entry in known if entry.reference == frozen}
        with context.terminal.err.status("building the reference") as status:
            base = build(frozen, root=root, cache=cache)
            warehouse = warehouse_of(base, cache)
            for number, revision in enumerate(chosen, 1):
                if revision in measured and _is_current(measured[revision]):
                    _print_skipped(context, measured[revision], names)
                    continue

                def progress(text: str, what: str = f"{revision[:12]}, {number} of {len(chosen)}") -> None:
                    status.update(f"{what}: {text}")

                entry = _recorded(revision, base, warehouse, names, pairs=pairs, progress=progress)
                record_revision(results, entry)
                _print_entry(context, entry)
    except Unbuildable as error:
        said = f"icebench: the reference cannot be built; --reference REV starts series with another: {error}"
        context.terminal.err.print(said, markup=False, soft_wrap=True)
        return ExitCode.CONFIGURATION
    except ConfigError as error:
        context.terminal.err.print(f"icebench: {error}", markup=False, soft_wrap=True)
        return ExitCode.CONFIGURATION
    return ExitCode.PASS


def _recorded(
    revision: str, base: Revision, warehouse: Path, names: Sequence[str], *, pairs: int, progress: Progress
) -> Entry:
    root = Path.cwd()
    shown = ["git", "-C", str(root), "log", "-1", "--date=iso-strict-local", "--format=%cd%n%s", revision]
    counted = ["git", "-C", str(root), "rev-list", "--count", revision]
    number = int(subprocess.run(counted, capture_output=True, check=True).stdout)
    in_utc = {**os.environ, "TZ": "UTC"}
    said = subprocess.run(shown, env=in_utc, capture_output=True, text=True, check=True).stdout
    date, subject = said.splitlines()[:2]
    entry = Entry(revision=revision, number=number, date=date, subject=subject, reference=base.name, pairs=0)
    cache = (root / CACHE).absolute()

    def without_folders(error: str) -> str:
        return error.replace(f"{cache}/", "")

    progress("building")
    try:
        side = build(revision, root=root, cache=cache)
        pairing = Pairs(
            base=base,
            head=side,
            warehouse=warehouse,
            random=Random(revision),
            progress=progress,
            at_once=processors(),
        )
        cases, software = measure(pairing, names, most=pairs)
    except (Unbuildable, CaseProcessFailed) as error:
        return replace(entry, error=without_folders(str(error)))
    cases = {name: replace(case, error=without_folders(case.error)) for name, case in cases.items()}
    made = max((len(case.samples) for case in cases.values()), default=0)
    environment = {"cpu": cpu_model(), "cases": cases_digest(), **software}
    return replace(entry, pairs=made, cases=cases, environment=environment)


def cases_digest(sources: Sequence[str] | None = None) -> str:
    """Names the cases and their tables, which revisions must have in common to be comparable.

    It is of the statements of the modules but for the imports at their top, so that moving modules does not change it.
    Digests without the prefix ``statements-`` are of whole files, and cannot be compared with these.

    Args:
        sources: The source of each module; None for that of the cases.
    """
    digest = hashlib.sha256()
    for text in [getsource(module) for module in (tables, work)] if sources is None else sources:
        for statement in ast.parse(text).body:
            if not isinstance(statement, ast.Import | ast.ImportFrom):
                digest.update(f"{ast.get_source_segment(text, statement)}\n".encode())
    return f"statements-{digest.hexdigest()[:12]}"


def _reference(asked: str | None, known: Sequence[Entry], root: Path) -> str:
    """The frozen revision: the one asked for, or the one that the newest revisions were measured against."""
    if asked is not None:
        return commit_of(asked, root)
    if not known:
        raise ConfigError("the first record freezes the revision that all are measured against: --reference REV")
    return comparable(known)[-1][0].reference


def _refuse_changes(root: Path) -> None:
    status = ["git", "-C", str(root), "status", "--porcelain", "--", "bench"]
    if found := subprocess.run(status, capture_output=True, text=True, check=True).stdout.splitlines():
        raise ConfigError(f"{found[0][3:]}: not committed, and its cases measure all revisions; commit it first")


def _chosen(revisions: str, most: int | None, root: Path) -> list[str]:
    """The commits, oldest first."""
    if ".." not in revisions:
        return [commit_of(revisions, root)]
    first, _, last = revisions.partition("..")
    first, last = commit_of(first, root), commit_of(last or "HEAD", root)
    listed = subprocess.run(
        ["git", "-C", str(root), "rev-list", "--reverse", "--first-parent", f"{first}..{last}", "--", *ENGINE],
        capture_output=True,
        text=True,
        check=True,
    )
    found = listed.stdout.split()
    if not found:
        raise ConfigError(f"no commit of {revisions} changed the engine or its packages")
    if most is None or most >= len(found):
        return found
    return [found[round((number + 1) * len(found) / most) - 1] for number in range(most)]


def _is_current(entry: Entry) -> bool:
    """Whether measuring it again would give the same: a record of other cases is in no series with those of now."""
    return bool(entry.error) or entry.environment.get("cases") == cases_digest()


def _print_skipped(context: Context, entry: Entry, names: Sequence[str]) -> None:
    """With the cases that a revision of the history lacks: it is measured once, as a whole."""
    missing = [name for name in names if name not in entry.cases and not entry.error]
    said = f"{entry.revision[:12]} {entry.subject}: skipped, as it is recorded"
    said += f", without {', '.join(missing)}" if missing else ""
    context.terminal.out.print(said, markup=False, soft_wrap=True)


def _print_entry(context: Context, entry: Entry) -> None:
    out = context.terminal.out
    failed = [name for name, case in entry.cases.items() if case.error]
    said = entry.error or f"{len(entry.cases) - len(failed)} cases" + (f", {len(failed)} cannot run" if failed else "")
    out.print(f"{entry.revision[:12]} {entry.subject}: {said}", markup=False, soft_wrap=True)
