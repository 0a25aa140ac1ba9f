"""Small files that are read as one: only those that are alike, with their own deletes, and counted one by one.

`tests/property/test_read.py` holds rows to the model's with joining and without.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench.engine.formats.parquet.source import ParquetSource
from icebench.engine.read import joining
from icebench.engine.runtime.counters import ROW_GROUPS_READ, ROWS_DECODED
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.metadata_columns import POSITION_DELETES
from icebench.engine.spec.types import LONG

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "n": [10 * i for i in ids]}, SCHEMA)


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of how many files each join was."""
    found: list[int] = []
    real = joining.JoinedFiles

    def counting(sources: list[ParquetSource]) -> joining.JoinedFiles:
        found.append(len(sources))
        return real(sources)

    monkeypatch.setattr(joining, "JoinedFiles", counting)
    return found


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    """Three files of two rows."""
    made = icebench.load_catalog(str(tmp_path)).create_table("db.t", SCHEMA)
    for first in (1, 3, 5):
        made.append(rows(first, first + 1))
    return made


def test_neighbours_are_joined_in_order(table: icebench.Table, joined: list[int]) -> None:
    counters = icebench.Counters()
    assert table.scan(counters=counters).to_arrow() == rows(5, 6, 3, 4, 1, 2)
    assert joined == [3]
    assert counters.as_dict()[ROW_GROUPS_READ] == 3
    assert counters.as_dict()[ROWS_DECODED] == 6
    assert table.scan(filter="n > 20 and n < 60").to_arrow() == rows(5, 3, 4)
    assert joined == [3]


def test_every_file_is_closed(table: icebench.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    real = ParquetSource.close

    def close(source: ParquetSource) -> None:
        closed.append(source.location)
        real(source)

    monkeypatch.setattr(ParquetSource, "close", close)
    table.scan().to_arrow()
    assert sorted(closed) == sorted(table.inspect.data_files()["file_path"].to_pylist())


@pytest.mark.parametrize("version", ["2", "3"])
def test_each_has_its_own_deleted_positions(tmp_path: Path, joined: list[int], version: str) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", SCHEMA, properties={"format-version": version})
    for first in (1, 3, 5, 7):
        table.append(rows(first, first + 1))
    table.delete("id in (2, 5, 7, 8)", "merge-on-read")
    for first in (9, 11):
        table.append(rows(first, first + 1))
    table.delete("id = 10", "merge-on-read")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3, 4, 6, 9, 11, 12]
    assert sorted(table.scan(filter="n > 10").to_arrow()["id"].to_pylist()) == [3, 4, 6, 9, 11, 12]
    # The residual of the file with id 1 is the filter, that of the others nothing.
    assert joined == [5, 4]


def delete_positions(table: icebench.Table, file_path: str, *positions: int) -> None:
    """Position deletes as another writer might leave them: also of rows that the data file does not have."""
    fields = [
        pa.field(field.name, type_, metadata={"PARQUET:field_id": str(field.field_id)})
        for field, type_ in zip(POSITION_DELETES.fields, (pa.string(), pa.int64()), strict=True)
    ]
    rows = pa.table([[file_path] * len(positions), positions], schema=pa.schema(fields))
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    location = f"{file_path}.deletes.parquet"
    table.store.write(location, data := sink.getvalue().to_pybytes())
    file = icebench.DataFile(
        content=FileContent.POSITION_DELETES,
        file_path=location,
        file_format="parquet",
        spec_id=0,
        record_count=len(positions),
        file_size_in_bytes=len(data),
        referenced_data_file=file_path,
    )
    table.add_files([file])


def test_positions_that_no_row_has_delete_none_of_the_next_file(table: icebench.Table, joined: list[int]) -> None:
    found = table.scan(columns=["id", "_file"]).to_arrow().to_pydict()
    file_of = dict(zip(found["id"], found["_file"], strict=True))
    delete_positions(table, file_of[3], 0, 2, 3)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 4, 5, 6]
    assert joined == [3]
    # Of two rows one is deleted before and one now: with the positions that no row has the file would seem empty.
    delete_positions(table, file_of[1], 2)
    assert table.delete("id = 2", "copy-on-write") is not None
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 4, 5, 6]


