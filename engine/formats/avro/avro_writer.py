"""Writes one Avro data file (spec: appendix A, "Avro"), metrics from the rows.

Columns of primitive types are encoded by the compiled encoder of `icebench.engine.codec`, nested ones by fastavro,
value by value.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import fastavro
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.codec.array_views import data_of, offsets_of, valid_of, values_of
from icebench.engine.codec.avro.file import encode_block, encode_header
from icebench.engine.codec.avro.schema import avro_name, decimal_width, record_schema
from icebench.engine.codec.avro.writing.row_program import RowProgram
from icebench.engine.codec.block_codecs import AVRO_NAMES, Compression, compress_block
from icebench.engine.codec.metadata_json.schema import encode_schema
from icebench.engine.columnar.schemas import child_fields, is_list, storage_of
from icebench.engine.errors import Unsupported
from icebench.engine.formats.avro.schemas import plain_schema
from icebench.engine.formats.collected_metrics import MetricsCollector
from icebench.engine.formats.file_writer import FileWriter
from icebench.engine.formats.metrics_modes import MetricsMode
from icebench.engine.formats.parquet.metrics import FileMetrics
from icebench.engine.spec.properties import AVRO_COMPRESSION, AVRO_COMPRESSION_LEVEL
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import GeospatialType, ListType, NestedField, StructType
from icebench.engine.spec.values import unscaled
from icebench.engine.storage.store import OutputFile

_BLOCK_BYTES = 64 << 10
_DECIMAL_BYTES = 16


@dataclass(frozen=True, kw_only=True)
class AvroOptions:
    """Options for writing Avro."""

    file_format: ClassVar[Literal["avro"]] = "avro"
    row_group_size_bytes: ClassVar[int] = 8 << 20
    """Rows that are encoded at a time, in bytes before compression; blocks are smaller."""
    codec: str = AVRO_NAMES["gzip"]

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> AvroOptions:
        """The options that the table properties ``write.avro.*`` set; raises Invalid for a wrong value.

        Raises:
            Unsupported: A compression level.
        """
        if AVRO_COMPRESSION_LEVEL.of(properties) is not None:
            raise Unsupported(f"{AVRO_COMPRESSION_LEVEL.name}: compression levels of Avro files")
        return cls(codec=AVRO_NAMES[cast("Compression", AVRO_COMPRESSION.of(properties))])

    def check(self, schema: Schema) -> None:
        """Raise Unsupported, naming it, for a column that Avro files cannot hold."""
        for column_id, f in schema.by_id.items():
            if isinstance(f.type, GeospatialType) or str(f.type) == "variant":
                raise Unsupported(f"writing Avro files with column {schema.name_of[column_id]!r} of type {f.type}")
            if isinstance(f.type, ListType) and _takes_no_bytes(f.type.element):
                # Of such a list any number of elements would be of any length.
                raise Unsupported(f"writing Avro files with column {schema.name_of[column_id]!r}, of {f.type}")


def _takes_no_bytes(field: NestedField) -> bool:
    """Whether Avro stores nothing of a value."""
    if isinstance(field.type, StructType):
        return field.required and all(_takes_no_bytes(child) for child in field.type.fields)
    return str(field.type) == "unknown"


class AvroFileWriter(FileWriter):
    """Writes one Avro file and returns its metrics.

    Args:
        output: The open output; this writer closes or aborts it.
        arrow_schema: Of the batches, with field ids.
        schema: The table schema that the ids refer to.
        modes: Column id -> metrics mode.
        options: How to write.
        key_values: File metadata, e.g. ``{"delete-type": "position"}``.
    """

    def __init__(
        self,
        output: OutputFile,
        arrow_schema: pa.Schema,
        schema: Schema,
        *,
        modes: Mapping[int, MetricsMode],
        options: AvroOptions,
        key_values: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(output, arrow_schema)
        self._codec = options.codec
        self._metrics = MetricsCollector(schema, modes)
        fields = tuple(schema.fields[place] for place in self._places)
        self._columns = [_Column.of(f) for f in fields]
        metadata = {"iceberg.schema": encode_schema(schema).decode(), **(key_values or {})}
        header, self._sync = encode_header(record_schema(StructType(fields), "table"), metadata, options.codec)
        output.write(header)

    def _measure(self, batch: pa.RecordBatch) -> None:
        self._metrics.add(batch)

    def _write(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            self._write_blocks(batch)

    def _write_blocks(self, batch: pa.RecordBatch) -> None:
        program = RowProgram(batch.num_rows)
        for column, array in zip(self._columns, batch.columns, strict=True):
            column.add_to(program, array)
        data, ends = program.encode()
        row = start = 0
        while row < batch.num_rows:
            until = max(int(np.searchsorted(ends, start + _BLOCK_BYTES, side="right")), row + 1)
            end = int(ends[until - 1])
            for part in encode_block(until - row, compress_block(self._codec, data[start:end]), self._sync):
                self._output.write(bytes(part))
            row, start = until, end

    def _finish(self) -> FileMetrics:
        return self._metrics.metrics()


@dataclass(frozen=True)
class _Column:
    """How to write a column.

    Args:
        required: Whether it has no null.
        nested: Of a nested type, its schema as fastavro takes it.
    """

    required: bool
    nested: Any

    @classmethod
    def of(cls, field: NestedField) -> _Column:
        # Of this column alone, since a type that another one defines is only named.
        own = record_schema(StructType((field,)), "table")["fields"][0]["type"]
        is_nested = not hasattr(field.type, "name")
        return cls(field.required, fastavro.parse_schema(plain_schema(own)) if is_nested else None)

    def add_to(self, program: RowProgram, array: pa.Array) -> None:
        """Add the column's values as the next field of the rows."""
        if self.nested is not None:
            offsets, data = _encoded_values(array, self.nested)
            program.add_bytes(offsets, data, None, required=True, is_fixed=True)
            return
        stored = storage_of(array)
        if pat.is_dictionary(stored.type):
            stored = stored.cast(stored.type.value_type)
        type_, valid = stored.type, valid_of(stored)
        if pat.is_string(type_) or pat.is_binary(type_):
            program.add_bytes(offsets_of(stored), data_of(stored), valid, required=self.required)
        elif pat.is_integer(type_) or pat.is_temporal(type_):
            whole = stored.view(pa.int32() if type_.bit_width == 32 else pa.int64())
            program.add_numbers(values_of(whole), valid, required=self.required)
        else:
            rows = _fixed_rows(stored)
            offsets = np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1]
            program.add_bytes(offsets, rows.reshape(-1), valid, required=self.required, is_fixed=True)


