"""A further process of a run: ``python -m icebench.bench.runs.further_process RUN PROCESS CACHE LOCK``.

Runs every round again, in a process with engines of its own, and appends to the run's file, whose lock it has from the
process that started it. Says each step in a line on standard error.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from icebench.bench.errors import BenchError, EngineFailed
from icebench.bench.execution.interruption import STOPPED, Interruption, Stopped
from icebench.bench.runs.run import Surroundings, resume_run


def launch(path: Path, process: int, lock: int, *, cache: Path, interruption: Interruption) -> None:
    """Start the process and wait for its end.

    Args:
        path: The run's file.
        process: Its number.
        lock: The descriptor of the file's lock.
        cache: Directory of generated tables.
        interruption: Asks it to stop, too.

    Raises:
        EngineFailed: It failed, and has said why on standard error.
        Stopped: It was asked to stop.
    """
    command = [
        sys.executable,
        "-m",
        "icebench.bench.runs.further_process",
        str(path),
        str(process),
        str(cache),
        str(lock),
    ]
    with subprocess.Popen(command, pass_fds=[lock], process_group=0) as started:
        interruption.processes.append(started)
        code = started.wait()
        interruption.processes.remove(started)
    if code == STOPPED:
        raise Stopped(interruption.advice)
    interruption.check()
    if code:
        raise EngineFailed(f"process {process} of the run failed; 'icebench run --resume {path}' goes on with it")


def main(arguments: list[str]) -> int:
    """Be the process; gives its exit code."""
    path, process, cache, lock = Path(arguments[0]), int(arguments[1]), Path(arguments[2]), int(arguments[3])

    def report(phase: str, detail: str, done: int, total: int, share: float | None = None) -> None:  # noqa: ARG001 - a line has none
        sys.stderr.write(f"process {process}, {phase}: {detail} ({done}/{total})\n")

    interruption = Interruption(say=lambda _: None)  # who started it says it
    where = Surroundings(cache=cache, results=path.parent, progress=report, interruption=interruption)
    try:
        with interruption.listening():
            resume_run(path, where=where, process=process, lock=lock)
    except Stopped:
        return STOPPED
    except BenchError as error:
        sys.stderr.write(f"icebench: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
