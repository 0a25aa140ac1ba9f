"""Every value of every cell of decimals: precision, physical type, encoding, nulls; wide and narrow, with filters."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.deletes.files import DeleteFile, FileRead
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.parse import parse
from icebench.engine.formats.parquet import narrow_footer
from icebench.engine.read.reader import read_files
from icebench.engine.read.request import ReadRequest
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import DecimalType, NestedField, StructType, list_type
from icebench.engine.spec.values import decimal_of
from icebench.engine.storage.memory import MemoryStore
from tests.property.evaluate import evaluate

PATH, DELETES = "memory://b/data.parquet", "memory://b/deletes.parquet"
ENCODINGS = ("PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", "RLE_DICTIONARY")


@pytest.fixture(autouse=True, scope="module")
def even_small_files_are_decoded_narrow() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(narrow_footer, "_FEWEST_ROWS_A_COLUMN", 0)
        yield


def schema_of(precision: int) -> Schema:
    type_ = DecimalType(precision, 2)
    inner = NestedField(field_id=4, name="x", type=type_)
    return Schema(
        (
            NestedField(field_id=1, name="a", type=type_),
            NestedField(field_id=2, name="b", type=type_),
            NestedField(field_id=3, name="s", type=StructType((inner,))),
            NestedField(field_id=5, name="l", type=list_type(6, type_)),
        )
    )


def stored(rows: pa.Table, *, integers: bool, encoding: str, group: int) -> MemoryStore:
    """The rows as some writer stores them; an encoding that the physical type does not have becomes plain."""
    options: dict[str, Any] = {"store_decimal_as_integer": integers, "store_schema": False, "row_group_size": group}
    is_integer = integers and rows.schema.field("a").type.precision <= 18
    if encoding == "BYTE_STREAM_SPLIT" or (encoding == "DELTA_BINARY_PACKED" and is_integer):
        options |= {"use_dictionary": False, "column_encoding": {"a": encoding, "b": encoding}}
    else:
        options["use_dictionary"] = encoding == "RLE_DICTIONARY"
    sink = io.BytesIO()
    pq.write_table(rows, sink, **options)
    store = MemoryStore()
    store.write(PATH, sink.getvalue())
    return store


@dataclass(frozen=True)
class Cell:
    """How decimals are stored, and how many digits more the table has now."""

    precision: int
    integers: bool
    encoding: str
    more_digits: int


CELLS = st.builds(
    Cell,
    precision=st.sampled_from([2, 7, 9, 10, 15, 18, 19, 20, 38]),
    integers=st.booleans(),
    encoding=st.sampled_from(ENCODINGS),
    more_digits=st.sampled_from([0, 3, 12]),
)


@given(data=st.data(), cell=CELLS, narrow=st.booleans())
def test_every_value_of_every_cell(data: st.DataObject, cell: Cell, narrow: bool) -> None:
    precision = cell.precision
    limit = 10**precision - 1
    value = st.none() | st.integers(-limit, limit).map(lambda n: decimal_of(n, 2))
    rows = data.draw(st.lists(st.tuples(value, value, value, st.none() | st.lists(value, max_size=2)), max_size=12))
    written = schema_of(precision)
    table = pa.Table.from_arrays(
        [
            pa.array([r[0] for r in rows], pa.decimal128(precision, 2)),
            pa.array([r[1] for r in rows], pa.decimal128(precision, 2)),
            pa.array([None if r[2] is None else {"x": r[2]} for r in rows], to_arrow_schema(written).field("s").type),
            pa.array([r[3] for r in rows], to_arrow_schema(written).field("l").type),
        ],
        schema=to_arrow_schema(written),
    )
    group = data.draw(st.integers(1, 12))
    store = stored(table, integers=cell.integers, encoding=cell.encoding, group=group)
    schema = schema_of(min(precision + cell.more_digits, 38))
    bound = data.draw(st.none() | value.filter(lambda v: v is not None))
    operator = data.draw(st.sampled_from(["<", ">=", "=", "!=", "in"]))
    text = None if bound is None else f"a in ({bound}, 0.00)" if operator == "in" else f"a {operator} {bound}"
    residual = None if text is None else bind(parse(text), schema)
    keys = data.draw(st.lists(st.sampled_from([r[1] for r in rows]), max_size=2)) if rows else []
    request = ReadRequest(store=store, projection=schema, schemas=(schema,), narrow_decimals=narrow, batch_rows=5)
    file = FileRead(
        file_path=PATH, record_count=len(rows), residual=residual, deletes=equality_deletes(store, keys, schema)
    )
    batches = list(read_files([file], request, runner=LocalRunner(1), counters=Counters()))

    live = [r for r in rows if r[1] not in keys and (residual is None or evaluate(residual, {1: r[0]}) is True)]
    found = pa.Table.from_batches(batches, request.arrow_schema)
    assert found.to_pylist() == [
        {"a": r[0], "b": r[1], "s": None if r[2] is None else {"x": r[2]}, "l": r[3]} for r in live
    ]
    width = min(precision + cell.more_digits, 38)
    expected = pa.decimal128(width, 2)
    if narrow and width <= 18:
        expected = pa.decimal32(width, 2) if width <= 9 else pa.decimal64(width, 2)
    assert found.schema.field("a").type == found.schema.field("s").type.field(0).type == expected


def equality_deletes(store: MemoryStore, keys: list[Decimal | None], schema: Schema) -> tuple[DeleteFile, ...]:
    if not keys:
        return ()
    field = to_arrow_schema(schema).field("b")
    sink = io.BytesIO()
    pq.write_table(pa.table([pa.array(keys, field.type)], schema=pa.schema([field])), sink, store_schema=False)
    store.write(DELETES, sink.getvalue())
    return (
        DeleteFile(
            content=FileContent.EQUALITY_DELETES,
            file_path=DELETES,
            file_format="parquet",
            record_count=len(keys),
            file_size_in_bytes=len(sink.getvalue()),
            sequence_number=1,
            equality_ids=(2,),
        ),
    )
