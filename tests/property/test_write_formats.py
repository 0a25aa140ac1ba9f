"""ORC and Avro files hold the rows that were given, whatever their types and slices, and their metrics are true."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.columnar.scalars import to_arrow_array
from icebench.engine.columnar.schemas import to_arrow_schema, to_arrow_type
from icebench.engine.deletes.files import FileRead
from icebench.engine.formats.opening import open_source
from icebench.engine.read.reader import read_files
from icebench.engine.read.request import ReadRequest
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.metadata_columns import POSITION_DELETES
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import (
    DATE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    ListType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    list_type,
    map_type,
)
from icebench.engine.spec.values import decimal_of, decode_value
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.storage.store import Store
from icebench.engine.write.data_files import write_data_files
from icebench.engine.write.delete_files import DeletedRows, write_position_deletes
from icebench.errors import StorageFailed, Unsupported
from tests.property.test_read_formats import FORMATS, in_range
from tests.unit.engine.columnar.value_strategies import PRIMITIVES, values
from tests.unit.engine.write.metadata_for_writes import LOCATION, metadata_of
from tests.unit.engine.write.test_data_files import FullDisk


def named(field_id: int, name: str, type_: Type) -> NestedField:
    return NestedField(field_id=field_id, name=name, type=type_)


STRUCT = StructType(
    (
        named(1, "a b.c", INT),
        named(2, "at", TIME),
        named(3, "key", UUID),
        named(4, "wide", DecimalType(38, 3)),
        named(5, "three", FixedType(3)),
    )
)
NESTED: dict[str, Type] = {
    "s": STRUCT,
    "l": list_type(6, TIMESTAMP),
    "m": map_type(7, STRING, 8, StructType((named(9, "x", DATE),))),
}
ARROW_NESTED = {name: to_arrow_type(type_) for name, type_ in NESTED.items()}


NAN = ("not a number",)


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


WIDE = st.integers(1 - 10**38, 10**38 - 1).map(lambda n: decimal_of(n, 3))
MOMENTS = st.integers(-(10**15), 10**15).map(lambda n: pa.scalar(n, pa.timestamp("us")).as_py())
DAYS = st.integers(-999, 999).map(lambda n: pa.scalar(n, pa.date32()).as_py())
NESTED_ROW = st.fixed_dictionaries(
    {
        "s": some(
            st.fixed_dictionaries(
                {
                    "a b.c": some(st.integers(-9, 9)),
                    "at": some(st.integers(0, 86_399_999_999)),
                    "key": some(st.binary(min_size=16, max_size=16)),
                    "wide": some(WIDE),
                    "three": some(st.binary(min_size=3, max_size=3)),
                }
            )
        ),
        "l": some(st.lists(some(MOMENTS), max_size=3)),
        "m": some(
            st.dictionaries(st.text("ab", max_size=2), some(st.fixed_dictionaries({"x": some(DAYS)})), max_size=3)
        ).map(lambda made: made if made is None else list(made.items())),
    }
)


def arrow_nested(name: str, values: list[Any]) -> pa.Array:
    if name != "s":
        return pa.array(values, ARROW_NESTED[name])
    mask = pa.array([v is None for v in values])
    children = []
    for field in STRUCT.fields:
        assert isinstance(field.type, PrimitiveType)
        children.append(to_arrow_array(field.type, [None if v is None else v[field.name] for v in values]))
    return pa.StructArray.from_arrays(children, fields=list(ARROW_NESTED[name]), mask=mask)


def read(store: Store, file: DataFile, schema: Schema) -> pa.Table:
    request = ReadRequest(store=store, projection=schema, schemas=(schema,))
    given = FileRead(file_path=file.file_path, record_count=file.record_count, file_format=file.file_format)
    batches = list(read_files([given], request, runner=LocalRunner(1), counters=Counters()))
    return pa.Table.from_batches(batches, request.arrow_schema)


def listed(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Values of a column; days and times as numbers, since Python has fewer."""
    own = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_temporal(own.type):
        own = own.view(pa.int32() if own.type.bit_width == 32 else pa.int64())
    return list(map(comparable, own.to_pylist()))


def comparable(value: Any) -> Any:
    """Values of which NaN equals NaN."""
    return NAN if isinstance(value, float) and math.isnan(value) else value


def check_metrics(file: DataFile, rows: pa.Table, path: tuple[str, ...], field: NestedField) -> None:
    """Hold the metrics of a column against its values."""
    column = rows.column(path[0]).combine_chunks()
    for name in path[1:]:
        column = column.flatten()[[f.name for f in column.type].index(name)]
    found, column_id = listed(column), field.field_id
    assert isinstance(field.type, PrimitiveType)
    assert file.value_counts[column_id] == len(found)
    assert file.null_value_counts[column_id] == sum(v is None for v in found)
    present = [v for v in found if v is not None and v != NAN]
    if field.type.name in ("float", "double"):
        assert file.nan_value_counts[column_id] == len(found) - len(present) - sum(v is None for v in found)
    assert (column_id in file.lower_bounds) == bool(present)
    if not present:
        return
    lower = decode_value(field.type, file.lower_bounds[column_id])
    bounds = [lower]
    if column_id in file.upper_bounds:
        bounds.append(decode_value(field.type, file.upper_bounds[column_id]))
    physical = to_arrow_array(field.type, bounds)
    bounds = listed(physical)
    least, most = min(present), max(present)
    if field.type.name in ("string", "binary"):
        assert bounds[0] <= least
        assert all(bound >= most for bound in bounds[1:])
    else:
        assert bounds == [least, most]


