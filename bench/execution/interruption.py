"""Ctrl-C: a run stops after the sample, and says how it goes on.

An exception that the handler of a signal raises comes up wherever the interpreter is. In the callback of a weak
reference it is printed and forgotten, and within an engine it may be taken for the engine's failure. So nothing is
raised there: a thread notes that the run is to stop, and the run looks at it after each sample and step.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from types import FrameType

import psutil

STOPPED = 130
"""The exit code of a process that was stopped by Ctrl-C."""

Handler = Callable[[int, FrameType | None], object] | int | None


def _end_at_once() -> None:
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            process.terminate()
    os._exit(STOPPED)


class Stopped(KeyboardInterrupt):
    """The run was asked to stop, and has. `str()` says how it goes on."""


class Interruption:
    """A request to stop, and what there is to say about it.

    Args:
        say: Prints a line; called by another thread than the run's.
        end: Ends this process and those that it started, at once.
    """

    def __init__(self, say: Callable[[str], object], end: Callable[[], object] = _end_at_once) -> None:
        self.asked = False
        self.path: Path | None = None
        """The run's file, once there is one."""
        self.is_complete = False
        """Whether the file has its last line: there is nothing to go on with."""
        self.processes: list[subprocess.Popen[bytes]] = []
        """Further processes of the run, which are asked, too: in groups of their own, they do not see Ctrl-C."""
        self._end = end
        self._say = say

    @property
    def advice(self) -> str:
        """What there is to do next."""
        if self.path is None:
            return "stopped; nothing was measured yet"
        if self.is_complete:
            return f"stopped; the run is complete: icebench report {shlex.quote(str(self.path))}"
        return f"stopped; go on with: icebench run --resume {shlex.quote(str(self.path))}"

    def check(self) -> None:
        """Raise Stopped if the run is to stop."""
        if self.asked:
            raise Stopped(self.advice)

    def ask(self) -> None:
        """Ask the run to stop after the sample; asked again, end it at once."""
        if self.asked:
            self._say(f"icebench: {self.advice}")
            self._end()
            return
        self.asked = True
        self._say("icebench: stopping after this sample; Ctrl-C again stops at once")
        for process in self.processes:
            process.send_signal(signal.SIGINT)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Context in which Ctrl-C asks; only the main thread can enter it. A process that ignores Ctrl-C goes on to do
        so.

        Raises:
            Stopped: The block was stopped, by `check` or otherwise.
        """
        try:
            if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
                yield
            else:
                with self._heard():
                    yield
        except Stopped:
            raise
        except KeyboardInterrupt:  # a library's own handler
            raise Stopped(self.advice) from None
        except Exception as error:
            if self.asked:  # what a program does that was interrupted itself
                raise Stopped(self.advice) from error
            raise

    @contextmanager
    def _heard(self) -> Iterator[None]:
        # The interpreter writes to the pipe at once, where a handler waits for the end of a call into a library.
        heard, said = os.pipe()
        os.set_blocking(said, False)
        Thread(target=self._hear, args=(heard,), daemon=True).start()
        handler = signal.signal(signal.SIGINT, _do_nothing)
        before = signal.set_wakeup_fd(said, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            signal.signal(signal.SIGINT, handler)
            os.close(said)

    def _hear(self, heard: int) -> None:
        while signals := os.read(heard, 1):
            if signals[0] == signal.SIGINT:
                self.ask()
        os.close(heard)


def say_on_terminal(line: str) -> None:
    """Print a line on standard error, whatever else is printing there."""
    with suppress(OSError):
        os.write(2, f"\n{line}\n".encode())


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """In place of the handler that raises KeyboardInterrupt."""


@contextmanager
def same_handler() -> Iterator[None]:
    """Context in which a library may set a handler of Ctrl-C, which is set back at its end."""
    before: Handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        # ValueError: no thread but the main one sets handlers, and so the library has set none.
        with suppress(ValueError):
            signal.signal(signal.SIGINT, before)
