"""Writing one Parquet file: physical types, row groups by size, footer to metrics.

Decimals up to 18 digits are stored as integers, as the specification asks (appendix A: "Parquet").
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from engine.columnar.schemas import Leaf, field_id_of, leaves
from engine.errors import Invalid
from engine.formats.metrics_modes import MetricsMode
from engine.formats.parquet.metrics import FileMetrics, NanCounter, parquet_metrics
from engine.spec.schema import Schema
from engine.spec.sorting import SortOrder
from engine.spec.transforms import Identity
from engine.spec.types import PrimitiveType
from engine.storage.store import OutputFile

_CODECS = {
    "zstd": "zstd", "gzip": "gzip", "snappy": "snappy", "lz4": "lz4", "brotli": "brotli",
    "uncompressed": "none", "none": "none",
}  # fmt: skip
_BLOOM = "write.parquet.bloom-filter-enabled.column."
_BLOOM_FPP = "write.parquet.bloom-filter-fpp.column."
_BLOOM_NDV = "write.parquet.bloom-filter-ndv.column."
_BLOOM_MAX_BYTES = "write.parquet.bloom-filter-max-bytes"
_DEFAULT_BLOOM_FPP = 0.01
_DEFAULT_BLOOM_MAX_BYTES = 1024 * 1024
_BLOOM_BITS_SET = 8
"""So many bits of a block are set for each value (Parquet: "Bloom Filter")."""


@dataclass(frozen=True, kw_only=True)
class ParquetOptions:
    """How to write Parquet. Sizes are bytes before compression, except that of a file."""

    compression: str = "zstd"
    compression_level: int | None = None
    row_group_size_bytes: int = 128 * 1024 * 1024
    page_size_bytes: int = 1024 * 1024
    page_row_limit: int = 20_000
    dict_size_bytes: int = 2 * 1024 * 1024
    bloom_filters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], *, prefix: str = "write.parquet.") -> ParquetOptions:
        """The options that table properties ``write.parquet.*`` ask for.

        Raises:
            Invalid: A property that is not a positive number or an unknown codec.
        """
        codec = properties.get(prefix + "compression-codec", "zstd").lower()
        if codec not in _CODECS:
            raise Invalid(f"{prefix}compression-codec={codec!r} is not one of {', '.join(sorted(_CODECS))}")
        level = properties.get(prefix + "compression-level")

        def size(name: str, default: int) -> int:
            return positive(properties, prefix + name, default)

        return cls(
            compression=_CODECS[codec],
            compression_level=None if level in (None, "null") else integer(prefix + "compression-level", str(level)),
            row_group_size_bytes=size("row-group-size-bytes", cls.row_group_size_bytes),
            page_size_bytes=size("page-size-bytes", cls.page_size_bytes),
            page_row_limit=size("page-row-limit", cls.page_row_limit),
            dict_size_bytes=size("dict-size-bytes", cls.dict_size_bytes),
            bloom_filters=_bloom_filters(properties),
        )


def integer(name: str, text: str) -> int:
    """The property as a whole number; raises Invalid."""
    try:
        return int(text)
    except ValueError as error:
        raise Invalid(f"{name}={text!r} is not a whole number") from error


def positive(properties: Mapping[str, str], name: str, default: int) -> int:
    """The property as a positive whole number; raises Invalid."""
    value = integer(name, properties.get(name, str(default)))
    if value <= 0:
        raise Invalid(f"{name}={value} is not positive")
    return value


def _bloom_filters(properties: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Column -> what a Bloom filter in each row group is made for; none is larger than the property for that says."""
    max_bytes = positive(properties, _BLOOM_MAX_BYTES, _DEFAULT_BLOOM_MAX_BYTES)
    found: dict[str, dict[str, float]] = {}
    for name, text in properties.items():
        if name.startswith(_BLOOM) and text.lower() == "true":
            column = name.removeprefix(_BLOOM)
            fpp = _probability(properties, _BLOOM_FPP + column)
            most = _most_distinct(fpp, max_bytes)
            found[column] = {"fpp": fpp, "ndv": min(most, positive(properties, _BLOOM_NDV + column, most))}
    return found


def _probability(properties: Mapping[str, str], name: str) -> float:
    text = properties.get(name, str(_DEFAULT_BLOOM_FPP))
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise Invalid(f"{name}={text!r} is not between 0 and 1")
    return value


def _most_distinct(fpp: float, max_bytes: int) -> int:
    """For how many distinct values a filter of at most so many bytes, a power of two, has that share of false hits."""
    bits = 8 * (1 << (max_bytes.bit_length() - 1))
    # A little less, so that rounding does not double the filter.
    return max(1, int(0.999 * bits * -math.log1p(-(fpp ** (1 / _BLOOM_BITS_SET))) / _BLOOM_BITS_SET))


def encoded_width(type_: pa.DataType) -> float | None:
    """Bytes that Parquet's plain encoding takes for a value of a fixed-width leaf type; None for others."""
    if pat.is_decimal(type_):
        return 4 if type_.precision <= 9 else 8 if type_.precision <= 18 else 16
    if isinstance(type_, pa.BaseExtensionType):
        return encoded_width(type_.storage_type)
    if pat.is_boolean(type_):
        return 1 / 8
    return type_.bit_width / 8 if pat.is_primitive(type_) or pat.is_fixed_size_binary(type_) else None


