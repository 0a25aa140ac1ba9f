"""Columns with the names of metadata columns: never made here, and not confused in tables that others made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest

import engine
from engine.errors import Invalid, Unsupported
from engine.operations.row_changes import Mode
from engine.spec.metadata_columns import LINEAGE_NAMES, RESERVED_NAMES
from engine.spec.schema_evolution import SchemaUpdate

ANY_CASE = sorted([*RESERVED_NAMES, *map(str.upper, RESERVED_NAMES)])
MODES: tuple[Mode, ...] = ("copy-on-write", "merge-on-read")
REFUSED = "name of a metadata column"
Rows = list[tuple[int, int]]


def arrow(name: str, rows: Iterable[tuple[int, int]]) -> pa.Table:
    k, own = zip(*rows, strict=True)
    return pa.table({"k": pa.array(k, pa.int64()), name: pa.array(own, pa.int64())})


def foreign(catalog: engine.Catalog, name: str, version: int) -> engine.Table:
    """A table of another writer, with two files of the rows (1, 7), (2, 8) and (3, 7), (4, 8)."""
    table = catalog.create_table("db.t", arrow("other", [(0, 0)]).schema, properties={"format-version": str(version)})
    table.append(arrow("other", [(1, 7), (2, 8)]))
    table.append(arrow("other", [(3, 7), (4, 8)]))
    path = Path(table.metadata_location.removeprefix("file://"))
    path.write_text(path.read_text().replace('"other"', f'"{name}"'))
    return catalog.load_table("db.t")


def read(table: engine.Table) -> Rows:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


@pytest.mark.parametrize("name", ANY_CASE)
def test_no_column_gets_such_a_name(catalog: engine.Catalog, name: str) -> None:
    properties, schema = {"format-version": "1" if name.isupper() else "3"}, arrow(name, [(0, 0)]).schema
    with pytest.raises(Invalid, match=REFUSED):
        catalog.create_table("db.t", schema, properties=properties)
    with pytest.raises(Invalid, match=REFUSED):
        catalog.create_table_transaction("db.t", schema, properties=properties)
    table = catalog.create_table("db.t", arrow("other", [(0, 0)]).schema, properties=properties)
    with pytest.raises(Invalid, match=REFUSED):
        catalog.replace_table_transaction("db.t", schema)
    edits: list[Callable[[SchemaUpdate], object]] = [
        lambda s: s.add_column(name, engine.LONG),
        lambda s: s.rename_column("other", name),
        lambda s: s.union_by_name(engine.Schema((engine.NestedField(field_id=1, name=name, type=engine.LONG),))),
    ]
    for edit in edits:
        with pytest.raises(Invalid, match=REFUSED):
            table.update_schema(edit)
    assert [f.name for f in table.refresh().schema().fields] == ["k", "other"]


@pytest.mark.parametrize("mode", MODES)
def test_fields_of_structs_may_have_them(catalog: engine.Catalog, mode: Mode) -> None:
    rows = pa.table({"k": [1, 2], "s": [dict.fromkeys(sorted(RESERVED_NAMES), i) for i in (7, 8)]})
    table = catalog.create_table("db.t", rows.schema, properties={"format-version": "3"})
    table.append(rows)
    table.update_schema(lambda s: s.add_column("_FILE", engine.LONG, parent="s").rename_column("s._pos", "_POS"))
    table.update("s._row_id = 7", {"k": 5}, mode)
    table.delete("k = 2", mode)
    table.maintenance.rewrite_data_files(rewrite_all=True)
    names = [f.name for f in table.scan().to_arrow().schema.field("s").type]
    assert table.scan(columns=["k", "s._row_id"]).to_arrow().to_pylist() == [{"k": 5, "s": {"_row_id": 7}}]
    assert sorted(names) == sorted((RESERVED_NAMES - {"_pos"}) | {"_POS", "_FILE"})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", sorted([*RESERVED_NAMES, "_ROW_ID"]))
@pytest.mark.parametrize("version", [2, 3])
def test_rows_of_other_writers_tables_are_changed_by_id(
    catalog: engine.Catalog, version: int, name: str, mode: Mode
) -> None:
    table = foreign(catalog, name, version)
    table.append(arrow(name, [(5, 9)]))
    if version == 3 and name in LINEAGE_NAMES:
        before = read(table)
        changes: list[Callable[[], object]] = [
            lambda: table.update("k = 1", {"k": 6}, mode),
            lambda: table.upsert(arrow(name, [(1, 3)]), ["k"], mode),
            lambda: table.maintenance.rewrite_data_files(rewrite_all=True),
            lambda: table.delete("k = 1", "copy-on-write"),
        ]
        for change in changes:
            with pytest.raises(Unsupported, match="rename the column first"):
                change()
        with pytest.raises(Invalid, match="rename it first") if name == "_row_id" else nullcontext():
            assert table.changelog_scan().to_arrow().num_rows == len(before)
        assert read(table.refresh()) == before == [(1, 7), (2, 8), (3, 7), (4, 8), (5, 9)]
        table.update_schema(lambda s: s.rename_column(name, "renamed"))
        name = "renamed"
    table.delete(f'"{name}" = 8 and k > 3', mode)
    table.update(f'"{name}" = 9', {name: 4}, mode)
    table.update("k = 1", {"k": 6}, mode)
    table.upsert(arrow(name, [(2, 3), (7, 1)]), ["k"], mode)
    assert read(table) == [(2, 3), (3, 7), (5, 4), (6, 7), (7, 1)]
    table.maintenance.rewrite_data_files("sort", sort_order=[name], rewrite_all=True)
    stream = table.keyed_stream(["k"])
    stream.update(arrow(name, [(7, 2)]))
    stream.delete(pa.table({"k": pa.array([3], pa.int64())}))
    stream.commit()
    table.maintenance.convert_equality_deletes()
    assert read(table) == [(2, 3), (5, 4), (6, 7), (7, 2)]
    assert read(table) == sorted(
        (row["k"], row[name]) for row in table.scan(columns=["k", name]).to_arrow().to_pylist()
    )


@pytest.mark.parametrize("name", sorted([*RESERVED_NAMES, "_Row_Id"]))
def test_an_upgrade_waits_until_the_names_of_row_ids_are_free(catalog: engine.Catalog, name: str) -> None:
    table = foreign(catalog, name, 2)
    if name.lower() in LINEAGE_NAMES:
        with pytest.raises(Invalid, match=REFUSED):
            table.upgrade_format(3)
        table.update_schema(lambda s: s.rename_column(name, "renamed"))
    table.upgrade_format(3)
    table.update("k = 1", {"k": 6}, "copy-on-write")
    assert read(table) == [(2, 8), (3, 7), (4, 8), (6, 7)]
