"""Row-level deletes on Spark's own Parquet reader.

Positions: a data file is cut into chunks of 32,768 rows, and each chunk is one row of a small table that is broadcast:
a key made of the file's hash and the chunk's number, and the deleted rows as the bits of 512 longs. A row finds its
chunk by one long and tests one bit. The table has a row for every chunk of every file that goes this way, deleted rows
or not: a row that finds none is a file that we failed to recognize, and stops the query instead of coming back to life.

Keys: an anti-join with null-safe equality, in which only deletes of a higher sequence number than the row's file count;
that number, and the file's partition as a small integer, come with its chunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as st

from engine.columnar.schemas import storage_of
from engine.deletes.equality import GLOBAL, EqualityGroup, Scope
from engine.deletes.planned import FileDeletes
from engine.deletes.positions import DataFilePlaces
from engine.errors import CorruptTable, Unsupported
from engine.read.request import FileRead
from engine.spark.predicates import ColumnOf
from engine.spark.types import spark_type
from engine.spec.types import PrimitiveType

CHUNK_ROWS = 1 << 15
_CHUNK_SHIFT = 15
_WORD_SHIFT = 6
_BROADCAST_KEYS = 4_000_000
"""So many keys are sent to every executor; more are shuffled, if Spark thinks so."""

PATH, ROW, KEY, WORDS, SEQUENCE, SCOPE = (
    "_icebench_path", "_icebench_row", "_icebench_key", "_icebench_words", "_icebench_sequence", "_icebench_scope",
)  # fmt: skip

CHUNKS = st.StructType(
    [
        st.StructField(KEY, st.LongType()),
        st.StructField(WORDS, st.ArrayType(st.LongType())),
        st.StructField(SEQUENCE, st.LongType()),
        st.StructField(SCOPE, st.IntegerType()),
    ]
)


@dataclass(frozen=True, slots=True)
class DeletedFile:
    """A data file, its location as Spark gets it, and what is deleted of it."""

    file: FileRead
    location: str
    deletes: FileDeletes


def without_deleted(
    frame: DataFrame, files: Sequence[DeletedFile], paths: Sequence[str], spark: SparkSession, column_of: ColumnOf
) -> DataFrame:
    """The live rows of `frame`, which reads exactly `files`.

    Args:
        frame: The rows, with the columns of `with_places`.
        files: The data files.
        paths: The same, as Spark's file index has them.
        spark: The session to make small tables in.
        column_of: Field id -> the column of `frame`, for the keys of equality deletes.
    """
    scopes = {scope: number for number, scope in enumerate(dict.fromkeys(f.file.scope for f in files))}
    chunks = _chunk_table(files, paths, scopes, spark)
    chunk = F.shiftright(F.col(ROW), _CHUNK_SHIFT)
    found = frame.join(F.broadcast(chunks), F.xxhash64(F.col(PATH)).bitwiseXOR(chunk) == F.col(KEY), "left")
    word = F.col(WORDS)[F.shiftright(F.col(ROW).bitwiseAND(CHUNK_ROWS - 1), _WORD_SHIFT).cast("int")]
    is_live = F.getbit(word, F.col(ROW).bitwiseAND(63).cast("int")) == 0
    unknown = F.raise_error(F.concat(F.lit("rows of a file that the plan does not have: "), F.col(PATH)))
    live = found.where(F.when(F.col(KEY).isNull(), unknown).when(F.col(WORDS).isNull(), F.lit(True)).otherwise(is_live))
    for group_of, is_global in _groups(files):
        live = _anti_join(live, group_of, {} if is_global else scopes, spark, column_of)
    return live


def with_places(frame: DataFrame) -> DataFrame:
    """The frame with the file and position of each row, which Spark knows only right behind its reader."""
    return frame.select("*", F.col("_metadata.file_path").alias(PATH), F.col("_metadata.row_index").alias(ROW))


def _chunk_table(
    files: Sequence[DeletedFile], paths: Sequence[str], scopes: Mapping[Scope | None, int], spark: SparkSession
) -> DataFrame:
    hashes = _path_hashes(files, paths, spark)
    keys, words, sequences, numbers = [], [], [], []
    for file in files:
        count = max(-(-file.file.record_count // CHUNK_ROWS), 1)
        keys.append(np.int64(hashes[file.location]) ^ np.arange(count, dtype=np.int64))
        words.extend(_words(file, count))
        sequences.append(np.full(count, file.file.data_sequence_number, np.int64))
        numbers.append(np.full(count, scopes[file.file.scope], np.int32))
    joined = np.concatenate(keys)
    if len(np.unique(joined)) != len(joined):
        raise Unsupported("the hashes of two data files collide; read this snapshot with to_arrow")
    table = pa.table(
        {
            KEY: joined,
            WORDS: pa.array(words, pa.list_(pa.int64())),
            SEQUENCE: np.concatenate(sequences),
            SCOPE: np.concatenate(numbers),
        }
    )
    return spark.createDataFrame(table, schema=CHUNKS)


def _words(file: DeletedFile, count: int) -> list[npt.NDArray[np.int64] | None]:
    """The bits of each chunk, None for a chunk without deleted rows."""
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


def _path_hashes(files: Sequence[DeletedFile], paths: Sequence[str], spark: SparkSession) -> dict[str, int]:
    """Location -> Spark's hash of the path that Spark shows for it."""
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
    table = pa.table({"path": list(shown.values())})
    hashed = spark.createDataFrame(table, schema="path string").select(F.xxhash64("path").alias("hash")).toArrow()
    return dict(zip(shown, hashed.column("hash").to_pylist(), strict=True))