def test_metadata_columns_are_of_each_file(table: icebench.Table, joined: list[int]) -> None:
    found = table.scan(columns=["id", "_file", "_pos"]).to_arrow()
    assert found["_pos"].to_pylist() == [0, 1] * 3
    assert len(set(found["_file"].to_pylist())) == 3
    assert joined == []


def test_columns_that_no_file_has_are_as_many_nulls(table: icebench.Table, joined: list[int]) -> None:
    table.update_schema(lambda schema: schema.add_column("extra", LONG))
    assert table.scan(columns=["extra"]).to_arrow()["extra"].to_pylist() == [None] * 6
    assert joined == [3]


def test_a_file_of_several_row_groups_is_read_alone(table: icebench.Table, joined: list[int]) -> None:
    out = pa.BufferOutputStream()
    (location,) = table.inspect.data_files()["file_path"].to_pylist()[:1]
    data = pq.read_table(pa.BufferReader(table.store.read(location)))
    pq.write_table(data, out, row_group_size=1)
    other = f"{location}.parquet"
    table.store.write(other, out.getvalue().to_pybytes())
    table.add_files([other])
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5, 5, 6, 6]
    assert joined == [3]


def test_a_column_that_was_made_anew_is_not_the_old_one(table: icebench.Table, joined: list[int]) -> None:
    table.update_schema(lambda schema: schema.drop_column("n"))
    table.update_schema(lambda schema: schema.add_column("n", LONG))
    for first in (7, 9):
        table.append(rows(first, first + 1))
    found = dict(zip(*table.scan().to_arrow().to_pydict().values(), strict=True))
    assert found == {**dict.fromkeys(range(1, 7)), 7: 70, 8: 80, 9: 90, 10: 100}
    assert joined == [2, 3]


def test_equality_deletes_are_applied_to_older_files_alone(table: icebench.Table, joined: list[int]) -> None:
    changes = table.keyed_stream(["id"])
    changes.delete(pa.table({"id": [2, 5]}))
    changes.commit()
    table.append(rows(2))
    table.append(rows(5))
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5, 6]
    assert joined == [2]


@pytest.mark.filterwarnings("ignore::icebench.engine.errors.ContradictionWarning")
@pytest.mark.parametrize("lacks_column", [False, True])
def test_partitions(tmp_path: Path, joined: list[int], lacks_column: bool) -> None:
    """Residuals differ between partitions, and so do the values of columns that files lack."""
    spec = [("n", "identity")]
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", SCHEMA, partition_spec=spec)
    table.append(pa.table({"id": [1, 2, 3, 4], "n": [0, 0, 1, 1]}, SCHEMA))
    table.append(pa.table({"id": [5, 6, 7, 8], "n": [0, 0, 1, 1]}, SCHEMA))
    if lacks_column:
        without_column(table)
    found = table.scan().to_arrow()
    expected = {1: 0, 2: 0, 3: 1, 4: 1, 5: 0, 6: 0, 7: 1, 8: 1}
    assert dict(zip(*found.to_pydict().values(), strict=True)) == expected
    assert joined == ([] if lacks_column else [4])
    found = table.scan(filter="n = 1 or id = 5").to_arrow()
    assert sorted(found["id"].to_pylist()) == [3, 4, 5, 7, 8]


def without_column(table: icebench.Table) -> None:
    """Write the data files without the partition's column, as writers of Hive do."""
    for location in table.inspect.data_files()["file_path"].to_pylist():
        kept = pq.read_table(pa.BufferReader(table.store.read(location))).select(["id"])
        out = pa.BufferOutputStream()
        pq.write_table(kept, out)
        table.store.write(location, out.getvalue().to_pybytes(), overwrite=True)
