"""`icebench gate --base`: two revisions, built, counted and timed; the outcome printed and written."""

from __future__ import annotations

import hashlib
import math
import re
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from rich.table import Table

from icebench.bench.cli.baselines import accepted_by
from icebench.bench.cli.context import Context
from icebench.bench.cli.places import write_whole
from icebench.bench.errors import ConfigError
from icebench.bench.file_lock import locked
from icebench.bench.gate.cases import tables, time_cases
from icebench.bench.gate.cases.count_cases import environment
from icebench.bench.gate.cases.time_cases import TIMED
from icebench.bench.gate.cases.work import cases
from icebench.bench.gate.decisions.baseline import Baseline
from icebench.bench.gate.decisions.outcome import Outcome, as_json, as_junit, as_markdown
from icebench.bench.gate.decisions.time_verdict import Stand
from icebench.bench.gate.revisions.build import OutOfTime, Revision, build
from icebench.bench.gate.revisions.pairs import Pairs, Side, compare_revisions, count_now, undecided
from icebench.bench.machine import Machine
from icebench.bench.report.flame import render_regression
from icebench.bench.tables.cache import engine_writers, source_digest

CACHE = Path("datasets/cache/gate")
_BENCH = Path(tables.__file__).parents[2]
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
    with context.terminal.err.status("building") as status:
        accepted = accepted_by(head, context.places.baseline, root)
        outcome = _compared(base, head, wanted, accepted, (root, clock, status.update))
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


def _compared(
    base: str,
    head: str,
    wanted: Wanted,
    accepted: Baseline,
    around: tuple[Path, Callable[[], float], Callable[[str], object]],
) -> Outcome:
    """The outcome; `around` has the checkout, the clock and what is called with each step."""
    root, clock, progress = around
    deadline, names, cache = clock() + wanted.seconds, wanted.names(), (root / CACHE).absolute()
    try:
        sides = []
        for each in (base, head):
            _left(deadline, clock)
            sides.append(build(each, root=root, cache=cache))
        progress("making the tables, and counting the work of both")
        warehouse = _warehouse_while_counting(sides, cache, _left(deadline, clock))
    except OutOfTime:
        return undecided(base, head, names, "building")
    pairs = Pairs(
        base=sides[0],
        head=sides[1],
        warehouse=warehouse,
        random=Random(wanted.seed),
        deadline=deadline,
        clock=clock,
        progress=progress,
        at_once=processors(),
    )
    return compare_revisions(pairs, names, accepted, partial(counted_once, cache=cache))


def processors() -> int:
    """How many pairs may run at once."""
    return max(1, int(Machine().cores()))


def _warehouse_while_counting(sides: Sequence[Revision], cache: Path, seconds: float) -> Path:
    """The tables that are timed; what the sides count is kept, or fails again where it is asked for."""
    with ThreadPoolExecutor(processors()) as pool:
        made = pool.submit(warehouse_of, sides[0], cache, seconds)
        for side in {side.folder: side for side in sides}.values():
            pool.submit(counted_once, side, seconds, cache=cache)
        return made.result()


def _left(deadline: float, clock: Callable[[], float]) -> float:
    """Seconds until the deadline; raises OutOfTime where there are none."""
    if (seconds := deadline - clock()) <= 0:
        raise OutOfTime
    return seconds


def warehouse_of(side: Revision, cache: Path, seconds: float = math.inf) -> Path:
    """The tables that both sides read, made by one of them, once for all revisions that write alike; within so many
    seconds, without those of waiting for another process that makes them.

    Raises:
        OutOfTime: It takes longer.
    """
    rows = source_digest([Path(tables.__file__), _BENCH / "workloads"])
    made_by = f"{_writer_of(side)} {time_cases.SCALE} {rows}"
    folder = cache / f"tables-{_digest(made_by)}"
    ready = folder / ".ready"
    with locked(folder):
        if not ready.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            side.run("icebench.bench.gate.cases.time_cases", str(folder), "--build", seconds=seconds)
            ready.touch()
    return folder


def _writer_of(side: Revision) -> str:
    """What decides how a revision writes tables; one that is older may lack some of the programs."""
    return source_digest([path for path in engine_writers(side.folder / "engine") if path.exists()])


def counted_once(side: Side, seconds: float, *, cache: Path) -> str:
    """What a side counts, as a baseline's text. It is exact, so that the same sources in the same environment are
    counted once; a directory of an engine is named by its sources."""
    assert isinstance(side, Revision)
    harness = source_digest([_BENCH / part for part in ("gate/cases", "workloads", "engines/checksum.py")])
    path = cache / f"counts-{_digest(f'{side.folder.name} {side.python} {harness} {environment()}')}.json"
    if not path.is_file():
        write_whole(path, count_now(side, seconds))
    return path.read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


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
