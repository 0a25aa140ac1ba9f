"""Times cases in this process, for one side of a pair.

Run as ``python -m icebench.bench.gate.cases.time_cases WAREHOUSE CASE...``.

Prints JSON: for each case the processor time of warm runs in seconds, or what went wrong. Processor time, as a busy
neighbour disturbs it least. With ``--beside``, the runs of both sides of a pair take turns. With ``--profile``, the
call stacks of one case instead; with ``--count``, what each case counts, too, and the environment of that.
"""

from __future__ import annotations

import argparse
import gc
import json
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypedDict

import icebench
from icebench.bench.gate.cases.baton import Baton, keep_processor
from icebench.bench.gate.cases.count_cases import count, environment
from icebench.bench.gate.cases.library_calls import one_processor
from icebench.bench.gate.cases.tables import Scale, build
from icebench.bench.gate.cases.work import Case, cases

if TYPE_CHECKING:
    from pyinstrument import Profiler

SCALE = Scale(rows=100_000, files=5_000)
TIMED = (
    "scan/partitioned/no-filter",
    "scan/partitioned/metrics-filter",
    "scan/grouped/no-filter",
    "scan/large/decimals",
    "scan/large/unprunable",
    "scan/positions/no-filter",
    "scan/vectors/no-filter",
    "scan/equality/no-filter",
    "plan/many/cold/no-filter",
    "plan/many/cold/metrics-filter",
    "plan/many/warm/metrics-filter",
    "commit/append",
    "commit/add-files",
    "commit/delete-vectors",
)
"""The cases that are timed unless others are asked for: one of each kind of work."""

_WARM_TURNS, _TURNS = 2, 6
_TURN_SECONDS = 0.015
"""A case that takes less is run several times in a turn."""
_INTERVAL, _SAMPLED_SECONDS = 0.0005, 1.0
_PROFILED = "cases/time_cases.py:profile"
"""Whose callees are the case."""


class Time(TypedDict, total=False):
    """Seconds of a run in each turn of a case, and what it counted where that was asked for; or its error."""

    seconds: Sequence[float]
    counters: Mapping[str, int]
    error: str


Stack = tuple[Sequence[str], float]
"""Functions from the outermost, and the seconds of a run that the last one takes itself."""


def time_cases(
    warehouse: str,
    names: Sequence[str],
    clock: Callable[[], float] = time.process_time,
    *,
    counting: bool = False,
    baton: Baton | None = None,
) -> Mapping[str, Time]:
    """Time cases one after the other, and count them; a case that raises has its error, and the others go on."""
    found: dict[str, Time] = {}
    known = cases()
    for name in names:
        with catalog_for(warehouse, name) as catalog:
            own = found[name] = _timed(known[name], catalog, clock, baton or Baton())
            if counting and "error" not in own:
                with one_processor():
                    own["counters"] = count(known[name], catalog).counters
    return found


def profile(warehouse: str, name: str, clock: Callable[[], float] = time.process_time) -> list[Stack]:
    """Where a run of a case spends its processor time, by samples of the call stack. Work is done on one processor, as
    a profile sees one thread."""
    from pyinstrument import Profiler  # local import: from the harness's packages where the engine's are older
    from pyinstrument.stack_sampler import get_stack_sampler  # local import: as above

    get_stack_sampler().timer_func = clock
    case, profiler, runs = cases()[name], Profiler(interval=_INTERVAL, async_mode="disabled"), 0
    with one_processor(), catalog_for(warehouse, name) as catalog:
        while runs < _WARM_TURNS + _TURNS or _sampled(profiler) < _SAMPLED_SECONDS:
            timed = case.prepare(catalog, icebench.Counters())
            runs += 1
            if runs <= _WARM_TURNS:
                timed()
            else:
                profiler.start()
                timed()
                profiler.stop()
    session = profiler.last_session
    seconds: dict[tuple[str, ...], float] = {}
    for frames, sampled in session.frame_records if session else ():
        names = [_name_of(frame) for frame in frames]
        stack = tuple(names[names.index(_PROFILED) + 1 :])
        seconds[stack] = seconds.get(stack, 0.0) + sampled / (runs - _WARM_TURNS)
    return [(stack, own) for stack, own in seconds.items() if stack]


