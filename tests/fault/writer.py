"""What the writer processes of a campaign do: `run` is called in a child of `tests.fault.fork_server`."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pyarrow as pa

import icebench
from icebench.engine.runtime.counters import COMMIT_ATTEMPTS, Counters
from icebench.errors import CommitFailed
from tests.fault.operations import ROWS, SPEC, marker, operation, rows_of
from tests.services.foreign_expiry import ForeignExpiry

_SYSTEM_CALLS = frozenset({"close", "fsync", "link", "mkdir", "open", "rename", "replace", "rmdir", "unlink"})
"""Functions of the operating system that change what is stored."""
_METHODS = frozenset(
    {"Connection.commit", "Cursor.execute", "FileIO.close", "FileIO.write", "socket.recv_into", "socket.sendall"}
)
"""Methods of files, of SQLite's driver and of connections that do."""
_NEVER = "2999-01-01T00:00:00Z"
_DATABASE_COMMIT = "Database._commit"
"""The engine's own, because PostgreSQL's driver is compiled."""


def warm_up() -> None:
    """Load whatever the engine loads late, and compile what it compiles, before there are children."""
    with tempfile.TemporaryDirectory() as place:
        table = icebench.load_catalog(f"sqlite:///{place}/c.db", warehouse=place).create_table(
            "db.t", ROWS, partition_spec=SPEC, properties={"format-version": "3"}
        )
        for number in range(12):
            operation(0, number).make(table)
        rows_of(table)


def run(job: dict[str, Any]) -> None:
    """Do a job and report it to the pipe ``job["pipe"]``, line by line."""
    pipe = os.open(job["pipe"], os.O_WRONLY)

    def report(*words: object) -> None:
        os.write(pipe, (" ".join(map(str, words)) + "\n").encode())

    # Writers with directories of their own know as little of each other as those of two machines do.
    tempfile.tempdir = job.get("temporary", tempfile.tempdir)
    catalog = icebench.load_catalog(**job["catalog"])
    table = catalog.load_table("db.t")
    if job["kind"] in {"stream", "maintenance"}:
        if job["kill_at"] is not None:
            _kill_at(job["kill_at"])
        (_stream if job["kind"] == "stream" else _maintain)(job, table, report)
    elif job["kind"] == "changes":
        if job["kill_at"] is not None:
            _kill_at(job["kill_at"])
        for number in range(job["first"], job["end"]):
            report("begin", number)
            operation(job["seed"], number).make(table)
            report("done", number)
    else:
        _append(job, table, report)


def _append(job: dict[str, Any], table: icebench.Table, report: Any) -> None:
    """Append one row again and again, as fast as the other writers allow."""
    for number in range(job["first"], job["end"]):
        counters = Counters()
        started = time.monotonic()
        try:
            table.append(marker(number).rows, counters=counters)
        except CommitFailed as error:
            report("failed", number, counters[COMMIT_ATTEMPTS], type(error).__name__)
        else:
            report("done", number, counters[COMMIT_ATTEMPTS], round(time.monotonic() - started, 3))


def batch_ids(stream: int, number: int) -> range:
    """The ids of the rows of a stream's batch."""
    first = (stream * 100_000 + number) * 3
    return range(first, first + 3)


def _stream(job: dict[str, Any], table: icebench.Table, report: Any) -> None:
    """Commit batches from the one after the last that the checkpoint notes, and note each when it is committed."""
    checkpoint = Path(job["checkpoint"])
    for number in range(len(checkpoint.read_text()), job["end"]):
        ids = batch_ids(job["stream"], number)
        rows = pa.table({"id": ids, "part": [i % 3 for i in ids], "n": [number] * 3}, schema=ROWS)
        try:
            made = table.append_batch(rows, stream_id=f"stream {job['stream']}", batch_id=number)
        except CommitFailed as error:
            report("failed", type(error).__name__, str(error).replace(" ", "_"))
            return
        report("skipped" if made is None else "committed", number)
        if number == job["kill_unnoted"]:
            os.kill(os.getpid(), signal.SIGKILL)
        with checkpoint.open("a") as file:
            file.write(".")


def _maintain(job: dict[str, Any], table: icebench.Table, report: Any) -> None:
    """Compact, expire and evolve the table beside the streams."""
    random = Random(job["seed"])
    for number in range(job["end"]):
        kind = random.choice(["compact", "compact", "expire", "expire", "foreign expiry", "manifests", "evolve"])
        table.refresh()
        try:
            if kind == "compact":
                table.maintenance.rewrite_data_files(rewrite_all=True)
            elif kind == "expire":
                table.maintenance.expire_snapshots(older_than=_NEVER, retain_last=random.randrange(1, 3))
            elif kind == "foreign expiry":
                table._change(ForeignExpiry(older_than_ms=2**50, retain_last=1))
            elif kind == "manifests":
                table.maintenance.rewrite_manifests()
            else:
                name = f"c{job['seed']}_{number}"
                table.update_schema(lambda update, name=name: update.add_column(name, icebench.LONG))  # type: ignore[misc]
        except CommitFailed as error:
            report("failed", kind, type(error).__name__)
        else:
            report("done", kind)


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
