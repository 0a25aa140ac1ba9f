"""Row groups that statistics exclude hold no matching row; those that they can exclude are excluded."""

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.columnar.filters import row_mask
from icebench.engine.columnar.projection import MissingValues, Projector
from icebench.engine.columnar.scalars import to_arrow_array
from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bound import BoundPredicate
from icebench.engine.expressions.bounds import Evaluator
from icebench.engine.expressions.parse import parse
from icebench.engine.formats.parquet.parquet_writer import ParquetFileWriter, ParquetOptions
from icebench.engine.formats.parquet.row_groups import RowGroupStatistics, matching_row_groups
from icebench.engine.formats.parquet.source import ParquetSource
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import (
    BINARY,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    DecimalType,
    FixedType,
    NestedField,
    PrimitiveType,
)
from icebench.engine.spec.values import Value
from icebench.engine.storage.memory import MemoryStore
from tests.unit.engine.columnar.test_filters import leaves
from tests.unit.engine.columnar.value_strategies import PRIMITIVES, values

PATH = "memory://b/f.parquet"
PROMOTED: dict[PrimitiveType, PrimitiveType] = {
    INT: LONG,
    FLOAT: DOUBLE,
    DecimalType(7, 2): DecimalType(38, 2),
    DecimalType(1, 0): DecimalType(12, 0),
}


def store_with(schema: Schema, groups: list[list[list[Value | None]]]) -> MemoryStore:
    store = MemoryStore()
    arrow = to_arrow_schema(schema)
    writer = ParquetFileWriter(store.open_output(PATH), arrow, schema, modes={}, options=ParquetOptions())
    for group in groups:
        arrays = [to_arrow_array(schema.primitive(i + 1), column) for i, column in enumerate(group)]
        writer.add(pa.RecordBatch.from_arrays(arrays, schema=arrow))
        writer.flush()
    writer.close()
    return store


def masks(store: MemoryStore, schema: Schema, bound: BoundPredicate) -> tuple[list[bool], tuple[int, ...]]:
    """Per row group whether a row matches, and the row groups that statistics keep."""
    with ParquetSource(store, PATH) as source:
        statistics = RowGroupStatistics(source.footer, source.chunks, source.columns, schema, lambda _: None)
        kept = matching_row_groups(statistics, Evaluator(bound))
        found = []
        for group in source.row_groups:
            table = source.read(group.index, schema)
            rows = Projector(missing=MissingValues()).table(table, schema)
            found.append(any(row_mask(rows, bound, schema).to_pylist()))
    return found, kept


@given(data=st.data(), type_=st.sampled_from(PRIMITIVES))
def test_no_matching_row_group_is_excluded(data: st.DataObject, type_: PrimitiveType) -> None:
    written = Schema((NestedField(field_id=1, name="c1", type=type_),))
    column = st.lists(st.none() | values(type_, nan=True), min_size=1, max_size=4)
    groups = data.draw(st.lists(column, min_size=1, max_size=3))
    store = store_with(written, [[group] for group in groups])
    now = PROMOTED.get(type_, type_) if data.draw(st.booleans()) else type_
    schema = Schema((NestedField(field_id=1, name="c1", type=now),))
    bound = data.draw(leaves(1, now, [v for group in groups for v in group if v is not None]))
    matching, kept = masks(store, schema, bound)
    assert all(i in kept for i, matches in enumerate(matching) if matches)


def test_excludes_by_bounds_nulls_and_missing_columns() -> None:
    schema = Schema(
        (
            NestedField(field_id=1, name="k", type=LONG),
            NestedField(field_id=2, name="t", type=STRING),
        )
    )
    store = store_with(schema, [[[1, 2], ["a", "b"]], [[3, 4], [None, None]], [[None, None], ["c", "d"]]])
    wider = Schema((*schema.fields, NestedField(field_id=3, name="added", type=LONG)))

    def kept(text: str, constant: Value | None = None) -> tuple[int, ...]:
        with ParquetSource(store, PATH) as source:
            statistics = RowGroupStatistics(source.footer, source.chunks, source.columns, wider, lambda _: constant)
            return matching_row_groups(statistics, Evaluator(bind(parse(text), wider)))

    assert kept("k > 2") == (1,)
    assert kept("k is null") == (2,)
    assert kept("t is not null and k < 10") == (0,)
    assert kept("t >= 'c'") == (2,)
    assert kept("k in (2, 9)") == (0,)
    assert kept("added = 5") == ()
    assert kept("added = 5", 5) == (0, 1, 2)
    assert kept("added is null", 5) == ()
    assert kept("added is null") == (0, 1, 2)


def kept_of(file: bytes, text: str, type_: PrimitiveType = INT) -> tuple[int, ...]:
    schema = Schema((NestedField(field_id=1, name="k", type=type_),))
    store = MemoryStore()
    with store.open_output(PATH) as out:
        out.write(file)
    with ParquetSource(store, PATH) as source:
        statistics = RowGroupStatistics(source.footer, source.chunks, source.columns, schema, lambda _: None)
        return matching_row_groups(statistics, Evaluator(bind(parse(text), schema)))


def with_footer(file: bytes, before: bytes, after: bytes) -> bytes:
    """The file with some bytes of its footer replaced, wherever they are, and the footer's length right."""
    size = int.from_bytes(file[-8:-4], "little")
    assert before in file[-8 - size :]
    footer = file[-8 - size : -8].replace(before, after)
    return file[: -8 - size] + footer + len(footer).to_bytes(4, "little") + file[-4:]


