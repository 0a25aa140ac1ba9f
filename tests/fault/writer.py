"""What the writer processes of a campaign do: `run` is called in a child of `tests.fault.fork_server`."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from types import FrameType
from typing import Any

import engine
from engine.errors import CommitFailed
from engine.runtime.counters import COMMIT_ATTEMPTS, Counters
from tests.fault.operations import ROWS, SPEC, marker, operation, rows_of

_SYSTEM_CALLS = frozenset({"close", "fsync", "link", "mkdir", "open", "rename", "replace", "rmdir", "unlink"})
"""Functions of the operating system that change what is stored."""
_METHODS = frozenset({"Connection.commit", "Cursor.execute", "FileIO.close", "FileIO.write"})
"""Methods of files and of SQLite's driver that do."""
_DATABASE_COMMIT = "Database._commit"
"""The engine's own, because PostgreSQL's driver is compiled."""


def warm_up() -> None:
    """Load whatever the engine loads late, and compile what it compiles, before there are children."""
    with tempfile.TemporaryDirectory() as place:
        table = engine.load_catalog(f"sqlite:///{place}/c.db", warehouse=place).create_table(
            "db.t", ROWS, partition_spec=SPEC, properties={"format-version": "3"}
        )
        for number in range(12):
            operation(0, number).make(table)
        rows_of(table)


def run(job: dict[str, Any]) -> None:
    """Do a job and tell the pipe ``job["pipe"]`` about it, line by line."""
    pipe = os.open(job["pipe"], os.O_WRONLY)

    def tell(*words: object) -> None:
        os.write(pipe, (" ".join(map(str, words)) + "\n").encode())

    # Writers with directories of their own know as little of each other as those of two machines do.
    tempfile.tempdir = job.get("temporary", tempfile.tempdir)
    catalog = engine.load_catalog(**job["catalog"])
    table = catalog.load_table("db.t")
    if job["kind"] == "changes":
        if job["kill_at"] is not None:
            _kill_at(job["kill_at"])
        for number in range(job["first"], job["end"]):
            tell("begin", number)
            operation(job["seed"], number).make(table)
            tell("done", number)
    else:
        _append(job, table, tell)


def _append(job: dict[str, Any], table: engine.Table, tell: Any) -> None:
    """Append one row again and again, as fast as the other writers allow."""
    for number in range(job["first"], job["end"]):
        counters = Counters()
        started = time.monotonic()
        try:
            table.append(marker(number).rows, counters=counters)
        except CommitFailed as error:
            tell("failed", number, counters[COMMIT_ATTEMPTS], type(error).__name__)
        else:
            tell("done", number, counters[COMMIT_ATTEMPTS], round(time.monotonic() - started, 3))


def _kill_at(count: int) -> None:
    """Have this process killed right before or after a call that changes storage, at number `count` of these."""
    moments = 0

    def observe(frame: FrameType, event: str, called: Any) -> None:
        nonlocal moments
        if event in {"c_call", "c_return"}:
            name = called.__qualname__
            counts = name in _METHODS or (name in _SYSTEM_CALLS and called.__module__ == "posix")
        else:
            counts = frame.f_code.co_qualname == _DATABASE_COMMIT
        if counts:
            moments += 1
            if moments > count:
                os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(observe)
    sys.setprofile(observe)
