"""The rows of a DataFrame that are merged into a table by key: looked at first, then matched with the table's rows.

A DataFrame may give other rows each time that it runs (``rand()``, a source that changes), and its rows are needed
several times. So they are kept by the executors, once, without what made them: if an executor that keeps some is lost,
the operation fails, and does not go on with others.

Keys are compared in the table's types, as `engine.columnar.key_index` compares them: NaN equals NaN, and zeros differ
by sign.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as st

from engine.columnar.rows import RowMatcher
from engine.columnar.value_summary import ValueSummary
from engine.errors import Unsupported
from engine.plan.scan import ScanPlan
from engine.spark.arrow_batches import spark_batch, spark_schema
from engine.spark.file_chunks import PREFIX
from engine.spark.jobs import carried_errors, errors_of_executors
from engine.spark.native_scan import plan_to_dataframe
from engine.spark.types import quoted
from engine.spark.writer import with_uuids
from engine.spec.metadata_columns import FILE, POS, ROW_ID
from engine.spec.schema import Schema
from engine.spec.types import UUID
from engine.storage.store import Store

_NUMBER = f"{PREFIX}number"
_BROADCAST_ROWS = 1_000_000
"""So many keys are sent to every executor; more are shuffled, and with them the keys of the table's planned files."""


@dataclass(frozen=True)
class KeyedFrame:
    """Rows with a key.

    Args:
        rows: The rows with a number each, kept by the executors.
        keys: The key columns.
        searchable: Those of them whose values are summarised.
    """

    rows: DataFrame
    keys: Schema
    searchable: frozenset[str]

    @classmethod
    def of(cls, frame: DataFrame, keys: Schema, searchable: Iterable[str]) -> KeyedFrame:
        """Run a DataFrame and keep its rows.

        Raises:
            Unsupported: A streaming DataFrame, or a key of a type that Spark does not have.
        """
        if frame.isStreaming:
            raise Unsupported("an upsert of a stream; upsert its batches, in foreachBatch")
        spark_schema(keys)
        numbered = frame.select("*", F.monotonically_increasing_id().alias(_NUMBER))
        return cls(numbered.localCheckpoint(), keys, frozenset(searchable))

    @cached_property
    def _names(self) -> list[str]:
        """What the key columns are called here: no name of a table's column."""
        return [f"{PREFIX}key{place}" for place in range(len(self.keys.fields))]

    @cached_property
    def _keys(self) -> DataFrame:
        """The rows' numbers and keys, in the table's types."""
        columns = [F.col(quoted(f.name)) for f in self.keys.fields]
        given = with_uuids(self.rows.select(_NUMBER, *columns), self.keys)
        wanted = [f.dataType for f in spark_schema(self.keys).fields]
        numbered = given.toDF(_NUMBER, *self._names)
        if [f.dataType for f in given.schema.fields[1:]] == wanted and not any(
            f.type == UUID for f in self.keys.fields
        ):
            return numbered
        number, names = numbered.schema.fields[0], self._names
        schema = [st.StructField(name, type_) for name, type_ in zip(names, wanted, strict=True)]
        return numbered.mapInArrow(_Converted(self.keys), st.StructType([number, *schema])).persist()

    def summary(self) -> tuple[int, dict[str, int], dict[str, ValueSummary]]:
        """The number of rows; the number of nulls in each key column; and the values of searchable ones.

        Raises:
            Invalid: A key that does not fit the table's type.
        """
        task = _Summaries(self.keys, self.searchable)
        with errors_of_executors():
            made = self._keys.drop(_NUMBER).mapInArrow(task, _SUMMARY).collect()
        parts = [pickle.loads(row[0]) for row in made]  # noqa: S301 - of the driver's own executors
        nulls = {f.name: sum(each[f.name] for _, each, _ in parts) for f in self.keys.fields}
        known = {
            name: ValueSummary.of_all([values[name] for _, _, values in parts]) for name in self.searchable if parts
        }
        return sum(rows for rows, _, _ in parts), nulls, known

    def repeated_key(self) -> dict[str, Any] | None:
        """A key that several rows have; None if there is none."""
        grouped = self._keys.groupBy(*[_comparable(self._keys, name).alias(f"{name}_text") for name in self._names])
        firsts = [F.first(name).alias(name) for name in self._names]
        found = grouped.agg(F.count(F.lit(1)).alias(_NUMBER), *firsts).where(F.col(_NUMBER) > 1).limit(1).toArrow()
        values = found.select(self._names).to_pylist()
        return dict(zip((f.name for f in self.keys.fields), values[0].values(), strict=True)) if values else None

    def matched(self, plan: ScanPlan, store: Store, *, rows: int, table_name: str | None = None) -> MatchedFrame:
        """The rows of a plan that have one of the keys.

        Args:
            plan: The table and its files.
            store: Its storage.
            rows: How many rows this is.
            table_name: For errors.
        """
        has_ids = plan.metadata.format_version >= 3
        projection = Schema((*self.keys.fields, FILE, POS, *([ROW_ID] if has_ids else [])))
        table = plan_to_dataframe(self.rows.sparkSession, plan, store, projection=projection, table_name=table_name)
        own = [f"{name}_own" for name in self._names]
        named = table.toDF(*own, *table.columns[len(own) :])
        keys = F.broadcast(self._keys) if rows <= _BROADCAST_ROWS else self._keys
        equal = [
            _comparable(named, left) == _comparable(self._keys, right)
            for left, right in zip(own, self._names, strict=True)
        ]
        columns = [_NUMBER, FILE.name, POS.name, *([ROW_ID.name] if has_ids else [])]
        return MatchedFrame(named.join(keys, equal, "inner").select(*columns).persist(), self.rows)

    def release(self) -> None:
        """Free what executors keep."""
        self._keys.unpersist()


