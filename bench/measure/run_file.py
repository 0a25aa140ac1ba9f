"""Runs on disk: newline JSON, one object a line, append only.

The first line is the environment; then records, what was skipped, and failures, as they happen; the last line closes
the run. A file without its last line is a run that was interrupted: its records are good, the run is not complete.
Every line is one `write` of a file opened for appending, flushed to the kernel, so a killed process loses at most the
line it was in.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeVar

from bench.errors import CorruptRecords
from bench.measure.record import Failure, Record, Skipped

FORMAT = 1
"""The version of this file format; a reader refuses another."""

Notice = TypeVar("Notice", Skipped, Failure)


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a results file holds. `complete` is False for a run that was interrupted."""

    run_id: str
    environment: Mapping[str, Any]
    records: tuple[Record, ...]
    skipped: tuple[Skipped, ...]
    failures: tuple[Failure, ...]
    complete: bool


class RunWriter:
    """Appends one run to a new file. Use as a context manager; leaving it through an exception leaves the run unclosed.

    Args:
        path: The file to make; its directory is made too.
        run_id: The id that every record of the run carries.
        environment: The fingerprint, with its ``"id"``.

    Raises:
        FileExistsError: There is a file at `path`.
    """

    def __init__(self, path: Path, *, run_id: str, environment: Mapping[str, Any]) -> None:
        self.path = path
        self._run_id = run_id
        self._environment_id = environment["id"]
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644), "wb")
        self._write("environment", {"format": FORMAT, "run_id": run_id, **environment})

    def add(self, item: Record | Skipped | Failure) -> None:
        """Append a record, a skipped case or a failure."""
        match item:
            case Record():
                if (item.run_id, item.environment) != (self._run_id, self._environment_id):
                    raise ValueError(f"a record of run {item.run_id} does not belong into run {self._run_id}")
                self._write("record", item.as_json())
            case Skipped():
                self._write("skipped", asdict(item))
            case Failure():
                self._write("failure", asdict(item))

    def close(self, *, failed: bool) -> None:
        """Write the last line and close the file."""
        self._write("end", {"status": "failed" if failed else "ok"})
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _write(self, kind: str, values: Mapping[str, Any]) -> None:
        line = json.dumps({"line": kind, **values}, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        self._file.write(line)
        self._file.flush()


def read_run(path: Path) -> Run:
    """The run in a results file.

    Raises:
        CorruptRecords: A line is not what a `RunWriter` writes, or comes from another run or environment; the message
            starts with ``file:line``.
        FileNotFoundError: No such file.
    """
    lines = path.read_bytes().split(b"\n")
    if lines[-1]:
        raise CorruptRecords("the last line is cut off", location=f"{path}:{len(lines)}")
    values = [_object(line, f"{path}:{number}") for number, line in enumerate(lines[:-1], 1)]
    if not values:
        raise CorruptRecords("the file is empty", location=str(path))
    environment = _environment(values[0], f"{path}:1")
    run = _Reading(environment)
    for number, value in enumerate(values[1:], 2):
        run.take(value, f"{path}:{number}")
    return Run(
        run_id=environment["run_id"],
        environment={k: v for k, v in environment.items() if k not in ("line", "format", "run_id")},
        records=tuple(run.records),
        skipped=tuple(run.skipped),
        failures=tuple(run.failures),
        complete=run.complete,
    )


class _Reading:
    def __init__(self, environment: Mapping[str, Any]) -> None:
        self._environment = environment
        self._first_seen: dict[tuple[str, ...], str] = {}
        self.records: list[Record] = []
        self.skipped: list[Skipped] = []
        self.failures: list[Failure] = []
        self.complete = False

    def take(self, value: dict[str, Any], location: str) -> None:
        if self.complete:
            raise CorruptRecords("a line after the end of the run", location=location)
        match value.pop("line", None):
            case "record":
                self.records.append(self._record(value, location))
            case "skipped":
                self.skipped.append(_notice(Skipped, value, location))
            case "failure":
                self.failures.append(_notice(Failure, value, location))
            case "end":
                self.complete = True
            case "environment":
                raise CorruptRecords("a second environment: runs are mixed in one file", location=location)
            case other:
                raise CorruptRecords(f"unknown line {other!r}", location=location)

    def _record(self, value: dict[str, Any], location: str) -> Record:
        try:
            record = Record.from_json(value)
        except ValueError as error:
            raise CorruptRecords(f"not a record: {error}", location=location) from error
        if record.run_id != self._environment["run_id"]:
            raise CorruptRecords(f"a record of another run, {record.run_id}", location=location)
        if record.environment != self._environment["id"]:
            raise CorruptRecords(f"a record of another environment, {record.environment}", location=location)
        earlier = self._first_seen.setdefault(record.key, location)
        if earlier != location:
            raise CorruptRecords(f"the case {'/'.join(record.key)} is at {earlier} already", location=location)
        return record


def _object(line: bytes, location: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise CorruptRecords(f"not JSON: {error}", location=location) from error
    if not isinstance(value, dict):
        raise CorruptRecords("not a JSON object", location=location)
    return value


def _environment(value: dict[str, Any], location: str) -> dict[str, Any]:
    if value.get("line") != "environment":
        raise CorruptRecords("a run starts with its environment", location=location)
    if value.get("format") != FORMAT:
        raise CorruptRecords(f"format {value.get('format')}; this program reads format {FORMAT}", location=location)
    if not isinstance(value.get("run_id"), str) or not isinstance(value.get("id"), str):
        raise CorruptRecords("an environment without run_id or id", location=location)
    return value


def _notice(kind: type[Notice], value: dict[str, Any], location: str) -> Notice:
    if set(value) != {f.name for f in fields(kind)} or not all(isinstance(v, str) for v in value.values()):
        raise CorruptRecords(f"not a {kind.__name__.lower()} line", location=location)
    return kind(**value)
