"""`icebench gate --base`: two revisions, built, counted and timed; the outcome printed and written."""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from rich.table import Table

from icebench.bench.cases import tables, timing
from icebench.bench.cases.pairs import Pairs, compare_revisions
from icebench.bench.cases.revisions import Revision, build
from icebench.bench.cases.timing import TIMED
from icebench.bench.cases.work import cases
from icebench.bench.cli.baselines import read_baseline
from icebench.bench.cli.context import Context
from icebench.bench.cli.places import write_whole
from icebench.bench.errors import ConfigError
from icebench.bench.gate.baseline import Baseline
from icebench.bench.gate.outcome import Outcome, as_json, as_junit, as_markdown
from icebench.bench.gate.timing import Stand
from icebench.bench.report.flame import render_regression

CACHE = Path("datasets/cache/gate")
_UNITS = {"s": 1, "m": 60, "h": 3600}
_STYLES = {Stand.REGRESSED: "bold red", Stand.FAILED: "bold red", Stand.PASS: "green"}


@dataclass(frozen=True)
class Wanted:
    """What to time: patterns of cases (none for `TIMED`), for how many seconds at most, in the order of a seed."""

    patterns: tuple[str, ...] = ()
    seconds: float = 900.0
    seed: int = 0

    def names(self) -> list[str]:
        """The cases; raises ConfigError where there is none."""
        if not self.patterns:
            return list(TIMED)
        try:
            found = [name for name in cases() if any(re.search(pattern, name) for pattern in self.patterns)]
        except re.error as error:
            raise ConfigError(f"not a regular expression, {error}", path="--case") from error
        if not found:
            raise ConfigError(f"no case matches {', '.join(self.patterns)}; there are {', '.join(cases())}")
        return found


def seconds_of(text: str) -> float:
    """The seconds in a text such as 90s, 15m, 1h; raises ConfigError."""
    found = re.fullmatch(r"(\d+)([smh])", text)
    if found is None:
        raise ConfigError(f"{text!r} is no time; 90s, 15m and 1h are", path="--budget")
    return float(int(found[1]) * _UNITS[found[2]])


def compare_two(
    context: Context,
    base: str,
    head: str,
    wanted: Wanted,
    *,
    root: Path = Path(),
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Compare, print, and write the outcome below the results; gives the exit code.

    Raises:
        ConfigError: No such revision, or no such case.
        Unbuildable: A revision cannot be run.
        CaseProcessFailed: A process failed as a whole.
    """
    deadline = clock() + wanted.seconds
    names = wanted.names()
    err = context.terminal.err
    with err.status("building") as status:
        sides = [build(each, root=root, cache=(root / CACHE).absolute()) for each in (base, head)]
        status.update("making the tables")
        pairs = Pairs(
            base=sides[0],
            head=sides[1],
            warehouse=warehouse_of(sides[0], (root / CACHE).absolute()),
            random=Random(wanted.seed),
            deadline=deadline,
            clock=clock,
            progress=status.update,
        )
        path = context.places.baseline
        outcome = compare_revisions(pairs, names, read_baseline(path) if path.is_file() else Baseline())
    folder = context.places.results / "gate"
    for name, text in (
        ("outcome.json", as_json(outcome)),
        ("junit.xml", as_junit(outcome)),
        ("comment.md", as_markdown(outcome)),
    ):
        write_whole(folder / name, text)
    regression = folder / "regression.html"
    if any(case.stacks for case in outcome.cases.values()):
        write_whole(regression, render_regression(outcome))
    else:
        regression.unlink(missing_ok=True)
    _print(context, outcome, folder)
    return outcome.exit_code


def warehouse_of(side: Revision, cache: Path) -> Path:
    """The tables that both sides read, made by one of them, once."""
    made_by = f"{side.folder.name} {timing.SCALE} {Path(tables.__file__).read_text(encoding='utf-8')}"
    folder = cache / f"tables-{hashlib.sha256(made_by.encode()).hexdigest()[:16]}"
    ready = folder / ".ready"
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        side.run("icebench.bench.cases.timing", str(folder), "--build")
        ready.touch()
    return folder


def _print(context: Context, outcome: Outcome, folder: Path) -> None:
    out = context.terminal.out
    for text in (*outcome.counters, *outcome.notes):
        out.print(text, style="bold red" if outcome.counters else "", markup=False, soft_wrap=True)
    if outcome.cases:
        table = Table("case", "verdict", "head / base", "one-sided 95 % bounds", "pairs", box=None)
        for row in outcome.rows():
            table.add_row(*row, style=_STYLES.get(Stand(row[1]), "yellow"))
        out.print(table)
    for name, case in outcome.cases.items():
        if case.note:
            out.print(f"{name}: {case.note}", markup=False, soft_wrap=True)
        for function, before, now in case.profile[:5]:
            out.print(f"  {name}: {function} {before * 1e3:.2f} -> {now * 1e3:.2f} ms", markup=False, soft_wrap=True)
    out.print(f"{outcome.stand}: {outcome.base[:12]} -> {outcome.head[:12]}; {folder} has the details", soft_wrap=True)
