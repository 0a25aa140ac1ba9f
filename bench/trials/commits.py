"""Committing files that are described and do not exist: latency and processor time of one append of all of them, to an
empty table, and to one that another writer has committed to since it was loaded.

Before anything is timed each engine commits once, and another engine reads what the table then says: how many files,
their rows and bytes, and of a sample everything that prunes. What differs from the workload is a failure.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

import icebench
from icebench.bench.engines.engine import Ability, AnyEngine, CommittedFile, Committing, FilesReader, normalised
from icebench.bench.errors import Disagreement
from icebench.bench.execution.context import Context
from icebench.bench.execution.opened import try_each
from icebench.bench.execution.trial import Bench, Measurement, Trial
from icebench.bench.records.case import Case, Evidence
from icebench.bench.trials.subject import described_table
from icebench.bench.workloads.described import DescribedWorkload
from icebench.bench.workloads.metadata_files import MetadataFiles, ordinal_of

WRITERS = {"append": 1, "append, overtaken": 2}
"""Case -> how many writers load the empty table and then commit the files, one after the other; the last is timed."""

_SAMPLED = 100
_READERS = ("pyiceberg", "icebench")
"""Who reads what another engine committed, the first that is there."""


@dataclass(frozen=True, kw_only=True)
class Commits:
    """One append of all files, the first of a table or the second of two writers that loaded it empty.

    Args:
        case: Of all engines.
        location: A table that has the files, from which engines take them in their own form.
        files: What they are.
        engines: Names of those that are measured.
        workspace: Directory for the tables that are committed to, which are deleted as soon as they can be.
    """

    case: Case
    location: str
    files: MetadataFiles
    engines: tuple[str, ...]
    workspace: Path

    def trials(self, bench: Bench) -> Iterator[Trial]:
        engines = bench.able(self.case, Ability.COMMIT, among=self.engines)
        case = self.case
        bench.progress(case.measurement, f"{case.layout}: describing files", 0, 1)
        described = self.files.data_files(icebench.load_table(self.location).location, 0, self.files.files)
        readers = [cast("FilesReader", bench.engines[name]) for name in _READERS if name in bench.engines]
        folder = bench.resources.enter_context(workspace(self.workspace))
        checks = _Checks(files=self.files, described=described, readers=readers)
        for configuration in WRITERS:
            case = replace(self.case, configuration=configuration)
            ready = try_each(engines, partial(self._checked, bench, case, checks, folder), bench.recorder, case)
            yield from ready.values()

    def _checked(self, bench: Bench, case: Case, checks: _Checks, folder: Path, committing: AnyEngine) -> Trial:
        """Commit once and have another engine look at the table."""
        own = cast("Committing", committing)
        files = own.take_files(checks.described, self.location)
        writers = WRITERS[case.configuration]
        with workspace(folder) as place:
            table = _loaded(own, files, self.location, place, writers)
            before = _written(place)
            start = bench.clock()
            own.commit_files(table, files)
            seconds = bench.clock() - start
            counters = {"files_committed": self.files.files, **dict(_written(place) - before)}
            checks.check(own.location_of(table), own.name, writers)
        return Trial(
            case=case.of(own.name),
            evidence=Evidence(counters=counters),
            prepare=partial(_appending, own, files, self.location, folder, writers),
            seconds=seconds,
        )


@dataclass(frozen=True, kw_only=True)
class _Checks:
    """What committed tables are checked against: the files, the same one by one, and who may read them back."""

    files: MetadataFiles
    described: list[icebench.DataFile]
    readers: list[FilesReader]

    def check(self, location: str, committer: str, writers: int) -> None:
        """Raise Disagreement; another engine reads where there is one."""
        others = [each for each in self.readers if each.name != committer]
        for reader in (*others, *self.readers)[:1]:
            check_committed(location, self.files, self.described, reader, times=writers)


def _appending(
    own: Committing,
    files: Any,  # noqa: ANN401 - its own
    location: str,
    folder: Path,
    writers: int,
) -> Callable[[], object]:
    for former in folder.iterdir():
        shutil.rmtree(former)
    table = _loaded(own, files, location, Path(tempfile.mkdtemp(dir=folder)), writers)
    return lambda: own.commit_files(table, files)


def _loaded(own: Committing, files: Any, location: str, place: Path, writers: int) -> Any:  # noqa: ANN401 - its own
    """An empty table as the last writer loaded it, to which the others have committed since."""
    table = own.new_table(location, place)
    for other in [own.opened_again(table) for _ in range(writers - 1)]:
        own.commit_files(other, files)
    return table


def _written(place: Path) -> Counter[str]:
    """The metadata files below a directory, by kind: what an attempt that failed has left among them."""
    return Counter(_kind(path.name) for path in place.rglob("*") if path.suffix in (".json", ".avro"))


def _kind(name: str) -> str:
    if name.endswith(".json"):
        return "metadata_files_written"
    return "manifest_lists_written" if name.startswith("snap-") else "manifests_written"


def check_committed(
    metadata_location: str,
    files: MetadataFiles,
    described: list[icebench.DataFile],
    reader: FilesReader,
    *,
    times: int,
) -> None:
    """Hold what a table says of its files against what was committed.

    Args:
        metadata_location: The table.
        files: What was committed.
        described: The same, one by one.
        reader: Reads the table.
        times: How often they were committed.

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
        "files": times * files.files,
        "distinct files": files.files,
        "rows": times * sum(file.record_count for file in described),
        "bytes": times * sum(file.file_size_in_bytes for file in described),
    }
    if totals != expected:
        raise Disagreement(f"{reader.name} reads {totals} of what was committed, {expected}")


def _check_file(found: CommittedFile, wanted: icebench.DataFile, reader: str) -> None:
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
def workspace(parent: Path) -> Iterator[Path]:
    """A directory below one that may not be there yet; deleted at the end of the context."""
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix="work-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def measurements(subject: object, context: Context) -> Iterator[Measurement]:
    """Commits of described files."""
    assert isinstance(subject, DescribedWorkload)
    yield Commits(
        case=Case(workload=subject.name, layout=subject.name, measurement="commits"),
        location=described_table(subject, context),
        files=subject.files,
        engines=subject.engines or context.asked,
        workspace=context.cache,
    )
