"""Child processes that end with the test run, whatever happens to it."""

from __future__ import annotations

import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_STARTUP_SECONDS = 60.0
_SHUTDOWN_SECONDS = 15.0


class ServiceFailed(RuntimeError):
    """A server did not come up; the message ends with what it wrote."""


def free_port() -> int:
    """A TCP port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def as_user(user: str | None) -> dict[str, Any]:
    """The arguments of `subprocess` for a process of that user."""
    if user is None:
        return {}
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def _dying_with_parent() -> list[str]:
    """What to put before a command that Linux is to end when this process is killed and can end nothing itself."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM"] if setpriv else []


@contextmanager
def running(
    command: Sequence[str],
    *,
    log: Path,
    ready: Callable[[], bool],
    user: str | None = None,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> Iterator[None]:
    """A process from when `ready` says yes to the end of the block.

    Args:
        command: Program and arguments.
        log: Takes what it writes.
        ready: Asked again and again while it starts.
        user: Whose process it is to be, where that is not the caller's.
        stop_signal: Ends it; after a while it is killed.

    Raises:
        ServiceFailed: It ended by itself, or was not ready in time.
    """
    with log.open("wb") as output:
        # A session of its own: an interrupt at the terminal is for pytest, which then ends this.
        process = subprocess.Popen(
            [*_dying_with_parent(), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **as_user(user),
        )
        try:
            until = time.monotonic() + _STARTUP_SECONDS
            while not ready():
                if process.poll() is not None or time.monotonic() > until:
                    raise ServiceFailed(f"{command[0]} did not come up:\n{log.read_text(errors='replace')[-4000:]}")
                time.sleep(0.05)
            yield
        finally:
            process.send_signal(stop_signal)
            try:
                process.wait(_SHUTDOWN_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
