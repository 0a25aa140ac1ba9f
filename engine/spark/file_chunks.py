"""The file and position of each row that Spark's own Parquet reader returns, and what the plan knows of the file, by a
broadcast join.

A data file is divided into chunks of 32,768 rows. Each chunk is one row of a small broadcast table: a key (the hash of
the file's path combined with the chunk's number), a bitmap of its deleted rows (512 longs), and the file's facts from
the plan (sequence number, partition, first row id). A row finds its chunk by joining on one long and tests one bit. The
table has all chunks of all files of the group, with or without deleted rows, so that a row without a match belongs to a
file that the plan does not have, and fails the query instead of being returned. No job is run to create the table: the
hash is computed on the driver by the same algorithm as Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from icebench.engine.columnar.schemas import storage_of
from icebench.engine.deletes.equality import Scope
from icebench.engine.deletes.files import FileRead
from icebench.engine.deletes.loaded_deletes import FileDeletes
from icebench.engine.deletes.positions import DataFilePlaces
from icebench.engine.errors import CorruptTable, Unsupported
from icebench.engine.read.request import ReadRequest
from icebench.engine.spark.types import quoted, shown, spark_type
from icebench.engine.spec.metadata_columns import FILE_ID, LAST_UPDATED_ID, PARTITION_ID, ROW_ID_ID, SPEC_ID_ID
from icebench.engine.spec.types import NestedField

CHUNK_ROWS = 1 << 15
_CHUNK_SHIFT = 15
_WORD_SHIFT = 6
_SPARK_SEED = 42

ROW = "_tmp_metadata_row_index"
"""The position of a row in its file. Spark's reader fills a column of this name, which is how it makes
``_metadata.row_index``; asked for by its own name it comes without a struct made, and taken apart, for each row."""
PREFIX = "_icebench_"
"""What names begin with that a scan adds."""
KEY, WORDS, SEQUENCE, SCOPE = (f"{PREFIX}{name}" for name in ("key", "words", "sequence", "scope"))
_FILE, _SPEC, _PARTITION, _FIRST_ROW = (f"{PREFIX}{name}" for name in ("file", "spec", "partition", "first_row"))

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9_.=-]*")
"""File names that no encoding changes."""

OF_FILES = frozenset({FILE_ID, SPEC_ID_ID, PARTITION_ID, ROW_ID_ID, LAST_UPDATED_ID})
"""Metadata columns that need to know the file of a row."""


@dataclass(frozen=True, slots=True)
class LocatedFile:
    """A data file, its location as passed to Spark, and its deletes."""

    file: FileRead
    location: str
    deletes: FileDeletes


@dataclass(frozen=True)
class FileChunks:
    """The chunks of the data files of one DataFrame.

    Args:
        files: All data files of the DataFrame.
        request: The scan.
    """

    files: Sequence[LocatedFile]
    request: ReadRequest

    def condition(self) -> str:
        """SQL of the join condition between rows and their chunks."""
        return f"xxhash64({self._name}) ^ shiftright({ROW}, {_CHUNK_SHIFT}) = {KEY}"

    def is_deleted(self) -> str:
        """SQL of the condition that a row, joined with its chunk, is deleted by position."""
        return f"""
            case when {KEY} is null
                 then raise_error('rows of a file that the plan does not have: ' || {self._name})
                 when {WORDS} is null then false
                 else getbit({WORDS}[cast(shiftright({ROW} & {CHUNK_ROWS - 1}, {_WORD_SHIFT}) as int)],
                             cast({ROW} & 63 as int)) <> 0
            end"""

    def table(self, paths: Callable[[], Sequence[str]], spark: SparkSession) -> DataFrame:
        """The chunks as a DataFrame.

        Args:
            paths: Gives the files' locations as they are in Spark's file index.
            spark: The session to create it in.

        Raises:
            Unsupported: The hashes of two files collide, or the partition of a file is not known.
            CorruptTable: Spark's file index and the plan have different files.
        """
        names = self._plain_names if self._has_plain_names else _paths_in_spark(self.files, paths())
        counts = [max(-(-file.file.record_count // CHUNK_ROWS), 1) for file in self.files]
        keys = np.concatenate(
            [xxhash64(name) ^ np.arange(count, dtype=np.int64) for name, count in zip(names, counts, strict=True)]
        )
        if len(np.unique(keys)) != len(keys):
            raise Unsupported("the hashes of two data files collide; read this snapshot with to_arrow")
        own = [
            (st.StructField(KEY, st.LongType(), nullable=False), pa.array(keys)),
            (st.StructField(WORDS, st.ArrayType(st.LongType(), containsNull=False)), _words(self.files, counts)),
        ]
        facts = self._facts(np.repeat(np.arange(len(self.files)), counts))
        fields, columns = zip(*own, *facts, strict=True)
        return spark.createDataFrame(
            pa.Table.from_arrays(list(columns), names=[f.name for f in fields]), schema=st.StructType(list(fields))
        )

    @cached_property
    def scopes(self) -> dict[Scope | None, int]:
        """The partitions of the files, numbered."""
        return {scope: number for number, scope in enumerate(dict.fromkeys(f.file.scope for f in self.files))}

    @cached_property
    def _name(self) -> str:
        return f"_metadata.{'file_name' if self._has_plain_names else 'file_path'}"

    @cached_property
    def _plain_names(self) -> list[str]:
        return [file.location.rpartition("/")[2] for file in self.files]

    @cached_property
    def _has_plain_names(self) -> bool:
        """Whether file names are unique and unchanged by URL encoding; they are shorter to hash than paths."""
        names = self._plain_names
        return len(set(names)) == len(names) and all(_PLAIN_NAME.fullmatch(name) for name in names)

    def _facts(self, rows: npt.NDArray[np.int64]) -> list[tuple[st.StructField, pa.Array]]:
        """Columns of the plan's facts about the file of each chunk, as far as the scan needs them; `rows` holds the
        index of the file of each chunk."""
        files = [file.file for file in self.files]
        by_id = self.request.projection.by_id
        found: list[tuple[str, st.DataType, pa.Array]] = [
            (SEQUENCE, st.LongType(), pa.array([f.data_sequence_number for f in files], pa.int64())),
            (SCOPE, st.IntegerType(), pa.array([self.scopes[f.scope] for f in files], pa.int32())),
        ]
        if FILE_ID in by_id:
            found.append((_FILE, st.StringType(), pa.array([f.file_path for f in files], pa.string())))
        if SPEC_ID_ID in by_id:
            found.append((_SPEC, st.IntegerType(), pa.array([f.spec_id for f in files], pa.int32())))
        if PARTITION_ID in by_id:
            type_ = spark_type(by_id[PARTITION_ID].type, column=by_id[PARTITION_ID].name)
            parts = pa.concat_arrays([self.request.partition_array(f, 1) for f in files])
            found.append((_PARTITION, type_, plain_array(parts)))
        if not by_id.keys().isdisjoint({ROW_ID_ID, LAST_UPDATED_ID}):
            found.append((_FIRST_ROW, st.LongType(), pa.array([f.first_row_id for f in files], pa.int64())))
        return [(st.StructField(name, type_), column.take(pa.array(rows))) for name, type_, column in found]


def fact_of_file(field: NestedField, stored: str | None) -> str:
    """SQL of a metadata column of `OF_FILES`, for a row joined with its chunk.

    Args:
        field: The metadata column.
        stored: The column of the file that stores the value, for the columns of row lineage.
    """
    match field.field_id:
        case id_ if id_ == FILE_ID:
            return _FILE
        case id_ if id_ == SPEC_ID_ID:
            return _SPEC
        case id_ if id_ == PARTITION_ID:
            return shown(_PARTITION, field.type)
        case id_ if id_ == ROW_ID_ID:
            inherited = f"{_FIRST_ROW} + {ROW}"
        case _:
            inherited = SEQUENCE
    assert stored is not None
    # Spec: "Row Lineage". A file without a first row id has no lineage, whatever it stores.
    return f"CASE WHEN {_FIRST_ROW} IS NOT NULL THEN coalesce({quoted(stored)}, {inherited}) END"


def plain_array(column: pa.Array) -> pa.Array:
    """The array in types that Spark accepts from Arrow: no extension types, no fixed-size binary."""
    if pa.types.is_struct(column.type):
        parts = [plain_array(column.field(place)) for place in range(column.type.num_fields)]
        if not parts:
            return column
        return pa.StructArray.from_arrays(parts, [f.name for f in column.type], mask=column.is_null())
    stored = storage_of(column)
    return stored.cast(pa.binary()) if pa.types.is_fixed_size_binary(stored.type) else stored


def _words(files: Sequence[LocatedFile], counts: Collection[int]) -> pa.Array:
    """The bitmaps of all chunks; null for a chunk without deleted rows."""
    words = [own for file, count in zip(files, counts, strict=True) for own in _words_of(file, count)]
    some = [own for own in words if own is not None]
    ends = np.cumsum([0, *(0 if own is None else len(own) for own in words)], dtype=np.int32)
    return pa.ListArray.from_arrays(
        pa.array(ends),
        pa.array(np.concatenate(some) if some else np.empty(0, np.int64)),
        mask=pa.array([own is None for own in words]),
    )


def _words_of(file: LocatedFile, count: int) -> list[npt.NDArray[np.int64] | None]:
    """The bitmap of each chunk of a file; None for a chunk without deleted rows."""
    positions = file.deletes.positions
    if positions is None:
        return [None] * count
    inside = positions[positions < count * CHUNK_ROWS]
    starts = np.searchsorted(inside, np.arange(count + 1) * CHUNK_ROWS)
    found: list[npt.NDArray[np.int64] | None] = []
    for chunk in range(count):
        own = inside[starts[chunk] : starts[chunk + 1]] - chunk * CHUNK_ROWS
        bits = np.zeros(CHUNK_ROWS, np.bool_)
        bits[own] = True
        found.append(np.packbits(bits, bitorder="little").view("<i8") if len(own) else None)
    return found


def _paths_in_spark(files: Sequence[LocatedFile], paths: Sequence[str]) -> list[str]:
    """The path of each file as ``_metadata.file_path`` returns it."""
    places = DataFilePlaces([file.location for file in files])
    shown = {}
    for path in paths:
        location = places.find(unquote(path), "Spark's file index") or places.find(path, "Spark's file index")
        if location is None:
            raise CorruptTable(f"Spark reads {path}, which the plan does not have")
        # The hidden column writes local paths with one slash.
        shown[location] = f"file:{path.removeprefix('file://')}" if path.startswith("file:///") else path
    lost = [file.location for file in files if file.location not in shown]
    if lost:
        raise CorruptTable(f"Spark does not read {lost[0]}, which the plan has ({len(lost)} such files)")
    return [shown[file.location] for file in files]


def xxhash64(text: str) -> int:
    """Spark SQL's ``xxhash64(text)``: a signed 64-bit integer."""
    found = xxhash.xxh64_intdigest(text.encode(), _SPARK_SEED)
    return found - (1 << 64) if found >> 63 else found
