"""Two processes that run by turns: what one of them does never runs beside what the other does.

A machine that is shared is faster in one second than in the next, and on one processor than on another. Runs of both
sides of a pair that follow each other within milliseconds, on the same processor, see the same machine.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Baton:
    """One of two processes, of which one starts, and then each has two turns: A, B, B, A, A, B, B, A.

    Args:
        partner: Connected with the other process; None has all turns at once.
        starts: Whether this process has the first turn.
    """

    def __init__(self, partner: socket.socket | None = None, *, starts: bool = True) -> None:
        self._partner = partner
        self._is_first = starts

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Context of a turn, which begins when the other process is done with its own, or has ended."""
        passes_on, self._is_first = self._is_first, not self._is_first
        if self._partner is not None and not passes_on:
            with suppress(OSError):
                self._partner.recv(1)
        try:
            yield
        finally:
            if self._partner is not None and passes_on:
                with suppress(OSError):
                    self._partner.send(b".")


def keep_processor(number: int) -> None:
    """Run on one processor from now on: the `number`-th of those that this process may use, modulo how many."""
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {allowed[number % len(allowed)]})