def encoded_size(batch: pa.RecordBatch) -> int:
    """About how many bytes a batch takes in Parquet before dictionaries and compression."""
    total = 0.0
    for column in batch.columns:
        width = encoded_width(column.type)
        total += column.nbytes if width is None else width * len(column)
    return int(total)


class ParquetFileWriter:
    """Writes one Parquet file and tells its metrics. Rows are kept until they fill a row group.

    Args:
        output: The open output; this writer closes or aborts it.
        arrow_schema: Of the batches, with field ids.
        schema: The table schema that the ids refer to.
        modes: Column id -> metrics mode.
        options: How to write.
        sort_order: The order that the rows are in, if any; told to readers as far as Parquet can say it.
        key_values: File metadata, e.g. ``{"delete-type": "position"}``.
    """

    def __init__(
        self,
        output: OutputFile,
        arrow_schema: pa.Schema,
        schema: Schema,
        *,
        modes: Mapping[int, MetricsMode],
        options: ParquetOptions,
        sort_order: SortOrder | None = None,
        key_values: Mapping[str, str] | None = None,
    ) -> None:
        self._output = output
        self._arrow_schema = storable(arrow_schema)
        self._places = [i for i, f in enumerate(arrow_schema) if not pat.is_null(f.type)]
        self._schema = schema
        self._modes = modes
        self._nans = NanCounter(self._arrow_schema)
        self._waiting: list[pa.RecordBatch] = []
        self.waiting_bytes = 0
        self._encoded_bytes = 0
        self.rows = 0
        self._options = options
        self._sorting = _sorting_columns(sort_order, self._arrow_schema)
        self._key_values = dict(key_values or {})
        self._writer: pq.ParquetWriter | None = None

    def _opened(self, rows: int) -> pq.ParquetWriter:
        """The writer, made when the first row group, of so many rows, is there to be written: no column has more
        distinct values than rows, and a Bloom filter need not be larger."""
        if self._writer is not None:
            return self._writer
        options = self._options
        known = {leaf.path for leaf in leaves(self._arrow_schema)}
        blooms = {
            column: {"fpp": wanted["fpp"], "ndv": int(min(wanted["ndv"], max(rows, 1)))}
            for column, wanted in options.bloom_filters.items()
            if column in known
        }
        self._writer = pq.ParquetWriter(
            self._output,
            self._arrow_schema.with_metadata(None),
            compression=options.compression,
            compression_level=options.compression_level,
            data_page_size=options.page_size_bytes,
            max_rows_per_page=options.page_row_limit,
            dictionary_pagesize_limit=options.dict_size_bytes,
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_index=True,
            write_page_checksum=True,
            sorting_columns=self._sorting,
            bloom_filter_options=blooms or None,
        )
        if self._key_values:
            self._writer.add_key_value_metadata(self._key_values)
        return self._writer

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep a batch, of the columns of the schema in its order, for the next row group."""
        columns = [batch.column(place) for place in self._places]
        kept = pa.RecordBatch.from_arrays(columns, schema=self._arrow_schema)
        self._nans.add(kept)
        self._waiting.append(kept)
        self.waiting_bytes += encoded_size(kept)
        self.rows += kept.num_rows

    def flush(self) -> None:
        """Write what waits as one row group; nothing when nothing waits."""
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        rows = max(table.num_rows, 1)
        self._encoded_bytes += self.waiting_bytes
        self._waiting, self.waiting_bytes = [], 0
        self._opened(rows).write_table(table, row_group_size=rows)

    @property
    def written_bytes(self) -> int:
        """Bytes of the row groups written so far."""
        return self._output.tell()

    @property
    def compression_ratio(self) -> float:
        """Bytes in the file for each byte before compression, so far; 1 before the first row group."""
        return self._output.tell() / self._encoded_bytes if self._encoded_bytes else 1.0

    def close(self) -> tuple[FileMetrics, int]:
        """Write the rest, make the file visible and tell its metrics and its size in bytes."""
        self.flush()
        writer = self._opened(0)
        writer.close()
        footer = writer.writer.metadata
        size = self._output.tell()
        self._output.close()
        types = {
            column_id: field_.type
            for column_id, field_ in self._schema.by_id.items()
            if isinstance(field_.type, PrimitiveType)
        }
        return parquet_metrics(footer, self._arrow_schema, types, self._modes, self._nans.counts), size

    def abort(self) -> None:
        """Leave no file."""
        self._waiting = []
        if self._writer is not None:
            # Else pyarrow writes a footer into the closed output when the writer is collected.
            self._writer.is_open = False
        self._output.abort()


def storable(schema: pa.Schema) -> pa.Schema:
    """The schema without columns of type unknown, which data files do not hold."""
    return pa.schema([f for f in schema if not pat.is_null(f.type)])


def _sorting_columns(sort_order: SortOrder | None, schema: pa.Schema) -> list[pq.SortingColumn] | None:
    """The leading keys that are plain columns; Parquet can not name a transform."""
    by_id: dict[int | None, Leaf] = {field_id_of(leaf.field): leaf for leaf in leaves(schema)}
    found = []
    for key in sort_order.fields if sort_order is not None else ():
        leaf = by_id.get(key.source_id)
        if leaf is None or not isinstance(key.transform, Identity):
            break
        nulls_first = key.null_order == "nulls-first"
        found.append(pq.SortingColumn(leaf.index, descending=key.direction == "desc", nulls_first=nulls_first))
    return found or None
