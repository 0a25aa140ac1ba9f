"""Filters of a run, checked before an engine is started or a table is built."""

from __future__ import annotations

import warnings

import pyarrow as pa

import icebench
from icebench.bench.engines.access import TableAccess
from icebench.bench.errors import ConfigError
from icebench.bench.experiment import Experiment
from icebench.bench.runs.table_locations import location_of
from icebench.bench.workloads.definitions import RowsWorkload, TableWorkload


def check_filters(experiment: Experiment) -> None:
    """Refuse tables that are not there, and filters that do not fit the columns. No data file is opened.

    Raises:
        ConfigError: A filter cannot be parsed, or is of another column or type; or a table has no snapshot.
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
                if table.current_snapshot is None:
                    raise ConfigError("the table has no snapshot: there is nothing to measure", path=workload.path)
                for name, text in experiment.filters.items():
                    _check(name, text, table)


def _opened(workload: TableWorkload) -> icebench.Table:
    access = TableAccess()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run says it
        location = location_of(workload, access)
        return icebench.load_table(location, relocate=workload.relocate or None, properties=access(location).options)


def _check(name: str, text: str, rows: icebench.Table | pa.Table) -> None:
    try:
        if isinstance(rows, pa.Table):
            icebench.filter_rows(rows, text)
        else:
            _ = rows.scan(text).filter  # binds it
    except icebench.errors.Invalid as error:
        raise ConfigError(str(error), path="--filter" if name == text else f"filters.{name}") from error
