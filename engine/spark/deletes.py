"""Row-level deletes over Spark's own Parquet reader.

Positions: a row tests its bit of a bitmap that tasks receive as a constant (`icebench.engine.spark.deleted_bits`);
where file sizes do not identify the files, or metadata columns need more facts of a file, it finds the bitmap of its
chunk by a broadcast join (`icebench.engine.spark.file_chunks`).

Equality: an anti-join with null-safe equality, restricted to deletes whose sequence number is higher than that of the
row's file; the file's sequence number and the number of its partition come with the row's chunk. In the common case
that every key applies to every file of the group, no chunk is needed. Where deleted rows are kept and marked, keys are
made distinct and a left join is used. Keys of integer types are joined as one long (`icebench.engine.spark.packing`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from icebench.engine.deletes.equality import GLOBAL, EqualityGroup, Scope
from icebench.engine.errors import Unsupported
from icebench.engine.read.request import ReadRequest
from icebench.engine.spark.deleted_bits import SLOTS, WORDS, bits_of
from icebench.engine.spark.file_chunks import (
    OF_FILES,
    PREFIX,
    ROW,
    SCOPE,
    SEQUENCE,
    FileChunks,
    LocatedFile,
    plain_array,
)
from icebench.engine.spark.packing import Packing, packing_of
from icebench.engine.spark.predicates import ColumnOf
from icebench.engine.spark.session import JavaFrame
from icebench.engine.spark.types import spark_type
from icebench.engine.spec.metadata_columns import POS_ID
from icebench.engine.spec.types import PrimitiveType

_BROADCAST_KEYS = 4_000_000
"""Up to that many keys are broadcast; more are shuffled, if Spark chooses to."""


@dataclass(frozen=True)
class DeletedGroup:
    """The deletes that apply to the data files of one DataFrame.

    Args:
        files: All data files of the DataFrame.
        request: The scan.
        is_flat: Whether no column that is read is nested. With a struct to which a field was added, Spark returned null
            for the whole struct when a condition directly above the file scan referred to a field of ``_metadata``.
    """

    files: Sequence[LocatedFile]
    request: ReadRequest
    is_flat: bool

    def read_fields(self) -> list[st.StructField]:
        """Columns to read from Spark's reader in addition to those of the scan."""
        has_rows = self._needs_chunks or POS_ID in self.request.projection.by_id
        return [st.StructField(ROW, st.LongType())] if has_rows else []

    def applied(self, source: JavaFrame, rows: JavaFrame, spark: SparkSession, column_of: ColumnOf) -> JavaFrame:
        """The live rows; or, where deleted rows are kept, all rows with the columns that `deleted` refers to.

        Args:
            source: The DataFrame of Spark's reader, of exactly the files of this group.
            rows: The same rows under the column names of the scan.
            spark: The session to create small tables in.
            column_of: Field id -> column of `rows`, for the keys of equality deletes.
        """
        found, keeps = rows, self.request.keeps_deleted
        is_simple = self.is_flat and self._has_positions and not self._needs_facts
        bits = bits_of(self.files, source.listed_files) if is_simple else None
        if bits is not None:
            found = found.with_values(bits.table(spark), (WORDS, SLOTS)).where(bits.is_live())
        elif self._needs_chunks:
            found = found.join(self._chunks.table(source.input_files, spark), self._chunks.condition(), "left")
            if not keeps:
                found = found.where(f"NOT ({self._chunks.is_deleted()})")
        for keys in self._keys:
            condition = keys.condition(column_of)
            how = "left" if keeps else "left_anti"
            found = found.join(keys.table(self._chunks.scopes, spark), condition, how, is_small=keys.is_small)
        return found

    def deleted(self) -> str:
        """SQL of the column ``_deleted``, over the result of `applied`."""
        parts = [f"({self._chunks.is_deleted()})"] if self._needs_chunks else []
        return " OR ".join([*parts, *(f"{keys.mark} IS NOT NULL" for keys in self._keys)]) or "false"

    @cached_property
    def _chunks(self) -> FileChunks:
        return FileChunks(self.files, self.request)

    @cached_property
    def _keys(self) -> list[_Keys]:
        return _keys_of(self.files, is_marking=self.request.keeps_deleted)

    @cached_property
    def _needs_chunks(self) -> bool:
        """Whether rows must be joined with their chunks unless a bitmap by file size is enough."""
        return self._needs_facts or self._has_positions

    @cached_property
    def _needs_facts(self) -> bool:
        """Whether rows need facts of their file other than its deleted positions."""
        return (
            not self.request.projection.by_id.keys().isdisjoint(OF_FILES)
            or not all(k.is_uniform for k in self._keys)
            or (self.request.keeps_deleted and self._has_positions)
        )

    @cached_property
    def _has_positions(self) -> bool:
        return any(f.deletes.positions is not None for f in self.files)


