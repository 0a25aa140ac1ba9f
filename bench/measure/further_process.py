"""A further process of a run: ``python -m bench.measure.further_process RUN PROCESS CACHE``.

Runs every round again, in a process with engines of its own, and appends to the run's file. Says each step in a line on
standard error.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.errors import BenchError, EngineFailed
from bench.measure.run import Surroundings, resume_run


def launch(path: Path, process: int, cache: Path) -> None:
    """Start the process and wait for its end.

    Raises:
        EngineFailed: It failed, and has said why on standard error.
    """
    command = [sys.executable, "-m", "bench.measure.further_process", str(path), str(process), str(cache)]
    if subprocess.run(command, check=False).returncode:
        raise EngineFailed(f"process {process} of the run failed; 'icebench run --resume {path}' goes on with it")


def main(arguments: list[str]) -> int:
    """Be the process; gives its exit code."""
    path, process, cache = Path(arguments[0]), int(arguments[1]), Path(arguments[2])

    def told(phase: str, detail: str, done: int, total: int, share: float | None = None) -> None:  # noqa: ARG001 - a line has none
        sys.stderr.write(f"process {process}, {phase}: {detail} ({done}/{total})\n")

    try:
        resume_run(path, where=Surroundings(cache=cache, results=path.parent, progress=told), process=process)
    except BenchError as error:
        sys.stderr.write(f"icebench: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
