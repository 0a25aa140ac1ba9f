"""A scan as a source of DuckDB, which pushes columns and filters into the plan."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.types as pat

from icebench.engine.columnar.extensions import extension_type
from icebench.engine.columnar.filters import row_mask
from icebench.engine.columnar.foreign_filters import to_predicate
from icebench.engine.columnar.schemas import leaves, with_fields
from icebench.engine.errors import Unsupported
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bound import BOUND_TRUE
from icebench.engine.expressions.predicate import (
    TRUE,
    And,
    Compare,
    In,
    Not,
    Or,
    Predicate,
    all_of,
    any_of,
    compare,
    not_null,
)
from icebench.engine.expressions.temporal_literals import TemporalLiteral
from icebench.engine.frames.lazy_scan import LazyScan, pushed
from icebench.engine.lazy_module import LazyModule

duckdb = LazyModule("duckdb")

_NAN_OR_LESS = (
    "a comparison `<= NaN` with several floating-point columns, for DuckDB does not say of which; write `is not null`, "
    "or if it comes from a join, `set disabled_optimizers = 'join_filter_pushdown'`"
)


class ScanDataset(ds.Dataset):  # type: ignore[misc] # pyarrow has no types
    """A scan in the form of a pyarrow dataset, as far as DuckDB asks one: its schema, and scanners of some columns with
    a filter. Planned and read anew by each."""

    def __init__(self, scan: LazyScan) -> None:
        self._scan = scan

    @property
    def schema(self) -> pa.Schema:
        """The columns of the scan. Geography is plain WKB: DuckDB's geometries have straight edges."""
        return pa.schema([_plain_geography(f) for f in self._scan.arrow_schema])

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: ANN401 - an expression of pyarrow
        **_: Any,  # noqa: ANN401 - whatever else scanners take
    ) -> Scanner:
        """Columns in this order, among them those of the filter, of the rows that the filter keeps.

        Raises:
            Invalid, Unsupported: The filter is none of the engine's. DuckDB does not test it again, and pyarrow cannot:
                for pyarrow NaN is not above numbers.
            Unsupported: The filter compares ``<= NaN``, and several columns are floating point.
        """
        names, known = list(self.schema.names if columns is None else columns), self._scan.schema
        wanted = [leaf for leaf in leaves(pa.schema(map(self.schema.field, names))) if not leaf.repeated]
        floats = [leaf.path for leaf in wanted if pat.is_floating(leaf.field.type)]

        def nan_or_less() -> Predicate:
            """`<= NaN`, which DuckDB pushes as `true`, without its column, for conditions and for keys of joins."""
            if len(floats) == 1:
                return not_null(floats[0])
            raise Unsupported(_NAN_OR_LESS)

        found = TRUE if filter is None else to_predicate(filter, known, true=nan_or_less)
        nanoseconds = {leaf.path for leaf in wanted if leaf.field.type == pa.timestamp("ns", "UTC")}
        scan, left = pushed(self._scan, _in_microseconds(found, nanoseconds))
        rows, bound = scan.narrowed(columns=names).to_batches(), bind(left, known)
        if bound == BOUND_TRUE:
            return Scanner(rows, names)
        return Scanner(rows, names, lambda batch: batch.filter(row_mask(batch, bound, known)))


class Scanner:
    """What DuckDB asks of a pyarrow scanner.

    pyarrow's own would wait for the rows on one of the few threads of its pool for input, which reading Parquet files
    needs too: a query with as many scans as that pool has threads would never end.

    Args:
        rows: The rows, read as they are asked for.
        columns: Those that are wanted, in order.
        keep: What it keeps of a batch.
    """

    def __init__(
        self,
        rows: pa.RecordBatchReader,
        columns: Sequence[str],
        keep: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
    ) -> None:
        self._rows, self._columns, self._keep = rows, list(columns), keep

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        if self._keep is None and self._rows.schema.names == self._columns:
            return self._rows
        schema = self._rows.schema
        wanted = pa.schema([schema.field(name) for name in self._columns], schema.metadata)
        kept = self._rows if self._keep is None else map(self._keep, self._rows)
        return pa.RecordBatchReader.from_batches(wanted, (batch.select(self._columns) for batch in kept))


def _in_microseconds(filter: Predicate, columns: Container[str]) -> Predicate:
    """The filter for nanoseconds in these columns, which DuckDB divides by 1000, towards zero, before it compares."""
    match filter:
        case And(children):
            return all_of(_in_microseconds(child, columns) for child in children)
        case Or(children):
            return any_of(_in_microseconds(child, columns) for child in children)
        case Not(child):
            return ~_in_microseconds(child, columns)
        case In(name, literals) if name in columns:
            return any_of(_in_microseconds(Compare(name, "=", each), columns) for each in literals)
        case Compare(name, operator, TemporalLiteral(kind, at)) if name in columns:
            first, last = (TemporalLiteral(kind, each) for each in (at - 999 * (at <= 0), at + 999 * (at >= 0)))
            if operator in ("=", "!="):
                equal = compare(name, ">=", first) & compare(name, "<=", last)
                return equal if operator == "=" else ~equal
            return compare(name, operator, last if operator in ("<=", ">") else first)
    return filter


def _plain_geography(field: pa.Field) -> pa.Field:
    found = extension_type(field)
    if found is not None and found.name == "geography":
        return field.remove_metadata()
    return field.with_type(with_fields(field.type, _plain_geography))


def relation(scan: LazyScan, connection: Any = None) -> Any:  # noqa: ANN401 - DuckDB's own
    """The scan as a relation of a DuckDB connection, by default a new one."""
    return (duckdb.connect() if connection is None else connection).from_arrow(ScanDataset(scan))
