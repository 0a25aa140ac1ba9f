"""Data and delete files in ORC and Avro are read as the rows that were written, with everything that evolves."""

import io
from collections.abc import Sequence
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from icebench.engine.codec.avro.schema import record_schema
from icebench.engine.columnar.scalars import to_arrow_array
from icebench.engine.columnar.schemas import child_fields, field_id_of, is_list, to_arrow_schema, to_arrow_type
from icebench.engine.deletes.files import DeleteFile, FileRead
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.parse import parse
from icebench.engine.read.reader import read_files
from icebench.engine.read.request import ReadRequest
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.metadata_columns import POS, POSITION_DELETES
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import (
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    DecimalType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    list_type,
    map_type,
)
from icebench.engine.spec.values import Value, decimal_of
from icebench.engine.storage.memory import MemoryStore
from tests.unit.engine.columnar.value_strategies import PRIMITIVES, values

PATH, DELETES = "memory://b/data", "memory://b/deletes"
PROMOTED: dict[PrimitiveType, PrimitiveType] = {
    INT: LONG,
    FLOAT: DOUBLE,
    DecimalType(7, 2): DecimalType(38, 2),
    DecimalType(1, 0): DecimalType(12, 0),
}
_MOST_MICROS = 2**62 // 1000
FORMATS = ("orc", "avro")
ORDINAL = NestedField(field_id=1, name="ordinal", type=INT, required=True)


def in_range(type_: PrimitiveType) -> st.SearchStrategy[Value]:
    """Values that every format can hold: pyarrow reads timestamps of ORC as nanoseconds."""
    if type_.name in ("timestamp", "timestamptz"):
        return st.integers(-_MOST_MICROS, _MOST_MICROS)
    if type_.name in ("timestamp_ns", "timestamptz_ns"):
        return st.integers(-(2**62), 2**62)
    return values(type_)


def stored(store: MemoryStore, path: str, schema: Schema, columns: dict[str, pa.Array], file_format: str) -> None:
    table = pa.Table.from_arrays(list(columns.values()), schema=to_arrow_schema(schema))
    sink = io.BytesIO()
    if file_format == "orc":
        types = pa.schema([orc_field(f) for f in table.schema])
        arrays = [for_orc(c, f.type) for c, f in zip(table.columns, types, strict=True)]
        orc.write_table(pa.Table.from_arrays(arrays, schema=types), sink)
    else:
        avro = record_schema(StructType(schema.fields), "table")
        names = [f["name"] for f in avro["fields"]]
        rows = [
            dict(zip(names, row, strict=True))
            for row in zip(
                *(for_avro(c, f.type) for c, f in zip(columns.values(), schema.fields, strict=True)), strict=True
            )
        ]
        fastavro.writer(sink, avro, rows, codec="deflate", sync_interval=50)
    store.write(path, sink.getvalue())


def orc_field(field: pa.Field) -> pa.Field:
    """A field as Iceberg Java writes it: ids and what ORC has no type for as attributes."""
    attributes = {"iceberg.id": str(field_id_of(field))}
    type_ = field.type
    inner = [orc_field(f) for f in child_fields(type_)]
    if pa.types.is_time(type_):
        type_, attributes["iceberg.long-type"] = pa.int64(), "TIME"
    elif type_ == pa.uuid():
        type_, attributes["iceberg.binary-type"] = pa.binary(), "UUID"
    elif pa.types.is_fixed_size_binary(type_):
        attributes |= {"iceberg.binary-type": "FIXED", "iceberg.length": str(type_.byte_width)}
        type_ = pa.binary()
    elif pa.types.is_struct(type_):
        type_ = pa.struct(inner)
    elif pa.types.is_map(type_):
        type_ = pa.map_(inner[0].with_nullable(False), inner[1])
    elif is_list(type_):
        type_ = pa.list_(*inner)
    return pa.field(field.name, type_, metadata=attributes)


