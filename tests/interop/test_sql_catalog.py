"""One SQLite database, opened by PyIceberg's SQL catalog and by ours; both write, both read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.partitioning import PartitionField
from pyiceberg.partitioning import PartitionSpec as PyIcebergSpec
from pyiceberg.transforms import IdentityTransform

import icebench
from icebench.errors import AlreadyExists, Invalid, NotFound

ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string()), pa.field("day", pa.int32())])


def rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    return pa.table({"id": numbers, "name": [f"n{n}" for n in numbers], "day": [n % 3 for n in numbers]}, schema=ROWS)


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[icebench.Catalog]:
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/wh")
    yield catalog
    catalog.close()


@pytest.fixture
def theirs(tmp_path: Path, ours: icebench.Catalog) -> Iterator[PyIcebergCatalog]:
    catalog = PyIcebergCatalog("default", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/wh")
    yield catalog
    catalog.engine.dispose()


def ids(read: pa.Table) -> list[int]:
    return sorted(read["id"].to_pylist())


@pytest.mark.parametrize("spec", [[], [("day", "identity")], [("id", "bucket[4]"), ("name", "truncate[2]")]])
@pytest.mark.parametrize("version", ["1", "2"])
def test_our_table_in_their_hands(
    ours: icebench.Catalog, theirs: PyIcebergCatalog, spec: list[tuple[str, str]], version: str
) -> None:
    made = ours.create_table("db.t", ROWS, partition_spec=spec, properties={"format-version": version})
    made.append(rows(0, 100))
    loaded = theirs.load_table("db.t")
    assert loaded.metadata.format_version == int(version)
    assert str(loaded.metadata.table_uuid) == made.metadata.table_uuid
    assert ids(loaded.scan().to_arrow()) == list(range(100))
    assert ids(loaded.scan(row_filter="id = 42").to_arrow()) == [42]
    loaded.append(rows(100, 150))
    made.append(rows(150, 200))
    assert ids(made.scan().to_arrow()) == list(range(200))
    assert ids(loaded.refresh().scan().to_arrow()) == list(range(200))
    assert ids(made.scan("day = 1 and id > 120").to_arrow()) == [n for n in range(121, 200) if n % 3 == 1]
    summary = loaded.current_snapshot().summary  # type: ignore[union-attr]
    assert summary["total-records"] == "200"  # type: ignore[index]
    assert [s.sequence_number or 0 for s in loaded.metadata.snapshots] == ([0, 0, 0] if version == "1" else [1, 2, 3])


def test_a_table_with_an_index_and_statistics_in_their_hands(ours: icebench.Catalog, theirs: PyIcebergCatalog) -> None:
    """PyIceberg loads no table whose metadata lists a blob of a type that it does not know."""
    made = ours.create_table("db.t", ROWS)
    for remainder in range(2):
        made.append(rows(0, 100).filter(pa.array([n % 2 == remainder for n in range(100)])))
    made.maintenance.build_index("id", kind="values")
    made.maintenance.compute_table_stats()
    made.maintenance.build_index("name")
    theirs.load_table("db.t").append(rows(200, 210))
    assert ids(theirs.load_table("db.t").scan().to_arrow()) == [*range(100), *range(200, 210)]
    plan = made.refresh().scan("id = 4").plan()
    assert plan.counters["entries_skipped_by_index"] == 1
    assert ids(made.scan("id = 4").to_arrow()) == [4]
    made.maintenance.build_index("id", kind="values")
    assert ids(theirs.load_table("db.t").scan(row_filter="id = 204").to_arrow()) == [204]


def test_their_table_in_our_hands(ours: icebench.Catalog, theirs: PyIcebergCatalog) -> None:
    theirs.create_namespace("db")
    made = theirs.create_table("db.t", ROWS)
    made.append(rows(0, 50))
    loaded = ours.load_table("db.t")
    assert ids(loaded.scan().to_arrow()) == list(range(50))
    loaded.append(rows(50, 60))
    made.refresh()
    assert ids(made.scan().to_arrow()) == list(range(60))
    made.delete("id < 10")
    assert ids(loaded.refresh().scan().to_arrow()) == list(range(10, 60))


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_our_deletes_in_their_hands(ours: icebench.Catalog, theirs: PyIcebergCatalog, mode: str) -> None:
    made = ours.create_table("db.t", ROWS, partition_spec=[("day", "identity")])
    made.append(rows(0, 100))
    made.append(rows(100, 200))
    made.delete("id between 50 and 120 or name = 'n7'", mode)  # type: ignore[arg-type]
    left = [n for n in range(200) if not 50 <= n <= 120 and n != 7]
    loaded = theirs.load_table("db.t")
    assert ids(loaded.scan().to_arrow()) == left
    loaded.append(rows(300, 310))
    assert ids(made.refresh().scan().to_arrow()) == [*left, *range(300, 310)]


def test_stale_handles_of_both_commit_again(ours: icebench.Catalog, theirs: PyIcebergCatalog) -> None:
    made = ours.create_table("db.t", ROWS)
    stale = theirs.load_table("db.t")
    made.append(rows(0, 5))
    stale.append(rows(5, 10))
    made.append(rows(10, 15))
    assert ids(made.scan().to_arrow()) == list(range(15))
    assert ids(stale.refresh().scan().to_arrow()) == list(range(15))


def test_names(ours: icebench.Catalog, theirs: PyIcebergCatalog) -> None:
    ours.create_namespace("a.b", {"owner": "ann"})
    assert theirs.load_namespace_properties("a.b")["owner"] == "ann"
    theirs.create_namespace("c")
    assert ours.list_namespaces() == ["a", "c"]
    assert ours.namespace_properties("c") == {}
    theirs.create_table("c.t", ROWS)
    with pytest.raises(AlreadyExists):
        ours.create_table("c.t", ROWS)
    assert ours.list_tables("c") == ["c.t"]
    ours.rename_table("c.t", "a.b.u")
    assert theirs.list_tables("a.b") == [("a", "b", "u")]
    theirs.drop_table("a.b.u")
    with pytest.raises(NotFound):
        ours.load_table("a.b.u")
    ours.create_table("c.v", ROWS)
    ours.drop_table("c.v")
    with pytest.raises(NoSuchTableError):
        theirs.load_table("c.v")
    theirs.drop_namespace("c")
    assert not ours.namespace_exists("c")


def test_a_table_directory_is_read_by_itself(ours: icebench.Catalog, theirs: PyIcebergCatalog, tmp_path: Path) -> None:
    theirs.create_namespace("db")
    made = theirs.create_table("db.t", ROWS, location=f"file://{tmp_path}/wh/db/t")
    made.append(rows(0, 5))
    made.append(rows(5, 8))
    assert icebench.load_table(f"{tmp_path}/wh/db/t").scan().count() == 8
    older = icebench.load_table(made.metadata.metadata_log[-1].metadata_file)
    assert older.scan().count() == 5
    assert pa.types.is_int64(older.scan().to_arrow().schema.field("id").type)


def test_names_that_they_give_again(ours: icebench.Catalog, theirs: PyIcebergCatalog) -> None:
    """They put a table where its name says, whoever is there: ours goes elsewhere, and orphan removal sees theirs."""
    theirs.create_namespace("db")
    theirs.create_table("db.t", ROWS).append(rows(0, 5))
    theirs.rename_table("db.t", "db.old")
    made = ours.create_table("db.t", ROWS)
    made.append(rows(5, 9))
    old = ours.load_table("db.old")
    assert made.location.startswith(old.location.removeprefix("file://") + "-")
    for table in (made, old):
        table.maintenance.remove_orphan_files(older_than="2999-01-01T00:00:00Z", dry_run=False)
    assert ids(old.refresh().scan().to_arrow()) == [0, 1, 2, 3, 4]
    assert ids(made.refresh().scan().to_arrow()) == [5, 6, 7, 8]
    ours.rename_table("db.t", "db.u")
    theirs.drop_table("db.old")
    theirs.create_table("db.t", ROWS).append(rows(9, 12))
    with pytest.raises(Invalid, match="is the metadata of another table"):
        ours.load_table("db.t").maintenance.remove_orphan_files(older_than="2999-01-01T00:00:00Z", dry_run=False)
    assert ids(theirs.load_table("db.t").scan().to_arrow()) == [9, 10, 11]


def test_their_schemas_and_specs_are_refused_with_what_to_give(
    ours: icebench.Catalog, theirs: PyIcebergCatalog
) -> None:
    theirs.create_namespace("db")
    schema = theirs.create_table("db.theirs", ROWS).schema()
    with pytest.raises(
        Invalid, match=r"Arrow's \(PyIceberg's as_arrow gives one\), not <class 'pyiceberg.schema.Schema'>"
    ):
        ours.create_table("db.t", schema)
    by_day = PyIcebergSpec(PartitionField(3, 1000, IdentityTransform(), "day"))
    with pytest.raises(Invalid, match="a partition field is a column and a transform"):
        ours.create_table("db.t", ROWS, partition_spec=by_day)  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="a partition field is a column and a transform"):
        ours.create_table("db.t", ROWS, partition_spec=[("day", IdentityTransform())])  # type: ignore[list-item]
    made = ours.create_table("db.t", schema.as_arrow(), partition_spec=[("day", "identity")])
    with pytest.raises(Invalid, match="no transform, such as 'day'"):
        made.update_spec(lambda spec: spec.add_field("name", IdentityTransform()))  # type: ignore[arg-type]
