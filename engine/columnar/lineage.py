"""Row lineage (spec: "Row Lineage"): stored values, or values inherited from the file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebench.engine.errors import CorruptTable
from icebench.engine.spec.metadata_columns import LAST_UPDATED, ROW_ID

_MOST_ROW_ID = 2**63 - 1


def row_ids(stored: pa.Array | None, first_row_id: int | None, positions: npt.NDArray[np.int64]) -> pa.Array:
    """`_row_id`: the stored id, else the file's first row id plus the position; null if the file has no first row
    id.

    Raises:
        CorruptTable: An id exceeds a long.
    """
    if first_row_id is None:
        return pa.nulls(len(positions), pa.int64())
    if first_row_id + int(positions.max(initial=0)) > _MOST_ROW_ID:
        raise CorruptTable(f"row ids from {first_row_id} exceed a long")
    inherited = pa.array(positions + first_row_id)
    return inherited if stored is None else pc.coalesce(stored, inherited)


def last_updated(stored: pa.Array | None, first_row_id: int | None, sequence_number: int, length: int) -> pa.Array:
    """`_last_updated_sequence_number`: the stored number, else the file's; null if the file has no first row id."""
    if first_row_id is None:
        return pa.nulls(length, pa.int64())
    inherited = pa.scalar(sequence_number, pa.int64())
    return pa.repeat(inherited, length) if stored is None else pc.coalesce(stored, inherited)


def without_preliminary(rows: pa.RecordBatch, next_row_id: int, last_sequence_number: int) -> pa.RecordBatch:
    """Rows with preliminary ids and sequence numbers set to null, so that they inherit those of the commit.

    Args:
        rows: With the columns of row lineage, as a transaction sees them.
        next_row_id: The table's when the transaction began: from here on row ids are preliminary.
        last_sequence_number: The table's when the transaction began: greater ones are preliminary.
    """
    for field, limit in ((ROW_ID, next_row_id), (LAST_UPDATED, last_sequence_number + 1)):
        place = rows.schema.get_field_index(field.name)
        seen = rows.column(place)
        assigned = pc.if_else(pc.less(seen, limit), seen, pa.scalar(None, seen.type))
        rows = rows.set_column(place, rows.schema.field(place), assigned)
    return rows
