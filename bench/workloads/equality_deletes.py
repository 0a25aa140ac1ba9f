"""Equality-delete files of a table, as stream writers of other projects leave them."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

import icebench


def write_equality_deletes(
    table: icebench.Table, keys: pa.Table, location: str, *, spec_id: int = 0
) -> icebench.DataFile:
    """Write a delete file and describe it; it is not committed.

    Args:
        table: The table, which has columns of the keys' names.
        keys: The values to delete.
        location: Of the file.
        spec_id: The partition spec that it is of, one without fields.
    """
    id_of = {field.name: field.field_id for field in table.schema().fields}
    ids = [id_of[name] for name in keys.column_names]
    fields = [
        field.with_nullable(True).with_metadata({"PARQUET:field_id": str(field_id)})
        for field, field_id in zip(keys.schema, ids, strict=True)
    ]
    sink = io.BytesIO()
    pq.write_table(keys.cast(pa.schema(fields)), sink, compression="zstd", store_schema=False)
    table.store.write(location, sink.getvalue())
    return icebench.DataFile(
        content=icebench.FileContent.EQUALITY_DELETES,
        file_path=location,
        file_format="parquet",
        spec_id=spec_id,
        record_count=keys.num_rows,
        file_size_in_bytes=len(sink.getvalue()),
        equality_ids=tuple(ids),
    )
