"""Files added by their locations: what the table could not read is refused before the commit, and nothing else is."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import icebench
from icebench.engine.formats.parquet.source import ParquetSource
from icebench.engine.spec.types import LONG
from icebench.errors import CorruptTable, Invalid, Unsupported

UTC = dt.UTC
US, NS, MS = pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("ms")
US_UTC, NS_UTC = pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")
V3 = {"format-version": "3"}


def local(year: int, month: int, day: int, microsecond: int = 0) -> dt.datetime:
    return dt.datetime(year, month, day, microsecond=microsecond, tzinfo=UTC).replace(tzinfo=None)


def target(tmp_path: Path, column: pa.DataType | pa.Field, properties: dict[str, str] | None = None) -> icebench.Table:
    field = column if isinstance(column, pa.Field) else pa.field("c", column)
    catalog = icebench.load_catalog(str(tmp_path / "warehouse"))
    return catalog.create_table("db.t", pa.schema([field]), properties=properties or {})


def stored(tmp_path: Path, values: pa.Array, file_format: str = "parquet", **options: Any) -> str:
    location = str(tmp_path / f"file.{file_format}")
    write = pq.write_table if file_format == "parquet" else orc.write_table
    write(pa.table({"c": values}), location, **options)
    return location


def refused(table: icebench.Table, location: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message) as raised:
        table.add_files([location])
    assert location in str(raised.value)
    assert table.refresh().history() == ()
    assert table.metadata.properties.get("schema.name-mapping.default") is None


def struct_of(type_: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field("x", type_)])


OTHER_TYPES = {
    "text": (pa.array(["a"]), pa.int64(), "column 'c' is stored as string and can not be read as int64"),
    "long": (pa.array([2**40]), pa.int32(), "column 'c' is stored as int64 and can not be read as int32"),
    "double": (pa.array([1.5]), pa.float32(), "'c' is stored as double and can not be read as float"),
    "fraction": (pa.array([1.5]), pa.int64(), "'c' is stored as double and can not be read as int64"),
    "list": (pa.array([[1]]), pa.int64(), r"'c' is stored as list<.*> and can not be read as int64"),
    "no list": (pa.array([1]), pa.list_(pa.int64()), r"'c' is stored as int64 and can not be read as list<.*>"),
    "digits": (
        pa.array([Decimal("1.23")], pa.decimal128(12, 2)),
        pa.decimal128(10, 2),
        r"'c' is stored as decimal128\(12, 2\) and can not be read as decimal128\(10, 2\)",
    ),
    "scale": (
        pa.array([Decimal("1.230")], pa.decimal128(10, 3)),
        pa.decimal128(10, 2),
        r"'c' is stored as decimal128\(10, 3\) and can not be read as decimal128\(10, 2\)",
    ),
    "length": (pa.array([b"abcd"], pa.binary(4)), pa.binary(8), r"'c' is stored as .*\[4\] and .* read as .*\[8\]"),
    "struct": (
        pa.array([{"x": "a"}], struct_of(pa.string())),
        struct_of(pa.int64()),
        r"'c\.x' is stored as string and can not be read as int64",
    ),
    "element": (pa.array([["a"]]), pa.list_(pa.int64()), r"'c\.element' is stored as string and .* read as int64"),
    "value": (
        pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.map_(pa.string(), pa.int32()),
        r"'c\.value' is stored as int64 and can not be read as int32",
    ),
    "deep": (
        pa.array([[[("k", {"x": 1.5})]]], pa.list_(pa.map_(pa.string(), struct_of(pa.float64())))),
        pa.list_(pa.map_(pa.string(), struct_of(pa.float32()))),
        r"'c\.element\.value\.x' is stored as double and can not be read as float",
    ),
}


@pytest.mark.parametrize("case", OTHER_TYPES)
@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_types_that_the_reader_refuses(tmp_path: Path, case: str, file_format: str) -> None:
    values, type_, message = OTHER_TYPES[case]
    if file_format == "orc" and case == "length":
        pytest.skip("ORC has no binaries of a fixed length")
    refused(target(tmp_path, type_), stored(tmp_path, values, file_format), message)


ZONES = {
    "moments": (pa.array([1], US_UTC), US, r"'c' is stored as timestamp\[.s, tz=.*\] and .* read as timestamp\[us\]"),
    "local times": (
        pa.array([1], US),
        US_UTC,
        r"'c' is stored as timestamp\[.s\] and .* read as timestamp\[us, tz=UTC",
    ),
    "dates": (
        pa.array([dt.date(2020, 1, 1)]),
        US_UTC,
        r"'c' is stored as date32\[day\] and can not be read as time.*UTC",
    ),
    "elements": (
        pa.array([[1]], pa.list_(US_UTC)),
        pa.list_(US),
        r"'c\.element' is stored as timestamp\[.s, tz=.*\] and",
    ),
}


@pytest.mark.parametrize("case", ZONES)
@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_moments_are_no_local_times(tmp_path: Path, case: str, file_format: str) -> None:
    values, type_, message = ZONES[case]
    refused(target(tmp_path, type_), stored(tmp_path, values, file_format), message)


@pytest.mark.parametrize("type_", [US, US_UTC])
def test_int96_is_either(tmp_path: Path, type_: pa.DataType) -> None:
    table = target(tmp_path, type_)
    table.add_files([stored(tmp_path, pa.array([1_000, 2_000], NS), use_deprecated_int96_timestamps=True)])
    assert table.scan().to_arrow()["c"].cast(pa.int64()).to_pylist() == [1, 2]


@pytest.mark.parametrize("type_", [US, US_UTC])
def test_a_timestamp_of_the_older_annotation_is_either(tmp_path: Path, type_: pa.DataType) -> None:
    """Iceberg Java 0.7 wrote both as TIMESTAMP_MICROS, which has no mark of local times."""
    table = target(tmp_path, type_)
    location = stored(tmp_path, pa.array([1, 2], US_UTC), store_schema=False)
    data = Path(location).read_bytes()
    logical_type = bytes.fromhex("4c8c111c2c00000000")  # field 10, TIMESTAMP, true, MICROS
    assert data.count(logical_type) == 1
    body, length = data.replace(logical_type, b"")[:-8], int.from_bytes(data[-8:-4], "little")
    Path(location).write_bytes(body + (length - len(logical_type)).to_bytes(4, "little") + data[-4:])
    column = pq.ParquetFile(location).metadata.schema.column(0)
    assert '"is_from_converted_type":true' in column.logical_type.to_json()
    table.add_files([location])
    assert table.scan().to_arrow()["c"].cast(pa.int64()).to_pylist() == [1, 2]


VALUES = {
    "nanoseconds": (
        pa.array([1_000, 2_001], NS),
        US,
        r"'c' can not be read as timestamp\[us\]: .* from timestamp\[ns\]",
    ),
    "elements": (
        pa.array([[1_000], None, [2_001]], pa.list_(NS)),
        pa.list_(US),
        r"'c\.element' can not be read as timestamp\[us\]: .* from timestamp\[ns\]",
    ),
    "unsigned": (pa.array([1, 2**32 - 1], pa.uint32()), pa.int32(), "'c' can not be read as int32: .* 4294967295"),
    "long unsigned": (
        pa.array([2**63], pa.uint64()),
        pa.int64(),
        "'c' can not be read as int64: .* 9223372036854775808",
    ),
    "no text": (pa.array([b"\xff"]), pa.string(), "'c' can not be read as string: .*UTF"),
    "time": (
        pa.array([1_001], pa.time64("ns")),
        pa.time64("us"),
        r"'c' can not be read as time64\[us\]: .* time64\[ns\]",
    ),
    "too late": (pa.array([2**60], US), NS, r"'c' can not be read as timestamp\[ns\]: .* from timestamp\[us\]"),
}


@pytest.mark.parametrize("case", VALUES)
def test_values_that_the_reader_refuses(tmp_path: Path, case: str) -> None:
    values, type_, message = VALUES[case]
    several = pa.concat_arrays([values.slice(0, 1)] * 3 + [values])
    location = stored(tmp_path, several, row_group_size=2)
    refused(target(tmp_path, type_, V3 if type_ == NS else None), location, message)


def test_nanoseconds_in_orc(tmp_path: Path) -> None:
    values, type_, message = VALUES["nanoseconds"]
    refused(target(tmp_path, type_), stored(tmp_path, values, "orc"), message)


def test_int96_has_no_nanoseconds_here(tmp_path: Path) -> None:
    location = stored(tmp_path, pa.array([1], NS), use_deprecated_int96_timestamps=True)
    refused(target(tmp_path, NS, V3), location, "nanoseconds of the INT96 column c of")


READABLE: dict[str, tuple[pa.Array, pa.DataType, list[Any], str]] = {
    "uint32": (pa.array([1, 2**32 - 1], pa.uint32()), pa.int64(), [1, 2**32 - 1], "c = 4294967295"),
    "uint16": (pa.array([1, 2**16 - 1], pa.uint16()), pa.int32(), [1, 2**16 - 1], "c = 65535"),
    "small uint64": (pa.array([1, 2**63 - 1], pa.uint64()), pa.int64(), [1, 2**63 - 1], "c > 5"),
    "int8": (pa.array([1, -3], pa.int8()), pa.int32(), [1, -3], "c = -3"),
    "int": (pa.array([1, 2], pa.int32()), pa.int64(), [1, 2], "c = 2"),
    "float": (pa.array([1.0, 1.5], pa.float32()), pa.float64(), [1.0, 1.5], "c = 1.5"),
    "half": (pa.array([1.0, 1.5], pa.float16()), pa.float32(), [1.0, 1.5], "c = 1.5"),
    "date": (
        pa.array([dt.date(2020, 1, 1), dt.date(2021, 1, 1)], pa.date32()),
        pa.date32(),
        [dt.date(2020, 1, 1), dt.date(2021, 1, 1)],
        "c = date '2021-01-01'",
    ),
    "date as timestamp": (
        pa.array([dt.date(2020, 1, 1), dt.date(2021, 1, 1)], pa.date32()),
        US,
        [local(2020, 1, 1), local(2021, 1, 1)],
        "c = timestamp '2021-01-01T00:00:00'",
    ),
    "dictionary": (pa.array(["a", "b"]).dictionary_encode(), pa.string(), ["a", "b"], "c = 'b'"),
    "large text": (pa.array(["a", "b"], pa.large_string()), pa.string(), ["a", "b"], "c = 'b'"),
    "text as bytes": (pa.array([b"a", b"b"]), pa.string(), ["a", "b"], "c = 'b'"),
    "digits": (
        pa.array([Decimal("1.23"), Decimal("2.34")], pa.decimal128(5, 2)),
        pa.decimal128(10, 2),
        [Decimal("1.23"), Decimal("2.34")],
        "c = 2.34",
    ),
    "milliseconds": (
        pa.array([1, 2], MS),
        US,
        [local(1970, 1, 1, microsecond=1_000), local(1970, 1, 1, microsecond=2_000)],
        "c = timestamp '1970-01-01T00:00:00.002'",
    ),
    "whole microseconds": (
        pa.array([1_000, 2_000], NS),
        US,
        [local(1970, 1, 1, microsecond=1), local(1970, 1, 1, microsecond=2)],
        "c = timestamp '1970-01-01T00:00:00.000002'",
    ),
    "another zone": (
        pa.array([1, 2], pa.timestamp("us", "Europe/Vienna")),
        US_UTC,
        [dt.datetime(1970, 1, 1, microsecond=1, tzinfo=UTC), dt.datetime(1970, 1, 1, microsecond=2, tzinfo=UTC)],
        "c = timestamp '1970-01-01T00:00:00.000002+00:00'",
    ),
    "time": (
        pa.array([1, 2], pa.time32("ms")),
        pa.time64("us"),
        [dt.time(microsecond=1_000), dt.time(microsecond=2_000)],
        "c = time '00:00:00.002'",
    ),
    "large list": (pa.array([[1], [2]], pa.large_list(pa.int32())), pa.list_(pa.int64()), [[1], [2]], "c is not null"),
    "fewer fields": (
        pa.array([{"x": 1}, None], pa.struct([pa.field("x", pa.int32())])),
        pa.struct([pa.field("x", pa.int64()), pa.field("y", pa.int64())]),
        [{"x": 1, "y": None}, None],
        "c is null",
    ),
    "nulls": (pa.nulls(2), pa.int64(), [None, None], "c is null"),
}


@pytest.mark.parametrize("case", READABLE)
def test_types_that_the_reader_takes(tmp_path: Path, case: str) -> None:
    values, type_, expected, condition = READABLE[case]
    table = target(tmp_path, type_)
    table.add_files([stored(tmp_path, values)])
    assert table.scan().to_arrow()["c"].to_pylist() == expected
    assert expected[-1] in table.scan(condition).to_arrow()["c"].to_pylist()


def test_only_doubtful_columns_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The footer of an ordinary file says all; of nanoseconds only the values do."""
    read: list[list[str]] = []
    batches = ParquetSource.batches

    def watched(self: ParquetSource, row_group: int, wanted: icebench.Schema, **options: Any) -> Any:
        read.append([f.name for f in wanted.fields])
        return batches(self, row_group, wanted, **options)

    monkeypatch.setattr(ParquetSource, "batches", watched)
    columns = {"a": pa.int64(), "b": US, "d": pa.list_(US), "e": pa.string()}
    catalog = icebench.load_catalog(str(tmp_path / "warehouse"))
    table = catalog.create_table("db.t", pa.schema(columns))
    rows = {"a": pa.array([1], pa.int32()), "b": pa.array([1], MS), "d": pa.array([[1]], pa.list_(US)), "e": ["x"]}
    pq.write_table(pa.table(rows), tmp_path / "ordinary.parquet")
    table.add_files([str(tmp_path / "ordinary.parquet")])
    assert read == []
    rows |= {"b": pa.array([1_000], NS), "d": pa.array([[1_000]], pa.list_(NS))}
    pq.write_table(pa.table(rows), tmp_path / "nanoseconds.parquet")
    table.add_files([str(tmp_path / "nanoseconds.parquet")])
    assert read == [["b", "d"]]


