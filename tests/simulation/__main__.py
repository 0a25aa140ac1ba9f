"""``python -m tests.simulation``: run schedules, or one again.

python -m tests.simulation --seed 17                                    # one schedule, shrunk if it fails
python -m tests.simulation --schedules 1000000 --seed 0 --processes 2   # a campaign
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time

from tests.simulation.campaign import Found, chunks, explain, explore

_CHUNK, _CHUNK_OF_FIRST = 200, 10
_SHOWN_EVERY_SECONDS = 30


def say(text: str) -> None:
    """Show it at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Exit code 1 where something failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first, or the only one")
    parser.add_argument("--schedules", type=int, default=0, help="how many seeds; 0: one, printed in full")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--first", action="store_true", help="stop at the first failure")
    arguments = parser.parse_args()
    # The order of sets of strings is the same in every process then.
    os.environ["PYTHONHASHSEED"] = "0"
    with multiprocessing.get_context("spawn").Pool(max(arguments.processes, 1), maxtasksperchild=100) as pool:
        if not arguments.schedules:
            say(pool.apply(explain, (arguments.seed,)))
            return 0
        found, started, shown = Found(), time.monotonic(), time.monotonic()
        size = _CHUNK_OF_FIRST if arguments.first else _CHUNK
        for part in pool.imap_unordered(explore, chunks(arguments.seed, arguments.schedules, size)):
            found.add(part)
            if time.monotonic() - shown > _SHOWN_EVERY_SECONDS:
                shown = time.monotonic()
                say(f"{found.schedules / (shown - started):.0f}/s, {found}")
            if arguments.first and found.failures:
                pool.terminate()
                break
        say(f"{found.schedules / (time.monotonic() - started):.0f}/s, {found}")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for seeds in found.failures.values():
            say(pool.apply(explain, (seeds[0],)))
    return 1 if found.failures else 0


if __name__ == "__main__":
    sys.exit(main())
