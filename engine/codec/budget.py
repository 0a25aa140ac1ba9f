"""How much memory the decoding of one file may take.

A file of kilobytes can decode to gigabytes: compressed zeros, lists of empty objects, claims of rows that take no
bytes. What a decoder makes of a file is bounded by `budget_of` its size, and what it inflates at once by a part of
that; beyond, it raises `TooLarge` before the memory is taken. Someone whose tables are really so large raises the
environment variable ``ICEBENCH_DECODE_BYTES``, also that of Spark's executors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Condition

from engine.errors import Invalid, TooLarge

VARIABLE = "ICEBENCH_DECODE_BYTES"
DEFAULT_BYTES = 768 << 20
"""Real manifests of ten thousand columns inflate to 160 MB, of which up to four times as much is kept."""
_TIMES_SIZE = 10
"""A file may take so many times its own size, however large it is."""
_PIECES = 6


def budget_of(size_bytes: int, environment: Mapping[str, str] = os.environ) -> int:
    """What the decoding of a file of this size may take."""
    text = environment.get(VARIABLE)
    if text is None:
        return max(DEFAULT_BYTES, _TIMES_SIZE * size_bytes)
    if not (text.isdecimal() and len(text) < 19):
        raise Invalid(f"{VARIABLE}={text!r} is not a number of bytes")
    return max(int(text), _TIMES_SIZE * size_bytes)


def piece_limit(size_bytes: int) -> int:
    """What a part of a file that is inflated at once may inflate to: a block of Avro, a blob of Puffin."""
    return budget_of(size_bytes) // _PIECES


def too_large(what: str, limit: int, *, location: str | None = None, path: str | None = None) -> TooLarge:
    """The error for what would take more than a limit; `what` says what it is and from how many bytes."""
    reason = f"{what} takes more than {limit} bytes decoded; raise {VARIABLE} if the table is sound"
    return TooLarge(reason, location=location, path=path)


class Allowance:
    """What one part of the work may take, and after it has taken."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.used_bytes = 0

    @property
    def left_bytes(self) -> int:
        """What may still be taken."""
        return max(self.size_bytes - self.used_bytes, 0)


class Budget:
    """A number of bytes that threads share which decode the parts of a file.

    Args:
        size_bytes: The budget.
        parts: Into how many parts the work is cut.
    """

    def __init__(self, size_bytes: int, parts: int = 1) -> None:
        self._left = size_bytes
        self._share = size_bytes // min(parts, _PIECES)
        self._running = 0
        self._changed = Condition()

    @contextmanager
    def allowance(self) -> Iterator[Allowance]:
        """Around one part of the work; a part waits for others as long as they may leave it more than is left. After
        an error nothing is left for parts that follow."""
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