REQUIRED = pa.field("c", pa.int64(), nullable=False)
IN_STRUCT = pa.field("c", pa.struct([pa.field("x", pa.int64(), nullable=False)]), nullable=False)


def test_a_file_without_a_required_column(tmp_path: Path) -> None:
    fields = [REQUIRED, pa.field("d", pa.int64())]
    table = icebench.load_catalog(str(tmp_path / "warehouse")).create_table("db.t", pa.schema(fields))
    for name, values in (("some", [1]), ("none", [])):
        pq.write_table(pa.table({"d": pa.array(values, pa.int64())}), tmp_path / f"{name}.parquet")
    with pytest.raises(Invalid, match=r"some\.parquet: required column 'c' is missing and has no default"):
        table.add_files([str(tmp_path / "some.parquet")])
    table.add_files([str(tmp_path / "none.parquet")])
    assert table.scan().to_arrow().num_rows == 0


def test_a_required_column_with_a_default_may_be_missing(tmp_path: Path) -> None:
    fields = [pa.field("d", pa.int64())]
    table = icebench.load_catalog(str(tmp_path / "warehouse")).create_table("db.t", pa.schema(fields), properties=V3)
    table.update_schema(lambda s: s.add_column("c", LONG, required=True, default=7))
    pq.write_table(pa.table({"d": [1]}), tmp_path / "f.parquet")
    table.add_files([str(tmp_path / "f.parquet")])
    assert table.scan().to_arrow().to_pylist() == [{"d": 1, "c": 7}]