def _sampled(profiler: Profiler) -> float:
    return sum(seconds for _, seconds in profiler.last_session.frame_records) if profiler.last_session else 0.0


def _name_of(frame: str) -> str:
    """``room/file.py:function``, or the name of a function that is not Python's."""
    function, path, *_ = frame.partition("\x01")[0].split("\x00")
    return function if path.startswith("<") else f"{'/'.join(Path(path).parts[-2:])}:{function}"


def build_tables(warehouse: str) -> None:
    """Make the tables that are timed."""
    with closing(icebench.load_catalog(warehouse)) as catalog:
        build(catalog, SCALE)


@contextmanager
def catalog_for(warehouse: str, name: str) -> Iterator[icebench.Catalog]:
    """The tables of all processes; for a case that changes tables, an empty catalog of its own."""
    if name.startswith("commit/"):
        with TemporaryDirectory(prefix="icebench-gate-") as folder, closing(icebench.load_catalog(folder)) as catalog:
            yield catalog
    else:
        with closing(icebench.load_catalog(warehouse)) as catalog:
            yield catalog


def _timed(case: Case, catalog: icebench.Catalog, clock: Callable[[], float], baton: Baton) -> Time:
    """The mean run of each turn, once the case is warm; after an error turns pass with nothing done, so that both sides
    have as many."""
    seconds: list[float] = []
    error = ""
    for number in range(_WARM_TURNS + _TURNS):
        with baton.turn():
            if error:
                continue
            runs: list[float] = []
            try:
                while sum(runs) < _TURN_SECONDS:
                    timed = case.prepare(catalog, icebench.Counters())
                    gc.collect()
                    if number <= _WARM_TURNS:
                        # What a case has loaded by now stays: to walk it before each run takes 0.1 s, longer than most.
                        gc.freeze()
                    start = clock()
                    kept = timed()
                    runs.append(clock() - start)
                    del kept
            except Exception as raised:  # noqa: BLE001 - a dead case is a finding, whatever it raised
                error = f"{type(raised).__name__}: {raised}"
            seconds.append(mean(runs or [0.0]))
    return {"error": error} if error else {"seconds": seconds[_WARM_TURNS:]}


def main(arguments: Sequence[str]) -> None:
    """Build, time or profile, and print JSON."""
    parser = argparse.ArgumentParser(prog="python -m icebench.bench.gate.cases.time_cases")
    parser.add_argument("warehouse")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--build", action="store_true", help="make the tables, and time nothing")
    parser.add_argument("--profile", metavar="PACKAGES", help="print call stacks; with the profiler of these packages")
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--beside", type=int, metavar="FD", help="a socket: take turns with the other side of a pair")
    parser.add_argument("--second", action="store_true", help="with --beside: the other side has the first turn")
    parser.add_argument("--processor", type=int, metavar="N", help="with --beside: run on this one alone")
    options = parser.parse_args(arguments)
    if options.build:
        with closing(icebench.load_catalog(options.warehouse)) as catalog:
            build(catalog, SCALE)
        return
    baton = Baton()
    if options.beside is not None:
        keep_processor(options.processor)
        baton = Baton(socket.socket(fileno=options.beside), starts=not options.second)
    gc.collect()
    gc.freeze()
    found: object
    if options.profile:
        sys.path.append(options.profile)
        found = profile(options.warehouse, options.cases[0])
    elif options.count:
        timed = time_cases(options.warehouse, options.cases, counting=True)
        found = {"cases": timed, "environment": environment()}
    else:
        found = time_cases(options.warehouse, options.cases, baton=baton)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
