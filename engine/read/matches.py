"""Finds the rows of a plan that match its filter, by position, for deletes, updates and merges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from icebench.engine.deletes.files import DeleteFile, FileRead
from icebench.engine.errors import Unsupported
from icebench.engine.plan.scan import ScanPlan
from icebench.engine.read.plans import planned_files, request_for
from icebench.engine.read.reader import read_files
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.metadata_columns import FILE, POS
from icebench.engine.spec.partitioning import Partition
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.resolve import default_runner
from icebench.engine.storage.store import Store


@dataclass(frozen=True, kw_only=True)
class MatchedRows:
    """The live rows of one data file that match.

    Args:
        file: The data file.
        partition: Its partition tuple.
        positions: Row positions, ascending.
        deleted_before: Positions that a deletion vector or position-delete files already delete, ascending.
        superseded: Those of these delete files that refer to this data file only: a deletion vector with `positions`
            and `deleted_before` replaces them.
    """

    file: FileRead
    partition: Partition
    positions: npt.NDArray[np.int64]
    deleted_before: npt.NDArray[np.int64]
    superseded: tuple[DeleteFile, ...]


def matched_rows(
    plan: ScanPlan,
    store: Store,
    *,
    files: Iterable[FileRead] | None = None,
    counters: Counters | None = None,
    runner: Runner | None = None,
    table_name: str | None = None,
) -> Iterator[MatchedRows]:
    """The matching rows of each file of a plan that has any, in plan order. Raises as
    `icebench.engine.read.plans.read_plan`.

    Args:
        plan: Supplies files and filter.
        store: The table's storage.
        files: Read only these files of the plan.
        counters: Count the work.
        runner: Reads in parallel.
        table_name: For errors.

    Raises:
        Unsupported: A match in a file whose partition is unknown.
    """
    request = request_for(plan, store, projection=Schema((FILE, POS)), table_name=table_name)
    by_path = {file.file_path: file for file in (planned_files(plan) if files is None else files)}
    counted, run = counters or Counters(), runner or default_runner(store, plan.metadata.location)
    found: dict[str, list[npt.NDArray[np.int64]]] = {}
    for batch in read_files(by_path.values(), request, runner=run, counters=counted):
        # A batch never crosses a row group, so all its rows are of one file.
        path = batch.column(0)[0].as_py()
        found.setdefault(path, []).append(batch.column(1).to_numpy())
    positions = {path: np.concatenate(parts) for path, parts in found.items()}
    yield from rows_at(
        plan, store, [by_path[path] for path in found], positions, counters=counted, runner=run, table_name=table_name
    )


def rows_at(
    plan: ScanPlan,
    store: Store,
    files: Sequence[FileRead],
    positions: Mapping[str, npt.NDArray[np.int64]],
    *,
    counters: Counters | None = None,
    runner: Runner | None = None,
    table_name: str | None = None,
) -> Iterator[MatchedRows]:
    """The same for rows that were already found, by path of the data file; positions ascending.

    Raises:
        Unsupported: A file whose partition is unknown.
    """
    request = request_for(plan, store, projection=Schema((FILE, POS)), table_name=table_name)
    run = runner or default_runner(store, plan.metadata.location)
    before = request.load_deletes(map(_without_keys, files), runner=run, counters=counters or Counters())
    for file in files:
        path = file.file_path
        if file.partition is None:
            raise Unsupported(f"{path}: a column of its partition spec was dropped, so its deletes can not be written")
        deleted = before.of(_without_keys(file)).positions
        yield MatchedRows(
            file=file,
            partition=file.partition,
            positions=positions[path],
            deleted_before=np.empty(0, np.int64) if deleted is None else deleted,
            superseded=superseded_by_rewrite(file),
        )


def superseded_by_rewrite(file: FileRead) -> tuple[DeleteFile, ...]:
    """The delete files that refer to this data file alone, which are removed with it."""
    return tuple(d for d in _without_keys(file).deletes if d.is_vector or d.referenced_data_file == file.file_path)


def _without_keys(file: FileRead) -> FileRead:
    positional = tuple(d for d in file.deletes if d.content is FileContent.POSITION_DELETES)
    return replace(file, deletes=positional)
