"""`icebench bisect`: the commit that made something slower, by `git bisect run` over `icebench gate`."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from icebench.bench.cli.compare_revisions import Wanted, seconds_of
from icebench.bench.cli.context import Context, pass_context
from icebench.bench.errors import BenchError, ConfigError
from icebench.bench.gate.decisions.counter_verdict import ExitCode
from icebench.bench.gate.revisions.build import commit_of

_FOUND = re.compile(r"^([0-9a-f]{40}) is the first bad commit", re.MULTILINE)


class BisectFailed(BenchError):
    """git could not go on."""


@click.command("bisect")
@click.argument("good")
@click.argument("bad", default="HEAD")
@click.option("--budget", default="15m", metavar="TIME", help="Of each comparison with GOOD.", show_default=True)
@click.option("--case", "patterns", multiple=True, metavar="REGEX", help="Only these cases. Repeatable.")
@pass_context
def bisect(context: Context, good: str, bad: str, budget: str, patterns: tuple[str, ...]) -> int:
    """Find the first commit between GOOD and BAD that `icebench gate --base GOOD` says is a regression.

    BAD is measured first; exit code 4 if it is no regression.
    """
    root = Path.cwd()
    try:
        first, last = commit_of(good, root), commit_of(bad, root)
        Wanted(patterns, seconds_of(budget)).names()
    except ConfigError as error:
        context.terminal.err.print(f"icebench: {error}", markup=False, soft_wrap=True)
        return ExitCode.CONFIGURATION
    chosen = [word for pattern in patterns for word in ("--case", pattern)]
    results = str((context.places.results / "bisect").absolute())
    program = [sys.executable, "-m", "icebench", "--results", results]
    gate = [*program, "gate", "--base", first, "--budget", budget, *chosen]
    # git takes it as given that BAD is bad, and would name it if all before it passes.
    if (ended := gate_of(root, last, gate)) != ExitCode.REGRESSION:
        return _not_bad(context, bad, good, ended)
    found = first_bad(root, first, last, gate)
    if found is None:
        context.terminal.out.print("inconclusive: the commits that are left could not be measured")
        return ExitCode.INCONCLUSIVE
    shown = ["git", "-C", str(root), "show", "--no-patch", "--format=%h %an, %as: %s", found]
    subject = subprocess.run(shown, capture_output=True, text=True, check=True).stdout.strip()
    context.terminal.out.print(f"the first regression: {subject}", markup=False, soft_wrap=True)
    return ExitCode.PASS


def gate_of(root: Path, commit: str, gate: Sequence[str]) -> int:
    """The exit code of the gate for one commit; arguments as for `first_bad`."""
    command = [*gate, "--head", commit]
    return subprocess.run(command, cwd=root, stdout=subprocess.DEVNULL, check=False).returncode


def _not_bad(context: Context, bad: str, good: str, ended: int) -> int:
    out = context.terminal.out
    if ended == ExitCode.PASS:
        out.print(f"{bad} is no regression against {good}: nothing to look for", markup=False, soft_wrap=True)
        return ExitCode.CONFIGURATION
    out.print(f"inconclusive: the gate of {bad} ended with exit code {ended}", markup=False, soft_wrap=True)
    return ended


def first_bad(root: Path, good: str, bad: str, gate: Sequence[str]) -> str | None:
    """The first commit that a command calls a regression; None where it could not say.

    The checkout is not touched: git looks for the commit in a clone without files.

    Args:
        root: The checkout, in which the command runs.
        good: A commit that is known to be good.
        bad: A later one that is known to be bad.
        gate: The command; it gets ``--head COMMIT`` and exits as `icebench gate` does.

    Raises:
        BisectFailed: With what git said.
    """
    with TemporaryDirectory(prefix="icebench-bisect-") as folder:
        clone = ["git", "clone", "--quiet", "--shared", "--no-checkout", str(root), folder]
        _done(subprocess.run(clone, capture_output=True, text=True, check=False))
        git = ["git", "-C", folder]
        start = [*git, "bisect", "start", "--no-checkout", bad, good, "--"]
        _done(subprocess.run(start, capture_output=True, text=True, check=False))
        head = f"$(git -C {shlex.quote(folder)} rev-parse BISECT_HEAD)"
        # git takes 125 for a commit that cannot be tested, and any other for bad.
        script = (
            f"cd {shlex.quote(str(root))} && {shlex.join(gate)} --head {head}; "
            f"case $? in {ExitCode.PASS:d}) exit 0;; {ExitCode.REGRESSION:d}) exit 1;; *) exit 125;; esac"
        )
        run = subprocess.run(
            [*git, "bisect", "run", "sh", "-c", script], stdout=subprocess.PIPE, text=True, check=False
        )
    found = _FOUND.search(run.stdout)
    return None if found is None else found[1]


def _done(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise BisectFailed((done.stderr.strip().splitlines() or ["git ended without a word"])[-1])
