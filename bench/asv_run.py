"""`make asv`: the asv suite for the checked-out commit, in the environment that runs this; and asv's site.

asv keeps what it knows of machines in the user's home and asks questions the first time; here the machine file lies
with the results and is filled in from the machine itself: nothing outside the project is touched and nobody is asked.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click
import cpuinfo
import psutil
from asv.commands.publish import Publish
from asv.commands.run import Run
from asv.config import Config
from asv.console import log
from asv.machine import MachineCollection
from asv.util import UserError

from icebench.bench.cli.history_store import describe_history
from icebench.bench.errors import BenchError
from icebench.bench.execution.environment import WHAT_RUNS

ROOT = Path(__file__).resolve().parents[1]
CONFIGURATION = "asv.conf.json"
MACHINES = Path("results/asv/machines.json")


class AsvFailed(BenchError):
    """asv could not run, or some benchmark failed."""


def machine_facts(host: str = platform.node()) -> dict[str, str]:
    """The six fields of asv's machine file; asv asks for any that is missing."""
    cores = os.cpu_count() or 1
    return {
        "machine": host or "unnamed",
        "os": f"{platform.system()} {platform.release()}",
        "arch": platform.machine(),
        "cpu": cpuinfo.get_cpu_info().get("brand_raw") or platform.processor() or "unknown",
        "num_cpu": str(cores),
        "ram": str(psutil.virtual_memory().total),
    }


def revision(root: Path, run: Callable[[Sequence[str]], str]) -> str:
    """The commit that is checked out.

    Raises:
        AsvFailed: `root` is no git checkout.
    """
    try:
        return run(["git", "-C", str(root), "rev-parse", "HEAD"]).strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise AsvFailed(f"{root} is not a git checkout, and asv files results by commit") from error


def run_suite(
    root: Path, *, only: Sequence[str] = (), quick: bool = False, facts: Mapping[str, str] | None = None
) -> tuple[str, str]:
    """Run the suite and leave the results below ``results/asv``.

    Args:
        root: The checkout.
        only: Regular expressions of benchmarks; none runs all.
        quick: Each benchmark once, to see that it works; the results are kept all the same.
        facts: Of this machine.

    Returns:
        The commit, and the machine's name.

    Raises:
        AsvFailed: asv could not run, or a benchmark failed.
    """
    commit = revision(root, _output)
    described = dict(facts or machine_facts())
    # asv resolves the paths of its configuration from the working directory.
    os.chdir(root)
    MACHINES.parent.mkdir(parents=True, exist_ok=True)
    MachineCollection.save(described["machine"], described, _path=str(MACHINES))
    config = Config.load(CONFIGURATION)
    log.enable()
    try:
        code = Run.run(
            config,
            bench=list(only) or None,
            env_spec=[f"existing:{sys.executable}"],
            set_commit_hash=commit,
            machine=described["machine"],
            _machine_file=str(MACHINES),
            record_samples=True,
            quick=quick,
            show_stderr=True,
            pull=False,
        )
    except UserError as error:
        raise AsvFailed(f"asv: {error}") from error
    finally:
        log.flush()
        describe_history(Path(config.results_dir))
    if code:
        raise AsvFailed("asv: some benchmarks failed; what they printed stands above")
    return commit, described["machine"]


def publish(root: Path) -> Path:
    """Make asv's site of all results, the history among them.

    Raises:
        AsvFailed: There are no results.
    """
    os.chdir(root)
    config = Config.load(CONFIGURATION)
    describe_history(Path(config.results_dir))
    log.enable()
    try:
        Publish.run(config, pull=False)
    except UserError as error:
        raise AsvFailed(f"asv: {error}") from error
    finally:
        log.flush()
    return root / config.html_dir


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@click.command()
@click.option("--bench", "only", multiple=True, metavar="REGEX", help="Only these benchmarks. Repeatable.")
@click.option("--quick", is_flag=True, help="Run each benchmark once, to see that it works.")
@click.option("--publish", "is_site", is_flag=True, help="Make the site of what was measured, and run nothing.")
def main(*, only: tuple[str, ...], quick: bool, is_site: bool) -> None:
    """Run the asv suite for the checked-out commit and say how to look at the results."""
    try:
        if is_site:
            click.echo(f"site: {publish(ROOT)}; look at it: asv preview")
            return
        commit, machine = run_suite(ROOT, only=only, quick=quick)
    except BenchError as error:
        click.echo(f"icebench: {error}", err=True)
        sys.exit(2)
    if _output(["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no", "--", *WHAT_RUNS]).strip():
        click.echo(
            "note: the checkout has uncommitted changes, and the results are filed under its last commit", err=True
        )
    click.echo(f"results: {ROOT / 'results' / 'asv' / 'results' / machine}")
    click.echo(f"look at them: asv show {commit[:12]} --machine {machine}")


if __name__ == "__main__":
    main()
