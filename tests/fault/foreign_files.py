"""Data files in formats that the engine reads and does not write: ORC and Avro, in a table's own schema."""

from __future__ import annotations

import io
from collections.abc import Iterator

import fastavro
import pyarrow as pa
from pyarrow import orc

import icebench
from icebench.engine.codec.avro.schema import record_schema
from icebench.engine.columnar.schemas import field_id_of, is_list, to_arrow_schema
from icebench.engine.spec.data_file import DataFile, FileFormat
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import StructType

_SYNC = bytes(range(16))
CODECS: dict[FileFormat, tuple[str, ...]] = {"orc": ("zlib", "uncompressed"), "avro": ("deflate", "null")}
"""Those of the files of a table, cyclically."""


def append_foreign(table: icebench.Table, file_format: FileFormat, parts: list[pa.Table]) -> None:
    """Append a file for each part to an unpartitioned table."""
    table.add_files(list(_written(table, file_format, parts)))


def _written(table: icebench.Table, file_format: FileFormat, parts: list[pa.Table]) -> Iterator[DataFile]:
    for number, rows in enumerate(parts):
        codec = CODECS[file_format][number % 2]
        data = (orc_file if file_format == "orc" else avro_file)(rows, table.metadata.schema, codec)
        location = f"{table.location}/data/{number}.{file_format}"
        table.store.write(location, data)
        yield DataFile(
            file_path=location, file_format=file_format, record_count=rows.num_rows, file_size_in_bytes=len(data)
        )


def avro_file(rows: pa.Table, schema: Schema, codec: str) -> bytes:
    sink = io.BytesIO()
    avro = record_schema(StructType(schema.fields), "table")
    fastavro.writer(sink, avro, rows.to_pylist(), codec=codec, sync_interval=500, sync_marker=_SYNC)
    return sink.getvalue()


def orc_file(rows: pa.Table, schema: Schema, codec: str) -> bytes:
    sink = io.BytesIO()
    types = pa.schema([_orc_field(f) for f in to_arrow_schema(schema)])
    orc.write_table(rows.cast(types), sink, compression=codec, batch_size=20, stripe_size=1000)
    return sink.getvalue()


def _orc_field(field: pa.Field) -> pa.Field:
    """A field with its id as an attribute; nullable, as all of ORC's are."""
    type_ = pa.list_(_orc_field(field.type.value_field)) if is_list(field.type) else field.type
    return pa.field(field.name, type_, metadata={"iceberg.id": str(field_id_of(field))})
