"""Tables with columns of the types variant, geometry and geography."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench import (
    INT,
    LONG,
    VARIANT,
    NestedField,
    Schema,
    SortField,
    SortOrder,
    StructType,
    list_type,
    map_type,
)
from icebench.engine.spec.schema_evolution import SchemaUpdate
from icebench.engine.spec.types import GeospatialType
from icebench.errors import EngineError, Invalid, Unsupported
from tests.unit.engine.codec.variant_encoder import encode

POINT = b"\x01\x01\x00\x00\x00" + bytes(16)
GEOMETRY, GEOGRAPHY = GeospatialType("geometry", "srid:4326"), GeospatialType("geography", None, "karney")
SCHEMA = Schema(
    (
        NestedField(field_id=1, name="id", type=LONG),
        NestedField(field_id=2, name="v", type=VARIANT),
        NestedField(field_id=3, name="g", type=GEOMETRY),
        NestedField(field_id=4, name="gg", type=GEOGRAPHY),
        NestedField(field_id=5, name="l", type=list_type(6, VARIANT)),
        NestedField(field_id=7, name="s", type=StructType((NestedField(field_id=8, name="v", type=VARIANT),))),
        NestedField(field_id=9, name="m", type=map_type(10, INT, 11, VARIANT)),
    )
)
REQUIRED = Schema((NestedField(field_id=1, name="v", type=VARIANT, required=True),))
V3 = {"format-version": "3", "write.delete.mode": "copy-on-write", "write.merge.mode": "copy-on-write"}
ONE, TWO, NULL = encode({"a": [1, None]}), encode("two"), encode(None)
ROWS: list[dict[str, Any]] = [
    {"id": 1, "v": ONE, "g": POINT, "gg": None, "l": [TWO, None], "s": {"v": ONE}, "m": [(1, ONE), (2, None)]},
    {"id": 2, "v": None, "g": None, "gg": POINT, "l": None, "s": {"v": None}, "m": None},
    {"id": 3, "v": NULL, "g": POINT, "gg": POINT, "l": [], "s": None, "m": []},
]


@pytest.fixture
def catalog(tmp_path: Path) -> icebench.Catalog:
    return icebench.load_catalog(str(tmp_path))


@pytest.fixture
def table(catalog: icebench.Catalog) -> icebench.Table:
    made = catalog.create_table("db.t", SCHEMA, properties=V3)
    return made_with(made, ROWS)


def made_with(table: icebench.Table, rows: list[dict[str, Any]]) -> icebench.Table:
    # Without what Arrow puts under null structs: columns as users make them.
    columns = {f.name: pa.array([r[f.name] for r in rows], f.type) for f in table.scan().arrow_schema}
    table.append(pa.table(columns))
    return table


def rows_of(table: icebench.Table) -> list[dict[str, Any]]:
    found = table.scan().to_arrow().sort_by("id")
    found.validate(full=True)
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def test_rows_are_read_as_they_were_written(table: icebench.Table) -> None:
    assert rows_of(table) == ROWS
    assert table.scan(columns=["s"]).to_arrow().to_pylist() == [{"s": row["s"]} for row in ROWS]


def test_files_name_the_logical_types(table: icebench.Table) -> None:
    (path,) = table.scan().plan().files.column("file_path").to_pylist()
    text = str(pq.ParquetFile(path).schema)
    assert text.count("(Variant(1))") == 4
    assert "binary field_id=3 g (Geometry(crs=srid:4326))" in text
    assert "binary field_id=4 gg (Geography(crs=, algorithm=karney))" in text


def test_metrics_have_no_bounds(table: icebench.Table) -> None:
    (row,) = table.inspect.files().select(["lower_bounds", "upper_bounds", "null_value_counts"]).to_pylist()
    assert [[key for key, _ in row[name]] for name in ("lower_bounds", "upper_bounds")] == [[1], [1]]
    assert dict(row["null_value_counts"]) == {1: 0, 3: 1, 4: 1}


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("v is null", [2]),
        ("v is not null", [1, 3]),
        ("not (v is null) and id > 1", [3]),
        ("g is null", [2]),
        ("gg is not null", [2, 3]),
        ("s.v is null", [2, 3]),
        ("s.v is not null", [1]),
        ("s is null", [3]),
    ],
)
def test_tests_for_null(table: icebench.Table, text: str, ids: list[int]) -> None:
    scan = table.scan(filter=text)
    assert sorted(scan.to_arrow().column("id").to_pylist()) == ids
    assert scan.count() == len(ids)


def test_row_groups_are_not_excluded_by_variants(catalog: icebench.Catalog) -> None:
    made = catalog.create_table("db.t", SCHEMA, properties={**V3, "write.parquet.row-group-size-bytes": "640"})
    made_with(made, ROWS * 100)
    (path,) = made.scan().plan().files.column("file_path").to_pylist()
    assert pq.read_metadata(path).num_row_groups > 1
    assert made.scan(filter="v is not null").to_arrow().num_rows == 200


@pytest.mark.parametrize(
    "text",
    ["v = 1", "v in (1, 2)", "v > v", "not (v = 1)", "g = x'00'", "g < gg", "v.a = 1 and v = v", "lower(g) = 'a'"],
)
def test_other_filters_are_refused(table: icebench.Table, text: str) -> None:
    with pytest.raises((Unsupported, Invalid), match=r"'(v|g|gg|v\.a)'"):
        table.scan(filter=text).to_arrow()


def sorted_by(column_id: int) -> SortOrder:
    return SortOrder((SortField(source_ids=(column_id,), transform=icebench.parse_transform("identity")),), 1)


def identify_by_v(schema: SchemaUpdate) -> None:
    schema.set_identifier_fields("v")


@pytest.mark.parametrize(
    "use",
    [
        lambda c, _: c.create_table("db.x", SCHEMA, properties=V3, partition_spec=[("v", "identity")]),
        lambda c, _: c.create_table("db.x", SCHEMA, properties=V3, partition_spec=[("v", "bucket[4]")]),
        lambda c, _: c.create_table("db.x", SCHEMA, properties=V3, partition_spec=[("g", "identity")]),
        lambda c, _: c.create_table("db.x", SCHEMA, properties=V3, sort_order=sorted_by(2)),
        lambda c, _: c.create_table("db.x", SCHEMA, properties=V3, sort_order=sorted_by(3)),
        lambda c, _: c.create_table("db.x", SCHEMA),
        lambda _, t: t.upsert(pa.Table.from_pylist([], t.scan().arrow_schema), on=["v"]),
        lambda c, _: c.create_table("db.x", REQUIRED, properties=V3).update_schema(identify_by_v),
        lambda _, t: t.update_schema(lambda s: s.add_column("w", VARIANT, default=b"\x00")),
        lambda _, t: t.update_schema(lambda s: s.promote_column("id", VARIANT)),
        lambda _, t: t.append(pa.table({"v": ["text"]})),
        lambda _, t: t.append(pa.table({"v": [{"metadata": b"", "value": b"\x00"}]})),
        lambda _, t: t.append(pa.table({"v": [{"metadata": None, "value": b"\x00"}]})),
        lambda _, t: t.append(pa.table({"v": [{"metadata": b"\x01\x00\x00", "other": b"\x00"}]})),
    ],
)
def test_other_uses_are_refused(
    catalog: icebench.Catalog, table: icebench.Table, use: Callable[[icebench.Catalog, icebench.Table], object]
) -> None:
    with pytest.raises(EngineError):
        use(catalog, table)
    assert rows_of(table) == ROWS


def test_changes_of_rows_and_files(catalog: icebench.Catalog) -> None:
    """Columns that files lack are null, also when the rows are written again."""
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), properties=V3)
    table.append(pa.table({"id": [1, 2, 3]}))
    table.update_schema(
        lambda s: (
            s.add_column("v", VARIANT)
            .add_column("s", StructType((NestedField(field_id=1, name="v", type=VARIANT, required=True),)))
            .add_column("g", GEOMETRY)
        )
    )
    table.append(pa.table({"id": [4], "v": [ONE], "s": [{"v": TWO}], "g": [POINT]}))
    old = [{"id": i, "v": None, "s": None, "g": None} for i in (1, 2, 3)]
    assert rows_of(table) == [*old, {"id": 4, "v": ONE, "s": {"v": TWO}, "g": POINT}]
    table.delete("id = 2")
    table.upsert(pa.table({"id": [1, 5], "v": [TWO, NULL], "s": [None, {"v": ONE}], "g": [None, POINT]}), on=["id"])
    table.maintenance.rewrite_data_files(min_input_files=1)
    assert rows_of(table) == [
        {"id": 1, "v": TWO, "s": None, "g": None},
        old[2],
        {"id": 4, "v": ONE, "s": {"v": TWO}, "g": POINT},
        {"id": 5, "v": NULL, "s": {"v": ONE}, "g": POINT},
    ]


def test_a_table_of_the_same_schema(catalog: icebench.Catalog, table: icebench.Table) -> None:
    """The extension types in the Arrow schema of a scan, as Polars and others pass them on, name the types."""
    other = catalog.create_table("db.other", table.scan().arrow_schema, properties=V3)
    types = {name: other.schema().by_id[field_id].type for name, field_id in other.schema().id_of.items()}
    assert types["v"] == types["l.element"] == types["s.v"] == types["m.value"] == VARIANT
    assert (types["g"], types["gg"]) == (GEOMETRY, GEOGRAPHY)
    other.append(table.scan().to_arrow())
    assert rows_of(other) == ROWS
    other.append(table.scan(columns=["id", "v", "g", "gg", "s"]).to_polars().collect())
    assert len(rows_of(other)) == 6


def test_frames(table: icebench.Table) -> None:
    relation = table.scan(columns=["id", "v", "g", "gg"]).to_duckdb()
    assert [str(t)[:8] for t in relation.types] == ["BIGINT", "STRUCT(m", "GEOMETRY", "BLOB"]
    assert len(relation.filter("id > 1 and v is not null").fetchall()) == 1
    assert table.scan().to_pandas()["v"][0] == ONE
