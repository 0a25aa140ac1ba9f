"""Committing files that are described and do not exist: latency and processor time of one append of all of them.

Before anything is timed each engine commits once, and another engine reads what the table then says: how many files,
their rows and bytes, and of a sample everything that prunes. What differs from the workload is a failure.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

import engine
from bench.engines.engine import Ability, AnyEngine, CommittedFile, Committing, FilesReader, normalised
from bench.engines.registry import ENGINES
from bench.errors import Disagreement
from bench.measure.cpu_time import CpuMeter
from bench.measure.interleave import Case, interleave_unevenly
from bench.measure.metadata_planning import Patience
from bench.measure.opened import try_each
from bench.measure.recorder import CaseId, Evidence
from bench.measure.subject import Bench
from bench.workloads.metadata_files import MetadataFiles, ordinal_of

NAME = "commits"
APPEND = "append"
"""The only case."""

LATENCY, CPU = "latency_commit", "cpu_commit"

_SAMPLED = 100
_READERS = ("pyiceberg", "icebench")
"""Who reads what another engine committed, the first that is there."""


@dataclass(frozen=True, kw_only=True)
class CommitSubject:
    """Files to be committed.

    Args:
        name: Under which they are recorded, as the layout.
        metadata_location: A table that has them, from which engines take them in their own form.
        files: What they are.
        engines: Names of those that are measured.
        workspace: Directory for the tables that are committed to, which are deleted as soon as they can be.
    """

    name: str
    metadata_location: str
    files: MetadataFiles
    engines: tuple[str, ...]
    workspace: Path


@dataclass(frozen=True, kw_only=True)
class _Ready:
    """An engine that committed right: its form of the files, and how long one commit takes it when warmed up."""

    engine: Committing
    files: Any
    seconds: float


def measure_commits(bench: Bench, subject: CommitSubject, patience: Patience) -> None:
    """Record `latency_commit` and `cpu_commit` of an append of all files to an empty table."""
    case = CaseId(layout=subject.name, measurement=NAME, case=APPEND)
    engines = {name: bench.engines[name] for name in subject.engines if name in bench.engines}
    for name in [name for name, each in engines.items() if Ability.COMMIT not in each.abilities]:
        bench.recorder.skip(case.of(name), f"{name} offers no {Ability.COMMIT.value}")
        del engines[name]
    bench.progress(NAME, f"{subject.name}: describing files", 0, 2)
    described = subject.files.data_files(engine.load_table(subject.metadata_location).location, 0, subject.files.files)
    readers = [cast("FilesReader", bench.engines[name]) for name in _READERS if name in bench.engines]
    with _workspace(subject.workspace) as folder:
        checks = _Checks(files=subject.files, described=described, readers=readers)
        ready = try_each(engines, partial(_readied, subject, checks, patience, folder), bench.recorder, case)
        del checks, described
        bench.progress(NAME, f"{subject.name}: committing", 1, 2)
        meters = {name: CpuMeter(in_java=name in ENGINES and ENGINES[name].needs_spark) for name in ready}
        cases = {
            name: Case(name, meters[name].metered(partial(_appending, each, subject.metadata_location, folder)))
            for name, each in ready.items()
        }
        rounds = {name: patience.rounds(each.seconds) for name, each in ready.items()}
        timings = interleave_unevenly(cases, rounds=rounds, warmups=0, random=bench.random, executor=bench.executor)
    bench.recorder.fail_each(case, timings.errors)
    for name, seconds in timings.seconds.items():
        evidence = Evidence(counters={"files_committed": subject.files.files})
        bench.recorder.record(case.of(name), LATENCY, "s", seconds, evidence)
        bench.recorder.record(case.of(name), CPU, "s", meters[name].seconds[-len(seconds) :], evidence)


@dataclass(frozen=True, kw_only=True)
class _Checks:
    """What committed tables are held against: the files, the same one by one, and who may read them back."""

    files: MetadataFiles
    described: list[engine.DataFile]
    readers: list[FilesReader]

    def check(self, location: str, committer: str) -> None:
        """Raise Disagreement; another engine reads where there is one."""
        others = [each for each in self.readers if each.name != committer]
        for reader in (*others, *self.readers)[:1]:
            check_committed(location, self.files, self.described, reader)


def _readied(
    subject: CommitSubject, checks: _Checks, patience: Patience, folder: Path, committing: AnyEngine
) -> _Ready:
    """Commit once and have another engine look at the table, then commit until the engine is warm."""
    own = cast("Committing", committing)
    files = own.take_files(checks.described, subject.metadata_location)

    def once(then: Callable[[Any], None] = lambda _: None) -> float:
        with _workspace(folder) as place:
            table = own.new_table(subject.metadata_location, place)
            start = patience.clock()
            own.commit_files(table, files)
            taken = patience.clock() - start
            then(table)
        return taken

    first = once(lambda table: checks.check(own.location_of(table), own.name))
    seconds = [first]
    end = patience.clock() + patience.warm_seconds
    # Where one commit outlasts the patience, there is no time for more that are not recorded.
    while first < patience.case_seconds and (len(seconds) == 1 or patience.clock() < end):
        seconds.append(once())
    return _Ready(engine=own, files=files, seconds=min(seconds))


def _appending(ready: _Ready, metadata_location: str, folder: Path) -> Callable[[], object]:
    for former in folder.iterdir():
        shutil.rmtree(former)
    table = ready.engine.new_table(metadata_location, Path(tempfile.mkdtemp(dir=folder)))
    return lambda: ready.engine.commit_files(table, ready.files)


def check_committed(
    metadata_location: str, files: MetadataFiles, described: list[engine.DataFile], reader: FilesReader
) -> None:
    """Hold what a table says of its files against what was committed.

    Args:
        metadata_location: The table.
        files: What was committed.
        described: The same, one by one.
        reader: Reads the table.

    Raises:
        Disagreement: The number of files, their rows or bytes, or anything of a sampled file differs.
    """
    step = max(1, files.files // _SAMPLED)
    found = rows = size = 0
    seen = np.zeros(files.files, np.bool_)
    for file in reader.committed(metadata_location):
        ordinal = ordinal_of(file.path)
        seen[ordinal] = True
        found, rows, size = found + 1, rows + file.record_count, size + file.size_bytes
        if ordinal % step == 0:
            _check_file(file, described[ordinal], reader.name)
    totals = {"files": found, "distinct files": int(seen.sum()), "rows": rows, "bytes": size}
    expected = {
        "files": files.files,
        "distinct files": files.files,
        "rows": sum(file.record_count for file in described),
        "bytes": sum(file.file_size_in_bytes for file in described),
    }
    if totals != expected:
        raise Disagreement(f"{reader.name} reads {totals} of what was committed, {expected}")


def _check_file(found: CommittedFile, wanted: engine.DataFile, reader: str) -> None:
    expected = CommittedFile(
        path=normalised(wanted.file_path),
        record_count=wanted.record_count,
        size_bytes=wanted.file_size_in_bytes,
        partition=wanted.partition,
        value_counts=wanted.value_counts,
        null_value_counts=wanted.null_value_counts,
        lower_bounds=wanted.lower_bounds,
        upper_bounds=wanted.upper_bounds,
    )
    for name in CommittedFile.__slots__:
        one, other = getattr(found, name), getattr(expected, name)
        if (dict(one) != dict(other)) if isinstance(other, Mapping) else one != other:
            raise Disagreement(f"{reader} reads another {name} of {found.path}: {one!r} and not {other!r}"[:500])


@contextmanager
def _workspace(parent: Path) -> Iterator[Path]:
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix="commits-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
