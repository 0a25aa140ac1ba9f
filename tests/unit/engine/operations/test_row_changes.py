"""What deletes, updates and upserts share: the files that they write again."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import engine
from engine.errors import StorageFailed
from engine.operations import row_writer

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("p", pa.string())])
CHANGES: list[tuple[Callable[[engine.Table, str], object], list[int]]] = [
    (lambda table, mode: table.delete("id = 5", mode=mode), [6]),  # type: ignore[arg-type]
    (lambda table, mode: table.update("id = 5", {"id": 50}, mode=mode), [6, 50]),  # type: ignore[arg-type]
    (lambda table, mode: table.upsert(rows(5, 7), ["id"], mode=mode), [5, 6, 7]),  # type: ignore[arg-type]
    (lambda table, _: table.overwrite(rows(7), "id = 5"), [6, 7]),
]


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": pa.array(["x"] * len(ids))})


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("change", range(len(CHANGES)))
def test_rows_deleted_by_key_stay_deleted(catalog: engine.Catalog, version: int, mode: str, change: int) -> None:
    table = catalog.create_table("db.t", SCHEMA, properties={"format-version": str(version)})
    table.append(rows(3, 6, 5))
    # The bounds of the key say that it is none of the rows to be changed.
    stream = table.keyed_stream(["id"])
    stream.delete(rows(3).select(["id"]))
    stream.commit()
    table = catalog.load_table("db.t")
    make, expected = CHANGES[change]
    make(table, mode)
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == expected


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_that_come_are_in_the_files_of_rows_that_remain(catalog: engine.Catalog, version: int) -> None:
    table = catalog.create_table("db.t", SCHEMA, properties={"format-version": str(version)})
    table.append(rows(1, 2, 3))
    snapshot = table.update("id = 2", {"p": "y"}, mode="copy-on-write")
    assert snapshot is not None
    assert snapshot.summary["added-data-files"] == snapshot.summary["deleted-data-files"] == "1"
    ids = ["_row_id"] if version == 3 else []
    found = table.scan(columns=["id", "p", *ids]).to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["p"]) for row in found] == [(1, "x"), (2, "y"), (3, "x")]
    assert [row["_row_id"] for row in found if ids] == ([0, 1, 2] if ids else [])


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_a_file_go_when_it_is_written_again(catalog: engine.Catalog, version: int) -> None:
    table = catalog.create_table("db.t", SCHEMA, properties={"format-version": str(version)})
    table.append(rows(1, 2, 3))
    table.delete("id = 1", "merge-on-read")
    snapshot = table.delete("id = 2", "copy-on-write")
    assert snapshot is not None
    assert (snapshot.summary["removed-delete-files"], snapshot.summary["total-delete-files"]) == ("1", "0")
    assert table.inspect.delete_files().num_rows == 0
    assert table.scan().to_arrow()["id"].to_pylist() == [3]


def test_new_files_go_where_the_deletes_beside_them_cannot_be_written(
    catalog: engine.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    table.append(rows(1, 2, 3))
    before = {info.location for info in table.store.list(table.location)}

    def refuse(*_: object, **__: object) -> None:
        assert {info.location for info in table.store.list(table.location)} > before
        raise StorageFailed("the disk is full")

    monkeypatch.setattr(row_writer, "write_position_deletes", refuse)
    with pytest.raises(StorageFailed, match="full"):
        table.update("id = 2", {"p": "y"}, "merge-on-read")
    assert {info.location for info in table.store.list(table.location)} == before
