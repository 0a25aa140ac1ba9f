"""Runs on disk: newline JSON, one object a line, append only.

The first line is the environment, with the whole definition; then cases, samples, rounds, what was skipped, and
failures, as they happen; the last line closes the run. A file without its last line is a run that was interrupted: its
samples are good, the run is not complete, and it can go on. Every line is one `write` of a file opened for appending,
flushed to the kernel, so a killed process loses at most the line it was in.
"""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeVar

from icebench.bench.errors import CorruptRecords
from icebench.bench.execution.metrics import records_of
from icebench.bench.records.case import Case, Cost, Evidence, Measured, Sample
from icebench.bench.records.record import Failure, Record, Skipped
from icebench.bench.statistics.process_spread import ASSUMED, ProcessSpread

FORMAT = 2
"""The version of this file format; a reader refuses another."""

T = TypeVar("T")
_ByPlace = dict[tuple[int, int], Sample]


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a results file holds. `complete` is False for a run that was interrupted; `order` has the cases as their
    samples refer to them, None for one that was taken back; `finished` is when the run came to its end, in ISO 8601,
    which early runs have not recorded; `spread` is what is known of processes of its machine."""

    run_id: str
    environment: Mapping[str, Any]
    measured: tuple[Measured, ...]
    skipped: tuple[Skipped, ...] = ()
    failures: tuple[Failure, ...] = ()
    rounds: tuple[Mapping[str, Any], ...] = ()
    order: tuple[Case | None, ...] = ()
    complete: bool = True
    finished: str | None = None
    spread: ProcessSpread = ASSUMED

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """The series that reports show."""
        return records_of(self.measured, self.spread)

    @property
    def experiment(self) -> str:
        """The name of what was run."""
        return str(self.environment.get("experiment", "nothing"))

    @property
    def failed(self) -> bool:
        """Whether anything went wrong: a failed run's figures do not count."""
        return bool(self.failures)


class RunWriter:
    """Appends to a run's file. Use as a context manager; leaving it through an exception leaves the run unclosed.

    Args:
        path: The file to make; its directory is made too.
        run_id: The run's id.
        environment: The fingerprint, with its ``"id"``, and what was asked for; None goes on with a file that is
            there, of which a last line that was cut off is taken away.
        known: `Run.order` of the file that is there.

    Raises:
        FileExistsError: There is a file at `path`, and `environment` is given.
    """

    def __init__(
        self, path: Path, *, run_id: str, environment: Mapping[str, Any] | None, known: tuple[Case | None, ...] = ()
    ) -> None:
        self.path = path
        self._ordinals = {case: ordinal for ordinal, case in enumerate(known) if case is not None}
        self._next = len(known)
        flags = os.O_WRONLY | os.O_APPEND
        if environment is None:
            whole = path.read_bytes()
            os.truncate(path, whole.rfind(b"\n") + 1)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            flags |= os.O_CREAT | os.O_EXCL
        self._file: BinaryIO = os.fdopen(os.open(path, flags, 0o644), "wb")
        if environment is not None:
            self._write("environment", {"format": FORMAT, "run_id": run_id, **environment})

    def case(self, measured: Measured) -> None:
        """Append a case; its samples refer to it by its ordinal."""
        self._ordinals[measured.case] = self._next
        self._next += 1
        values = asdict(replace(measured, samples=()))
        del values["samples"]
        self._write("case", values)

    def sample(self, case: Case, sample: Sample) -> None:
        """Append a sample of a case."""
        values = {"case": self._ordinals[case], "process": sample.process, "round": sample.round}
        self._write("sample", {**values, **asdict(sample.cost)})

    def drop(self, case: Case) -> None:
        """Take a case back that failed while it was timed."""
        self._write("drop", {"case": self._ordinals.pop(case)})

    def round(self, workload: str, process: int, ordinal: int, conditions: Mapping[str, float]) -> None:
        """Append what the machine did besides during a round."""
        self._write("round", {"workload": workload, "process": process, "round": ordinal, **conditions})

    def add(self, item: Skipped | Failure) -> None:
        """Append a skipped case or a failure."""
        self._write("skipped" if isinstance(item, Skipped) else "failure", asdict(item))

    def close(self, *, failed: bool, finished: str | None = None) -> None:
        """Write the last line, with the time in ISO 8601, and close the file."""
        at = {"finished": finished} if finished else {}
        self._write("end", {"status": "failed" if failed else "ok", **at})
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


