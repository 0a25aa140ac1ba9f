"""Row-level deletes on Spark's own Parquet reader.

Positions: a data file is cut into chunks of 32,768 rows, and each chunk is one row of a small table that is broadcast:
a key made of the file's hash and the chunk's number, and the deleted rows as the bits of 512 longs. A row finds its
chunk by one long and tests one bit. The table has a row for every chunk of every file that goes this way, deleted rows
or not: a row that finds none is a file that we failed to recognize, and stops the query instead of coming back to life.
No job is run to make the table: the hash is computed here as Spark computes it.

Keys: an anti-join with null-safe equality, in which only deletes of a higher sequence number than the row's file count;
that number, and the file's partition as a small integer, come with its chunk. Where every key concerns every file of
the group, which is usual, rows need no chunk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
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
from engine.spark.xxhash import spark_xxhash64
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
        st.StructField(KEY, st.LongType(), nullable=False),
        st.StructField(WORDS, st.ArrayType(st.LongType(), containsNull=False)),
        st.StructField(SEQUENCE, st.LongType(), nullable=False),
        st.StructField(SCOPE, st.IntegerType(), nullable=False),
    ]
)

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9_.=-]*")
"""File names that no encoding changes."""


@dataclass(frozen=True, slots=True)
class DeletedFile:
    """A data file, its location as Spark gets it, and what is deleted of it."""

    file: FileRead
    location: str
    deletes: FileDeletes


@dataclass(frozen=True)
class DeletedGroup:
    """What is deleted of data files whose rows are one DataFrame.

    Args:
        files: All of its data files.
    """

    files: Sequence[DeletedFile]

    def placed(self, frame: DataFrame) -> DataFrame:
        """What Spark's reader gives, with the file and position of each row where they are needed; right behind the
        reader is the only place where Spark knows them."""
        if not self._has_places:
            return frame
        file = "file_name" if self._has_plain_names else "file_path"
        return frame.selectExpr("*", f"_metadata.{file} as {PATH}", f"_metadata.row_index as {ROW}")

    def live(
        self, frame: DataFrame, paths: Callable[[], Sequence[str]], spark: SparkSession, column_of: ColumnOf
    ) -> DataFrame:
        """The live rows of `frame`, which reads exactly the files of this group.

        Args:
            frame: The rows, with the columns of `placed`.
            paths: Gives the files' locations as Spark's file index has them.
            spark: The session to make small tables in.
            column_of: Field id -> the column of `frame`, for the keys of equality deletes.
        """
        live = frame
        if self._has_places:
            names = self._plain_names if self._has_plain_names else _shown_paths(self.files, paths())
            chunks = _chunk_table(self.files, names, self._scopes, spark)
            on = F.expr(f"xxhash64({PATH}) ^ shiftright({ROW}, {_CHUNK_SHIFT})") == F.col(KEY)
            live = frame.join(F.broadcast(chunks), on, "left").where(_IS_LIVE)
        for keys in self._keys:
            live = _anti_join(live, keys, self._scopes, spark, column_of)
        return live

    @cached_property
    def _keys(self) -> list[_Keys]:
        return _keys_of(self.files)

    @cached_property
    def _has_places(self) -> bool:
        return any(f.deletes.positions is not None for f in self.files) or not all(k.is_uniform for k in self._keys)

    @cached_property
    def _plain_names(self) -> list[str]:
        return [file.location.rpartition("/")[2] for file in self.files]

    @cached_property
    def _has_plain_names(self) -> bool:
        """Whether the files can be told apart by their names, which are shorter to hash than their paths."""
        names = self._plain_names
        return len(set(names)) == len(names) and all(_PLAIN_NAME.fullmatch(name) for name in names)

    @cached_property
    def _scopes(self) -> dict[Scope | None, int]:
        return {scope: number for number, scope in enumerate(dict.fromkeys(f.file.scope for f in self.files))}


_IS_LIVE = f"""
    case when {KEY} is null then raise_error('rows of a file that the plan does not have: ' || {PATH})
         when {WORDS} is null then true
         else getbit({WORDS}[cast(shiftright({ROW} & {CHUNK_ROWS - 1}, {_WORD_SHIFT}) as int)],
                     cast({ROW} & 63 as int)) = 0
    end"""


def _chunk_table(
    files: Sequence[DeletedFile], names: Sequence[str], scopes: Mapping[Scope | None, int], spark: SparkSession
) -> DataFrame:
    """The chunks of all files, found by the files' `names`."""
    counts = [max(-(-file.file.record_count // CHUNK_ROWS), 1) for file in files]
    keys = np.concatenate(
        [spark_xxhash64(name) ^ np.arange(count, dtype=np.int64) for name, count in zip(names, counts, strict=True)]
    )
    if len(np.unique(keys)) != len(keys):
        raise Unsupported("the hashes of two data files collide; read this snapshot with to_arrow")
    words = [own for file, count in zip(files, counts, strict=True) for own in _words(file, count)]
    some = [own for own in words if own is not None]
    ends = np.cumsum([0, *(0 if own is None else len(own) for own in words)], dtype=np.int32)
    table = pa.table(
        {
            KEY: keys,
            WORDS: pa.ListArray.from_arrays(
                pa.array(ends),
                pa.array(np.concatenate(some) if some else np.empty(0, np.int64)),
                mask=pa.array([own is None for own in words]),
            ),
            SEQUENCE: np.repeat(np.array([f.file.data_sequence_number for f in files], np.int64), counts),
            SCOPE: np.repeat(np.array([scopes[f.file.scope] for f in files], np.int32), counts),
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


def _shown_paths(files: Sequence[DeletedFile], paths: Sequence[str]) -> list[str]:
    """The path that Spark shows for each file."""
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


@dataclass(frozen=True)
class _Keys:
    """Groups of equality deletes that compare the same columns, by scope.

    `is_global` is whether they concern files of any partition, `is_uniform` whether every key concerns every data file.
    """

    groups: Mapping[Scope, EqualityGroup]
    is_global: bool
    is_uniform: bool


def _keys_of(files: Sequence[DeletedFile]) -> list[_Keys]:
    found: dict[tuple[tuple[int, ...], bool], dict[Scope, EqualityGroup]] = {}
    given: dict[tuple[tuple[int, ...], bool], int] = {}
    for file in files:
        for group in file.deletes.equality:
            is_global = group.scope == GLOBAL
            if not is_global and group.scope != file.file.scope:
                raise Unsupported(
                    f"{file.file.file_path}: equality deletes of a partition whose column was dropped; use to_arrow"
                )
            kind = (group.field_ids, is_global)
            found.setdefault(kind, {})[group.scope] = group
            given[kind] = given.get(kind, 0) + 1
    newest = max((file.file.data_sequence_number for file in files), default=0)
    return [
        _Keys(
            groups,
            kind[1],
            # One group, given to each file, and none of its keys as old as a file.
            len(groups) == 1
            and given[kind] == len(files)
            and all(int(group.sequence_numbers.min(initial=newest + 1)) > newest for group in groups.values()),
        )
        for kind, groups in found.items()
    ]


def _anti_join(
    frame: DataFrame,
    keys: _Keys,
    scopes: Mapping[Scope | None, int],
    spark: SparkSession,
    column_of: ColumnOf,
) -> DataFrame:
    """Rows that equal no key that concerns their file."""
    groups = keys.groups
    first = next(iter(groups.values()))
    types = [first.schema.primitive(field_id) for field_id in first.field_ids]
    names = [f"_icebench_k{place}" for place in range(len(types))]
    number, scope_number = "_icebench_deleted_at", "_icebench_deleted_in"
    parts = [
        {
            **{n: _plain(key) for n, key in zip(names, group.keys, strict=True)},
            number: group.sequence_numbers,
            scope_number: np.full(len(group.sequence_numbers), scopes.get(scope, 0), np.int32),
        }
        for scope, group in groups.items()
    ]
    fields = [
        *(st.StructField(n, spark_type(t, column=n)) for n, t in zip(names, types, strict=True)),
        st.StructField(number, st.LongType()),
        st.StructField(scope_number, st.IntegerType()),
    ]
    table = pa.concat_tables([pa.table(part) for part in parts])
    conditions = [
        _equal(
            _comparable(column_of(field_id), type_),
            _comparable(F.col(n), type_),
            has_null_keys=table.column(n).null_count > 0,
        )
        for field_id, type_, n in zip(first.field_ids, types, names, strict=True)
    ]
    if keys.is_uniform:
        table, fields = table.select(names), fields[: len(names)]
    else:
        conditions.append(F.col(number) > F.col(SEQUENCE))
        if not keys.is_global:
            conditions.append(F.col(scope_number) == F.col(SCOPE))
    rows = spark.createDataFrame(table, schema=st.StructType(fields))
    small = F.broadcast(rows) if table.num_rows <= _BROADCAST_KEYS else rows
    return frame.join(small, reduce(Column.__and__, conditions), "left_anti")


def _equal(row: Column, key: Column, *, has_null_keys: bool) -> Column:
    """Null-safe equality: where no key is null, the plain one, whose join is cheaper, is the same."""
    return row.eqNullSafe(key) if has_null_keys else row == key


def _comparable(column: Column, type_: PrimitiveType) -> Column:
    """Spark's joins take -0.0 for 0.0, equality deletes do not: the text of a float tells them apart."""
    return column.cast("string") if type_.name in ("float", "double") else column


def _plain(key: pa.Array) -> pa.Array:
    """Without what Spark does not take from Arrow: extension types and fixed-size binary."""
    stored = storage_of(key)
    return stored.cast(pa.binary()) if pa.types.is_fixed_size_binary(stored.type) else stored
