"""Writing a table's rows: time, processor time and memory of one append to an empty table.

Before anything is timed each engine writes once, and what it has written is read back.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

import icebench
from icebench.bench.engines.checksum import Checksum, checksum_of
from icebench.bench.engines.engine import Ability, AnyEngine, Writing
from icebench.bench.errors import Disagreement
from icebench.bench.execution.context import Context
from icebench.bench.execution.opened import try_each
from icebench.bench.execution.trial import Bench, Measurement, Trial
from icebench.bench.records.case import Case, Evidence
from icebench.bench.trials.commits import workspace
from icebench.bench.trials.subject import Subject

_READERS = ("pyiceberg", "icebench")
"""Who reads what another engine wrote, the first that is there."""


@dataclass(frozen=True, kw_only=True)
class Writes:
    """One append of rows.

    Args:
        case: Of all engines.
        location: The table that has the rows.
        partitioned: Whether its rows are in partitions.
        rows: The most that are written.
        workspace: Directory for what is written, which is deleted.
    """

    case: Case
    location: str
    partitioned: bool
    rows: int
    workspace: Path

    def trials(self, bench: Bench) -> Iterator[Trial]:
        engines = bench.able(self.case, Ability.WRITE)
        for name in [n for n, each in engines.items() if self.partitioned and not cast("Writing", each).writes_tables]:
            bench.recorder.skip(self.case.of(name), f"{name} writes no partitions")
            del engines[name]
        if not engines:
            return
        rows = icebench.load_table(self.location).scan(limit=self.rows).to_arrow()
        expected = checksum_of(rows.to_batches(), rows.column_names)
        folder = bench.resources.enter_context(workspace(self.workspace))
        write = partial(self._checked, bench, rows, expected, folder)
        yield from try_each(engines, write, bench.recorder, self.case).values()

    def _checked(self, bench: Bench, rows: pa.Table, expected: Checksum, folder: Path, engine: AnyEngine) -> Trial:
        """Write once, and read that back."""
        own = cast("Writing", engine)
        taken = own.take_rows(rows)
        with workspace(folder) as place:
            target = own.new_target(self.location, place)
            start = bench.clock()
            own.append_rows(target, taken)
            seconds = bench.clock() - start
            sizes = [path.stat().st_size for path in place.rglob("*.parquet")]
            found = _read_back(own, own.written_to(target), rows.column_names, bench)
        if fault := expected.difference(found):
            raise Disagreement(f"what {own.name} wrote is not what it was given: {fault}")
        counters = {"rows_written": rows.num_rows, "files_written": len(sizes), "bytes_written": sum(sizes)}
        return Trial(
            case=self.case.of(own.name),
            evidence=Evidence(counters=counters, checksum=expected.text),
            prepare=partial(_appending, own, taken, self.location, folder),
            seconds=seconds,
        )


def _read_back(writer: Writing, written: str, columns: list[str], bench: Bench) -> Checksum:
    if not writer.writes_tables:
        with pq.ParquetFile(written) as file:
            return checksum_of(file.iter_batches(), columns)
    readers = [bench.engines[name] for name in _READERS if name in bench.engines and name != writer.name]
    reader = (*readers, bench.engines[writer.name])[0]
    handle = reader.open(written)
    return reader.checksum(handle, columns, reader.compile(handle, None))


def _appending(own: Writing, rows: Any, location: str, folder: Path) -> Callable[[], object]:  # noqa: ANN401 - its own
    for former in folder.iterdir():
        shutil.rmtree(former)
    target = own.new_target(location, Path(tempfile.mkdtemp(dir=folder)))
    return lambda: own.append_rows(target, rows)


def measurements(subject: object, context: Context) -> Iterator[Measurement]:
    """Appends of the rows of a table."""
    assert isinstance(subject, Subject)
    yield Writes(
        case=subject.case("writing"),
        location=subject.location,
        partitioned=bool(subject.table.partition_columns),
        rows=context.options.rows,
        workspace=context.cache,
    )
