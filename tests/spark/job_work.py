"""What jobs of tests do; executors import it from here."""

from __future__ import annotations

from icebench.errors import CorruptTable


def echo(item: int, attempt: int) -> bytes:
    """The item and the attempt's number."""
    return f"{item} {attempt}".encode()


def fail_at_two(item: int, attempt: int) -> bytes:
    """An error of the engine for one item."""
    if item == 2:
        raise CorruptTable("is not\nwhole", location="/t/m.avro", path="block 1", needed_by="table db.t")
    return b""


def divide_by_zero(item: int, attempt: int) -> bytes:
    """An error that is not the engine's."""
    raise ZeroDivisionError(item)
