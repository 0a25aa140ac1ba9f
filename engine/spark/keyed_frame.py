"""The rows of a DataFrame that are merged into a table by key: looked at first, then matched with the table's rows.

A DataFrame may give other rows each time that it runs (a function in Python, a source that changes), and its rows are
needed several times. So they are kept by the executors, once, without what made them: if an executor that keeps some is
lost, the operation fails, and does not go on with others.

Keys are compared in the table's types, as `icebench.engine.columnar.key_index` compares them: NaN equals NaN, and zeros
differ by sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as st

from icebench.engine.columnar.batch_columns import combined
from icebench.engine.columnar.rows import RowMatcher
from icebench.engine.columnar.scalars import shown_value
from icebench.engine.columnar.value_summary import MOST_VALUES, ValueSummary
from icebench.engine.errors import Unsupported
from icebench.engine.plan.scan import ScanPlan
from icebench.engine.spark.arrow_batches import spark_batch, spark_schema
from icebench.engine.spark.distribution import column_name
from icebench.engine.spark.file_chunks import PREFIX
from icebench.engine.spark.frame_writer import numbered
from icebench.engine.spark.jobs import carried_errors, errors_of_executors
from icebench.engine.spark.native_scan import plan_to_dataframe
from icebench.engine.spark.types import quoted
from icebench.engine.spark.workers import prepare_worker
from icebench.engine.spec.metadata_columns import FILE, POS, ROW_ID
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import UUID
from icebench.engine.storage.store import Store

_NUMBER = f"{PREFIX}number"
_TOLERANCE = 1.2
"""Spark's approximate number of distinct values is off by a few per cent."""
_TASK_ROWS = 100_000
"""The least rows of a task that writes, where there are enough."""
_BROADCAST_ROWS = 1_000_000
"""Up to that many keys are broadcast; more are shuffled, and with them the keys of the table's planned files."""


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
        rows = frame.select("*", F.monotonically_increasing_id().alias(_NUMBER))
        return cls(rows.localCheckpoint(), keys, frozenset(searchable))

    @cached_property
    def _names(self) -> list[str]:
        """What the key columns are called here: no name of a table's column."""
        return [f"{PREFIX}key{place}" for place in range(len(self.keys.fields))]

    @cached_property
    def _keys(self) -> DataFrame:
        """The rows' numbers and keys, in the table's types."""
        places = [self.rows.columns.index(name) for name in (_NUMBER, *(f.name for f in self.keys.fields))]
        given = numbered(self.rows, self.keys).select(*map(column_name, places))
        wanted = [f.dataType for f in spark_schema(self.keys).fields]
        keyed = given.toDF(_NUMBER, *self._names)
        # Not every text of a uuid is the one that scans return.
        is_plain = not any(f.type == UUID for f in self.keys.fields)
        if is_plain and [f.dataType for f in given.schema.fields[1:]] == wanted:
            return keyed
        number, names = keyed.schema.fields[0], self._names
        schema = [st.StructField(name, type_) for name, type_ in zip(names, wanted, strict=True)]
        return keyed.mapInArrow(_Converted(self.keys), st.StructType([number, *schema])).persist()

    def summary(self) -> KeySummary:
        """What the keys are.

        Raises:
            Invalid: A key that does not fit the table's type.
        """
        keys = self._keys.select(*[_comparable(self._keys, name).alias(name) for name in self._names])
        grouped = keys.groupBy(*self._names).agg(F.count(F.lit(1)).alias(_NUMBER))
        found = [F.sum(_NUMBER).alias("rows"), F.max(_NUMBER).alias("most")]
        found += [F.sum(F.when(F.col(name).isNull(), F.col(_NUMBER))).alias(f"{name}_nulls") for name in self._names]
        for name in self._searchable:
            ends = F.array(F.min(name), F.max(name)).alias(f"{name}_ends")
            found += [ends, F.approx_count_distinct(name).alias(f"{name}_values")]
        with errors_of_executors():
            totals = grouped.agg(*found).toArrow()
        only = {name: totals.column(name)[0] for name in totals.column_names}
        named = dict(zip(self._names, (f.name for f in self.keys.fields), strict=True))
        rows = only["rows"].as_py() or 0
        repeated = None
        if rows and only["most"].as_py() > 1:
            row = grouped.where(F.col(_NUMBER) > 1).limit(1).toArrow()
            repeated = {own: shown_value(row.column(name)[0]) for name, own in named.items()}
        values = {}
        for name in self._searchable if rows else ():
            summary = ValueSummary(only[f"{name}_ends"].values, is_range=True)
            if only[f"{name}_values"].as_py() <= MOST_VALUES * _TOLERANCE:
                few = combined(keys.select(name).distinct().limit(MOST_VALUES + 1).toArrow().column(0))
                summary = summary if len(few) > MOST_VALUES else ValueSummary.of(few.drop_null())
            values[named[name]] = summary
        return KeySummary(
            rows=rows,
            nulls={own: only[f"{name}_nulls"].as_py() or 0 for name, own in named.items()},
            repeated=repeated,
            values=values,
        )

    @property
    def _searchable(self) -> list[str]:
        return [name for name, f in zip(self._names, self.keys.fields, strict=True) if f.name in self.searchable]

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
        found = named.join(keys, equal, "inner")
        if has_ids:  # which are needed once more
            return MatchedFrame(found.select(_NUMBER, FILE.name, POS.name, ROW_ID.name).persist(), self.rows, rows)
        return MatchedFrame(found.select(FILE.name, POS.name), self.rows, rows)

    def release(self) -> None:
        """Free what executors keep."""
        self._keys.unpersist()