def for_orc(column: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    array = column.combine_chunks()
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    return array.view(pa.int64()) if pa.types.is_time(array.type) else array.cast(type_)


def for_avro(array: pa.Array, type_: Type) -> list[Any]:
    """Values as fastavro writes them without logical types."""
    return [None if v is None else avro_value(v, type_) for v in physical(array).to_pylist()]


def physical(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        return array.storage
    temporal = pa.types.is_temporal(array.type)
    return array.view(pa.int32() if array.type.bit_width == 32 else pa.int64()) if temporal else array


def avro_value(value: Any, type_: Type) -> Any:
    match type_:
        case DecimalType():
            width = next(n for n in range(1, 17) if 10**type_.precision - 1 < 2 ** (8 * n - 1))
            sign, digits, _ = value.as_tuple()
            unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
            return unscaled.to_bytes(width, "big", signed=True)
        case StructType(fields):
            return {f.name: None if value[f.name] is None else avro_value(value[f.name], f.type) for f in fields}
        case PrimitiveType():
            return value
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        key, item = type_.key.type, type_.value.type  # type: ignore[attr-defined]
        return [{"key": avro_value(k, key), "value": None if v is None else avro_value(v, item)} for k, v in value]
    return [] if not value else [None if v is None else avro_value(v, type_.element.type) for v in value]  # type: ignore[attr-defined]


NESTED = (
    NestedField(
        field_id=101,
        name="s",
        type=StructType(
            (
                NestedField(field_id=102, name="a", type=INT),
                NestedField(field_id=103, name="d", type=DecimalType(9, 2)),
            )
        ),
    ),
    NestedField(
        field_id=104, name="l", type=list_type(105, StructType((NestedField(field_id=106, name="x", type=LONG),)))
    ),
    NestedField(field_id=107, name="m", type=map_type(108, STRING, 109, DecimalType(7, 2))),
)
EVOLVED_NESTED = (
    NestedField(
        field_id=101,
        name="struct",
        type=StructType(
            (
                NestedField(field_id=110, name="more", type=STRING),
                NestedField(field_id=103, name="dd", type=DecimalType(12, 2)),
            )
        ),
    ),
    NestedField(
        field_id=104, name="list", type=list_type(105, StructType((NestedField(field_id=106, name="y", type=LONG),)))
    ),
    NestedField(field_id=107, name="map", type=map_type(108, STRING, 109, DecimalType(9, 2))),
)
NESTED_ROWS = st.fixed_dictionaries(
    {
        "s": st.none()
        | st.fixed_dictionaries(
            {
                "a": st.none() | st.integers(-9, 9),
                "d": st.none() | st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: decimal_of(n, 2)),
            }
        ),
        "l": st.none()
        | st.lists(st.fixed_dictionaries({"x": st.none() | st.integers(-(2**63), 2**63 - 1)}), max_size=3),
        "m": st.none()
        | st.dictionaries(
            st.text("abc", max_size=2), st.none() | st.integers(-99, 99).map(lambda n: decimal_of(n, 2)), max_size=3
        ).map(lambda made: list(made.items())),
    }
)


def evolved(row: dict[str, Any]) -> dict[str, Any]:
    """A nested row as `EVOLVED_NESTED` shows it."""
    struct, items = row["s"], row["l"]
    return {
        "struct": None if struct is None else {"more": None, "dd": struct["d"]},
        "list": None if items is None else [{"y": item["x"]} for item in items],
        "map": row["m"],
    }


@given(data=st.data(), file_format=st.sampled_from(FORMATS))
def test_rows_are_read_as_they_were_written(data: st.DataObject, file_format: str) -> None:
    types = data.draw(st.lists(st.sampled_from(PRIMITIVES), max_size=4))
    rows = data.draw(st.integers(0, 6))
    columns: dict[str, list[Any]] = {"ordinal": list(range(rows))}
    fields, wanted = [ORDINAL], []
    for number, type_ in enumerate(types, 2):
        own = st.lists(st.none() | in_range(type_), min_size=rows, max_size=rows)
        columns[f"c{number}"] = data.draw(own)
        fields.append(NestedField(field_id=number, name=f"c{number}", type=type_))
        now = PROMOTED.get(type_, type_) if data.draw(st.booleans()) else type_
        wanted.append(NestedField(field_id=number, name=f"renamed {number}", type=now))
    nested = data.draw(st.lists(NESTED_ROWS, min_size=rows, max_size=rows))
    written = Schema((*fields, *NESTED))
    arrays = {f.name: to_arrow_array(f.type, columns[f.name]) for f in fields if isinstance(f.type, PrimitiveType)}
    arrays |= {f.name: pa.array([row[f.name] for row in nested], to_arrow_type(f.type)) for f in NESTED}
    store = MemoryStore()
    stored(store, PATH, written, arrays, file_format)

    gone = sorted(data.draw(st.sets(st.integers(0, max(rows - 1, 0)), max_size=3))) if rows else []
    deletes = [position_deletes(store, gone, data.draw(st.sampled_from(FORMATS)))] if gone else []
    least = data.draw(st.none() | st.integers(0, 6))
    added = NestedField(field_id=99, name="added", type=LONG)
    schema = Schema((ORDINAL, *wanted, added, *EVOLVED_NESTED))
    file = FileRead(
        file_path=PATH,
        record_count=rows,
        file_format=file_format,
        deletes=tuple(deletes),
        residual=None if least is None else bind(parse(f"ordinal >= {least}"), schema),
    )
    request = ReadRequest(store=store, projection=Schema((*schema.fields, POS)), schemas=(schema,))
    batches = list(read_files([file], request, runner=LocalRunner(1), counters=Counters()))

    live = [i for i in range(rows) if i not in gone and (least is None or i >= least)]
    expected = {
        f.name: to_arrow_array(f.type, [columns[f"c{f.field_id}"][i] for i in live])
        for f in wanted
        if isinstance(f.type, PrimitiveType)
    }
    assert pa.Table.from_batches(batches, request.arrow_schema).num_rows == len(live)
    found = pa.Table.from_batches(batches, request.arrow_schema).combine_chunks()
    for name, column in expected.items():
        own = found.column(name).combine_chunks() if live else column
        assert own.equals(column), (name, own, column)
    assert found.select(["struct", "list", "map"]).to_pylist() == [evolved(nested[i]) for i in live]
    assert found.column("_pos").to_pylist() == found.column("ordinal").to_pylist() == live
    assert found.column("added").null_count == len(live)


def position_deletes(store: MemoryStore, positions: Sequence[int], file_format: str) -> DeleteFile:
    arrays = {"file_path": pa.array([PATH] * len(positions)), "pos": pa.array(positions, pa.int64())}
    stored(store, DELETES, POSITION_DELETES, arrays, file_format)
    return delete_file(store, FileContent.POSITION_DELETES, len(positions), file_format)


def delete_file(
    store: MemoryStore, content: FileContent, rows: int, file_format: str, ids: tuple[int, ...] = ()
) -> DeleteFile:
    return DeleteFile(
        content=content,
        file_path=DELETES,
        file_format=file_format,
        record_count=rows,
        file_size_in_bytes=store.size(DELETES),
        sequence_number=2,
        equality_ids=ids,
    )


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("delete_format", FORMATS)
def test_large_files_have_parts_that_equality_deletes_apply_to(file_format: str, delete_format: str) -> None:
    rows = 200_000 if file_format == "orc" else 20_000
    schema = Schema((ORDINAL, NestedField(field_id=2, name="price", type=DecimalType(9, 2))))
    random = np.random.default_rng(1)
    prices = pa.array(random.integers(-(10**6), 10**6, rows)).cast(pa.decimal128(21, 2)).cast(pa.decimal128(9, 2))
    store = MemoryStore()
    if file_format == "orc":
        table = pa.Table.from_arrays([pa.array(range(rows), pa.int32()), prices], schema=to_arrow_schema(schema))
        sink = io.BytesIO()
        typed = table.cast(pa.schema([orc_field(f) for f in table.schema]))
        orc.write_table(typed, sink, stripe_size=1 << 18, batch_size=10_000, compression="zstd")
        store.write(PATH, sink.getvalue())
    else:
        stored(store, PATH, schema, {"ordinal": pa.array(range(rows), pa.int32()), "price": prices}, "avro")
    keys = pa.array(random.integers(0, rows, 50), pa.int32())
    stored(store, DELETES, Schema((ORDINAL,)), {"ordinal": keys}, delete_format)
    deletes = (delete_file(store, FileContent.EQUALITY_DELETES, len(keys), delete_format, (1,)),)
    request = ReadRequest(store=store, projection=schema, schemas=(schema,))
    found = []
    sizes = store.size(PATH)
    for start, length in ((0, sizes // 3), (sizes // 3, sizes)):
        file = FileRead(
            file_path=PATH,
            record_count=rows,
            file_format=file_format,
            deletes=deletes,
            byte_range=(start, length),
            data_sequence_number=1,
        )
        batches = read_files([file], request, runner=LocalRunner(2), counters=Counters())
        found.append(pa.Table.from_batches(batches, request.arrow_schema))
    keep = np.ones(rows, np.bool_)
    keep[keys.to_numpy()] = False
    joined = pa.concat_tables(found).combine_chunks()
    assert joined.column("ordinal").to_numpy().tolist() == np.flatnonzero(keep).tolist()
    assert joined.column("price").combine_chunks().equals(prices.filter(pa.array(keep)))
    assert all(part.num_rows for part in found) or file_format == "avro"
