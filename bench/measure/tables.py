"""Measuring a table that exists, whoever wrote it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.errors import ConfigError
from bench.experiment import MEASUREMENTS, TIMED, Repetitions, SparkDefinition
from bench.measure.brute.bounds import ChosenFilter, choose_filters
from bench.measure.brute.manifests import DATA, FileEntry, live_files
from bench.measure.brute.metadata import TableJson, load_table_json
from bench.measure.brute.rewrite import home_prefixes, relocated, without_deletes
from bench.measure.brute.truth import filter_columns
from bench.measure.experiments import decimal_columns
from bench.measure.run import RunPlan, RunResult, SparkUse, Surroundings, execute
from bench.measure.subject import Subject

DELETES = "deletes"
"""The case of a table's own deletes."""

_TABLE_ENGINES = ("icebench", "icebench-spark", "pyiceberg", "iceberg-java")
_SCANNED_COLUMNS = 4
_PLAIN_TYPES = frozenset({"boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", "string"})


@dataclass(frozen=True, kw_only=True)
class TableRequest:
    """What to measure of a table.

    Args:
        path: A metadata file, or the table's directory.
        filters: SQL texts; none chooses filters from the table's bounds.
        engines: Names out of the registry.
        measurements: Names out of `MEASUREMENTS`.
        repetitions: How often each timed case runs.
        relocate: Old prefix -> new prefix, for a table that was copied without rewriting its metadata. A table that was
            moved as a whole is recognised without it.
        spark: The session.
        seed: Orders the rounds.
    """

    path: str
    filters: Sequence[str] = ()
    engines: Sequence[str] = _TABLE_ENGINES
    measurements: Collection[str] = MEASUREMENTS
    repetitions: Repetitions = field(default_factory=lambda: Repetitions(repetitions=5, warmups=1))
    relocate: Mapping[str, str] = field(default_factory=dict)
    spark: SparkDefinition = field(default_factory=lambda: SparkDefinition(master="local[*]"))
    seed: int = 1


@dataclass(frozen=True, kw_only=True)
class TableRun:
    """A run on a table, and the filters that were chosen for it (empty when the caller gave them)."""

    run: RunResult
    chosen: tuple[ChosenFilter, ...]


def run_table(request: TableRequest, *, where: Surroundings) -> TableRun:
    """Measure a table; the same records as an experiment's, with the table's name as the layout.

    The cost of deletes is the difference between scanning the table and scanning the same data files by metadata that
    leaves the delete files out. Nothing is written near the table.

    Raises:
        ConfigError: No table there, it has no snapshot, or a filter is wrong.
        DatasetFailed: The metadata or a manifest is damaged.
    """
    spark = SparkUse(request.spark, where)
    where.cache.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="table-", dir=where.cache) as name:
        folder = Path(name)
        table = _at_home(load_table_json(request.path), request, folder)
        files = live_files(table)
        chosen = () if request.filters else tuple(choose_filters(table, [f for f in files if f.content == DATA]))
        subject = _subject(table, files, request, chosen, folder)
        plan = RunPlan(
            name=subject.layout,
            workload="table",
            scale=None,
            engines=request.engines,
            measurements=request.measurements,
            repetitions=dict.fromkeys(TIMED, request.repetitions),
            seed=request.seed,
        )
        return TableRun(run=execute(plan, lambda: [subject], spark=spark, where=where), chosen=chosen)


def _at_home(table: TableJson, request: TableRequest, folder: Path) -> TableJson:
    """The table with paths that lead to its files: itself, or a rewritten copy of its metadata."""
    if table.snapshot is None:
        raise ConfigError("the table has no snapshot: there is nothing to measure", path=request.path)
    prefixes = request.relocate or home_prefixes(table)
    return load_table_json(relocated(table, folder, prefixes)) if prefixes else table


def _subject(
    table: TableJson, files: Sequence[FileEntry], request: TableRequest, chosen: Sequence[ChosenFilter], folder: Path
) -> Subject:
    filters = {choice.name: choice.text for choice in chosen} | {text: text for text in request.filters}
    for text in filters.values():
        filter_columns(text, table)
    decimals = decimal_columns(table)
    has_deletes = any(file.content != DATA for file in files)
    return Subject(
        layout=table.values["location"].rstrip("/").rpartition("/")[2],
        metadata_location=table.location,
        filters=filters,
        decimal_columns=decimals,
        delete_columns=decimals or _plain_columns(table),
        without_deletes=without_deletes(table, folder) if has_deletes else None,
        with_deletes={DELETES: table.location} if has_deletes else {},
    )


def _plain_columns(table: TableJson) -> tuple[str, ...]:
    """The first columns that every engine delivers in types that a checksum knows."""
    return tuple(column.name for column in table.columns if column.type in _PLAIN_TYPES)[:_SCANNED_COLUMNS]
