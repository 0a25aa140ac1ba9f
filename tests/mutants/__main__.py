"""Plants each bug of the catalogue in a copy of the project and runs the tests that should fail: `make mutants`.

    python -m tests.mutants [--only ROOM]... [--base REVISION] [--matching TEXT]... [--processes N] [--widen]

Ends with 1 if fewer than 95 % of the bugs were noticed, or if a bug survived that the catalogue does not explain. With
`--base` the bugs are those of the lines that were changed since that revision: `make mutants BASE=main`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.catalogue import Mutant, Room, rooms
from tests.mutants.changed_lines import changed_rooms
from tests.mutants.scratch_copy import ScratchCopy
from tests.mutants.verdicts import LEAST_KILLED, Result, Verdict, figures, verdict
from tests.tidy.source import REPOSITORY

FIGURES = REPOSITORY / "results" / "reports" / "mutants.json"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Do the tests notice planted bugs?")
    parser.add_argument("--only", action="append", default=[], metavar="ROOM", help="a file of tests/mutants/")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="copies that are tested side by side")
    parser.add_argument("--widen", action="store_true", help="where the named tests pass, run all those of the room")
    parser.add_argument(
        "--matching", action="append", default=[], metavar="TEXT", help="a part of a bug's line or file"
    )
    parser.add_argument("--no-baseline", action="store_true", help="do not run the tests without a bug first")
    parser.add_argument("--base", metavar="REVISION", help="bugs of the lines that were changed since")
    options = parser.parse_args(arguments)

    among = changed_rooms(options.base) if options.base else rooms(options.only)
    chosen = [(room, [m for m in room.mutants if _matches(m, options.matching)]) for room in among]
    if not any(mutants for _, mutants in chosen):
        sys.stdout.write("there is no bug to plant\n")
        return 0 if options.base and not options.matching else 2
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="icebench-mutants-") as scratch, ExitStack() as stack:
        copies: SimpleQueue[ScratchCopy] = SimpleQueue()
        for number in range(options.processes):
            copies.put(stack.enter_context(ScratchCopy(Path(scratch) / str(number))))
        tests = {test for _, mutants in chosen for mutant in mutants for test in mutant.tests}
        if options.widen:
            tests |= {test for room, _ in chosen for test in room.tests}
        if not options.no_baseline and not _green(sorted(tests), copies, options.processes):
            return 1
        results = _results(chosen, copies, options.processes, widen=options.widen)
    lines, share = figures(results, minutes=(time.monotonic() - started) / 60)
    sys.stdout.write("\n".join(lines) + "\n")
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    FIGURES.write_text(json.dumps([asdict(result) for result in results], indent=1))
    unexplained = not options.base and any(r.verdict in {Verdict.SURVIVED, Verdict.WRONGLY_EXPLAINED} for r in results)
    return int(share < LEAST_KILLED or unexplained)


def _matches(mutant: Mutant, texts: Sequence[str]) -> bool:
    return not texts or any(text in mutant.bug or text in mutant.at for text in texts)


def _green(tests: Sequence[str], copies: SimpleQueue[ScratchCopy], processes: int) -> bool:
    """Whether all tests pass as long as no bug is planted."""

    def fails(test: str) -> bool:
        copy = copies.get()
        try:
            passed, output = copy.run([test])
        finally:
            copies.put(copy)
        if not passed:
            sys.stdout.write(f"{output}\n{test} fails, and no bug is planted\n")
        return not passed

    with ThreadPoolExecutor(processes) as pool:
        return not any(list(pool.map(fails, tests)))


def _results(
    chosen: Sequence[tuple[Room, Sequence[Mutant]]],
    copies: SimpleQueue[ScratchCopy],
    processes: int,
    *,
    widen: bool,
) -> list[Result]:
    def run(room: Room, mutant: Mutant) -> Result:
        started = time.monotonic()
        output = ""
        if not mutant.applies():
            found = Verdict.MOVED
        else:
            copy = copies.get()
            try:
                with copy.planted(mutant):
                    passed, output = copy.run(mutant.tests)
                    wide_passed = copy.run(room.tests)[0] if passed and widen else None
            finally:
                copies.put(copy)
            found = verdict(passed=passed, wide_passed=wide_passed, explained=bool(mutant.survives))
        result = Result(
            room=room.name,
            bug=mutant.bug,
            file=mutant.file,
            verdict=found,
            survives=mutant.survives,
            seconds=round(time.monotonic() - started, 1),
            failure=next((line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))), ""),
        )
        sys.stdout.write(
            f"{result.verdict:<18} {result.seconds:6.1f} s  {result.room}: {result.bug.partition(chr(10))[0]}\n"
        )
        sys.stdout.flush()
        return result

    with ThreadPoolExecutor(processes) as pool:
        return list(pool.map(lambda pair: run(*pair), [(room, m) for room, ms in chosen for m in ms]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
