"""A process that has the engine loaded and forks: a child takes milliseconds instead of two seconds of imports.

`python -m tests.fault.fork_server tests.fault.writer` loads the module, calls its `warm_up`, and then obeys lines of
JSON: ``["start", job]`` forks a child that calls `run(job)` and answers its process id, ``["wait", pid]`` answers how
it ended. A server whose caller is gone kills its children.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

REPOSITORY = Path(__file__).parents[2]


class ForkServer:
    """The caller's side; a context manager.

    Args:
        module: The name of a module with `warm_up()` and `run(job)`.
        log: Takes what server and children write to their standard error.
    """

    def __init__(self, module: str, log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fault.fork_server", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=REPOSITORY,
            )
        self._answer()

    def start(self, job: dict[str, Any]) -> int:
        """Fork a child for that job; its process id."""
        return self._ask("start", job)

    def wait(self, pid: int) -> int:
        """Wait until a child has ended: its exit code, or the number of the signal that killed it, negative."""
        return self._ask("wait", pid)

    def kill(self, pid: int) -> None:
        """Have a child that was not waited for end now."""
        os.kill(pid, signal.SIGKILL)

    @property
    def said(self) -> str:
        """The end of what server and children complained about."""
        return self._log.read_text(errors="replace")[-4000:]

    def _ask(self, verb: str, argument: object) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([verb, argument]).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> int:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the fork server ended: {self.said}")
        return int(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(30)


def serve(module: str) -> None:
    """The server's side, until its input ends."""
    room = import_module(module)
    room.warm_up()
    children: set[int] = set()
    _say(0)
    for line in sys.stdin:
        verb, argument = json.loads(line)
        if verb == "start":
            pid = os.fork()
            if pid == 0:
                _child(room, argument)
            children.add(pid)
            _say(pid)
        else:
            children.discard(argument)
            _say(os.waitstatus_to_exitcode(os.waitpid(argument, 0)[1]))
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def _child(room: Any, job: dict[str, Any]) -> None:
    code = 1
    try:
        room.run(job)
        code = 0
    except BaseException:  # noqa: BLE001 - a child must never get back into the server's loop
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve(sys.argv[1])
