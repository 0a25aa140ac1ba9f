"""`icebench gate`: work counters against the committed baseline, of the engine or of one's own tables; or one revision
against another.

Exit codes: 0 pass, 1 regression, 2 a case failed to run, 3 too much noise to say, 4 configuration or incomparable (no
or damaged baseline, cases that the baseline does not cover, nothing to compare, a base that cannot be built).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from icebench.bench.cli.baselines import read_baseline
from icebench.bench.cli.compare_revisions import Wanted, compare_two, seconds_of
from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.ignored_options import refuse_options
from icebench.bench.cli.places import write_whole
from icebench.bench.errors import BenchError, ConfigError, WrongAnswer
from icebench.bench.gate.cases.count_cases import counted
from icebench.bench.gate.decisions.baseline import Baseline, decode, encode
from icebench.bench.gate.decisions.counter_verdict import (
    SLIGHT,
    Accepted,
    Change,
    ExitCode,
    Finding,
    Verdict,
    accept,
    admissible,
    compare,
    is_slight,
)
from icebench.bench.gate.revisions.build import WORKTREE, Unbuildable

HASH_SEEDS = (0, 1, 2, 3, 4)
"""A counter is admitted to the baseline when fresh processes with these hash seeds agree on it."""

_STYLE = {Change.DECREASED: "green", Change.MOVED: "dim", Change.UNSEEN: "dim"}


class CasesDiffer(BenchError):
    """The same code counted differently in different processes."""


class CasesFailed(BenchError):
    """The cases could not be run."""


@click.command("gate")
@click.option("--accept", "accepting", is_flag=True, help="Move the baseline to what is counted now.")
@click.option(
    "--allow",
    multiple=True,
    metavar="CASE[:COUNTER]",
    help="With --accept: take this increase, however small, changed answer, or vanished case or counter. Repeatable.",
)
@click.option("--base", metavar="REV", help="Compare with this revision: counters, then processor time in pairs.")
@click.option("--head", default=WORKTREE, metavar="REV", help="With --base: the other revision.  [default: worktree]")
@click.option(
    "--budget", default="15m", metavar="TIME", help="With --base: the longest time, 90s, 15m, 1h.", show_default=True
)
@click.option(
    "--tables",
    metavar="FILE.toml",
    type=click.Path(path_type=Path),
    help="Plans of the tables or layouts of this definition instead; its baseline is beside it.",
)
@click.option("--case", "patterns", multiple=True, metavar="REGEX", help="With --base: only these cases. Repeatable.")
@click.option("--seed", default=0, help="With --base: draws the order of processes.", show_default=True)
@pass_context
def gate(
    context: Context,
    *,
    accepting: bool,
    allow: tuple[str, ...],
    base: str | None,
    head: str,
    budget: str,
    tables: Path | None,
    patterns: tuple[str, ...],
    seed: int,
) -> int:
    """Compare exact work counters with the committed baseline, or a revision with another; what is worse fails."""
    if not accepting:
        refuse_options("allow", because="needs --accept")
    if base is None:
        refuse_options("head", "patterns", "budget", "seed", because="needs --base")
    else:
        refuse_options("accepting", "tables", because="goes without --base")
    path = context.places.baseline
    again = "icebench gate"
    run: Callable[[], Baseline] = counted
    runs: Callable[[], list[Baseline]] = runs_of_fresh_processes
    out = context.terminal.out
    try:
        if tables is not None:
            from icebench.bench.cli.gate_tables import (  # local import: it takes a second, for Spark
                baseline_of,
                count_now,
                count_to_accept,
            )

            path, again = baseline_of(tables), f"{again} --tables {tables}"
            note = partial(out.print, markup=False, soft_wrap=True)
            run, runs = partial(count_now, tables, note), partial(count_to_accept, tables, note)
        if base is not None:
            return compare_two(context, base, head, Wanted(patterns, seconds_of(budget), seed))
        with context.terminal.err.status("counting the work of the cases"):
            if accepting:
                return move_baseline(path, allow, out, runs, again)
            return check(path, run, out, again)
    except WrongAnswer as error:
        out.print(str(error), style="bold red", markup=False, soft_wrap=True)
        out.print("REGRESSION: plans lack files; nothing can accept that")
        return ExitCode.REGRESSION
    except (ConfigError, Unbuildable) as error:
        context.terminal.err.print(f"icebench: {error}", markup=False, soft_wrap=True)
        return ExitCode.CONFIGURATION


def check(path: Path, run: Callable[[], Baseline], out: Console, again: str = "icebench gate") -> int:
    """Print how what `run` counts differs from the baseline at `path`; give the exit code. `again` is the command.

    Raises:
        ConfigError: No baseline, or one that cannot be decoded.
    """
    if not path.is_file():
        raise ConfigError(f"no baseline; '{again} --accept' makes the first one, to be committed", path=str(path))
    baseline = read_baseline(path)
    now = run()
    verdict = compare(baseline, now)
    for finding in verdict.findings:
        _print(finding, out)
    if baseline.environment != now.environment:
        out.print("Bytes, memory and calls are not compared: the baseline is of another environment.")
    out.print(
        f"{_word(verdict)}: {verdict.cases} cases, {verdict.counters} counters compared with {path}", soft_wrap=True
    )
    if verdict.exit_code is ExitCode.CONFIGURATION and verdict.cases:
        out.print(
            f"The baseline does not cover what ran: '{again} --accept' takes it in.", markup=False, soft_wrap=True
        )
    elif any(map(is_slight, verdict.findings)) and all(map(is_slight, (f for f in verdict.findings if f.fails))):
        out.print(f"Nothing but calls of functions rose, by less than {SLIGHT:.0%}: '{again} --base REV' times that.")
    elif verdict.exit_code is ExitCode.PASS and verdict.can_ratchet:
        out.print(f"Less work than the baseline: '{again} --accept' keeps it so.", markup=False, soft_wrap=True)
    return verdict.exit_code


def move_baseline(
    path: Path,
    allow: tuple[str, ...],
    out: Console,
    runs: Callable[[], list[Baseline]],
    again: str = "icebench gate",
) -> int:
    """Write what is counted now as the baseline, unless something got worse without being allowed.

    Raises:
        CasesDiffer: The runs disagree, so their counters are not exact.
        ConfigError: The old baseline cannot be decoded.
    """
    results = runs()
    if different := admissible(results):
        names = ", ".join(different[:5])
        raise CasesDiffer(
            f"{names}: differs between runs with different hash seeds, so it cannot be gated; make it exact"
        )
    old = read_baseline(path) if path.is_file() else Baseline()
    moved = accept(old, results[0], allow)
    if moved.refused:
        return _refuse(moved, out, again)
    for finding in moved.moved:
        _print(finding, out)
    if moved.baseline == old:
        out.print(f"{path} is up to date", soft_wrap=True)
        return ExitCode.PASS
    write_whole(path, encode(moved.baseline))
    out.print(
        f"{path} moved: {len(moved.baseline.cases)} cases; commit it with the change that explains it", soft_wrap=True
    )
    return ExitCode.PASS


def runs_of_fresh_processes(seeds: Sequence[int] = HASH_SEEDS, names: Sequence[str] = ()) -> list[Baseline]:
    """The cases, or those of these names, run once for each hash seed in an interpreter of its own."""
    with ThreadPoolExecutor(max_workers=min(len(seeds), os.cpu_count() or 1)) as pool:
        return list(pool.map(partial(_run_of, names), seeds))


def _run_of(names: Sequence[str], seed: int) -> Baseline:
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-m", "icebench.bench.gate.cases.count_cases", *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise CasesFailed(f"the cases failed with PYTHONHASHSEED={seed}: {last}")
    return decode(done.stdout)


def _refuse(moved: Accepted, out: Console, again: str) -> int:
    for finding in moved.refused:
        _print(finding, out)
    flags = " ".join(f"--allow {finding.name}" for finding in moved.refused)
    out.print(f"The baseline stays. If this is wanted: {again} --accept {flags}", markup=False, soft_wrap=True)
    return ExitCode.REGRESSION


def _print(finding: Finding, out: Console) -> None:
    out.print(str(finding), style=_STYLE.get(finding.change, "bold red"), markup=False, soft_wrap=True)


def _word(verdict: Verdict) -> str:
    return {ExitCode.PASS: "pass", ExitCode.REGRESSION: "REGRESSION"}.get(verdict.exit_code, "not comparable")