def _groups(files: Sequence[DeletedFile]) -> list[tuple[dict[Scope, EqualityGroup], bool]]:
    """Groups that compare the same columns, by scope; global ones apart from those of partitions."""
    found: dict[tuple[tuple[int, ...], bool], dict[Scope, EqualityGroup]] = {}
    for file in files:
        for group in file.deletes.equality:
            is_global = group.scope == GLOBAL
            if not is_global and group.scope != file.file.scope:
                raise Unsupported(
                    f"{file.file.file_path}: equality deletes of a partition whose column was dropped; use to_arrow"
                )
            found.setdefault((group.field_ids, is_global), {})[group.scope] = group
    return [(groups, is_global) for (_, is_global), groups in found.items()]


def _anti_join(
    frame: DataFrame,
    groups: Mapping[Scope, EqualityGroup],
    scopes: Mapping[Scope | None, int],
    spark: SparkSession,
    column_of: ColumnOf,
) -> DataFrame:
    """Rows that equal no key of a higher sequence number; of their own partition only where `scopes` are given."""
    first = next(iter(groups.values()))
    types = [first.schema.primitive(field_id) for field_id in first.field_ids]
    names = [f"_icebench_k{place}" for place in range(len(types))]
    number, scope_number = "_icebench_deleted_at", "_icebench_deleted_in"
    parts = [
        pa.table(
            {
                **{n: _plain(key) for n, key in zip(names, group.keys, strict=True)},
                number: group.sequence_numbers,
                scope_number: np.full(len(group.sequence_numbers), scopes.get(scope, 0), np.int32),
            }
        )
        for scope, group in groups.items()
    ]
    schema = st.StructType(
        [
            *(st.StructField(n, spark_type(t, column=n)) for n, t in zip(names, types, strict=True)),
            st.StructField(number, st.LongType()),
            st.StructField(scope_number, st.IntegerType()),
        ]
    )
    table = pa.concat_tables(parts)
    keys = spark.createDataFrame(table, schema=schema)
    conditions = [
        _comparable(column_of(field_id), type_).eqNullSafe(_comparable(F.col(name), type_))
        for field_id, type_, name in zip(first.field_ids, types, names, strict=True)
    ]
    conditions.append(F.col(number) > F.col(SEQUENCE))
    if scopes:
        conditions.append(F.col(scope_number) == F.col(SCOPE))
    small = F.broadcast(keys) if table.num_rows <= _BROADCAST_KEYS else keys
    return frame.join(small, reduce(Column.__and__, conditions), "left_anti")


def _comparable(column: Column, type_: PrimitiveType) -> Column:
    """Spark's joins take -0.0 for 0.0, equality deletes do not: the text of a float tells them apart."""
    return column.cast("string") if type_.name in ("float", "double") else column


def _plain(key: pa.Array) -> pa.Array:
    """Without what Spark does not take from Arrow: extension types and fixed-size binary."""
    stored = storage_of(key)
    return stored.cast(pa.binary()) if pa.types.is_fixed_size_binary(stored.type) else stored