@pytest.mark.parametrize(
    ("field", "values", "named"),
    [
        (REQUIRED, pa.array([1, None]), "c"),
        (IN_STRUCT, pa.array([{"x": 1}, {"x": None}]), r"c\.x"),
        (IN_STRUCT, pa.array([{"x": 1}, None]), r"c\.x"),
    ],
)
def test_nulls_of_a_required_column(tmp_path: Path, field: pa.Field, values: pa.Array, named: str) -> None:
    table = target(tmp_path, field)
    whole = pa.concat_arrays([values.slice(0, 1)] * 3 + [values])
    with pytest.raises(Invalid, match=rf"file\.parquet: required column '{named}' has 1 null"):
        table.add_files([stored(tmp_path, whole, row_group_size=2)])
    assert table.refresh().history() == ()
    # Without statistics the footer does not say it.
    table.add_files([stored(tmp_path, whole.slice(0, 4), write_statistics=False)])
    assert table.scan().count() == 4


def test_a_required_field_may_be_null_where_its_struct_is(tmp_path: Path) -> None:
    values = pa.array([{"x": 1}, None], pa.struct([pa.field("x", pa.int64(), nullable=False)]))
    table = target(tmp_path, pa.field("c", values.type))
    table.add_files([stored(tmp_path, values)])
    assert table.scan().to_arrow()["c"].to_pylist() == [{"x": 1}, None]


