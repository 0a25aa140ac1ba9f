"""Row-level deletes on Spark's own Parquet reader.

Positions: a row tests its own bit of an array that comes with the code, see `engine.spark.bits`; or of its chunk, which
it finds by a join, where files can not be told apart so, or more is to be known of them, see `engine.spark.places`.

Keys: an anti-join with null-safe equality, in which only deletes of a higher sequence number than the row's file count;
that number, and the file's partition as a small integer, come with its chunk. Where every key concerns every file of
the group, which is usual, rows need no chunk. Where deleted rows are to be kept and marked, keys are made distinct and
joined instead. Keys of whole numbers are joined as one; see `engine.spark.packing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from engine.deletes.equality import GLOBAL, EqualityGroup, Scope
from engine.errors import Unsupported
from engine.read.request import ReadRequest
from engine.spark.bits import SLOTS, WORDS, bits_of
from engine.spark.packing import Packing, packing_of
from engine.spark.places import OF_FILES, PREFIX, ROW, SCOPE, SEQUENCE, PlacedFile, Places, plain_array
from engine.spark.predicates import ColumnOf
from engine.spark.session import JavaFrame
from engine.spark.types import spark_type
from engine.spec.metadata_columns import POS_ID
from engine.spec.types import PrimitiveType

_BROADCAST_KEYS = 4_000_000
"""So many keys are sent to every executor; more are shuffled, if Spark thinks so."""


@dataclass(frozen=True)
class DeletedGroup:
    """What is deleted of data files whose rows are one DataFrame, and what of its columns the plan knows.

    Args:
        files: All of its data files.
        request: The scan.
        is_flat: Whether no column that is read has fields or elements. Of structs to which a field was added, Spark
            gave null for all of them where a condition right above the files asked for one of ``_metadata``.
    """

    files: Sequence[PlacedFile]
    request: ReadRequest
    is_flat: bool

    def read_fields(self) -> list[st.StructField]:
        """What to ask Spark's reader for besides columns."""
        has_rows = self._has_places or POS_ID in self.request.projection.by_id
        return [st.StructField(ROW, st.LongType())] if has_rows else []

    def applied(self, source: JavaFrame, rows: JavaFrame, spark: SparkSession, column_of: ColumnOf) -> JavaFrame:
        """The live rows, or all rows where deleted ones are to be kept, with the columns that `deleted` speaks of.

        Args:
            source: What Spark's reader gives for exactly the files of this group.
            rows: The same under the names of the scan.
            spark: The session to make small tables in.
            column_of: Field id -> the column of `rows`, for the keys of equality deletes.
        """
        found, keeps = rows, self.request.keeps_deleted
        is_simple = self.is_flat and self._has_positions and not self._has_facts
        bits = bits_of(self.files, source.listed_files) if is_simple else None
        if bits is not None:
            found = found.with_values(bits.table(spark), (WORDS, SLOTS)).where(bits.is_live())
        elif self._has_places:
            found = found.join(self._places.table(source.input_files, spark), self._places.condition(), "left")
            if not keeps:
                found = found.where(f"NOT ({self._places.is_deleted()})")
        for keys in self._keys:
            condition = keys.condition(column_of)
            how = "left" if keeps else "left_anti"
            found = found.join(keys.table(self._places.scopes, spark), condition, how, is_small=keys.is_small)
        return found

    def deleted(self) -> str:
        """The text of ``_deleted`` for a row of `applied`."""
        parts = [f"({self._places.is_deleted()})"] if self._has_places else []
        return " OR ".join([*parts, *(f"{keys.mark} IS NOT NULL" for keys in self._keys)]) or "false"

    @cached_property
    def _places(self) -> Places:
        return Places(self.files, self.request)

    @cached_property
    def _keys(self) -> list[_Keys]:
        return _keys_of(self.files, is_marking=self.request.keeps_deleted)

    @cached_property
    def _has_places(self) -> bool:
        """Whether rows are to know their place in a file."""
        return self._has_facts or self._has_positions

    @cached_property
    def _has_facts(self) -> bool:
        """Whether they are to know more of it than which of its rows are deleted."""
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
    """Groups of equality deletes that compare the same columns, by scope.

    Args:
        number: Tells them from others of the same scan.
        groups: The keys.
        is_global: Whether they concern files of any partition.
        is_uniform: Whether every key concerns every data file.
        is_marking: Whether each row is to meet one key at most, and what it meets to be seen.
    """

    number: int
    groups: Mapping[Scope, EqualityGroup]
    is_global: bool
    is_uniform: bool
    is_marking: bool

    @property
    def mark(self) -> str:
        """A column that is not null where a key was met."""
        return self._at

    @cached_property
    def _first(self) -> EqualityGroup:
        return next(iter(self.groups.values()))

    @cached_property
    def _types(self) -> list[PrimitiveType]:
        return [self._first.schema.primitive(field_id) for field_id in self._first.field_ids]

    @cached_property
    def _packing(self) -> Packing | None:
        """How keys are one number; None where they are not."""
        return packing_of(self._types, [group.keys for group in self.groups.values()])

    @cached_property
    def _key_fields(self) -> list[st.StructField]:
        """The columns of the table that hold the keys."""
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
        """Whether they are sent to every executor."""
        return sum(len(group.sequence_numbers) for group in self.groups.values()) <= _BROADCAST_KEYS

    def condition(self, column_of: ColumnOf) -> str:
        """The text of what joins rows with the keys that delete them."""
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
        """The keys; `scopes` are the numbers of the files' partitions."""
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
        """The keys of a group, for `_key_fields`."""
        if self._packing is not None:
            return [pa.array(self._packing.keys(group.keys))]
        return [plain_array(key) for key in group.keys]


def _keys_of(files: Sequence[PlacedFile], *, is_marking: bool) -> list[_Keys]:
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
    """Each key of a scope once, with the highest sequence number that deletes it."""
    ordered = table.sort_by(at)
    place = f"{PREFIX}place"
    # Arrow groups -0.0 with 0.0, which are two keys; as texts it does not, and NaN is one of either kind.
    texts = [c.cast(pa.string()) if pa.types.is_floating(c.type) else c for c in ordered.select([*keys, scope]).columns]
    named = pa.Table.from_arrays([*texts, pa.array(np.arange(len(ordered)))], names=[*keys, scope, place])
    last = named.group_by([*keys, scope]).aggregate([(place, "max")])
    return ordered.take(last.column(f"{place}_max"))


def _equal(row: str, key: str, *, has_null_keys: bool) -> str:
    """Null-safe equality: where no key is null, the plain one, whose join is cheaper, is the same."""
    return f"{row} {'<=>' if has_null_keys else '='} {key}"


def _comparable(column: str, type_: PrimitiveType) -> str:
    """Spark's joins take -0.0 for 0.0, equality deletes do not: the text of a float tells them apart."""
    return f"CAST({column} AS STRING)" if type_.name in ("float", "double") else column
