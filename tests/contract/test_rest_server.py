"""The engine behind Iceberg Java's REST server, together with the other clients of the same tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog as load_pyiceberg

import icebench
from icebench.engine.catalog.sql_views import SqlViewCatalog
from icebench.engine.commit.committer import Outcome
from icebench.errors import Invalid, Unsupported

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])
ROWS = pa.table({"id": [1, 2, 3], "day": ["mon", "mon", "tue"]}, schema=SCHEMA)

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_tables_are_written_and_read(rest_address: str, version: str) -> None:
    catalog = icebench.load_catalog(rest_address)
    table = catalog.create_table(
        "db.events", SCHEMA, partition_spec=[("day", "identity")], properties={"format-version": version}
    )
    assert table.metadata.format_version == int(version)
    table.append(ROWS)
    snapshot = table.append(ROWS)
    assert catalog.load_table("db.events").current_snapshot == snapshot
    theirs = load_pyiceberg("rest", type="rest", uri=rest_address).load_table("db.events")
    assert theirs.metadata.current_snapshot_id == snapshot.snapshot_id
    assert theirs.scan().to_arrow().sort_by("id").column("id").to_pylist() == [1, 1, 2, 2, 3, 3]


def test_what_another_client_commits_is_seen(rest_address: str) -> None:
    catalog = icebench.load_catalog(rest_address)
    ours = catalog.create_table("db.events", SCHEMA)
    theirs = load_pyiceberg("rest", type="rest", uri=rest_address).load_table("db.events")
    theirs.append(ROWS)
    # Staged on a base that has passed: the commit is a conflict first, and then made on theirs.
    ours.append(ROWS)
    assert len(catalog.load_table("db.events").snapshots) == 2
    assert ours.metadata.current_snapshot is not None
    assert ours.metadata.current_snapshot.summary["total-records"] == "6"


def test_a_snapshot_is_published_where_it_is_still_there(rest_address: str) -> None:
    catalog = icebench.load_catalog(rest_address)
    ours = catalog.create_table("db.events", SCHEMA)
    theirs = icebench.load_catalog(rest_address).load_table("db.events")
    ours.append(ROWS)
    for name in ("first", "second"):
        ours.append(ROWS, wap_id=name)
    ours.append(ROWS)
    ours.cherry_pick(wap_id="first")
    assert set(ours.refs) == {"main"}
    assert ours.scan().count() == 9
    committer = ours._committer
    assert committer is not None

    def after_an_expiry(*request: Any) -> Outcome:
        theirs.refresh().maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z")
        return type(committer).commit(committer, *request)

    with patch.object(committer, "commit", after_an_expiry), pytest.raises(Invalid, match="unknown snapshot"):
        ours.cherry_pick(wap_id="second")
    assert ours.refresh().scan().count() == 9


def test_a_purged_table_leaves_no_file(rest_address: str) -> None:
    catalog = icebench.load_catalog(rest_address)
    table = catalog.create_table("db.events", SCHEMA)
    table.append(ROWS)
    directory = Path(table.location)
    assert list(directory.rglob("*.parquet"))
    catalog.drop_table("db.events", purge=True)
    assert not catalog.table_exists("db.events")
    assert not [path for path in directory.rglob("*") if path.is_file()]


def test_views_of_rest_and_jdbc_are_the_same(rest_address: str, rest_database: str, tmp_path: Path) -> None:
    catalog = icebench.load_catalog(rest_address)
    made = catalog.create_view("db.v", {"spark": "select 1"}, SCHEMA, default_namespace="db")
    database = SqlViewCatalog(rest_database, name="rest_backend", warehouse=str(tmp_path))
    assert database.load_view(("db", "v")).metadata == made
    again = icebench.load_catalog(rest_database, name="rest_backend", warehouse=str(tmp_path))
    replaced = again.replace_view("db.v", {"spark": "select 2", "trino": "select 2"}, SCHEMA)
    assert catalog.load_view("db.v") == replaced
    assert replaced.current_version.sql_for("trino") == "select 2"
    again.create_view("db.w", {"spark": "select 3"}, SCHEMA, properties={"write.metadata.compression-codec": "gzip"})
    assert catalog.load_view("db.w").current_version.sql_for("spark") == "select 3"
    assert catalog.list_views("db") == again.list_views("db") == ["db.v", "db.w"]
    catalog.rename_view("db.w", "db.x")
    catalog.drop_view("db.v")
    assert [again.view_exists(name) for name in ("db.v", "db.w", "db.x")] == [False, False, True]
    database.close()
    again.close()
    catalog.close()


def test_a_directory_has_no_views(tmp_path: Path) -> None:
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    catalog.create_table("db.events", SCHEMA)
    with pytest.raises(Unsupported, match="views"):
        catalog.list_views("db")


def test_credentials_are_for_rest(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="REST"):
        icebench.load_catalog(str(tmp_path / "wh"), token="t")
    with pytest.raises(Invalid, match="REST"):
        icebench.load_catalog(f"sqlite:///{tmp_path}/c.db", credential="a:b")