COLUMN_ORDERS = b"\x19\x1c\x1c\0\0\0"
"""The last field of a footer of one column, and the footer's end."""


def written(column: pa.Array) -> bytes:
    """A file of one row group with the column, as field 1."""
    sink = pa.BufferOutputStream()
    schema = pa.schema([pa.field("k", column.type).with_metadata({"PARQUET:field_id": "1"})])
    table = pa.table([column], schema=schema)
    pq.write_table(table, sink, compression="NONE", use_dictionary=False, store_schema=False)
    file: bytes = sink.getvalue().to_pybytes()
    return file


def with_old_bounds(file: bytes, new: tuple[bytes, bytes], old: tuple[bytes, bytes]) -> bytes:
    """The file with bounds of the older kind, as writers left them before columns had orders.

    Args:
        file: As `written` gives it.
        new: Its lower and upper bound.
        old: The `min` and the `max` that it gets.
    """

    def field(header: int, raw: bytes) -> bytes:
        return bytes([header, len(raw)]) + raw

    # Thrift: null_count, max_value, min_value, both exact; then max, min, null_count.
    found = with_footer(
        file,
        b"\x36\x00" + field(0x28, new[1]) + field(0x18, new[0]) + b"\x11\x11\x00",
        field(0x18, old[1]) + field(0x18, old[0]) + b"\x16\x00\x00",
    )
    return with_footer(found, COLUMN_ORDERS, b"\0")


def test_old_bounds_of_text_were_taken_as_signed_bytes_and_decide_nothing() -> None:
    """In that order ``é``, whose first byte is 0xC3, is below ``a``: both bounds are on the wrong side."""
    text = [each.encode() for each in ("a", "b", "é")]
    file = written(pa.array(["a", "b", "é"]))
    assert kept_of(file, "k = 'c'", STRING) == (0,)
    assert kept_of(file, "k = 'z'", STRING) == (0,)
    assert kept_of(file, "k > 'é'", STRING) == ()
    old = with_old_bounds(file, (text[0], text[2]), (text[2], text[1]))
    for value in ("a", "b", "é"):
        assert kept_of(old, f"k = '{value}'", STRING) == (0,)
        assert kept_of(old, f"k >= '{value}' and k <= '{value}'", STRING) == (0,)
    assert kept_of(old, "k is null", STRING) == ()


def test_old_bounds_of_binary_and_fixed_decide_nothing() -> None:
    for type_, arrow in ((BINARY, pa.binary()), (FixedType(2), pa.binary(2))):
        file = written(pa.array([b"\x01\x01", b"\x80\x01"], arrow))
        assert kept_of(file, "k = X'9000'", type_) == ()
        old = with_old_bounds(file, (b"\x01\x01", b"\x80\x01"), (b"\x80\x01", b"\x01\x01"))
        assert kept_of(old, "k = X'0101'", type_) == kept_of(old, "k = X'8001'", type_) == (0,)


def test_old_bounds_of_signed_numbers_are_right() -> None:
    # pyarrow writes both kinds of bounds for them.
    old = with_footer(written(pa.array([-3, 9], pa.int32())), COLUMN_ORDERS, b"\0")
    assert [kept_of(old, f"k = {value}") for value in (-4, -3, 9, 10)] == [(), (0,), (0,), ()]


def test_statistics_that_can_not_be_right_decide_nothing() -> None:
    """pyarrow's objects for them would end the process."""
    low, high = (1_000_001).to_bytes(4, "little"), (1_000_009).to_bytes(4, "little")
    file = written(pa.array([1_000_001, 1_000_009], pa.int32()))
    assert kept_of(file, "k = 5") == ()
    for bound in (low, high):
        for found in (b"", bound[:3], bound + b"\0"):
            damaged = with_footer(file, b"\4" + bound, bytes([len(found)]) + found)
            assert kept_of(damaged, "k > 1000009" if bound == high else "k < 1000001") == (0,)
            assert kept_of(damaged, "k is null") == ()
    # Definition levels: three counts, though an optional column has two.
    levels = b"\x19\x26\x00\x04"
    assert kept_of(with_footer(file, levels, b"\x19\x36\x00\x04\x00"), "k = 5") == ()


def test_bounds_that_are_no_values_of_the_type_decide_nothing() -> None:
    halves = pa.array([2, 3], pa.float16())
    assert kept_of(written(halves), "k > 1.5", FLOAT) == (0,)
    assert kept_of(written(halves), "k = 2", FLOAT) == (0,)


@pytest.mark.parametrize("type_", [TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS])
def test_dates_under_a_timestamp_column(type_: PrimitiveType) -> None:
    """Also the last day that four digits have, which is beyond the nanoseconds of 64 bits."""
    zone = "+00:00" if type_ in (TIMESTAMPTZ, TIMESTAMPTZ_NS) else ""
    days = written(pa.array([dt.date(2022, 1, 8), dt.date(2022, 1, 9)]))
    assert kept_of(days, f"k > timestamp '2020-01-01 00:00:00{zone}'", type_) == (0,)
    assert kept_of(days, f"k > timestamp '2022-01-09 00:00:00{zone}'", type_) == ()
    last = written(pa.array([dt.date(9999, 12, 31)]))
    assert kept_of(last, f"k > timestamp '2020-01-01 00:00:00{zone}'", type_) == (0,)