def _fixed_rows(array: pa.Array) -> npt.NDArray[np.uint8]:
    """Values that take the same number of bytes each, as the rows of a matrix."""
    type_ = array.type
    if pat.is_boolean(type_):
        return values_of(array.cast(pa.uint8())).reshape(-1, 1)
    width = type_.bit_width // 8
    begin = array.offset * width
    found = np.frombuffer(array.buffers()[1], np.uint8)[begin : begin + len(array) * width].reshape(-1, width)
    if pat.is_decimal(type_):
        return np.ascontiguousarray(found[:, ::-1][:, _DECIMAL_BYTES - decimal_width(type_.precision) :])
    return found


def _encoded_values(array: pa.Array, schema: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:  # noqa: ANN401
    """Values of a nested type, each encoded: where they end, and their bytes."""
    out, ends, convert = io.BytesIO(), [0], _converter(array.type)
    if array.offset:  # Arrow's cast of a sliced struct fails where a field has no type
        array = pa.concat_arrays([array])
    for value in array.cast(_plain_type(array.type)).to_pylist():
        fastavro.schemaless_writer(out, schema, None if value is None else convert(value))
        ends.append(out.tell())
    return np.array(ends, np.int64), np.frombuffer(out.getvalue(), np.uint8)


def _plain_type(type_: pa.DataType) -> pa.DataType:
    """The type with numbers for times."""
    inner = [f.with_type(_plain_type(f.type)) for f in child_fields(type_)]
    if pat.is_struct(type_):
        return pa.struct(inner)
    if pat.is_map(type_):
        return pa.map_(*inner)
    if is_list(type_):
        return pa.list_(*inner)
    if pat.is_temporal(type_):
        return pa.int32() if type_.bit_width == 32 else pa.int64()
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def _converter(type_: pa.DataType) -> Callable[[Any], Any]:
    """A function from Arrow's values of the type to those that fastavro takes: the inverse of
    `icebench.engine.formats.avro.schemas.converter`."""
    if pat.is_decimal(type_):
        width, scale = decimal_width(type_.precision), type_.scale
        return lambda value: unscaled(value, scale).to_bytes(width, "big", signed=True)
    inner = [_optional(_converter(f.type)) for f in child_fields(type_)]
    if pat.is_struct(type_):
        named = dict(zip([f.name for f in child_fields(type_)], inner, strict=True))
        return lambda value: {avro_name(name): convert(value[name]) for name, convert in named.items()}
    if pat.is_map(type_):
        key, item = inner
        return lambda entries: [{"key": key(k), "value": item(v)} for k, v in entries]
    if is_list(type_):
        return lambda items: [inner[0](item) for item in items]
    return lambda value: value


def _optional(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)