def test_damage_is_no_matter_of_types(tmp_path: Path) -> None:
    location = stored(tmp_path, pa.array(range(0, 4_000_000, 1_000), NS), compression="none", use_dictionary=False)
    data = bytearray(Path(location).read_bytes())
    data[4:40] = b"\xff" * 36
    Path(location).write_bytes(data)
    with pytest.raises(CorruptTable, match=r"file\.parquet"):
        target(tmp_path, US).add_files([location])


def avro(tmp_path: Path, type_: dict[str, Any] | str, values: list[Any]) -> str:
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": type_}]}
    with (tmp_path / "file.avro").open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(schema), [{"c": value} for value in values])
    return str(tmp_path / "file.avro")


def test_avro(tmp_path: Path) -> None:
    table = target(tmp_path, US)
    refused(table, avro(tmp_path, "string", ["a"]), r"'c' is stored as string and can not be read as timestamp\[us\]")
    moments = {"type": "long", "logicalType": "timestamp-micros"}
    refused(table, avro(tmp_path, moments, [1]), r"'c' is stored as timestamp\[us, tz=UTC\] and")
    table.add_files([avro(tmp_path, {**moments, "adjust-to-utc": False}, [1])])
    assert table.scan().to_arrow()["c"].cast(pa.int64()).to_pylist() == [1]


@pytest.mark.parametrize(
    "type_", [pa.list_view(pa.string()), pa.large_list_view(pa.string()), pa.list_(pa.string(), 1)]
)
def test_files_whose_lists_arrow_reads_as_other_kinds_are_added(tmp_path: Path, type_: pa.DataType) -> None:
    values = pa.array([["b"], None, ["a"], ["c"]], type_).filter(pa.array([True, True, False, True]))
    table = target(tmp_path, pa.list_(pa.string()))
    table.add_files([stored(tmp_path, values)])
    assert table.scan().to_arrow()["c"].to_pylist() == [["b"], None, ["c"]]
    assert table.scan(filter="c is null").count() == 1