@dataclass(frozen=True, kw_only=True)
class KeySummary:
    """What the keys of a `KeyedFrame` are.

    Args:
        rows: The number of rows.
        nulls: How many rows have a null, by key column.
        repeated: A key that several rows have, dates, times and floating-point numbers as texts; None if there is none.
        values: The values of searchable columns.
    """

    rows: int
    nulls: Mapping[str, int]
    repeated: Mapping[str, Any] | None
    values: Mapping[str, ValueSummary]


@dataclass(frozen=True)
class MatchedFrame:
    """Rows of a table that have a key of a `KeyedFrame`.

    Args:
        matched: File and position; in format version 3 also the number of the row that has the key, and the row id.
        rows: The rows of the `KeyedFrame`.
        count: How many these are.
    """

    matched: DataFrame
    rows: DataFrame
    count: int

    def positions(self, tasks: int) -> DataFrame:
        """File and position of each row, divided by file."""
        return self.matched.select(FILE.name, POS.name).repartition(tasks, FILE.name)

    def written(self, next_row_id: int | None) -> DataFrame:
        """The rows of the `KeyedFrame`; in format version 3 with the ids of those that they replace.

        Args:
            next_row_id: Ids from here on are of no committed row, and are left out; None keeps all.
        """
        # Without tasks, and files, of a few rows.
        rows = self.rows.coalesce(-(-self.count // _TASK_ROWS))
        if ROW_ID.name not in self.matched.columns:
            return rows.drop(_NUMBER)
        known = self.matched if next_row_id is None else self.matched.where(F.col(ROW_ID.name) < next_row_id)
        ids = known.groupBy(_NUMBER).agg(F.max(ROW_ID.name).alias(ROW_ID.name))
        if self.count <= _BROADCAST_ROWS:
            ids = F.broadcast(ids)
        return rows.join(ids, _NUMBER, "left").drop(_NUMBER)

    def release(self) -> None:
        """Free what executors keep."""
        self.matched.unpersist()


@dataclass(frozen=True)
class _Converted:
    """The function of executors that casts keys to the table's types, behind a column that stays."""

    keys: Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        with carried_errors():
            for batch in batches:
                given = pa.RecordBatch.from_arrays(batch.columns[1:], names=[f.name for f in self.keys.fields])
                made = pa.Table.from_batches(RowMatcher(given.schema, self.keys).batches(given)).combine_chunks()
                for keys in made.to_batches():
                    columns = [batch.column(0), *spark_batch(keys, self.keys).columns]
                    yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _comparable(frame: DataFrame, name: str) -> Column:
    """A key column as equality compares it: Spark treats -0.0 as equal to 0.0, as texts they differ."""
    column = frame[quoted(name)]
    is_float = isinstance(frame.schema[name].dataType, st.FloatType | st.DoubleType)
    return column.cast("string") if is_float else column
