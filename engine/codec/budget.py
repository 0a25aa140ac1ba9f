"""Memory budget for decoding one file.

A file of kilobytes can decode to gigabytes: compressed zeros, lists of empty objects, claims of rows that take no
bytes. `budget_of` bounds the memory of the result by the size of the file, `piece_limit` what is inflated at a time. A
decoder raises `TooLarge` before it allocates more. For tables that are really so large, set the environment variable
``ICEBENCH_DECODE_BYTES``, on Spark's executors too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Condition

from icebench.engine.errors import Invalid, TooLarge

VARIABLE = "ICEBENCH_DECODE_BYTES"
DEFAULT_BYTES = 768 << 20
"""Real manifests of ten thousand columns inflate to 160 MB, and decode to at most four times as much."""
_TIMES_SIZE = 10
"""A file may decode to at least this many times its own size."""
_PIECES = 6


def budget_of(size_bytes: int, environment: Mapping[str, str] = os.environ) -> int:
    """The memory that decoding a file of this size may take."""
    text = environment.get(VARIABLE)
    if text is None:
        return max(DEFAULT_BYTES, _TIMES_SIZE * size_bytes)
    if not (text.isdecimal() and len(text) < 19):
        raise Invalid(f"{VARIABLE}={text!r} is not a number of bytes")
    return max(int(text), _TIMES_SIZE * size_bytes)


def piece_limit(size_bytes: int) -> int:
    """The most bytes that one part of a file may inflate to: a block of Avro, a blob of Puffin."""
    return budget_of(size_bytes) // _PIECES


def too_large(what: str, limit: int, *, location: str | None = None, path: str | None = None) -> TooLarge:
    """The error for data that exceeds a limit; `what` names the data and its stored size."""
    reason = f"{what} takes more than {limit} bytes decoded; raise {VARIABLE} if the table is sound"
    return TooLarge(reason, location=location, path=path)


class Allowance:
    """The memory that one part of the work may take, and how much of it is used."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.used_bytes = 0

    @property
    def left_bytes(self) -> int:
        """The bytes that may still be used."""
        return max(self.size_bytes - self.used_bytes, 0)


class Budget:
    """A number of bytes shared by the threads that decode the parts of a file.

    Args:
        size_bytes: The budget.
        parts: The number of parts.
    """

    def __init__(self, size_bytes: int, parts: int = 1) -> None:
        self._left = size_bytes
        self._share = size_bytes // min(parts, _PIECES)
        self._running = 0
        self._changed = Condition()

    @contextmanager
    def allowance(self) -> Iterator[Allowance]:
        """Context of one part of the work. A part waits for others while they may leave it more than is left. After an
        error nothing is left for the parts that follow."""
        with self._changed:
            self._changed.wait_for(lambda: self._left >= self._share or not self._running)
            own = Allowance(min(self._left, self._share))
            self._left -= own.size_bytes
            self._running += 1
        failed = True
        try:
            yield own
            failed = False
        finally:
            with self._changed:
                self._left = 0 if failed else self._left + own.left_bytes
                self._running -= 1
                self._changed.notify_all()
