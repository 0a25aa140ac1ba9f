"""Filters and queries of a run, checked before an engine is started or a table is built."""

from __future__ import annotations

import warnings

import pyarrow as pa

import icebench
from icebench.bench.engines.access import TableAccess
from icebench.bench.errors import ConfigError
from icebench.bench.experiment import Experiment
from icebench.bench.runs.table_locations import location_of
from icebench.bench.trials.queries import chosen_queries
from icebench.bench.workloads.definitions import RowsWorkload, TablesWorkload, TpcdsTablesWorkload
from icebench.bench.workloads.workload import TableWorkload


def check_filters(experiment: Experiment) -> None:
    """Refuse tables that are not there, filters that do not fit the columns, and queries of other tables. No data file
    is opened.

    Raises:
        ConfigError: A filter cannot be parsed, or is of another column or type; a query is none, or reads a table that
            is not there; or a table has no snapshot.
        EngineError: A table cannot be opened.
    """
    for workload in experiment.workloads:
        match workload:
            case RowsWorkload():
                rows = workload.rows.schema.empty_table()
                for name, text in experiment.filters.items():
                    _check(name, text, rows)
            case TableWorkload():
                table = _opened(workload)
                for name, text in experiment.filters.items():
                    _check(name, text, table)
            case TablesWorkload() | TpcdsTablesWorkload() if "queries" in experiment.measurements:
                for own in workload.existing:
                    _opened(own)
                options = experiment.options["queries"]
                for query in chosen_queries(workload, options.numbers, options.texts):
                    _ = query.limit, query.offset


def _opened(workload: TableWorkload) -> icebench.Table:
    access = TableAccess()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run says it
        location = location_of(workload, access)
        options = access(location).options
        table = icebench.load_table(location, relocate=workload.relocate or None, properties=options)
    if table.current_snapshot is None:
        raise ConfigError("the table has no snapshot: there is nothing to measure", path=workload.path)
    return table


def _check(name: str, text: str, rows: icebench.Table | pa.Table) -> None:
    try:
        if isinstance(rows, pa.Table):
            icebench.filter_rows(rows, text)
        else:
            _ = rows.scan(text).filter  # binds it
    except icebench.errors.Invalid as error:
        raise ConfigError(str(error), path="--filter" if name == text else f"filters.{name}") from error
