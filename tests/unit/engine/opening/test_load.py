from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

import icebench
from icebench.engine.plan.cache import ManifestCache
from icebench.engine.spec.transforms import Bucket, Day
from icebench.errors import AlreadyExists, Invalid, NotFound, Unsupported

ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("at", pa.timestamp("us"))])
DATA = pa.table({"id": [1, 2, 3], "at": [0, 10**12, 2 * 10**12]}, schema=ROWS)


def test_a_database_and_a_relative_warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    catalog = icebench.load_catalog("sqlite:///wh/catalog.db", warehouse="wh")
    table = catalog.create_table("db.t", ROWS)
    assert table.location == f"{tmp_path}/wh/db/t"
    assert (tmp_path / "wh" / "catalog.db").exists()
    catalog.close()
    again = icebench.load_catalog("sqlite:///wh/catalog.db")
    assert again.load_table("db.t").metadata == table.metadata
    with pytest.raises(Invalid, match="no warehouse"):
        again.create_table("db.u", ROWS)
    again.close()


@pytest.mark.parametrize("prefix", ["", "file://", "file:"])
def test_a_directory(tmp_path: Path, prefix: str) -> None:
    catalog = icebench.load_catalog(f"{prefix}{tmp_path}/wh")
    table = catalog.create_table("db.t", ROWS)
    table.append(DATA)
    assert table.location == f"{prefix}{tmp_path}/wh/db/t"
    assert icebench.load_catalog(f"{tmp_path}/wh").load_table("db.t").scan().count() == 3
    assert catalog.list_tables("db") == ["db.t"]
    assert catalog.list_namespaces() == ["db"]


@pytest.mark.parametrize(("spelled", "recorded"), [("../wh", "{}/wh"), ("file://{}//wh/", "file://{}/wh")])
def test_new_tables_and_views_record_normalised_locations(
    tmp_path: Path, spelled: str, recorded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    place, root = spelled.format(tmp_path), recorded.format(tmp_path)
    assert icebench.load_catalog(place).create_table("db.t", ROWS).location == f"{root}/db/t"
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=place)
    assert catalog.create_table("db.u", ROWS).location == f"{root}/db/u"
    assert catalog.create_table("db.v", ROWS, location=f"{place}/./v").location == f"{root}/v"
    view = catalog.create_view("db.w", {"spark": "select 1"}, ROWS, location=f"{place}/x/../w")
    assert view.location == f"{root}/w"
    catalog.close()


def test_a_renamed_table_and_one_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path), cache=ManifestCache())
    table = catalog.create_table("db.t", ROWS)
    assert table._cache is catalog.load_table("db.t")._cache
    assert catalog.rename_table("db.t", "db.u").name == "db.u"
    relative = str(Path(table.metadata_location).relative_to(tmp_path))
    assert catalog.register_table("db.v", relative).metadata_location == table.metadata_location
    assert catalog.table_exists("db.v")
    view = catalog.create_view("db.w", {"spark": "select 1"}, ROWS, default_namespace="db.inner")
    assert view.current_version.default_namespace == ("db", "inner")
    catalog.close()


@pytest.mark.parametrize("given", [{"token": "t"}, {"credential": "a:b"}])
def test_only_rest_catalogs_take_credentials(tmp_path: Path, given: dict[str, str]) -> None:
    with pytest.raises(Invalid, match="REST"):
        icebench.load_catalog(str(tmp_path), **given)


def test_decimals_are_wide_unless_asked_for(tmp_path: Path) -> None:
    schema = pa.schema([("d", pa.decimal128(9, 2))])
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", schema)
    table.append(pa.table({"d": [Decimal("1.25")]}, schema))
    assert table.scan().to_arrow().schema.types == [pa.decimal128(9, 2)]
    assert table.scan().to_arrow(decimal_width="narrow").schema.types == [pa.decimal32(9, 2)]


def test_tables_in_memory() -> None:
    catalog = icebench.load_catalog("memory://opening")
    catalog.create_table("db.t", ROWS).append(DATA)
    assert icebench.load_catalog("memory://opening").load_table("db.t").scan().count() == 3
    catalog.drop_table("db.t")


def test_wrong_addresses(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="its own warehouse"):
        icebench.load_catalog(str(tmp_path), warehouse="elsewhere")
    on_s3 = {"s3.region": "us-east-1", "s3.endpoint": "http://127.0.0.1:1"}
    with (
        patch("icebench.engine.storage.conditional_s3.find_spec", return_value=None),
        pytest.raises(Unsupported, match="aws"),
    ):
        icebench.load_catalog("s3://bucket/wh", properties=on_s3)
    with pytest.raises(Unsupported, match="atomically"):
        icebench.load_catalog("s3://bucket/wh", properties={**on_s3, "s3.role-arn": "arn:aws:iam::1:role/r"})


