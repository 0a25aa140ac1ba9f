"""`icebench study`: measure the questions of the study, and write its pages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.ignored_options import refuse_options
from icebench.bench.cli.places import write_whole
from icebench.bench.cli.run import confirm
from icebench.bench.errors import ConfigError, CorruptRecords
from icebench.bench.execution.interruption import STOPPED, Interruption, Stopped, say_on_terminal
from icebench.bench.execution.run_file import Run, read_run
from icebench.bench.report.wrapping import Hanging
from icebench.bench.runs.estimate import estimate, total_of
from icebench.bench.study.kept import compressed, kept_file, kept_run
from icebench.bench.study.questions import QUESTIONS, Question, chosen

PAGES = Path("docs/study")
ENDED = (0, 1)
"""Exit codes of a run that came to its end."""


@click.command("study")
@click.argument("questions", nargs=-1, metavar="[QUESTION]...")
@click.option("--pages", "only_pages", is_flag=True, help="Write the pages of the runs that are kept; measure nothing.")
@click.option("--again", is_flag=True, help="Also measure questions again whose runs are kept.")
@click.option("--dry-run", is_flag=True, help="Say what it will take (cases, minutes, gigabytes), and stop.")
@click.option("--yes", is_flag=True, help="Do not ask before a long run.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=PAGES,
    show_default=True,
    help="The directory of the pages.",
)
@pass_context
def study(
    context: Context,
    *,
    questions: tuple[str, ...],
    only_pages: bool,
    again: bool,
    dry_run: bool,
    yes: bool,
    output: Path,
) -> int:
    """Measure what the study asks, and write a page for each QUESTION, all of them by default.

    A run is kept in results/study and not made again while its definition stays the same; one that Ctrl-C interrupted
    goes on at the next call. Exit code 1 when engines fail or disagree; such a run is not kept.
    """
    if only_pages:
        refuse_options("again", because="measures, and --pages does not")
    asked = chosen(questions)
    missing = [] if only_pages else [each for each in asked if again or not _is_kept(context, each)]
    for question in asked:
        if question not in missing and _is_kept(context, question):
            _say(context, f"{question.name}: kept in {kept_file(context.places.results, question)}")
    needed = [estimate(each.experiment(), context.places.all_runs()) for each in missing]
    for question, one in zip(missing, needed, strict=True):
        _say(context, f"{question.name}: {one}")
    if dry_run:
        return 0
    if any(again or not _has_ended_well(_latest(context, question)) for question in missing):
        confirm(context, total_of(needed), yes=yes)
    failed = []
    for place, question in enumerate(missing):
        try:
            if not _is_measured(context, question, again=again):
                failed.append(question.name)
        except Stopped as reason:
            rest = " ".join(each.name for each in missing[place:])
            raise Stopped(f"{reason}; 'icebench study {rest}{' --again' if again else ''}' goes on with it") from None
    _write_pages(context, output, only_pages=only_pages)
    if failed:
        _say(context, f"failed, and not kept: {', '.join(failed)}")
    return 1 if failed else 0


def _is_kept(context: Context, question: Question) -> bool:
    """Whether a run of the question's present definition is kept."""
    run = kept_run(context.places.results, question)
    return run is not None and question.experiment().is_of(run.environment)


def _is_measured(context: Context, question: Question, *, again: bool) -> bool:
    """Measure a question, or go on with it, and keep its run; False for one that failed."""
    latest = _latest(context, question)
    if again or not _has_ended_well(latest):
        _say(context, f"{question.name}: {question.text}")
        begun = latest is not None and not latest[1].complete
        # One that cannot go on, of another revision for example, has said so; it is measured from its beginning.
        resumed = begun and latest is not None and _run(context, "--resume", str(latest[0])) in ENDED
        if not resumed and _run(context, str(question.definition), "--yes") not in ENDED:
            return False
        latest = _latest(context, question)
    if latest is None or not _has_ended_well(latest):
        return False
    kept = kept_file(context.places.results, question)
    write_whole(kept, compressed(latest[0]))
    _say(context, f"{question.name}: kept in {kept}")
    return True


def _run(context: Context, *arguments: str) -> int:
    """`icebench run` in a process of its own, as one process has one Java virtual machine, and that one memory for all
    sessions of Spark; gives its exit code.

    Raises:
        Stopped: Ctrl-C has stopped it after its sample.
    """
    command = [sys.executable, "-m", "icebench", "--results", str(context.places.results), "run"]
    interruption = Interruption(say=say_on_terminal)
    with interruption.listening(), subprocess.Popen([*command, *arguments], process_group=0) as started:
        interruption.processes.append(started)
        code = started.wait()
    if interruption.asked or code == STOPPED:
        raise Stopped("stopped")
    return code


def _has_ended_well(found: tuple[Path, Run] | None) -> bool:
    return found is not None and found[1].complete and not found[1].failed


def _latest(context: Context, question: Question) -> tuple[Path, Run] | None:
    """The latest run of the question's present definition, ended or not."""
    experiment = question.experiment()
    for path in reversed(context.places.all_runs()):
        try:
            run = read_run(path, interrupted=True)
        except CorruptRecords:
            continue
        if experiment.is_of(run.environment):
            return path, run
    return None


def _write_pages(context: Context, output: Path, *, only_pages: bool) -> None:
    # local import: SciPy and matplotlib, which a wrong argument need not wait for
    from icebench.bench.study.pages import files_of

    results = context.places.results
    runs = {question: kept_run(results, question) for question in QUESTIONS.values()}
    kept = {question: run for question, run in runs.items() if run is not None}
    if not kept and not only_pages:
        return
    if not kept:
        raise ConfigError("no run is kept there, so there are no pages: 'icebench study' measures", path=str(results))
    try:
        made = list(files_of(kept))
    except LookupError as error:
        raise ConfigError(f"{error}; 'icebench study --again' measures what is kept", path=str(results)) from error
    for name, text in made:
        write_whole(output / name, text)
    context.terminal.out.print(Hanging("pages: ", str(output / "index.md")), crop=False)


def _say(context: Context, line: str) -> None:
    context.terminal.err.print(Hanging("", line), crop=False)
