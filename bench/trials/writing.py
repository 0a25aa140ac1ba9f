"""Appends of a table's rows to an empty table: time, processor time and memory.

Before anything is timed each engine writes once, and what it has written is read back.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import icebench
from icebench.bench.engines.checksum import Checksum, checksum_of
from icebench.bench.engines.engine import Ability, AnyEngine, Writing
from icebench.bench.errors import ConfigError, Disagreement
from icebench.bench.execution.context import Context
from icebench.bench.execution.opened import try_each
from icebench.bench.execution.trial import Bench, Measurement, Trial
from icebench.bench.records.case import Case, Evidence
from icebench.bench.trials.changes import Changes
from icebench.bench.trials.commits import workspace
from icebench.bench.trials.read_back import read_back
from icebench.bench.trials.subject import Subject

APPEND = "append"
"""What the names of these cases begin with."""


@dataclass(frozen=True, kw_only=True)
class Append:
    """One append.

    Args:
        name: Its configuration.
        columns: Those that are written; all where empty.
        sort: Columns of the table's sort order, ascending.
        level: Of zstd; None is the engine's default.
    """

    name: str = APPEND
    columns: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    level: int | None = None


@dataclass(frozen=True, kw_only=True)
class Writes:
    """Appends of the same rows.

    Args:
        case: Of all engines and appends.
        location: The table that has the rows.
        partitioned: Whether its rows are in partitions.
        rows: The most that are written.
        workspace: Directory for what is written, which is deleted.
        appends: In their order.
    """

    case: Case
    location: str
    partitioned: bool
    rows: int
    workspace: Path
    appends: tuple[Append, ...] = (Append(),)

    def trials(self, bench: Bench) -> Iterator[Trial]:
        engines = self._able(bench)
        if not engines:
            return
        rows = icebench.load_table(self.location).scan(limit=self.rows).to_arrow()
        folder = bench.resources.enter_context(workspace(self.workspace))
        given = _Given(rows=rows, bench=bench)
        for append in self.appends:
            write = _Write(
                case=replace(self.case, configuration=append.name),
                append=append,
                source=_empty_table(self.location, append, Path(tempfile.mkdtemp(dir=folder))),
                given=given,
                expected=given.checksum(append.columns),
                folder=Path(tempfile.mkdtemp(dir=folder)),
            )
            able = _sorting(engines, write.case, bench) if append.sort else engines
            yield from try_each(able, write.checked, bench.recorder, write.case).values()

    def _able(self, bench: Bench) -> dict[str, AnyEngine]:
        """The engines that write the table; the others are recorded as skipped, once for all appends."""
        case = replace(self.case, configuration=APPEND)
        engines = bench.able(case, Ability.WRITE)
        for name in [n for n, each in engines.items() if self.partitioned and not cast("Writing", each).writes_tables]:
            bench.recorder.skip(case.of(name), f"{name} writes no partitions")
            del engines[name]
        return engines


def _sorting(engines: Mapping[str, AnyEngine], case: Case, bench: Bench) -> dict[str, AnyEngine]:
    """The engines that honour a sort order; the others are recorded as skipped."""
    found = {}
    for name, each in engines.items():
        own = cast("Writing", each)
        if own.sorts_rows:
            found[name] = each
        else:
            why = "ignores the sort order of a table" if own.writes_tables else "writes no table with a sort order"
            bench.recorder.skip(case.of(name), f"{name} {why}")
    return found


@dataclass(frozen=True, kw_only=True)
class _Given:
    """The rows; and the same as each engine has them, once for all appends of the same columns."""

    rows: pa.Table
    bench: Bench
    taken: dict[tuple[str, tuple[str, ...]], Any] = field(default_factory=dict)
    sizes: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    """Engine -> bytes written -> the level of zstd that made them."""

    def of(self, columns: tuple[str, ...]) -> pa.Table:
        """Those columns, or all where there are none; without ids, which a table of a few columns numbers anew."""
        rows = self.rows.select(columns or self.rows.column_names)
        return pa.table(rows.columns, schema=pa.schema([each.remove_metadata() for each in rows.schema]))

    def checksum(self, columns: tuple[str, ...]) -> Checksum:
        return checksum_of(self.of(columns).to_batches(), columns or self.rows.column_names)

    def taken_by(self, own: Writing, columns: tuple[str, ...]) -> Any:  # noqa: ANN401 - its own
        if (own.name, columns) not in self.taken:
            self.taken[own.name, columns] = own.take_rows(self.of(columns), self.bench.resources)
        return self.taken[own.name, columns]


@dataclass(frozen=True, kw_only=True)
class _Write:
    """One append, of all engines.

    Args:
        case: Of all engines.
        append: What is special in it.
        source: The metadata file of an empty table of its kind.
        given: What is written.
        expected: What reading it back gives.
        folder: For what is written.
    """

    case: Case
    append: Append
    source: str
    given: _Given
    expected: Checksum
    folder: Path

    def checked(self, engine: AnyEngine) -> Trial:
        """Write once, and read that back."""
        own, bench = cast("Writing", engine), self.given.bench
        taken = self.given.taken_by(own, self.append.columns)
        with workspace(self.folder) as place:
            target = own.new_target(self.source, place, self.append.level)
            start = bench.clock()
            own.append_rows(target, taken)
            seconds = bench.clock() - start
            files = list(place.rglob("*.parquet"))
            size = _bytes_of(files)
            self._check_order(own, files)
            self._check_level(own, size)
            found = read_back(own, own.written_to(target), list(self.expected.columns), bench)
        if fault := self.expected.difference(found):
            raise Disagreement(f"what {own.name} wrote is not what it was given: {fault}")
        counters = {"rows_written": found.rows}
        if not self.append.sort:  # Spark divides sorted rows by a sample, which is another in each run
            counters |= {"files_written": len(files), "bytes_written": size}
        return Trial(
            case=self.case.of(own.name),
            evidence=Evidence(counters=counters, checksum=self.expected.text),
            prepare=partial(self._appending, own, taken),
            seconds=seconds,
            after=self._written,
        )

    def _check_order(self, own: Writing, files: list[Path]) -> None:
        """Raise Disagreement if the rows of a file are not in the table's sort order."""
        for path in files if self.append.sort else ():
            keys = pq.ParquetFile(path).read(columns=list(self.append.sort)).select(self.append.sort)
            order = [(name, "ascending", "at_start") for name in self.append.sort]
            if not keys.take(pc.sort_indices(keys, order)).equals(keys):
                raise Disagreement(f"{own.name} wrote a file that is not sorted by {', '.join(self.append.sort)}")

    def _check_level(self, own: Writing, size: int) -> None:
        """Raise Disagreement if another level made as many bytes: of so many pages one would differ."""
        level = self.append.level
        if level is not None and (other := self.given.sizes[own.name].setdefault(size, level)) != level:
            raise Disagreement(f"{own.name} writes the same {size:,} bytes at levels {other} and {level} of zstd")

    def _appending(self, own: Writing, rows: Any) -> Callable[[], object]:  # noqa: ANN401 - its own
        for former in self.folder.iterdir():
            shutil.rmtree(former)
        target = own.new_target(self.source, Path(tempfile.mkdtemp(dir=self.folder)), self.append.level)
        return lambda: own.append_rows(target, rows)

    def _written(self) -> Mapping[str, float]:
        files = list(self.folder.rglob("*.parquet"))
        return {"write_bytes": _bytes_of(files), "write_files": len(files)}