class TestCreation:
    @pytest.fixture
    def catalog(self, tmp_path: Path) -> icebench.Catalog:
        return icebench.load_catalog(str(tmp_path))

    def test_specs_by_name(self, catalog: icebench.Catalog) -> None:
        table = catalog.create_table("db.t", ROWS, partition_spec=[("at", "day"), ("id", Bucket(4))])
        assert [(f.name, f.transform) for f in table.spec.fields] == [("at_day", Day()), ("id_bucket", Bucket(4))]

    def test_specs_and_orders_by_id(self, catalog: icebench.Catalog) -> None:
        columns = (
            icebench.NestedField(field_id=7, name="id", type=icebench.LONG),
            icebench.NestedField(field_id=5, name="at", type=icebench.TIMESTAMP),
        )
        schema = icebench.Schema(columns)
        order = icebench.SortOrder(
            (icebench.SortField(source_ids=(7,), transform=icebench.parse_transform("identity")),)
        )
        spec = icebench.partition_spec(schema, [("at", icebench.parse_transform("month"))])
        table = catalog.create_table(("db", "t"), schema, partition_spec=spec, sort_order=order)
        assert [f.source_id for f in table.spec.fields] == [2]
        assert [f.source_id for f in table.sort_order.fields] == [1]

    def test_format_versions(self, catalog: icebench.Catalog) -> None:
        for version in (1, 2, 3):
            made = catalog.create_table(f"db.v{version}", ROWS, properties={"format-version": str(version)})
            assert made.metadata.format_version == version
            assert made.properties == {}
            made.append(DATA)
            assert made.scan().count() == 3
        assert catalog.create_table("db.default", ROWS).metadata.format_version == 2
        with pytest.raises(Unsupported, match="format version 4"):
            catalog.create_table("db.v4", ROWS, properties={"format-version": "4"})
        with pytest.raises(Invalid, match="format-version"):
            catalog.create_table("db.x", ROWS, properties={"format-version": "new"})

    def test_names_are_checked_and_used_once(self, catalog: icebench.Catalog) -> None:
        catalog.create_table("db.t", ROWS)
        with pytest.raises(AlreadyExists):
            catalog.create_table("db.t", ROWS)
        with pytest.raises(Invalid, match="no namespace"):
            catalog.create_table("t", ROWS)
        with pytest.raises(NotFound):
            catalog.load_table("db.missing")
        assert catalog.table_exists("db.t")
        assert not catalog.table_exists("db.missing")

    def test_unknown_transforms(self, catalog: icebench.Catalog) -> None:
        with pytest.raises(Unsupported, match="zorder"):
            catalog.create_table("db.t", ROWS, partition_spec=[("id", "zorder")])
        with pytest.raises(Invalid, match="no column 'nosuch'"):
            catalog.create_table("db.t", ROWS, partition_spec=[("nosuch", "day")])


class TestOpeningATable:
    @pytest.fixture
    def table(self, tmp_path: Path) -> icebench.Table:
        table = icebench.load_catalog(f"{tmp_path}/wh").create_table("db.t", ROWS)
        table.append(DATA)
        table.delete("id = 2", "merge-on-read")
        return table

    def test_by_directory_or_file(self, table: icebench.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        for location in ("wh/db/t", f"{tmp_path}/wh/db/t/", f"file://{tmp_path}/wh/db/t", table.metadata_location):
            assert icebench.load_table(location).scan().count() == 2
        assert icebench.load_table("wh/db/t/metadata/v2.metadata.json").scan().count() == 3

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(NotFound, match="no table at"):
            icebench.load_table(f"{tmp_path}/nowhere")
        with pytest.raises(NotFound, match=r"v9\.metadata\.json"):
            icebench.load_table(f"{tmp_path}/v9.metadata.json")

    def test_a_table_that_was_moved(self, table: icebench.Table, tmp_path: Path) -> None:
        shutil.move(f"{tmp_path}/wh/db/t", tmp_path / "moved")
        moved = icebench.load_table(f"{tmp_path}/moved", relocate={f"{tmp_path}/wh/db/t": f"{tmp_path}/moved"})
        assert sorted(moved.scan().to_arrow()["id"].to_pylist()) == [1, 3]
        assert moved.location == f"{tmp_path}/wh/db/t"
        (path,) = moved.scan().plan().files["file_path"].to_pylist()
        assert Path(moved.store.physical(path)).exists()
        with pytest.raises(Unsupported, match="read-only"):
            moved.append(DATA)
