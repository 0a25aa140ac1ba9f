"""Which directories a table may not use, beside those that every catalog refuses (tests/contract/test_catalog.py)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.errors import Invalid

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def catalog(tmp_path: Path) -> icebench.Catalog:
    return icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "wh"))


def files(place: Path) -> set[Path]:
    return {path for path in place.rglob("*") if path.is_file()}


def test_a_replacement_does_not_move_into_the_directory_of_another_table(
    catalog: icebench.Catalog, tmp_path: Path
) -> None:
    other = catalog.create_table("db.a", ROWS.schema)
    table = catalog.create_table("db.b", ROWS.schema)
    table.append(ROWS)
    before = files(tmp_path)
    for location in (other.location, f"{other.location}/data/x"):
        transaction = catalog.replace_table_transaction("db.b", ROWS.schema, location=location)
        transaction.append(ROWS)
        with pytest.raises(Invalid, match=r"db\.a is inside it"):
            transaction.commit()
        assert files(tmp_path) == before
    with catalog.replace_table_transaction("db.b", ROWS.schema, location=str(tmp_path / "new")) as transaction:
        transaction.append(ROWS.slice(1))
    assert table.refresh().scan().count() == 2


def test_no_transaction_sets_a_write_path_in_the_directory_of_another_table(
    catalog: icebench.Catalog, tmp_path: Path
) -> None:
    other = catalog.create_table("db.a", ROWS.schema)
    table = catalog.create_table("db.b", ROWS.schema)
    inside = {"write.data.path": f"{other.location}/data/b"}
    before = files(tmp_path)
    transaction = table.transaction()
    transaction.append(ROWS)
    transaction.set_properties(inside)
    with pytest.raises(Invalid, match=r"in the directory of db\.a"):
        transaction.commit()
    with pytest.raises(Invalid, match=r"in the directory of db\.a"):
        table.set_properties(inside)
    with pytest.raises(Invalid, match=r"in the directory of db\.a"):
        catalog.create_table_transaction("db.c", ROWS.schema, properties=inside)
    assert files(tmp_path) == before


def test_a_shared_directory_of_metadata_is_no_tables_directory(catalog: icebench.Catalog, tmp_path: Path) -> None:
    shared = {"write.metadata.path": f"{tmp_path}/shared/metadata", "write.data.path": f"{tmp_path}/shared/data"}
    for name in ("db.a", "db.b"):
        catalog.create_table(name, ROWS.schema, properties=shared).append(ROWS)
    assert catalog.load_table("db.b").scan().count() == 3


def test_the_directory_of_a_view_holds_no_files_but_its_own(catalog: icebench.Catalog, tmp_path: Path) -> None:
    catalog.create_view("db.v", {"spark": "select 1"}, ROWS.schema, location=f"{tmp_path}/v")
    table = catalog.create_table("db.t", ROWS.schema, properties={"write.data.path": f"{tmp_path}/v/data"})
    table.append(ROWS)
    assert table.scan().count() == 3


def test_a_write_path_that_was_there_before_is_no_obstacle_to_changes(
    catalog: icebench.Catalog, tmp_path: Path
) -> None:
    place = f"{tmp_path}/wh/db/a/data/b"
    table = catalog.create_table("db.b", ROWS.schema, properties={"write.data.path": place})
    assert place.startswith(catalog.create_table("db.a", ROWS.schema).location)
    table.append(ROWS)
    table.set_properties({"owner": "me"})
    assert table.scan().count() == 3
