"""Checks on a sample of files whether rows are in the recorded sort order, by reading the sort keys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from icebench.engine.columnar.sorting import is_sorted
from icebench.engine.deletes.files import FileRead
from icebench.engine.maintenance.profile.figures import OrderFigures
from icebench.engine.plan.scan import ScanPlan
from icebench.engine.read.plans import planned_files, request_for
from icebench.engine.read.reader import read_files
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.spec.types import PrimitiveType
from icebench.engine.storage.store import Store

_LISTED = 20
_UNCOMPARED = frozenset({"float", "double", "uuid"})
"""Writers order NaN, and uuids, in several ways."""


def order_figures(plan: ScanPlan, store: Store, runner: Runner, most_files: int) -> OrderFigures:
    """Read the sort keys of up to `most_files` files with a recorded sort order, evenly spread over the plan.

    Only live rows are compared: deletes keep sorted rows sorted.

    Raises:
        CorruptTable, FileNotFound, Unsupported: As a scan.
    """
    orders = {each.order_id: each for each in plan.metadata.sort_orders if not each.is_unsorted}
    claimed = plan.files["sort_order_id"].to_pylist()
    comparable = {i for i, order in orders.items() if _is_comparable(order, plan.schema)}
    claiming = [row for row, own in enumerate(claimed) if own in orders]
    rows = [row for row in claiming if claimed[row] in comparable]
    chosen = [rows[len(rows) * i // most_files] for i in range(most_files)] if len(rows) > most_files else rows
    files = planned_files(plan, rows=np.array(chosen, np.int64))
    unsorted = [
        file.file_path
        for file, row in zip(files, chosen, strict=True)
        if not _keeps(file, orders[claimed[row]], plan, store, runner)
    ]
    return OrderFigures(
        claiming_files=len(claiming),
        uncomparable_files=len(claiming) - len(rows),
        read_files=len(chosen),
        unsorted_files=len(unsorted),
        unsorted_paths=tuple(unsorted[:_LISTED]),
    )


def _is_comparable(order: SortOrder, schema: Schema) -> bool:
    for f in order.fields:
        found = schema.by_id.get(f.source_id)
        if len(f.source_ids) > 1 or found is None or not isinstance(found.type, PrimitiveType):
            return False
        if found.type.name in _UNCOMPARED or not f.transform.accepts(found.type):
            return False
    return True


def _keeps(file: FileRead, order: SortOrder, plan: ScanPlan, store: Store, runner: Runner) -> bool:
    keys = plan.schema.select([f.source_id for f in order.fields])
    request = request_for(plan, store, projection=keys)
    last: list[pa.RecordBatch] = []
    for batch in read_files([replace(file, residual=None)], request, runner=runner, counters=Counters()):
        if not is_sorted(pa.Table.from_batches([*last, batch]), order, keys):
            return False
        last = [batch.slice(batch.num_rows - 1)]
    return True
