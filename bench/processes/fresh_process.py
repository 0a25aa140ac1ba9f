"""Work in a process of its own, which measures itself and answers with a line of JSON."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from threading import Event, Timer
from types import MappingProxyType
from typing import IO, Any

from icebench.bench.errors import Disagreement, EngineFailed
from icebench.bench.records.case import Cost

_TIMEOUT_SECONDS = 600
NOTHING: Mapping[str, int] = MappingProxyType({})
_OWN = ("seconds", "cpu_seconds", "peak_bytes")


@dataclass(frozen=True, kw_only=True)
class FreshProcess:
    """A process that has answered and may still be ending.

    Args:
        process: The process.
        line: Its answer.
        errors: What it says on standard error: a file, as a pipe that is full would stop it.
        least: What the answer must have at least, by name.
        exactly: What it must have.
    """

    process: subprocess.Popen[str]
    line: str
    errors: IO[str]
    least: Mapping[str, int]
    exactly: Mapping[str, int]

    def cost(self, wall: float) -> Cost:
        """What the process says that it took; by the clock `wall`, unless it says.

        Raises:
            EngineFailed: It failed, or did not end and was killed.
            Disagreement: It found less than it must, or something else.
        """
        self._wait()
        with self.errors as file:
            file.seek(0)
            errors = file.read().splitlines()
        if self.process.returncode or not self.line:
            # Of a Java stack, what its last cause is.
            last = next((line for line in reversed(errors) if line and not line[0].isspace()), self.line)
            raise EngineFailed(f"a fresh process failed: {last}")
        answer: dict[str, Any] = json.loads(self.line)
        for name, least in self.least.items():
            if answer[name] < least:
                raise Disagreement(f"a fresh process finds {answer[name]} {name}, fewer than {least}")
        for name, number in self.exactly.items():
            if answer[name] != number:
                raise Disagreement(f"a fresh process finds {answer[name]} {name}, not {number}")
        known = {*_OWN, *self.least, *self.exactly}
        more = {name: value for name, value in answer.items() if name not in known}
        return Cost(wall=answer.get("seconds", wall), cpu=answer["cpu_seconds"], memory=answer["peak_bytes"], more=more)

    def _wait(self) -> None:
        try:
            self.process.communicate(timeout=_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise self.killed("end") from error

    def killed(self, missed: str) -> EngineFailed:
        """Kill it, and say what it did not do in time."""
        _kill(self.process)
        self.process.communicate()
        self.errors.close()
        return EngineFailed(f"a fresh process did not {missed} within {_TIMEOUT_SECONDS} s")


def _kill(process: subprocess.Popen[str]) -> None:
    """Its group: what it started, such as a Java virtual machine, would go on without it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def fresh_process(
    arguments: Sequence[str], *, least: Mapping[str, int] = NOTHING, exactly: Mapping[str, int] = NOTHING
) -> FreshProcess:
    """Start ``python -m`` with these arguments and wait for its answer, not for its end.

    Raises:
        EngineFailed: It did not answer and was killed.
    """
    errors = TemporaryFile("w+", errors="replace")  # noqa: SIM115 - read and closed by `cost`
    # In a group of its own it does not see Ctrl-C: a run stops after the sample.
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        process_group=0,
    )
    assert process.stdout is not None
    late = Event()

    def end() -> None:
        late.set()
        _kill(process)

    watch = Timer(_TIMEOUT_SECONDS, end)
    watch.daemon = True
    watch.start()
    try:
        line = process.stdout.readline()
    finally:
        watch.cancel()
    started = FreshProcess(process=process, line=line, errors=errors, least=least, exactly=exactly)
    if late.is_set():
        raise started.killed("answer")
    return started
