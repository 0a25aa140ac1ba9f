"""What people do with tables, a short test for each task, over several catalogs."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import icebench
from icebench import col
from icebench.errors import AlreadyExists, Invalid, NotFound, Unsupported, ValidationFailed

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32()), ("price", pa.float64())])
DAY = dt.date(2024, 2, 28)


def rows(*ids: int) -> pa.Table:
    made = [{"id": n, "name": f"n{n}", "day": DAY + dt.timedelta(days=n), "price": n / 2} for n in ids]
    return pa.Table.from_pylist(made, SCHEMA)


def ids(scan: Any) -> list[int]:
    return sorted(scan.to_arrow()["id"].to_pylist())


_NOT_ON_NESSIE = {
    "one snapshot in the metadata": {
        "test_an_earlier_state",
        "test_what_was_appended_since",
        "test_what_changed_since",
        "test_metadata_tables",
        "test_roll_back",
        "test_tags",
        "test_branches",
        "test_write_audit_publish",
        "test_upgrade_the_format",
    },
    "gc.enabled is false": {"test_expire_snapshots", "test_remove_orphans", "test_drop_and_purge_a_table"},
    "no metadata file after a commit": {"test_open_a_table_by_its_place", "test_register_a_table"},
}
"""Tests of what Nessie has not, or has in its own way; `test_nessie.py` has what is refused."""


@pytest.fixture(
    params=[
        *("sqlite", "directory", "hive", "glue"),
        *(pytest.param(name, marks=pytest.mark.soak) for name in ("nessie", "nessie-signed")),
    ]
)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> icebench.Catalog:
    if request.param == "hive":
        return icebench.load_catalog(request.getfixturevalue("hive_uri"), warehouse=str(tmp_path / "wh"))
    if request.param == "glue":
        properties = request.getfixturevalue("glue_properties")
        return icebench.load_catalog("cloud", warehouse=str(tmp_path / "wh"), properties=properties)
    if request.param.startswith("nessie"):
        for reason, names in _NOT_ON_NESSIE.items():
            if request.node.originalname in names:
                pytest.skip(f"Nessie: {reason}")
        properties = request.getfixturevalue("s3_server").properties
        if request.param == "nessie-signed":
            if request.node.originalname == "test_add_files_that_exist":
                pytest.skip("Nessie: signs no requests for files of another table")
            properties = {"header.X-Iceberg-Access-Delegation": "remote-signing"}
        return icebench.load_catalog(request.getfixturevalue("nessie_address"), properties=properties)
    if request.param == "directory":
        return icebench.load_catalog(str(tmp_path / "wh"))
    return icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "wh"))


@pytest.fixture
def table(catalog: icebench.Catalog) -> icebench.Table:
    """Two files of rows 0 to 5, in two snapshots."""
    made = catalog.create_table("db.t", SCHEMA)
    made.append(rows(0, 1, 2))
    made.append(rows(3, 4, 5))
    return made


class TestCatalog:
    def test_create_and_load_a_table(self, catalog: icebench.Catalog) -> None:
        made = catalog.create_table("db.new", SCHEMA, partition_spec=[("day", "month")], properties={"owner": "me"})
        loaded = catalog.load_table("db.new")
        assert loaded.metadata == made.metadata
        assert [f.name for f in loaded.schema().fields] == SCHEMA.names

    def test_create_a_table_that_may_exist(self, catalog: icebench.Catalog, table: icebench.Table) -> None:
        with pytest.raises(AlreadyExists):
            catalog.create_table("db.t", SCHEMA)
        assert ids(catalog.create_table_if_not_exists("db.t", SCHEMA).scan()) == ids(table.scan())

    def test_list_and_find_tables(self, catalog: icebench.Catalog, table: icebench.Table) -> None:
        assert catalog.list_tables("db") == [table.name]
        assert catalog.table_exists("db.t")
        assert not catalog.table_exists("db.u")
        with pytest.raises(NotFound):
            catalog.load_table("db.u")

    def test_rename_a_table(
        self, catalog: icebench.Catalog, table: icebench.Table, request: pytest.FixtureRequest
    ) -> None:
        if "directory" in request.node.name:
            with pytest.raises(Unsupported, match="renaming"):
                catalog.rename_table("db.t", "db.u")
        else:
            assert ids(catalog.rename_table("db.t", "db.u").scan()) == ids(table.scan())

    def test_drop_and_purge_a_table(self, catalog: icebench.Catalog, table: icebench.Table) -> None:
        catalog.purge_table("db.t")
        assert not catalog.table_exists("db.t")
        assert not list(Path(table.location).rglob("*.parquet"))
        catalog.create_table("db.t", SCHEMA)
        catalog.drop_table("db.t")
        assert not catalog.table_exists("db.t")

    def test_namespaces(self, catalog: icebench.Catalog) -> None:
        catalog.create_namespace("sales")
        assert "sales" in catalog.list_namespaces()
        catalog.drop_namespace("sales")
        assert not catalog.namespace_exists("sales")

    def test_open_a_table_by_its_place(self, table: icebench.Table) -> None:
        for place in (table.location, table.metadata_location):
            if place != table.location or Path(place, "metadata", "version-hint.text").exists():
                assert ids(icebench.load_table(place).scan()) == [0, 1, 2, 3, 4, 5]

    def test_register_a_table(self, catalog: icebench.Catalog, table: icebench.Table, tmp_path: Path) -> None:
        other = icebench.load_catalog(f"sqlite:///{tmp_path}/other.db", warehouse=str(tmp_path))
        assert ids(other.register_table("x.t", table.metadata_location).scan()) == ids(table.scan())


class TestRead:
    @pytest.mark.parametrize(
        "filter",
        [
            "id > 1 and name != 'n3'",
            (col("id") > 1) & (col("name") != "n3"),
            (pc.field("id") > 1) & (pc.field("name") != "n3"),
            "id > 1 and name like '_%' and not name like '%3'",
            "id + 1 > 2 and lower(name) <> 'n3'",
            "year(day) = 2024 and id > 1 and substr(name, 2) != '3'",
        ],
        ids=lambda each: type(each).__name__,
    )
    def test_filter_rows(self, table: icebench.Table, filter: Any) -> None:
        assert ids(table.scan(filter)) == [2, 4, 5]

    def test_choose_columns(self, table: icebench.Table) -> None:
        assert table.scan(columns=["name", "id"]).to_arrow().column_names == ["id", "name"]

    def test_compare_columns(self, table: icebench.Table) -> None:
        assert ids(table.scan("price * 2 = id and price < id")) == [1, 2, 3, 4, 5]

    def test_count_limit_and_sample(self, table: icebench.Table) -> None:
        assert table.scan("id < 4").count() == 4
        assert table.scan(limit=2).to_arrow().num_rows == 2
        assert set(table.scan().sample(3)["id"].to_pylist()) < set(range(6))

    def test_stream_batches(self, table: icebench.Table) -> None:
        assert [batch.num_rows for batch in table.scan().to_batches(batch_rows=2)] == [2, 1, 2, 1]

    def test_frames_of_pandas_polars_and_duckdb(self, table: icebench.Table) -> None:
        scan = table.scan()
        assert scan.to_pandas()["id"].sum() == 15
        assert scan.to_polars().filter(pl.col("id") > 2).select(pl.col("id").sum()).collect().item() == 12
        assert scan.to_duckdb().filter("id > 2").aggregate("sum(id)").fetchall() == [(12,)]

    def test_see_the_files_of_a_plan(self, table: icebench.Table) -> None:
        plan = table.scan("id = 4").plan()
        assert plan.files["record_count"].to_pylist() == [3]
        assert plan.counters["entries_skipped_by_metrics"] == 1

    def test_metadata_columns(self, table: icebench.Table) -> None:
        found = table.scan(columns=["id", "_file", "_pos"]).to_arrow().to_pylist()
        assert {(row["id"], row["_pos"]) for row in found} == {(n, n % 3) for n in range(6)}

    def test_an_earlier_state(self, table: icebench.Table) -> None:
        first = table.history()[0]
        assert ids(table.scan(snapshot_id=first.snapshot_id)) == [0, 1, 2]
        moment = dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.UTC)
        assert 0 in ids(table.scan(as_of=moment))

    def test_what_was_appended_since(self, table: icebench.Table) -> None:
        assert ids(table.incremental_append_scan(table.history()[0].snapshot_id)) == [3, 4, 5]

    def test_what_changed_since(self, table: icebench.Table) -> None:
        before = table.current_snapshot
        assert before is not None
        table.delete("id = 2", "copy-on-write")
        found = table.changelog_scan(before.snapshot_id).to_arrow().to_pylist()
        assert [(row["id"], row["_change_type"]) for row in found] == [(2, "DELETE")]

    def test_metadata_tables(self, table: icebench.Table) -> None:
        inspect = table.inspect
        assert inspect.files()["record_count"].to_pylist() == [3, 3]
        assert inspect.snapshots().num_rows == inspect.history().num_rows == 2
        assert inspect.partitions()["record_count"].to_pylist() == [6]


class TestWrite:
    @pytest.mark.parametrize("kind", ["pandas", "polars", "duckdb", "reader", "table"])
    def test_append_rows_of_any_kind(self, table: icebench.Table, kind: str) -> None:
        given = rows(7, 8)
        source: Any = {
            "pandas": lambda: pd.DataFrame(given.to_pylist()),
            "polars": lambda: pl.from_arrow(given),
            "duckdb": lambda: duckdb.connect().from_arrow(given),
            "reader": given.to_reader,
            "table": lambda: given,
        }[kind]()
        table.append(source)
        assert ids(table.scan()) == [0, 1, 2, 3, 4, 5, 7, 8]

    def test_overwrite_by_filter(self, table: icebench.Table) -> None:
        table.overwrite(rows(9), "id >= 3")
        assert ids(table.scan()) == [0, 1, 2, 9]

    def test_overwrite_everything(self, table: icebench.Table) -> None:
        table.overwrite(rows(9))
        assert ids(table.scan()) == [9]

    def test_overwrite_partitions(self, catalog: icebench.Catalog) -> None:
        made = catalog.create_table("db.p", SCHEMA, partition_spec=[("day", "month")])
        made.append(rows(0, 1, 2, 3))
        made.overwrite_partitions(rows(1))
        assert ids(made.scan()) == [1, 2, 3]

    @pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
    def test_delete_rows(self, table: icebench.Table, mode: Any) -> None:
        table.delete((col("id") % 2 == 1) & col("name").like("n%"), mode)
        assert ids(table.scan()) == [0, 2, 4]

    @pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
    def test_update_rows(self, table: icebench.Table, mode: Any) -> None:
        table.update("id < 2", {"price": icebench.sql("price + 10"), "name": "new"}, mode)
        found = {row["id"]: (row["name"], row["price"]) for row in table.scan("id < 3").to_arrow().to_pylist()}
        assert found == {0: ("new", 10.0), 1: ("new", 10.5), 2: ("n2", 1.0)}

    def test_upsert_rows(self, table: icebench.Table) -> None:
        table.upsert(rows(5, 6), on=["id"], mode="merge-on-read")
        assert ids(table.scan()) == [0, 1, 2, 3, 4, 5, 6]

    def test_several_changes_in_one_commit(self, table: icebench.Table) -> None:
        with table.transaction() as change:
            change.delete("id = 0", "copy-on-write")
            change.append(rows(7))
        assert ids(table.scan()) == [1, 2, 3, 4, 5, 7]

    def test_two_writers(self, catalog: icebench.Catalog, table: icebench.Table) -> None:
        other = catalog.load_table("db.t")
        table.append(rows(6))
        other.append(rows(7))
        assert ids(table.refresh().scan()) == [0, 1, 2, 3, 4, 5, 6, 7]

    def test_two_transactions_that_contradict(self, catalog: icebench.Catalog, table: icebench.Table) -> None:
        change = table.transaction()
        change.update("id = 1", {"name": "x"}, "merge-on-read")
        catalog.load_table("db.t").delete("id = 1", "merge-on-read")
        with pytest.raises(ValidationFailed):
            change.commit()

    def test_add_files_that_exist(self, catalog: icebench.Catalog, table: icebench.Table) -> None:
        copy = catalog.create_table("db.copy", SCHEMA)
        copy.add_files(table.inspect.data_files())
        assert ids(copy.scan("id > 3")) == [4, 5]

    def test_add_files_by_their_places(self, catalog: icebench.Catalog, tmp_path: Path) -> None:
        places = [str(tmp_path / f"{n}.parquet") for n in range(2)]
        pq.write_table(rows(0, 1), places[0])
        pq.write_table(rows(2, 3).select(["name", "day", "id"]), places[1])
        made = catalog.create_table("db.p", SCHEMA, partition_spec=[("day", "month")])
        made.add_files(places)
        assert ids(made.scan("day < '2024-03-01'")) == [0, 1]
        assert made.scan("id = 3").to_arrow().to_pylist() == [{**rows(3).to_pylist()[0], "price": None}]
        pq.write_table(rows(1, 2), tmp_path / "both.parquet")
        pq.write_table(pa.table({"other": [1]}), tmp_path / "other.parquet")
        for name, reason in (("both", "several partitions"), ("other", "no column of the table")):
            with pytest.raises(Invalid, match=reason):
                made.add_files([str(tmp_path / f"{name}.parquet")])
        with pytest.raises(AlreadyExists):
            made.add_files(places[:1])
        assert len(made.history()) == 1

    def test_write_audit_publish(self, table: icebench.Table) -> None:
        staged = table.append(rows(6), wap_id="load-1")
        assert 6 not in ids(table.scan())
        assert 6 in ids(table.scan(snapshot_id=staged.snapshot_id))
        table.cherry_pick(wap_id="load-1")
        assert 6 in ids(table.scan())

    def test_a_batch_once(self, table: icebench.Table) -> None:
        for _ in range(2):
            table.append_batch(rows(6), stream_id="s", batch_id=1)
        assert ids(table.scan()) == [0, 1, 2, 3, 4, 5, 6]


class TestEvolve:
    def test_add_rename_and_drop_columns(self, table: icebench.Table) -> None:
        table.update_schema(lambda s: s.add_column("more", icebench.STRING).rename_column("name", "label"))
        table.update_schema(lambda s: s.drop_column("day"))
        assert table.scan("id = 1").to_arrow().to_pylist() == [{"id": 1, "label": "n1", "price": 0.5, "more": None}]

    def test_widen_a_column(self, catalog: icebench.Catalog) -> None:
        made = catalog.create_table("db.narrow", pa.schema([("id", pa.int32())]))
        made.append(pa.table({"id": pa.array([1], pa.int32())}))
        made.update_schema(lambda s: s.promote_column("id", icebench.LONG))
        made.append(pa.table({"id": [1 << 40]}))
        assert ids(made.scan("id > 0")) == [1, 1 << 40]

    def test_reorder_columns(self, table: icebench.Table) -> None:
        table.update_schema(lambda s: s.move_first("price"))
        assert table.scan().to_arrow().column_names == ["price", "id", "name", "day"]

    def test_partition_an_existing_table(self, table: icebench.Table) -> None:
        table.update_spec(lambda s: s.add_field("day", "month"))
        table.append(rows(6, 7))
        assert ids(table.scan("day >= '2024-03-01'")) == [2, 3, 4, 5, 6, 7]

    def test_properties(self, table: icebench.Table) -> None:
        table.set_properties({"owner": "me"})
        assert table.properties["owner"] == "me"
        table.remove_properties("owner")
        assert "owner" not in table.properties

    def test_upgrade_the_format(self, table: icebench.Table) -> None:
        table.upgrade_format(3)
        table.delete("id = 0", "merge-on-read")
        assert ids(table.scan()) == [1, 2, 3, 4, 5]


class TestHistory:
    def test_tags(self, table: icebench.Table) -> None:
        table.create_tag("before")
        table.delete("true", "copy-on-write")
        assert ids(table.scan(ref="before")) == [0, 1, 2, 3, 4, 5]
        assert ids(table.scan()) == []

    def test_branches(self, table: icebench.Table) -> None:
        table.create_branch("work")
        table.append(rows(6), branch="work")
        assert 6 not in ids(table.scan())
        table.fast_forward("main", "work").remove_ref("work")
        assert 6 in ids(table.scan())

    def test_roll_back(self, table: icebench.Table) -> None:
        table.rollback(snapshot_id=table.history()[0].snapshot_id)
        assert ids(table.scan()) == [0, 1, 2]
        table.set_current_snapshot(table.snapshots[-1].snapshot_id)
        assert ids(table.scan()) == [0, 1, 2, 3, 4, 5]


class TestMaintain:
    def test_compact_files(self, table: icebench.Table) -> None:
        table.maintenance.rewrite_data_files(min_input_files=2)
        assert table.scan().plan().files.num_rows == 1
        assert ids(table.scan()) == [0, 1, 2, 3, 4, 5]

    def test_rewrite_manifests(self, table: icebench.Table) -> None:
        table.maintenance.rewrite_manifests()
        assert table.inspect.manifests().num_rows == 1

    def test_expire_snapshots(self, table: icebench.Table) -> None:
        table.maintenance.expire_snapshots(older_than=dt.datetime.now(dt.UTC) + dt.timedelta(days=1), retain_last=1)
        assert len(table.refresh().snapshots) == 1
        assert ids(table.scan()) == [0, 1, 2, 3, 4, 5]

    def test_remove_orphans(self, table: icebench.Table) -> None:
        lost = Path(table.location, "data", "lost.parquet")
        pq.write_table(rows(9), lost)
        tomorrow = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
        table.maintenance.remove_orphan_files(older_than=tomorrow, dry_run=False)
        assert not lost.exists()
        assert ids(table.scan()) == [0, 1, 2, 3, 4, 5]

    def test_profile(self, table: icebench.Table) -> None:
        assert table.maintenance.profile().files.records == 6