def read_run(path: Path, *, interrupted: bool = False) -> Run:
    """The run in a results file.

    Args:
        path: The file; compressed where its name ends in ``.xz``.
        interrupted: Whether a last line that was cut off is left out, rather than refused.

    Raises:
        CorruptRecords: A line is not what a `RunWriter` writes; the message starts with ``file:line``.
        FileNotFoundError: No such file.
    """
    lines = _content(path).split(b"\n")
    if lines[-1] and not interrupted:
        raise CorruptRecords("the last line is cut off", location=f"{path}:{len(lines)}")
    values = [_object(line, f"{path}:{number}") for number, line in enumerate(lines[:-1], 1)]
    if not values:
        raise CorruptRecords("the file is empty", location=str(path))
    environment = _environment(values[0], f"{path}:1")
    found = _Reading()
    for number, value in enumerate(values[1:], 2):
        found.take(value, f"{path}:{number}")
    return Run(
        run_id=environment["run_id"],
        environment={k: v for k, v in environment.items() if k not in ("line", "format", "run_id")},
        measured=tuple(replace(m, samples=tuple(s.values())) for m, s in found.cases if m is not None),
        skipped=tuple(found.skipped),
        failures=tuple(found.failures),
        rounds=tuple(found.rounds),
        order=tuple(None if m is None else m.case for m, _ in found.cases),
        complete=found.complete,
        finished=found.finished,
    )


def read_environment(path: Path) -> dict[str, Any]:
    """The first line of a results file, which is read alone.

    Raises:
        CorruptRecords: It is not what a `RunWriter` writes.
        FileNotFoundError: No such file.
    """
    try:
        with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
            line = file.readline()
    except (lzma.LZMAError, EOFError) as error:
        raise _not_xz(path, error) from error
    return _environment(_object(line, f"{path}:1"), f"{path}:1")


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix != ".xz":
        return content
    try:
        return lzma.decompress(content)
    except (lzma.LZMAError, EOFError) as error:
        raise _not_xz(path, error) from error


def _not_xz(path: Path, error: Exception) -> CorruptRecords:
    return CorruptRecords(f"cut off, damaged or not of xz: {error}", location=str(path))


@dataclass(kw_only=True)
class _Reading:
    cases: list[tuple[Measured | None, _ByPlace]] = field(default_factory=list)
    known: set[Case] = field(default_factory=set)
    skipped: list[Skipped] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    rounds: list[Mapping[str, Any]] = field(default_factory=list)
    complete: bool = False
    finished: str | None = None

    def take(self, value: dict[str, Any], location: str) -> None:
        if self.complete:
            raise CorruptRecords("a line after the end of the run", location=location)
        match value.pop("line", None):
            case "case":
                self.cases.append((self._case(value, location), {}))
            case "sample":
                self._sample(value, location)
            case "drop":
                measured, _ = self._at(value, location)
                if measured is not None:
                    self.known.discard(measured.case)
                self.cases[value["case"]] = (None, {})
            case "round":
                self.rounds.append(value)
            case "skipped":
                self.skipped.append(_made(Skipped, {"workload": "*", **value}, location))
            case "failure":
                self.failures.append(_made(Failure, {"workload": "*", **value}, location))
            case "end":
                self.complete, self.finished = True, value.get("finished")
            case "environment":
                raise CorruptRecords("a second environment: runs are mixed in one file", location=location)
            case other:
                raise CorruptRecords(f"unknown line {other!r}", location=location)

    def _case(self, value: dict[str, Any], location: str) -> Measured:
        try:
            evidence = dict(value["evidence"])
            base = evidence.pop("base", None)
            made = Measured(
                case=_made(Case, value["case"], location),
                engine_version=value["engine_version"],
                evidence=Evidence(**evidence, base=None if base is None else _made(Case, base, location)),
            )
        except (KeyError, TypeError) as error:
            raise CorruptRecords(f"not a case: {error}", location=location) from error
        if made.case in self.known:
            raise CorruptRecords(f"the case {made.case} is there already", location=location)
        self.known.add(made.case)
        return made

    def _sample(self, value: dict[str, Any], location: str) -> None:
        measured, samples = self._at(value, location)
        if measured is None:
            raise CorruptRecords("a sample of a case that was taken back", location=location)
        place = {name: value.pop(name, None) for name in ("case", "process", "round")}
        if not all(isinstance(number, int) for number in place.values()):
            raise CorruptRecords("a sample without case, process or round", location=location)
        if not all(isinstance(value.get(name), int | float) for name in ("wall", "cpu")):
            raise CorruptRecords("a sample without wall or processor time", location=location)
        made = Sample(process=place["process"], round=place["round"], cost=_made(Cost, value, location))
        if made.place in samples:
            raise CorruptRecords(f"a second sample of {measured.case} in one round", location=location)
        samples[made.place] = made

    def _at(self, value: Mapping[str, Any], location: str) -> tuple[Measured | None, _ByPlace]:
        ordinal = value.get("case")
        if not isinstance(ordinal, int) or not 0 <= ordinal < len(self.cases):
            raise CorruptRecords(f"there is no case {ordinal}", location=location)
        return self.cases[ordinal]


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


def _made(kind: type[T], value: Mapping[str, Any], location: str) -> T:
    names = {f.name: f.type for f in fields(kind)}  # type: ignore[arg-type]
    text = [name for name, type_ in names.items() if type_ == "str"]
    if set(value) != set(names) or not all(isinstance(value[name], str) for name in text):
        raise CorruptRecords(f"not a {kind.__name__.lower()} line", location=location)
    return kind(**value)