@given(data=st.data(), file_format=st.sampled_from(FORMATS))
def test_rows_come_back_with_true_metrics(data: st.DataObject, file_format: str) -> None:
    types = data.draw(st.lists(st.sampled_from(PRIMITIVES), max_size=4))
    count = data.draw(st.integers(1, 7))
    columns: dict[str, pa.Array] = {"ordinal": pa.array(range(count), pa.int32())}
    for place, type_ in enumerate(types):
        own = values(type_, nan=True) if type_.name in ("float", "double") else in_range(type_)
        drawn = data.draw(st.lists(some(own), min_size=count, max_size=count))
        columns[f"c {place}"] = to_arrow_array(type_, drawn)
    nested = data.draw(st.lists(NESTED_ROW, min_size=count, max_size=count))
    columns |= {name: arrow_nested(name, [row[name] for row in nested]) for name in NESTED}
    table = pa.table(columns)
    metadata = metadata_of(table.schema, format_version=3, properties={"write.format.default": file_format})
    cut = data.draw(st.integers(0, count))
    parts = [table.slice(0, cut), table.slice(cut)]
    reader = pa.RecordBatchReader.from_batches(table.schema, [b for part in parts for b in part.to_batches()])
    store = MemoryStore()
    (file,) = write_data_files(reader, metadata=metadata, store=store)

    assert file.file_format == file_format
    assert file.file_path.endswith(f".{file_format}")
    assert file.file_size_in_bytes == store.size(file.file_path)
    found = read(store, file, metadata.schema)
    for name in table.schema.names:
        assert listed(found.column(name)) == listed(table.column(name))
    for field in metadata.schema.fields:
        if isinstance(field.type, PrimitiveType):
            check_metrics(file, found, (field.name,), field)
        elif isinstance(field.type, StructType):
            for inner in field.type.fields:
                check_metrics(file, found, (field.name, inner.name), inner)
        else:
            assert field.field_id not in file.value_counts


@pytest.mark.parametrize("codec", ["zlib", "none"])
def test_split_offsets_are_those_of_the_stripes(codec: str) -> None:
    random = np.random.default_rng(1)
    table = pa.table({"x": random.integers(0, 1 << 60, 100_000), "s": [{"y": i} for i in range(100_000)]})
    properties = {
        "write.format.default": "orc",
        "write.orc.stripe-size-bytes": "300000",
        "write.orc.compression-codec": codec,
    }
    metadata, store = metadata_of(table.schema, properties=properties), MemoryStore()
    (file,) = write_data_files(table, metadata=metadata, store=store)
    with open_source(store, file.file_path, file_format="orc") as source:
        assert len(source.row_groups) > 2
        assert file.split_offsets == tuple(source.offset(group.index) for group in source.row_groups)
        assert source.accounts_for_all_bytes
    assert read(store, file, metadata.schema).equals(table.cast(to_arrow_schema(metadata.schema)))


@pytest.mark.parametrize("file_format", FORMATS)
def test_files_have_about_the_target_size(file_format: str) -> None:
    table = pa.table({"x": np.random.default_rng(1).integers(0, 1 << 30, 400_000)})
    properties = {
        "write.format.default": file_format,
        "write.target-file-size-bytes": "300000",
        "write.orc.stripe-size-bytes": "100000",
    }
    files = write_data_files(table, metadata=metadata_of(table.schema, properties=properties), store=MemoryStore())
    assert len(files) > 3
    assert all(150_000 < file.file_size_in_bytes < 600_000 for file in files[:-1])


@pytest.mark.parametrize("codec", ["gzip", "zstd", "snappy", "uncompressed"])
def test_avro_files_are_compressed_as_the_property_says(codec: str) -> None:
    table = pa.table({"x": [1] * 50_000})
    properties = {"write.format.default": "avro", "write.avro.compression-codec": codec}
    metadata, store = metadata_of(table.schema, properties=properties), MemoryStore()
    (file,) = write_data_files(table, metadata=metadata, store=store)
    assert (file.file_size_in_bytes > 50_000) == (codec == "uncompressed")
    assert read(store, file, metadata.schema).num_rows == 50_000


