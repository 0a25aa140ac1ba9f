"""Writes one Parquet file: physical types, row groups by size, metrics from the footer.

Decimals up to 18 digits are stored as integers, as the specification asks (appendix A: "Parquet").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from icebench.engine.columnar.hidden_nulls import fill_hidden_nulls, hides_nulls
from icebench.engine.columnar.schemas import Leaf, field_id_of, leaves
from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.formats.file_writer import FileWriter
from icebench.engine.formats.metrics_modes import MetricsMode
from icebench.engine.formats.parquet.annotations import AnnotatedOutput, annotations_of
from icebench.engine.formats.parquet.dictionaries import dictionary_columns, leaf_values
from icebench.engine.formats.parquet.encodings import encodings_without_dictionary
from icebench.engine.formats.parquet.metrics import FileMetrics, NanCounter, parquet_metrics
from icebench.engine.formats.parquet.parallel_writer import MOST_ROWS, ParallelWriter
from icebench.engine.runtime.local import ONE_THREAD, is_parallel
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.properties import (
    PARQUET_BLOOM_ENABLED,
    PARQUET_BLOOM_FPP,
    PARQUET_BLOOM_MAX_BYTES,
    PARQUET_BLOOM_NDV,
    PARQUET_COMPRESSION,
    PARQUET_COMPRESSION_LEVEL,
    PARQUET_DICT_ENABLED,
    PARQUET_DICT_ENABLED_COLUMN,
    PARQUET_DICT_SIZE_BYTES,
    PARQUET_PAGE_ROW_LIMIT,
    PARQUET_PAGE_SIZE_BYTES,
    PARQUET_PAGE_VERSION,
    PARQUET_ROW_GROUP_SIZE_BYTES,
    PARQUET_STATS_ENABLED,
)
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import PrimitiveType
from icebench.engine.storage.store import OutputFile

_BLOOM_BITS_SET = 8
"""Bits of a block that are set for each value (Parquet: "Bloom Filter")."""
_LEAST_PAGE_BYTES = 64
"""Below 8, Arrow writes lists and maps of one row as pages that nobody can read."""
_WITH_LEVELS = ("zstd", "gzip", "brotli", "lz4")
_MOST_GZIP = 9
_PARALLEL_COLUMN_BYTES = 512 << 10
"""Encoding so much of a column takes some 2 ms, putting it into the file of several threads a quarter of one."""


@dataclass(frozen=True, kw_only=True)
class ParquetOptions:
    """Options for writing Parquet. Sizes are bytes before compression, except that of a file."""

    file_format: ClassVar[Literal["parquet"]] = "parquet"
    compression: str = PARQUET_COMPRESSION.default
    compression_level: int | None = None
    row_group_size_bytes: int = PARQUET_ROW_GROUP_SIZE_BYTES.default
    page_size_bytes: int = PARQUET_PAGE_SIZE_BYTES.default
    page_row_limit: int = PARQUET_PAGE_ROW_LIMIT.default
    page_version: str = PARQUET_PAGE_VERSION.default
    dict_size_bytes: int = PARQUET_DICT_SIZE_BYTES.default
    dict_enabled: bool = PARQUET_DICT_ENABLED.default
    dict_enabled_columns: Mapping[str, bool] = field(default_factory=dict)
    bloom_filters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    without_statistics: frozenset[str] = frozenset()

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ParquetOptions:
        """The options that the table properties ``write.parquet.*`` set; raises Invalid for a wrong value."""
        codec = PARQUET_COMPRESSION.of(properties)
        return cls(
            compression="none" if codec == "uncompressed" else codec,
            compression_level=_level(codec, properties),
            row_group_size_bytes=PARQUET_ROW_GROUP_SIZE_BYTES.of(properties),
            page_size_bytes=PARQUET_PAGE_SIZE_BYTES.of(properties),
            page_row_limit=PARQUET_PAGE_ROW_LIMIT.of(properties),
            page_version=PARQUET_PAGE_VERSION.of(properties),
            dict_size_bytes=PARQUET_DICT_SIZE_BYTES.of(properties),
            dict_enabled=PARQUET_DICT_ENABLED.of(properties),
            dict_enabled_columns=PARQUET_DICT_ENABLED_COLUMN.by_column(properties),
            bloom_filters=_bloom_filters(properties),
            without_statistics=frozenset(
                column for column, is_enabled in PARQUET_STATS_ENABLED.by_column(properties).items() if not is_enabled
            ),
        )

    def check(self, schema: Schema) -> None:
        """Parquet files hold columns of any type."""


def _level(codec: str, properties: Mapping[str, str]) -> int | None:
    """The compression level; None for a codec that has no levels, as Iceberg Java ignores it there."""
    level = PARQUET_COMPRESSION_LEVEL.of(properties)
    if level is None or codec not in _WITH_LEVELS:
        return None
    if codec == "gzip" and not 0 <= level <= _MOST_GZIP:
        raise Invalid(f"table property {PARQUET_COMPRESSION_LEVEL.name}='{level}': gzip has levels 0 to {_MOST_GZIP}")
    return level


def _bloom_filters(properties: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """By column, for how many distinct values and which false-positive probability to make the Bloom filter of each row
    group, limited by the property for its size."""
    max_bytes = PARQUET_BLOOM_MAX_BYTES.of(properties)
    found: dict[str, dict[str, float]] = {}
    for column, is_enabled in PARQUET_BLOOM_ENABLED.by_column(properties).items():
        if is_enabled:
            fpp = PARQUET_BLOOM_FPP.of(properties, column)
            most = _most_distinct(fpp, max_bytes)
            found[column] = {"fpp": fpp, "ndv": min(most, PARQUET_BLOOM_NDV.of(properties, column) or most)}
    return found


def _most_distinct(fpp: float, max_bytes: int) -> int:
    """The distinct values that a filter of `max_bytes`, rounded down to a power of two, holds at this probability."""
    bits = 8 * (1 << (max_bytes.bit_length() - 1))
    # A little less, so that rounding does not double the filter.
    return max(1, int(0.999 * bits * -math.log1p(-(fpp ** (1 / _BLOOM_BITS_SET))) / _BLOOM_BITS_SET))


class ParquetFileWriter(FileWriter):
    """Writes one Parquet file and returns its metrics. Rows are buffered until they fill a row group.

    Args:
        output: The open output; this writer closes or aborts it.
        arrow_schema: Of the batches, with field ids.
        schema: The table schema that the ids refer to.
        modes: Column id -> metrics mode.
        options: How to write.
        sort_order: The order of the rows, if any; recorded as far as Parquet can express it.
        key_values: File metadata, e.g. ``{"delete-type": "position"}``.
        runner: Encodes columns at the same time, where they are large.
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
        runner: Runner = ONE_THREAD,
    ) -> None:
        annotations = annotations_of(schema)
        super().__init__(AnnotatedOutput(output, annotations) if annotations else output, arrow_schema)
        self._hides_nulls = any(f.type.num_fields and hides_nulls(f.type) for f in self._arrow_schema)
        self._schema = schema
        self._modes = modes
        self._nans = NanCounter(self._arrow_schema)
        self._options = options
        self._sorting = _sorting_columns(sort_order, self._arrow_schema)
        self._key_values = dict(key_values or {})
        self._runner = runner
        self._writer: pq.ParquetWriter | ParallelWriter | None = None

    def _open(self, first: pa.Table) -> pq.ParquetWriter | ParallelWriter:
        """The writer, created for the first row group, which decides what gets a dictionary."""
        if self._writer is not None:
            return self._writer
        options = self._options
        dictionaries = dictionary_columns(first, default=options.dict_enabled, by_column=options.dict_enabled_columns)
        is_second = options.page_version == "v2"
        encodings = encodings_without_dictionary(first, dictionaries=dictionaries) if is_second else None
        self._writer = self._writer_type(first)(
            self._output,
            self._arrow_schema.with_metadata(None),
            compression=options.compression,
            compression_level=options.compression_level,
            data_page_size=max(options.page_size_bytes, _LEAST_PAGE_BYTES),
            max_rows_per_page=options.page_row_limit,
            data_page_version="2.0" if is_second else "1.0",
            use_dictionary=dictionaries,
            column_encoding=encodings or None,
            dictionary_pagesize_limit=options.dict_size_bytes,
            write_statistics=self._with_statistics(),
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_index=True,
            write_page_checksum=True,
            sorting_columns=self._sorting,
            bloom_filter_options=self._blooms() or None,
        )
        if self._key_values:
            self._writer.add_key_value_metadata(self._key_values)
        return self._writer

    def _with_statistics(self) -> list[str] | bool:
        """The paths in Parquet of the columns with statistics; True for all."""
        left_out = self._options.without_statistics
        return not left_out or [stored for path, stored, _ in self._leaves() if path not in left_out]

    def _leaves(self) -> Iterator[tuple[str, str, pa.ChunkedArray]]:
        """Each leaf without values; see `leaf_values`."""
        for field_ in self._arrow_schema:
            yield from leaf_values(field_, pa.chunked_array([], field_.type), "", "")

    def _blooms(self) -> dict[str, dict[str, float]]:
        """The Bloom filters by the paths that columns have in Parquet. pyarrow folds those of few values."""
        found = {}
        for path, stored, values in self._leaves() if self._options.bloom_filters else ():
            if (wanted := self._options.bloom_filters.get(path)) is not None:
                if pat.is_boolean(values.type):
                    raise Unsupported(f"{PARQUET_BLOOM_ENABLED.prefix}{path}: a Bloom filter of booleans")
                found[stored] = {"fpp": wanted["fpp"], "ndv": int(wanted["ndv"])}
        return found

    def _writer_type(self, first: pa.Table) -> Callable[..., pq.ParquetWriter | ParallelWriter]:
        """One that encodes columns at the same time, if they are large and there is more than one."""
        columns = len(self._arrow_schema)
        if columns < 2 or first.nbytes < columns * _PARALLEL_COLUMN_BYTES or not is_parallel(self._runner):
            return pq.ParquetWriter
        return partial(ParallelWriter, runner=self._runner)

    def _stored(self, column: pa.Array) -> pa.Array:
        return fill_hidden_nulls(column) if self._hides_nulls else column

    def _measure(self, batch: pa.RecordBatch) -> None:
        self._nans.add(batch)

    def _write(self, table: pa.Table) -> None:
        for start in range(0, max(table.num_rows, 1), MOST_ROWS):
            group = table.slice(start, MOST_ROWS)
            self._open(table).write_table(group, row_group_size=max(group.num_rows, 1))

    def _finish(self) -> FileMetrics:
        writer = self._open(pa.Table.from_batches([], self._arrow_schema))
        with self._output.annotating() if isinstance(self._output, AnnotatedOutput) else nullcontext():
            writer.close()
        metadata = writer.metadata if isinstance(writer, ParallelWriter) else writer.writer.metadata
        types = {
            column_id: field_.type
            for column_id, field_ in self._schema.by_id.items()
            if isinstance(field_.type, PrimitiveType)
        }
        return parquet_metrics(metadata, self._arrow_schema, types, self._modes, self._nans.counts)

    def _discard(self) -> None:
        if isinstance(self._writer, pq.ParquetWriter):
            # Else pyarrow writes a footer into the closed output when the writer is collected.
            self._writer.is_open = False


def _sorting_columns(sort_order: SortOrder | None, schema: pa.Schema) -> list[pq.SortingColumn] | None:
    """The leading sort keys that are plain columns; Parquet cannot express transforms."""
    by_id: dict[int | None, Leaf] = {field_id_of(leaf.field): leaf for leaf in leaves(schema)}
    found = []
    for key in sort_order.fields if sort_order is not None else ():
        leaf = by_id.get(key.source_id)
        if leaf is None or not isinstance(key.transform, Identity):
            break
        nulls_first = key.null_order == "nulls-first"
        found.append(pq.SortingColumn(leaf.index, descending=key.direction == "desc", nulls_first=nulls_first))
    return found or None
