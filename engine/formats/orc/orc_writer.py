"""Writes one ORC file (spec: appendix A, "ORC"): field ids as type attributes, metrics from the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Literal

import pyarrow as pa
import pyarrow.types as pat
from pyarrow import orc

from icebench.engine.columnar.hidden_nulls import spread_nulls
from icebench.engine.columnar.schemas import child_fields, field_id_of, is_list
from icebench.engine.errors import Unsupported
from icebench.engine.formats.collected_metrics import MetricsCollector
from icebench.engine.formats.file_writer import FileWriter
from icebench.engine.formats.metrics_modes import MetricsMode
from icebench.engine.formats.parquet.metrics import FileMetrics
from icebench.engine.spec.properties import (
    ORC_BLOOM_COLUMNS,
    ORC_COMPRESSION,
    ORC_COMPRESSION_STRATEGY,
    ORC_STRIPE_SIZE_BYTES,
)
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import GeospatialType
from icebench.engine.storage.store import OutputFile

_BATCH_ROWS = 4096
"""Rows that the library takes at a time: it ends a stripe after a batch, if at all."""
_MAGIC = b"ORC"
_REFUSED = frozenset({"variant", "geometry", "geography"})


@dataclass(frozen=True, kw_only=True)
class OrcOptions:
    """Options for writing ORC; sizes are bytes before compression."""

    file_format: ClassVar[Literal["orc"]] = "orc"
    compression: str = ORC_COMPRESSION.default
    strategy: str = ORC_COMPRESSION_STRATEGY.default
    row_group_size_bytes: int = ORC_STRIPE_SIZE_BYTES.default

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> OrcOptions:
        """The options that the table properties ``write.orc.*`` set; raises Invalid for a wrong value.

        Raises:
            Unsupported: Bloom filters.
        """
        if ORC_BLOOM_COLUMNS.of(properties):
            raise Unsupported(f"{ORC_BLOOM_COLUMNS.name}: Bloom filters in ORC files")
        codec = ORC_COMPRESSION.of(properties)
        return cls(
            compression="uncompressed" if codec == "none" else codec,
            strategy=ORC_COMPRESSION_STRATEGY.of(properties),
            row_group_size_bytes=ORC_STRIPE_SIZE_BYTES.of(properties),
        )

    def check(self, schema: Schema) -> None:
        """Raise Unsupported, naming it, for a column that ORC files cannot hold."""
        for column_id, f in schema.by_id.items():
            is_nested_null = str(f.type) == "unknown" and column_id in schema.parent_of
            if isinstance(f.type, GeospatialType) or str(f.type) in _REFUSED or is_nested_null:
                raise Unsupported(f"writing ORC files with column {schema.name_of[column_id]!r} of type {f.type}")


class OrcFileWriter(FileWriter):
    """Writes one ORC file and returns its metrics. The library ends a stripe when its own estimate says that it is
    full.

    Args:
        output: The open output; this writer closes or aborts it.
        arrow_schema: Of the batches, with field ids.
        schema: The table schema that the ids refer to.
        modes: Column id -> metrics mode.
        options: How to write.
    """

    def __init__(
        self,
        output: OutputFile,
        arrow_schema: pa.Schema,
        schema: Schema,
        *,
        modes: Mapping[int, MetricsMode],
        options: OrcOptions,
    ) -> None:
        super().__init__(output, arrow_schema)
        self._file_schema = pa.schema([_file_field(f) for f in self._arrow_schema])
        self._metrics = MetricsCollector(schema, modes)
        self._given_bytes = self._stored_bytes = 0  # before compression: given to the library, and written by it
        self._stripes: list[int] = []
        self._sink = _Sink(output)
        self._writer = orc.ORCWriter(
            self._sink,
            compression=options.compression,
            compression_strategy=options.strategy,
            stripe_size=options.row_group_size_bytes,
            batch_size=_BATCH_ROWS,
        )
        self._written = len(_MAGIC)

    def _measure(self, batch: pa.RecordBatch) -> None:
        self._metrics.add(batch)

    def _write(self, table: pa.Table) -> None:
        per_row = (self._encoded_bytes - self._given_bytes) / max(table.num_rows, 1)
        stored = self._in_file_types(table)
        for start in range(0, table.num_rows, _BATCH_ROWS):
            part = pa.table([_own_part(c, start) for c in stored.columns], schema=stored.schema)
            with self._errors_of_the_store():
                self._writer.write(part)
            self._given_bytes += int(per_row * part.num_rows)
            if self._output.tell() > self._written:
                self._note_stripe()

    def _in_file_types(self, table: pa.Table) -> pa.Table:
        try:
            return table.cast(self._file_schema)
        except pa.ArrowInvalid as error:
            if "out of bounds timestamp" not in str(error):
                raise
            raise Unsupported(f"ORC files hold no timestamps before 1678 or after 2261: {error}") from error

    def _note_stripe(self) -> None:
        self._stripes.append(self._written)
        self._written = self._output.tell()
        self._stored_bytes = self._given_bytes

    @property
    def written_bytes(self) -> int:
        """Bytes of the file so far, those that the library keeps back by estimate."""
        ratio = self.compression_ratio
        return int(self._output.tell() + (self._given_bytes - self._stored_bytes) * (1.0 if ratio is None else ratio))

    @property
    def compression_ratio(self) -> float | None:
        """Bytes in the file per byte before compression; None before the first stripe."""
        return self._written / self._stored_bytes if self._stored_bytes else None

    def _finish(self) -> FileMetrics:
        with self._errors_of_the_store():
            self._writer.close()
        if self._given_bytes > self._stored_bytes:
            self._note_stripe()
        return self._metrics.metrics(tuple(self._stripes))

    def _discard(self) -> None:
        # Else pyarrow writes the rest into the closed output when the writer is collected.
        self._writer.is_open = False

    @contextmanager
    def _errors_of_the_store(self) -> Iterator[None]:
        """Context of the library's work, which passes on the texts of errors, not the errors."""
        try:
            yield
        except Exception as error:
            if self._sink.error is None:
                raise
            raise self._sink.error from error


