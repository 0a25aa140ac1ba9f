"""`icebench gate`: exact work counters of fixed cases against the committed baseline.

Exit codes: 0 pass, 1 regression, 2 a case failed to run, 4 configuration (no or damaged baseline, cases that the
baseline does not cover, nothing to compare).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
from rich.console import Console

from bench.cases.counters import counted
from bench.cli.context import Context, pass_context
from bench.cli.places import write_whole
from bench.errors import BenchError, ConfigError
from bench.gate.baseline import Baseline, decode, encode
from bench.gate.verdict import Accepted, Change, ExitCode, Finding, Verdict, accept, admissible, compare

HASH_SEEDS = (0, 1, 2, 3, 4)
"""A counter is admitted to the baseline when fresh processes with these hash seeds agree on it."""

_STYLE = {Change.DECREASED: "green", Change.MOVED: "dim"}


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
    help="With --accept: take this increase, changed answer, or vanished case or counter. Repeatable.",
)
@pass_context
def gate(context: Context, accepting: bool, allow: tuple[str, ...]) -> int:  # noqa: FBT001 - click passes flags so
    """Compare exact work counters with the committed baseline; any increase fails."""
    if allow and not accepting:
        raise click.UsageError("--allow needs --accept")
    path = context.places.baseline
    out = context.terminal.out
    try:
        with context.terminal.err.status("counting the work of the cases"):
            if accepting:
                return move_baseline(path, allow, out, runs_of_fresh_processes)
            return judge(path, counted, out)
    except ConfigError as error:
        context.terminal.err.print(f"icebench: {error}", markup=False, soft_wrap=True)
        return ExitCode.CONFIGURATION


def judge(path: Path, run: Callable[[], Baseline], out: Console) -> int:
    """Print how what `run` counts differs from the baseline at `path`; give the exit code.

    Raises:
        ConfigError: No baseline, or one that cannot be decoded.
    """
    if not path.is_file():
        raise ConfigError("no baseline; 'icebench gate --accept' makes the first one, to be committed", path=str(path))
    baseline = _read(path)
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
        out.print("The baseline does not cover what ran: 'icebench gate --accept' takes it in.")
    elif verdict.exit_code is ExitCode.PASS and verdict.can_ratchet:
        out.print("Less work than the baseline: 'icebench gate --accept' keeps it so.")
    return verdict.exit_code


def move_baseline(
    path: Path,
    allow: tuple[str, ...],
    out: Console,
    runs: Callable[[], list[Baseline]],
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
    old = _read(path) if path.is_file() else Baseline()
    moved = accept(old, results[0], allow)
    if moved.refused:
        return _refuse(moved, out)
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


def runs_of_fresh_processes() -> list[Baseline]:
    """The cases, run once for each hash seed in an interpreter of its own."""
    with ThreadPoolExecutor(max_workers=min(len(HASH_SEEDS), os.cpu_count() or 1)) as pool:
        return list(pool.map(_run_of, HASH_SEEDS))


def _run_of(seed: int) -> Baseline:
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-m", "bench.cases.counters"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise CasesFailed(f"the cases failed with PYTHONHASHSEED={seed}: {last}")
    return decode(done.stdout)


def _refuse(moved: Accepted, out: Console) -> int:
    for finding in moved.refused:
        _print(finding, out)
    flags = " ".join(f"--allow {finding.name}" for finding in moved.refused)
    out.print(f"The baseline stays. If this is wanted: icebench gate --accept {flags}", markup=False, soft_wrap=True)
    return ExitCode.REGRESSION


def _read(path: Path) -> Baseline:
    try:
        return decode(path.read_text(encoding="utf-8"))
    except (ConfigError, UnicodeDecodeError) as error:
        raise ConfigError(f"{error}; restore it from version control", path=str(path)) from error


def _print(finding: Finding, out: Console) -> None:
    out.print(str(finding), style=_STYLE.get(finding.change, "bold red"), markup=False, soft_wrap=True)


def _word(verdict: Verdict) -> str:
    return {ExitCode.PASS: "pass", ExitCode.REGRESSION: "REGRESSION"}.get(verdict.exit_code, "not comparable")
