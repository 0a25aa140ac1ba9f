"""`icebench study`: measure the questions of the study, and write its pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.places import write_whole
from icebench.bench.cli.run import confirm, stoppable
from icebench.bench.errors import ConfigError, CorruptRecords
from icebench.bench.execution.run_file import Run, read_run
from icebench.bench.report.wrapping import Hanging
from icebench.bench.runs.estimate import estimate, total_of
from icebench.bench.study.kept import keep, kept_file, kept_run
from icebench.bench.study.questions import QUESTIONS, Question, chosen

if TYPE_CHECKING:
    from icebench.bench.runs.run import Finished

PAGES = Path("docs/study")


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
    asked = chosen(questions)
    missing = [] if only_pages else [each for each in asked if again or not _is_kept(context, each)]
    needed = [(each, estimate(each.experiment(), context.places.all_runs())) for each in missing]
    for question in asked:
        if question not in missing and _is_kept(context, question):
            _say(context, f"{question.name}: kept in {kept_file(context.places.results, question)}")
    for question, one in needed:
        _say(context, f"{question.name}: {one}")
    if dry_run:
        return 0
    if needed:
        confirm(context, total_of([one for _, one in needed]), yes=yes)
    failed = [question.name for question in missing if not _measured(context, question, again=again)]
    _write_pages(context, output)
    if failed:
        _say(context, f"failed, and not kept: {', '.join(failed)}; 'icebench report' shows the run")
    return 1 if failed else 0


def _is_kept(context: Context, question: Question) -> bool:
    """Whether a run of the question's present definition is kept."""
    run = kept_run(context.places.results, question)
    return run is not None and run.environment.get("digest") == question.experiment().digest


def _measured(context: Context, question: Question, *, again: bool) -> bool:
    """Measure a question and keep its run, unless it failed."""
    path = None if again else _finished_before(context, question)
    if path is None:
        _say(context, f"{question.name}: {question.text}")
        finished = _run(context, question)
        if finished.failed:
            for failure in finished.run.failures:
                _say(context, str(failure))
            return False
        path = finished.path
    _say(context, f"{question.name}: kept in {keep(context.places.results, question, path)}")
    return True


def _run(context: Context, question: Question) -> Finished:
    # local import: PySpark, which pages need not wait for
    from icebench.bench.runs.run import resume_run, run_experiment

    with stoppable(context, ("run", f"study/{question.name}")) as where:
        for path, run in _runs(context, question):
            if not run.complete:
                try:
                    return resume_run(path, where=where)
                except ConfigError as error:  # of another revision, say, or still running
                    _say(context, f"{question.name}: measured from its beginning, as {path} cannot go on: {error}")
        return run_experiment(question.experiment(), where=where)


def _finished_before(context: Context, question: Question) -> Path | None:
    """A run of the question that ended well and was not kept, as where the study was stopped just then."""
    return next((path for path, run in _runs(context, question) if run.complete and not run.failed), None)


def _runs(context: Context, question: Question) -> Iterator[tuple[Path, Run]]:
    """The runs of the question's present definition, the latest first."""
    digest = question.experiment().digest
    for path in reversed(context.places.all_runs()):
        try:
            run = read_run(path, interrupted=True)
        except CorruptRecords:
            continue
        if run.environment.get("digest") == digest:
            yield path, run


def _write_pages(context: Context, output: Path) -> None:
    # local import: SciPy and matplotlib, which a wrong argument need not wait for
    from icebench.bench.study.pages import files_of

    runs = {question: kept_run(context.places.results, question) for question in QUESTIONS.values()}
    for name, text in files_of({question: run for question, run in runs.items() if run is not None}):
        write_whole(output / name, text)
    context.terminal.out.print(f"pages: {output / 'index.md'}")


def _say(context: Context, line: str) -> None:
    context.terminal.err.print(Hanging("", line), crop=False)