def _bytes_of(files: list[Path]) -> int:
    return sum(path.stat().st_size for path in files)


def _empty_table(location: str, append: Append, folder: Path) -> str:
    """The metadata file of an empty table with columns and partitions of another one, and a sort order."""
    source = icebench.load_table(location)
    schema, spec = source.schema(), source.spec
    if append.columns:
        schema = schema.select({schema.find(name).field_id for name in append.columns})
    table = icebench.load_catalog(str(folder)).create_table(
        "bench.sales", schema, partition_spec=spec, sort_order=append.sort
    )
    return table.metadata_location


def measurements(subject: object, context: Context) -> Iterator[Measurement]:
    """Appends of the rows of a table, and changes of them.

    Raises:
        ConfigError: The table lacks a column, or a narrow one would lack what the table is partitioned by.
    """
    assert isinstance(subject, Subject)
    options = context.options
    narrow = subject.chosen(options.narrow, (), "writing.narrow")
    for name in subject.table.partition_columns if narrow else ():
        if name not in narrow:
            message = f"lacks {name!r}, by which layout {subject.layout} is partitioned"
            raise ConfigError(message, path="writing.narrow")
    case = subject.case("writing")
    yield Writes(
        case=case,
        location=subject.location,
        partitioned=bool(subject.table.partition_columns),
        rows=options.rows,
        workspace=context.cache,
        appends=appends_of(options.levels, narrow, subject.chosen(options.sort, (), "writing.sort")),
    )
    if options.upserts or options.overwrite:
        yield Changes(
            case=case,
            location=subject.location,
            partition_columns=subject.table.partition_columns,
            identifier_columns=subject.identifier_columns,
            rows=options.rows,
            workspace=context.cache,
            upserts=options.upserts,
            overwrite=options.overwrite,
            most_keys=options.most_keys,
        )


def appends_of(levels: Sequence[int], narrow: tuple[str, ...], sort: tuple[str, ...]) -> tuple[Append, ...]:
    """The appends that a definition asks for: the plain one first."""
    found = [Append(), *(Append(name=f"{APPEND}, zstd level {level}", level=level) for level in levels)]
    if narrow:
        columns = "columns" if len(narrow) > 1 else "column"
        found.append(Append(name=f"{APPEND}, {len(narrow)} {columns}", columns=narrow))
    if sort:
        found.append(Append(name=f"{APPEND}, sorted", sort=sort))
    return tuple(found)