@dataclass(frozen=True)
class MatchedFrame:
    """Rows of a table, each with the number of a row of a `KeyedFrame`.

    Args:
        matched: Number, file, position and, in format version 3, row id; executors keep it.
        rows: The rows of the `KeyedFrame`.
    """

    matched: DataFrame
    rows: DataFrame

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of rows by file."""
        found = self.matched.groupBy(FILE.name).count().toArrow()
        return dict(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def positions(self, files: Sequence[Sequence[str]]) -> DataFrame:
        """The positions of the rows, each with the group of files and the place there.

        Args:
            files: The files of each group.
        """
        places = [(path, group, place) for group, paths in enumerate(files) for place, path in enumerate(paths)]
        names = [f"{PREFIX}file", f"{PREFIX}group", f"{PREFIX}place"]
        table = pa.table(dict(zip(names, map(list, zip(*places, strict=True)), strict=True)))
        groups = F.broadcast(self.rows.sparkSession.createDataFrame(table))
        joined = self.matched.join(groups, self.matched[FILE.name] == groups[names[0]], "inner")
        return joined.select(names[1], names[2], POS.name)

    def written(self, next_row_id: int | None) -> DataFrame:
        """The rows of the `KeyedFrame`; in format version 3 with the ids of those that they replace.

        Args:
            next_row_id: Ids from here on are of no committed row, and are left out; None keeps all.
        """
        if ROW_ID.name not in self.matched.columns:
            return self.rows.drop(_NUMBER)
        known = self.matched if next_row_id is None else self.matched.where(F.col(ROW_ID.name) < next_row_id)
        ids = known.groupBy(_NUMBER).agg(F.max(ROW_ID.name).alias(ROW_ID.name))
        if sum(self.counts.values()) <= _BROADCAST_ROWS:
            ids = F.broadcast(ids)
        return self.rows.join(ids, _NUMBER, "left").drop(_NUMBER)

    def release(self) -> None:
        """Free what executors keep."""
        self.matched.unpersist()


_SUMMARY = st.StructType([st.StructField("summary", st.BinaryType())])


@dataclass(frozen=True)
class _Converted:
    """The function of executors that casts keys to the table's types, behind a column that stays."""

    keys: Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with carried_errors():
            for batch in batches:
                given = pa.RecordBatch.from_arrays(batch.columns[1:], names=[f.name for f in self.keys.fields])
                made = pa.Table.from_batches(RowMatcher(given.schema, self.keys).batches(given)).combine_chunks()
                for keys in made.to_batches():
                    columns = [batch.column(0), *spark_batch(keys, self.keys).columns]
                    yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


@dataclass(frozen=True)
class _Summaries:
    """The function of executors that summarises keys."""

    keys: Schema
    searchable: frozenset[str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, nulls = 0, {f.name: 0 for f in self.keys.fields}
        values: dict[str, list[ValueSummary]] = {name: [] for name in self.searchable}
        for batch in batches:
            rows += batch.num_rows
            for f, column in zip(self.keys.fields, batch.columns, strict=True):
                nulls[f.name] += column.null_count
                if f.name in values:
                    own = ValueSummary.of(column.drop_null())
                    values[f.name] = [ValueSummary.of_all([*values[f.name], own])]
        if rows:
            found = {name: each[0] for name, each in values.items()}
            yield pa.RecordBatch.from_pydict({"summary": pa.array([pickle.dumps((rows, nulls, found))], pa.binary())})


def _comparable(frame: DataFrame, name: str) -> Column:
    """A key column as equality compares it: Spark treats -0.0 as equal to 0.0, as texts they differ."""
    column = frame[quoted(name)]
    is_float = isinstance(frame.schema[name].dataType, st.FloatType | st.DoubleType)
    return column.cast("string") if is_float else column
