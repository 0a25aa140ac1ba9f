"""What is wrong with a file of a table is said with the file, the table and the snapshot."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench.engine.deletes.files import FileRead
from icebench.engine.plan.scan import ScanPlan, table_scan
from icebench.engine.read.plans import count_rows, planned_files, read_plan, request_for
from icebench.engine.read.reader import read_files
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.errors import CorruptTable, FileNotFound, Unsupported

ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "name": [f"n{i}" for i in range(100)]})


@pytest.fixture(params=[2, 3])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> icebench.Table:
    catalog = icebench.load_catalog(str(tmp_path / "warehouse"))
    made = catalog.create_table("db.t", ROWS.schema, properties={"format-version": str(request.param)})
    made.append(ROWS)
    made.delete("id < 5", mode="merge-on-read")
    return made


def plan_of(table: icebench.Table) -> ScanPlan:
    return table_scan(table.metadata, table.store, table_name=table.name).plan()


def only_file(table: icebench.Table) -> FileRead:
    (file,) = planned_files(plan_of(table))
    return file


def read(table: icebench.Table, change: Callable[[FileRead], FileRead] = lambda file: file) -> None:
    plan = plan_of(table)
    request = request_for(plan, table.store, table_name=table.name)
    files = [change(file) for file in planned_files(plan)]
    for _ in read_files(files, request, runner=LocalRunner(1), counters=Counters()):
        pass


def owner(table: icebench.Table) -> str:
    assert table.current_snapshot is not None
    return f"needed by table {table.name}, snapshot {table.current_snapshot.snapshot_id}"


def overwrite(location: str, data: bytes) -> None:
    Path(location).write_bytes(data)


def test_a_missing_data_file(table: icebench.Table) -> None:
    path = only_file(table).file_path
    Path(path).unlink()
    with pytest.raises(FileNotFound) as caught:
        read(table)
    assert path in str(caught.value)
    assert owner(table) in str(caught.value)


def test_a_missing_delete_file(table: icebench.Table) -> None:
    path = only_file(table).deletes[0].file_path
    Path(path).unlink()
    for ask in (read, lambda t: count_rows(plan_of(t), t.store, table_name=t.name)):
        with pytest.raises(FileNotFound) as caught:
            ask(table)
        assert path in str(caught.value)
        assert owner(table) in str(caught.value)


@pytest.mark.parametrize("damage", ["checksum", "cardinality"])
def test_a_damaged_deletion_vector(table: icebench.Table, damage: str) -> None:
    delete = only_file(table).deletes[0]
    if not delete.is_vector:
        pytest.skip("format 2 has no deletion vectors")
    assert delete.content_offset is not None
    assert delete.content_size_in_bytes is not None
    if damage == "checksum":
        data = bytearray(Path(delete.file_path).read_bytes())
        data[delete.content_offset + delete.content_size_in_bytes - 1] ^= 1
        overwrite(delete.file_path, bytes(data))
    wrong = replace(delete, record_count=4) if damage == "cardinality" else delete
    with pytest.raises(CorruptTable) as caught:
        read(table, lambda file: replace(file, deletes=(wrong,)))
    assert delete.file_path in str(caught.value)
    assert owner(table) in str(caught.value)


def test_another_number_of_rows(table: icebench.Table) -> None:
    file = only_file(table)
    with pytest.raises(CorruptTable, match="a data file with 100 rows, where its manifest entry says 99") as caught:
        read(table, lambda file: replace(file, record_count=99))
    assert file.file_path in str(caught.value)
    assert owner(table) in str(caught.value)
    if not file.deletes[0].is_vector:
        wrong = replace(file.deletes[0], record_count=6)
        with pytest.raises(CorruptTable, match="a delete file with 5 rows, where its manifest entry says 6") as caught:
            read(table, lambda file: replace(file, deletes=(wrong,)))
        assert owner(table) in str(caught.value)


def test_another_type_than_promised(table: icebench.Table) -> None:
    file = only_file(table)
    ids = [{"PARQUET:field_id": "1"}, {"PARQUET:field_id": "2"}]
    schema = pa.schema([pa.field("id", pa.string(), metadata=ids[0]), pa.field("name", pa.string(), metadata=ids[1])])
    pq.write_table(pa.table([ROWS["name"], ROWS["name"]], schema=schema), file.file_path)
    size = Path(file.file_path).stat().st_size
    with pytest.raises(CorruptTable, match="column 'id' is stored as string and can not be read as int64") as caught:
        read(table, lambda file: replace(file, file_size_in_bytes=size))
    assert file.file_path in str(caught.value)
    assert owner(table) in str(caught.value)


def test_a_file_that_is_not_what_it_says(table: icebench.Table) -> None:
    for file_format in ("parquet", "orc", "avro"):
        file = only_file(table)
        overwrite(file.file_path, b"no file of any format, but long enough to be looked at" * 3)
        size = Path(file.file_path).stat().st_size
        with pytest.raises(CorruptTable) as caught:
            read(table, partial(replace, file_format=file_format, file_size_in_bytes=size))
        assert file.file_path in str(caught.value)
        assert owner(table) in str(caught.value)


def test_a_format_that_is_not_read_is_named_before_anything_is_read(table: icebench.Table) -> None:
    with pytest.raises(Unsupported, match=r"reading txt files is not supported, only parquet, orc, avro"):
        read(table, lambda file: replace(file, file_format="txt", file_path="/nowhere"))


def test_narrow_decimals_are_asked_for_in_the_plan_too(tmp_path: Path) -> None:
    catalog = icebench.load_catalog(str(tmp_path / "warehouse"))
    rows = pa.table({"price": pa.array([1, None, 3], pa.int32()).cast(pa.decimal128(12, 2))})
    made = catalog.create_table("db.prices", rows.schema)
    made.append(rows)
    assert (
        made.scan().to_arrow().equals(made.scan().to_arrow(decimal_width="narrow").cast(made.scan().to_arrow().schema))
    )
    assert made.scan().to_arrow(decimal_width="narrow").schema.field("price").type == pa.decimal64(12, 2)
    assert read_plan(plan_of(made), made.store).schema.field("price").type == pa.decimal128(12, 2)


def test_the_partition_column(tmp_path: Path) -> None:
    catalog = icebench.load_catalog(str(tmp_path / "warehouse"))
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "p": ["a", "b", None]})
    made = catalog.create_table("db.p", rows.schema, partition_spec=[("p", "identity")])
    made.append(rows)
    found = made.scan(columns=["id", "_partition", "_spec_id"]).to_arrow().sort_by("id")
    assert found.column("_partition").to_pylist() == [{"p": "a"}, {"p": "b"}, {"p": None}]
    plain = catalog.create_table("db.u", rows.schema)
    plain.append(rows)
    assert plain.scan(columns=["_partition"]).to_arrow().column("_partition").to_pylist() == [{}, {}, {}]


def test_nanoseconds_of_int96_are_refused_where_they_would_be_lost(tmp_path: Path) -> None:
    moment = np.datetime64("2020-01-01T12:00:00.123456789", "ns")
    rows = pa.table({"at": pa.array([moment]), "precise": pa.array([moment]), "other": pa.array([1])})
    pq.write_table(rows, tmp_path / "x.parquet", use_deprecated_int96_timestamps=True)
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    schema = pa.schema([("at", pa.timestamp("us")), ("precise", pa.timestamp("ns")), ("other", pa.int64())])
    table = catalog.create_table("db.t", schema, properties={"format-version": "3"})
    location, size = str(tmp_path / "x.parquet"), (tmp_path / "x.parquet").stat().st_size
    file = icebench.DataFile(file_path=location, file_format="parquet", record_count=1, file_size_in_bytes=size)
    table.add_files([file])
    for scan in (table.scan(), table.scan("precise > timestamp '2020-01-01 00:00:00'", columns=["other"])):
        with pytest.raises(Unsupported, match="nanoseconds of the INT96 column precise"):
            scan.to_arrow()
    assert table.scan(columns=["at", "other"]).to_arrow()["at"].cast(pa.int64()).to_pylist() == [1577880000123456]