@pytest.mark.parametrize("own", [None, *FORMATS, "parquet"])
def test_delete_files_have_a_format_of_their_own(own: str | None) -> None:
    properties = {"write.format.default": "orc"} | ({} if own is None else {"write.delete.format.default": own})
    metadata, store = metadata_of(pa.schema([("x", pa.int64())]), properties=properties), MemoryStore()
    deleted = DeletedRows(file_path=f"{LOCATION}/data/a", positions=np.array([7, 3]))
    (file,) = write_position_deletes([deleted], metadata=metadata, store=store)
    assert file.file_format == (own or "orc")
    assert file.referenced_data_file == deleted.file_path
    with open_source(store, file.file_path, file_format=file.file_format) as source:
        rows = source.read(0, POSITION_DELETES)
    assert rows.to_pydict() == {"file_path": [deleted.file_path] * 2, "pos": [3, 7]}


@pytest.mark.parametrize("file_format", FORMATS)
def test_types_without_a_form_are_refused_by_name(file_format: str) -> None:
    schema = to_arrow_schema(Schema((named(1, "v", VARIANT),)))
    metadata = metadata_of(schema, format_version=3, properties={"write.format.default": file_format})
    with pytest.raises(Unsupported, match="'v' of type variant"):
        write_data_files(pa.Table.from_batches([], schema), metadata=metadata, store=MemoryStore())


EMPTY = NestedField(field_id=4, name="element", type=StructType((named(5, "u", UNKNOWN),)), required=True)


@pytest.mark.parametrize("element", [replace(EMPTY, type=UNKNOWN, required=False), EMPTY])
def test_lists_whose_length_avro_would_not_bound_are_refused(element: NestedField) -> None:
    """No reader could tell how many elements without bytes there are."""
    schema = to_arrow_schema(Schema((named(1, "i", INT), named(2, "l", ListType(element)))))
    metadata = metadata_of(schema, format_version=3, properties={"write.format.default": "avro"})
    with pytest.raises(Unsupported, match="column 'l', of list<"):
        write_data_files(pa.Table.from_batches([], schema), metadata=metadata, store=MemoryStore())


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_slice_of_values_of_any_width(file_format: str) -> None:
    table = pa.table(
        {
            "fixed": pa.array([bytes([n] * 3) for n in range(6)], pa.binary(3)),
            "short": pa.array([Decimal(n) / 4 for n in range(6)], pa.decimal128(9, 2)),
            "long": pa.array([Decimal(n) / 4 for n in range(6)], pa.decimal128(38, 2)),
            "flag": [n % 3 == 0 for n in range(6)],
            "float": pa.array([n / 4 for n in range(6)], pa.float32()),
            "double": [n / 4 for n in range(6)],
        }
    )
    metadata, store = metadata_of(table.schema, properties={"write.format.default": file_format}), MemoryStore()
    (file,) = write_data_files(table.slice(1, 4), metadata=metadata, store=store)
    assert read(store, file, metadata.schema).to_pylist() == table.to_pylist()[1:5]


def test_a_slice_of_structs_with_a_field_without_a_type() -> None:
    schema = to_arrow_schema(Schema((named(1, "e", StructType((named(2, "v", UNKNOWN), named(3, "w", INT)))),)))
    rows = pa.table([[{"v": None, "w": n} for n in range(6)]], schema=schema).slice(1, 3)
    metadata = metadata_of(schema, format_version=3, properties={"write.format.default": "avro"})
    store = MemoryStore()
    (file,) = write_data_files(rows, metadata=metadata, store=store)
    assert [row["e"]["w"] for row in read(store, file, metadata.schema).to_pylist()] == [1, 2, 3]


def test_names_that_are_one_in_avro_are_refused() -> None:
    """The values of one would be written for both."""
    rows = pa.table({"s": [{"a b": 1, "a_x20b": 2}]})
    store = MemoryStore()
    with pytest.raises(Unsupported, match="'a b' and 'a_x20b', which have one name in Avro"):
        write_data_files(
            rows, metadata=metadata_of(rows.schema, properties={"write.format.default": "avro"}), store=store
        )
    assert list(store.list(LOCATION)) == []


def test_timestamps_that_no_reader_gets_back_from_orc_are_refused() -> None:
    table = pa.table({"at": pa.array([1 << 61], pa.timestamp("us"))})
    metadata, store = metadata_of(table.schema, properties={"write.format.default": "orc"}), MemoryStore()
    with pytest.raises(Unsupported, match="before 1678 or after 2261"):
        write_data_files(table, metadata=metadata, store=store)
    assert list(store.list(LOCATION)) == []


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("when", ["close", "write"])
def test_a_full_disk_is_reported_and_leaves_nothing(file_format: str, when: str) -> None:
    store = FullDisk(nth=1, when=when)
    table = pa.table({"x": range(9), "gone": pa.nulls(9)})
    with pytest.raises(StorageFailed, match="full"):
        write_data_files(
            table, metadata=metadata_of(table.schema, properties={"write.format.default": file_format}), store=store
        )
    assert list(store.list(LOCATION)) == []