def _own_part(column: pa.ChunkedArray, start: int) -> pa.ChunkedArray:
    """Some rows of a column. Those of nested types are copied, and have nulls below nulls: pyarrow writes other rows
    than those of a sliced struct, or of a struct within a struct without nulls."""
    part = column.slice(start, _BATCH_ROWS)
    if not part.type.num_fields:
        return part
    return pa.chunked_array([spread_nulls(pa.concat_arrays([*part.chunks, pa.array([], part.type)]))])


class _Sink(OutputFile):
    """An output that the library does not close, and which keeps the error of a write."""

    def __init__(self, output: OutputFile) -> None:
        self._output = output
        self.error: BaseException | None = None

    @property
    def closed(self) -> bool:
        return self._output.closed

    def write(self, data: bytes, /) -> int:
        try:
            return self._output.write(data)
        except BaseException as error:
            self.error = error
            raise

    def tell(self) -> int:
        return self._output.tell()

    def close(self) -> None:
        return

    def abort(self) -> None:
        return


def _file_field(field: pa.Field) -> pa.Field:
    """A field as it is stored: ids, and what ORC has no type for, are attributes."""
    attributes = {"iceberg.required": str(not field.nullable).lower()}
    field_id = field_id_of(field)
    if field_id is not None:
        attributes["iceberg.id"] = str(field_id)
    type_ = field.type
    inner = [_file_field(f) for f in child_fields(type_)]
    if pat.is_dictionary(type_):
        type_ = type_.value_type
    elif pat.is_time(type_):
        type_, attributes["iceberg.long-type"] = pa.int64(), "TIME"
    elif pat.is_int64(type_):
        attributes["iceberg.long-type"] = "LONG"
    elif pat.is_timestamp(type_):
        attributes["iceberg.timestamp-unit"] = "NANOS" if type_.unit == "ns" else "MICROS"
        # The library reads nanoseconds: what is more than them is refused by the cast.
        type_ = pa.timestamp("ns", type_.tz)
    elif type_ == pa.uuid():
        type_, attributes["iceberg.binary-type"] = pa.binary(), "UUID"
    elif pat.is_fixed_size_binary(type_):
        attributes |= {"iceberg.binary-type": "FIXED", "iceberg.length": str(type_.byte_width)}
        type_ = pa.binary()
    elif pat.is_struct(type_):
        type_ = pa.struct(inner)
    elif pat.is_map(type_):
        type_ = pa.map_(inner[0].with_nullable(False), inner[1])
    elif is_list(type_):
        type_ = pa.list_(*inner)
    return pa.field(field.name, type_, nullable=field.nullable, metadata=attributes)
