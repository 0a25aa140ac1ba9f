"""Adding files by description: what a plan then finds, and what is refused."""

from pathlib import Path

import pyarrow as pa
import pytest

import engine
from engine.errors import Invalid, Unsupported


@pytest.fixture
def table(tmp_path: Path) -> engine.Table:
    catalog = engine.load_catalog(str(tmp_path))
    return catalog.create_table("db.t", pa.schema([pa.field("id", pa.int64())]))


def described(path: str, **more: object) -> engine.DataFile:
    return engine.DataFile(file_path=path, file_format="parquet", record_count=10, file_size_in_bytes=100, **more)  # type: ignore[arg-type]


def vectorless_delete(path: str, referenced: str | None) -> engine.DataFile:
    return described(path, content=engine.FileContent.POSITION_DELETES, referenced_data_file=referenced)


def test_files_that_do_not_exist_are_planned_with_their_deletes(table: engine.Table) -> None:
    snapshot = table.add_files([described("/nowhere/a.parquet"), described("/nowhere/b.parquet")])
    assert snapshot.operation == "append"
    table.add_files([vectorless_delete("/nowhere/d.parquet", "/nowhere/b.parquet")])
    files = table.scan().plan().files.to_pylist()
    assert {f["file_path"]: [d["file_path"] for d in f["deletes"]] for f in files} == {
        "/nowhere/a.parquet": [],
        "/nowhere/b.parquet": ["/nowhere/d.parquet"],
    }


def test_equality_deletes_concern_files_that_were_there_before(table: engine.Table) -> None:
    table.add_files([described("/nowhere/a.parquet")])
    table.add_files([described("/nowhere/e.parquet", content=engine.FileContent.EQUALITY_DELETES, equality_ids=(1,))])
    table.add_files([described("/nowhere/b.parquet")])
    files = table.scan().plan().files.to_pylist()
    assert {f["file_path"]: len(f["deletes"]) for f in files} == {"/nowhere/a.parquet": 1, "/nowhere/b.parquet": 0}


def test_bounds_prune(table: engine.Table) -> None:
    counts = {"value_counts": {1: 10}, "null_value_counts": {1: 0}}
    low = described("/nowhere/low", lower_bounds={1: b"\0" * 8}, upper_bounds={1: (9).to_bytes(8, "little")}, **counts)
    high = described(
        "/nowhere/high",
        lower_bounds={1: (10).to_bytes(8, "little")},
        upper_bounds={1: (19).to_bytes(8, "little")},
        **counts,
    )
    table.add_files([low, high])
    assert table.scan(filter="id = 12").plan().files.column("file_path").to_pylist() == ["/nowhere/high"]


def test_nothing_to_add_is_refused(table: engine.Table) -> None:
    with pytest.raises(Invalid, match="no files"):
        table.add_files([])


def test_position_deletes_must_name_their_data_file(table: engine.Table) -> None:
    with pytest.raises(Unsupported, match="do not name their one data file"):
        table.add_files([vectorless_delete("/nowhere/d.parquet", None)])


def test_a_read_only_table_takes_no_files(table: engine.Table) -> None:
    with pytest.raises(Unsupported, match="read-only"):
        engine.load_table(table.metadata_location).add_files([described("/nowhere/a.parquet")])