@dataclass(frozen=True, kw_only=True)
class _Keys:
    """Equality deletes that compare the same columns, by scope.

    Args:
        number: Distinguishes them from the other keys of the scan.
        groups: The keys of each scope.
        is_global: Whether they apply to files of all partitions.
        is_uniform: Whether every key applies to every data file.
        is_marking: Whether deleted rows are kept and marked, so that a row may match one key at most.
    """

    number: int
    groups: Mapping[Scope, EqualityGroup]
    is_global: bool
    is_uniform: bool
    is_marking: bool

    @property
    def mark(self) -> str:
        """A column that is not null where a row matched a key."""
        return self._at

    @cached_property
    def _first(self) -> EqualityGroup:
        return next(iter(self.groups.values()))

    @cached_property
    def _types(self) -> list[PrimitiveType]:
        return [self._first.schema.primitive(field_id) for field_id in self._first.field_ids]

    @cached_property
    def _packing(self) -> Packing | None:
        """The encoding of keys as one long; None where they have none."""
        return packing_of(self._types, [group.keys for group in self.groups.values()])

    @cached_property
    def _key_fields(self) -> list[st.StructField]:
        """The columns of `table` that hold the keys."""
        if self._packing is not None:
            return [st.StructField(f"{PREFIX}k{self.number}", st.LongType(), nullable=False)]
        names = [f"{PREFIX}k{self.number}_{place}" for place in range(len(self._types))]
        return [st.StructField(n, spark_type(t, column=n)) for n, t in zip(names, self._types, strict=True)]

    @cached_property
    def _names(self) -> list[str]:
        return [f.name for f in self._key_fields]

    @property
    def _at(self) -> str:
        return f"{PREFIX}deleted{self.number}_at"

    @property
    def _in(self) -> str:
        return f"{PREFIX}deleted{self.number}_in"

    @property
    def is_small(self) -> bool:
        """Whether the keys are broadcast."""
        return sum(len(group.sequence_numbers) for group in self.groups.values()) <= _BROADCAST_KEYS

    def condition(self, column_of: ColumnOf) -> str:
        """SQL of the join condition between rows and the keys that delete them."""
        rows = [column_of(field_id) for field_id in self._first.field_ids]
        if self._packing is not None:
            conditions = [f"{self._packing.packed(rows)} = {self._names[0]}"]
        else:
            conditions = [
                _equal(
                    _comparable(row, type_),
                    _comparable(name, type_),
                    has_null_keys=any(group.keys[place].null_count for group in self.groups.values()),
                )
                for place, (row, type_, name) in enumerate(zip(rows, self._types, self._names, strict=True))
            ]
        if not self.is_uniform:
            conditions.append(f"{self._at} > {SEQUENCE}")
            if not self.is_global:
                conditions.append(f"{self._in} = {SCOPE}")
        return " AND ".join(conditions)

    def table(self, scopes: Mapping[Scope | None, int], spark: SparkSession) -> DataFrame:
        """The keys as a DataFrame; `scopes` maps a scope to the number of its partition."""
        parts = [
            {
                **dict(zip(self._names, self._stored(group), strict=True)),
                self._at: group.sequence_numbers,
                self._in: np.full(len(group.sequence_numbers), scopes.get(scope, 0), np.int32),
            }
            for scope, group in self.groups.items()
        ]
        fields = [
            *self._key_fields,
            st.StructField(self._at, st.LongType()),
            st.StructField(self._in, st.IntegerType()),
        ]
        table = pa.concat_tables([pa.table(part) for part in parts])
        if self.is_marking:
            table = _newest(table, self._names, self._at, self._in)
        elif self.is_uniform:
            table, fields = table.select(self._names), fields[: len(self._names)]
        return spark.createDataFrame(table, schema=st.StructType(fields))

    def _stored(self, group: EqualityGroup) -> list[pa.Array]:
        """The keys of a group as the columns `_key_fields`."""
        if self._packing is not None:
            return [pa.array(self._packing.keys(group.keys))]
        return [plain_array(key) for key in group.keys]


def _keys_of(files: Sequence[LocatedFile], *, is_marking: bool) -> list[_Keys]:
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
            number=number,
            groups=groups,
            is_global=kind[1],
            # One group, given to each file, and none of its keys as old as a file.
            is_uniform=len(groups) == 1
            and given[kind] == len(files)
            and all(int(group.sequence_numbers.min(initial=newest + 1)) > newest for group in groups.values()),
            is_marking=is_marking,
        )
        for number, (kind, groups) in enumerate(found.items())
    ]


def _newest(table: pa.Table, keys: Sequence[str], at: str, scope: str) -> pa.Table:
    """The distinct keys of each scope, each with the highest sequence number that deletes it."""
    ordered = table.sort_by(at)
    place = f"{PREFIX}place"
    # Arrow groups -0.0 with 0.0, which are two keys; as texts it does not, and NaN is one of either kind.
    texts = [c.cast(pa.string()) if pa.types.is_floating(c.type) else c for c in ordered.select([*keys, scope]).columns]
    named = pa.Table.from_arrays([*texts, pa.array(np.arange(len(ordered)))], names=[*keys, scope, place])
    last = named.group_by([*keys, scope]).aggregate([(place, "max")])
    return ordered.take(last.column(f"{place}_max"))


def _equal(row: str, key: str, *, has_null_keys: bool) -> str:
    """SQL of null-safe equality; where no key is null, plain equality, whose join is faster, is the same."""
    return f"{row} {'<=>' if has_null_keys else '='} {key}"


def _comparable(column: str, type_: PrimitiveType) -> str:
    """Spark's joins treat -0.0 as equal to 0.0, equality deletes do not: cast to text, they differ."""
    return f"CAST({column} AS STRING)" if type_.name in ("float", "double") else column
