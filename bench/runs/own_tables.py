"""Tables that exist, whoever wrote them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import icebench
from icebench.bench.engines.access import TableAccess
from icebench.bench.errors import ConfigError
from icebench.bench.runs.table_locations import location_of
from icebench.bench.trials.queries import Database
from icebench.bench.trials.subject import Subject
from icebench.bench.truth.bounds import choose_filters
from icebench.bench.truth.filters import filter_columns
from icebench.bench.truth.manifests import DATA, FileEntry, live_files
from icebench.bench.truth.metadata import TableJson, load_table_json
from icebench.bench.truth.queries import Query, ReferenceAnswers
from icebench.bench.truth.rewrite import relocated, without_deletes
from icebench.bench.truth.rows import GroundTruth
from icebench.bench.workloads.definitions import TablesWorkload
from icebench.bench.workloads.workload import TableWorkload

DELETES = "deletes"
"""The case of a table's own deletes."""

_SCANNED_COLUMNS = 4
_PLAIN_TYPES = frozenset({"boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", "string"})


def own_tables(
    workloads: Sequence[TableWorkload], filters: Mapping[str, str], folder: Path, access: TableAccess
) -> Iterator[Subject]:
    """Tables to be compared with each other: the same filters, each table's own name as its layout.

    The cost of deletes is the difference between scanning a table and scanning the same data files by metadata that
    leaves the delete files out. Nothing is written near a table.

    Args:
        workloads: Which tables.
        filters: SQL by name; none chooses filters from the bounds of the first table.
        folder: Where rewritten metadata goes.
        access: Learns what opens the files of those in catalogs.

    Raises:
        ConfigError: No table there, it has no snapshot, or a filter is wrong.
        DatasetFailed: The metadata or a manifest is damaged.
        EngineError: A catalog does not have a table.
    """
    tables = [_at_home(each, folder / str(ordinal), access) for ordinal, each in enumerate(workloads)]
    if not filters:
        filters = {choice.name: choice.text for choice in choose_filters(tables[0], _data_files(tables[0]))}
    seen: list[str] = []
    for ordinal, table in enumerate(tables):
        for text in filters.values():
            filter_columns(text, table)
        name = table.values["location"].rstrip("/").rpartition("/")[2]
        seen.append(name)
        if seen.count(name) > 1:
            name = f"{name} ({seen.count(name)})"
        yield _subject(table, name, filters, folder / str(ordinal), access)


def own_database(workload: TablesWorkload, folder: Path, access: TableAccess) -> Database:
    """Tables that queries join; the right answers are those over their live rows, read file by file.

    Args:
        workload: Which tables.
        folder: Where rewritten metadata goes, and a database with the rows.
        access: Learns what opens the files of those in catalogs.

    Raises:
        ConfigError: No table there, or it has no snapshot.
        DatasetFailed: The metadata or a manifest is damaged.
        EngineError: A catalog does not have a table.
    """
    pairs = workload.tables.items()
    tables = {name: _at_home(each, folder / str(number), access) for number, (name, each) in enumerate(pairs)}
    return Database(
        workload=workload,
        locations={name: table.location for name, table in tables.items()},
        answers=partial(_answers_of_tables, tables, folder),
    )


def _answers_of_tables(tables: Mapping[str, TableJson], folder: Path, queries: Sequence[Query]) -> ReferenceAnswers:
    """Of the columns that some query may read."""
    found = ReferenceAnswers(folder)
    for name, table in tables.items():
        if any(name in query.tables for query in queries):
            asked = [query.columns for query in queries if name in query.tables]
            columns = [column.name for column in table.columns]
            wanted = [c for c in columns if any(own is None or c.lower() in own for own in asked)] or columns[:1]
            found.add_rows(name, GroundTruth(table, live_files(table)).batches(wanted))
    return found


def _at_home(workload: TableWorkload, folder: Path, access: TableAccess) -> TableJson:
    """The table with paths that lead to its files: itself, or a rewritten copy of its metadata if the engine finds it
    moved."""
    path = location_of(workload, access)
    table = load_table_json(path, access.reader(path))
    if table.snapshot is None:
        raise ConfigError("the table has no snapshot: there is nothing to measure", path=path)
    folder.mkdir()
    stated = table.values["location"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", icebench.errors.RelocationWarning)
        options = access(table.location).options
        move = icebench.load_table(
            table.location, relocate=workload.relocate or None, properties=options
        ).store.physical
    if move(stated) == stated:
        return table
    copy = access.copied(table.location, relocated(table, folder, move))
    return load_table_json(copy, access.reader(copy))


def _data_files(table: TableJson) -> list[FileEntry]:
    return [file for file in live_files(table) if file.content == DATA]


def _subject(table: TableJson, name: str, filters: Mapping[str, str], folder: Path, access: TableAccess) -> Subject:
    has_deletes = any(file.content != DATA for file in live_files(table))
    return Subject(
        workload="table",
        layout=name,
        table=table,
        filters=filters,
        usual=_scanned_columns(table),
        without_deletes=access.copied(table.location, without_deletes(table, folder)) if has_deletes else None,
        with_deletes={DELETES: table.location} if has_deletes else {},
    )


def _scanned_columns(table: TableJson) -> tuple[str, ...]:
    """The decimal columns, or else the first that every engine delivers in types that a checksum knows."""
    decimals = tuple(column.name for column in table.columns if column.type.startswith("decimal"))
    return decimals or tuple(column.name for column in table.columns if column.type in _PLAIN_TYPES)[:_SCANNED_COLUMNS]
