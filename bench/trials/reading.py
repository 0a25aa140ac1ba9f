"""The tables of a reading workload, and what is scanned side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from icebench.bench.engines.registry import readers_of
from icebench.bench.execution.context import Context
from icebench.bench.execution.trial import Measurement
from icebench.bench.records.case import Case
from icebench.bench.tables.cache import DatasetCache
from icebench.bench.tables.reading_tables import ReadingTables
from icebench.bench.trials.fresh_scans import FreshScans
from icebench.bench.trials.histories import histories
from icebench.bench.trials.scanning import Scanning
from icebench.bench.trials.subject import Subject
from icebench.bench.workloads.definitions import EventsWorkload, ReadingWorkload
from icebench.bench.workloads.reading_files import (
    CELL_COLUMNS,
    DELETE_COLUMNS,
    DELETE_TITLES,
    INTEGER_COLUMNS,
    KEY,
    deleted_rows,
)

NAME = "reading"
PHASE = "tables"
NONE = "no deletes"


_Made = Callable[[ReadingWorkload, Sequence[str], ReadingTables], Iterator[Measurement]]


def _case(name: str, configuration: str = "") -> Case:
    return Case(workload=name, layout=name, configuration=configuration, measurement=NAME)


def _share(fraction: float) -> str:
    """``1.0%``, ``0.04%``: no two fractions look alike."""
    return f"{fraction:.1%}" if round(fraction, 3) == fraction else f"{100 * fraction:.12g}%"


def _integers(made: ReadingWorkload, engines: Sequence[str], tables: ReadingTables) -> Iterator[Measurement]:
    rows, seed = made.cell_rows, made.seed
    integers, decimals = f"{INTEGER_COLUMNS} int64", f"{INTEGER_COLUMNS} decimal(7,2)"
    yield Scanning(
        case=_case("decimals against integers"),
        tables={
            integers: tables.integers(rows, seed, decimals=False),
            decimals: tables.integers(rows, seed, decimals=True),
        },
        columns=[f"c{i + 1}" for i in range(INTEGER_COLUMNS)],
        engines=engines,
        base=integers,
        rows={integers: rows, decimals: rows},
    )


def _decimals(made: ReadingWorkload, engines: Sequence[str], tables: ReadingTables) -> Iterator[Measurement]:
    rows = made.cell_rows
    for cell in made.cells:
        yield Scanning(
            case=_case("decimals"),
            tables={cell.name: tables.cell(cell, rows, made.seed)},
            columns=[f"d{i + 1}" for i in range(CELL_COLUMNS)],
            engines=engines,
            rows={cell.name: rows},
        )


def _deletes(made: ReadingWorkload, engines: Sequence[str], tables: ReadingTables) -> Iterator[Measurement]:
    rows_of = made.deletes
    total = rows_of.rows_in_file * rows_of.files
    for kind in made.delete_kinds:
        for pattern in made.patterns:
            scans = {NONE: tables.without_deletes(rows_of, 3 if kind == "vectors" else 2)}
            rows = {NONE: total}
            for fraction in made.equality_fractions if kind == "equality" else made.fractions:
                for files in made.delete_files if kind == "equality" else (1,):
                    case = _share(fraction) + (f", {files} delete files" if kind == "equality" else "")
                    scans[case] = tables.deleted(
                        rows_of, kind, pattern, fraction, files=files, columns=made.equality_columns
                    )
                    in_file = round(rows_of.rows_in_file * fraction)
                    rows[case] = total - (round(total * fraction) if pattern == "random" else in_file * rows_of.files)
            yield Scanning(
                case=_case(f"{DELETE_TITLES[kind]}, {pattern}"),
                tables=scans,
                columns=[KEY, *(f"d{i + 1}" for i in range(DELETE_COLUMNS))],
                engines=readers_of(kind, engines),
                base=NONE,
                rows=rows,
            )


def _small(made: ReadingWorkload, engines: Sequence[str], tables: ReadingTables) -> Iterator[Measurement]:
    deleted, kept = _share(made.small_deleted), f"{_share(made.small_filtered)} of the rows"
    for rows in made.small:
        name = f"{rows.files} files of {rows.rows_in_file:,} rows"
        scans = Scanning(
            case=_case(name),
            tables={
                NONE: tables.without_deletes(rows, 2),
                deleted: tables.deleted(rows, "positions", "random", made.small_deleted),
            },
            columns=[KEY, "d1"],
            engines=readers_of("positions", engines),
            base=NONE,
            rows={NONE: rows.rows, deleted: rows.rows - round(rows.rows * made.small_deleted)},
        )
        yield scans
        filters = {kept: deleted_rows(rows, "random", made.small_filtered)}
        yield replace(scans, case=_case(f"{name}, {kept}"), filters=filters, warm=(kept,))


def _wide(made: ReadingWorkload, engines: Sequence[str], tables: ReadingTables) -> Iterator[Measurement]:
    wide, seed = made.wide, made.seed
    every = wide.columns // wide.selected
    chosen = [f"c{1 + i * every}" for i in range(wide.selected)]
    alone, among = f"{wide.selected} columns", f"{wide.selected} of {wide.columns:,} columns"
    yield Scanning(
        case=_case("wide tables"),
        tables={
            alone: tables.wide(wide.rows, wide.columns, seed, chosen=chosen),
            among: tables.wide(wide.rows, wide.columns, seed),
        },
        columns=chosen,
        engines=engines,
        base=alone,
        same_rows=True,
        rows={alone: wide.rows, among: wide.rows},
    )


def _large(made: ReadingWorkload, engines: Sequence[str], tables: ReadingTables) -> Iterator[Measurement]:
    rows = made.large_rows
    yield FreshScans(
        case=_case("large row groups", f"{INTEGER_COLUMNS} decimals, as Iceberg Java writes them"),
        location=tables.by_iceberg_java(rows, made.seed),
        rows=rows,
        engines=engines,
    )


_PARTS: Mapping[str, _Made] = {
    "integers": _integers,
    "decimals": _decimals,
    "deletes": _deletes,
    "small": _small,
    "wide": _wide,
    "large": _large,
}


def measurements(subject: object, context: Context) -> Iterator[Measurement]:
    """Scans of a workload's cells or histories, or the first scans of a table with rows."""
    match subject:
        case Subject() if subject.rows is not None:
            yield FreshScans(
                case=subject.case(NAME),
                location=subject.location,
                rows=subject.rows,
                engines=tuple(context.engines),
                columns=subject.scanned,
            )
        case ReadingWorkload():
            tables = ReadingTables(DatasetCache(context.cache))
            for done, part in enumerate(subject.parts):
                context.progress(PHASE, part, done, len(subject.parts))
                yield from _PARTS[part](subject, context.asked, tables)
        case EventsWorkload():
            yield from histories(subject, context.asked, DatasetCache(context.cache), context.progress)
