from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.engine.runtime import counters as names
from icebench.errors import FileNotFound, Invalid, NotFound, Unsupported

ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{i}" for i in ids]}, schema=ROWS)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[icebench.Catalog]:
    opened = icebench.load_catalog(f"{tmp_path}/wh")
    yield opened
    opened.close()


@pytest.fixture
def table(catalog: icebench.Catalog) -> icebench.Table:
    made = catalog.create_table("db.t", ROWS, properties={"owner": "ann"})
    made.append(rows(1, 2, 3))
    made.append(rows(4, 5))
    return made


def ids(read: pa.Table) -> list[int]:
    found: list[int] = read["id"].to_pylist()
    return sorted(found)


def test_what_it_says_of_itself(table: icebench.Table, tmp_path: Path) -> None:
    assert table.name == "db.t"
    assert table.location == f"{tmp_path}/wh/db/t"
    assert table.metadata_location == f"{tmp_path}/wh/db/t/metadata/v3.metadata.json"
    assert table.properties == {"owner": "ann"}
    assert [f.name for f in table.schema().fields] == ["id", "name"]
    assert table.spec.is_unpartitioned
    assert table.sort_order.is_unsorted
    assert [s.sequence_number for s in table.snapshots] == [1, 2]
    assert table.current_snapshot == table.snapshots[-1]
    assert set(table.refs) == {"main"}
    assert table.inspect.snapshots().num_rows == 2
    assert repr(table).startswith("Table(db.t, format 2, 5 rows, 2 data files, ")


class TestScan:
    def test_rows_columns_and_filters(self, table: icebench.Table) -> None:
        assert ids(table.scan().to_arrow()) == [1, 2, 3, 4, 5]
        some = table.scan("id > 2 and name <> 'n4'", columns=["id"])
        assert ids(some.to_arrow()) == [3, 5]
        assert some.to_arrow().column_names == ["id"]
        assert [f.name for f in some.schema.fields] == ["id"]
        assert some.count() == 2
        assert table.scan("id > 100").to_arrow().num_rows == 0

    def test_batches_are_a_stream(self, table: icebench.Table) -> None:
        reader = table.scan().to_batches(batch_rows=2)
        assert isinstance(reader, pa.RecordBatchReader)
        assert [batch.num_rows for batch in reader] == [2, 2, 1]

    def test_metadata_columns(self, table: icebench.Table) -> None:
        read = table.scan("id in (2, 5)", columns=["_pos", "id", "_file"]).to_arrow()
        assert read.column_names == ["id", "_pos", "_file"]
        assert read.sort_by("id")["_pos"].to_pylist() == [1, 1]
        paths = set(read["_file"].to_pylist())
        assert paths == set(table.scan().plan().files["file_path"].to_pylist())

    def test_deleted_rows_may_be_seen(self, table: icebench.Table) -> None:
        table.delete("id = 2", "merge-on-read")
        read = table.scan(columns=["id", "_deleted"]).to_arrow().sort_by("id")
        assert read["_deleted"].to_pylist() == [False, True, False, False, False]

    def test_the_past(self, table: icebench.Table) -> None:
        first, second = table.snapshots
        assert ids(table.scan(snapshot_id=first.snapshot_id).to_arrow()) == [1, 2, 3]
        assert table.scan(snapshot_id=first.snapshot_id).snapshot == first
        assert ids(table.scan(ref="main").to_arrow()) == [1, 2, 3, 4, 5]
        at = dt.datetime.fromtimestamp(second.timestamp_ms / 1000, dt.UTC)
        assert table.scan(as_of=at).count() == 5
        with pytest.raises(NotFound):
            table.scan(as_of=1)
        with pytest.raises(NotFound, match="nowhere"):
            table.scan(ref="nowhere")
        with pytest.raises(Invalid):
            table.scan(ref="main", snapshot_id=first.snapshot_id)

    def test_wrong_columns(self, table: icebench.Table) -> None:
        with pytest.raises(Invalid, match="did you mean 'name'"):
            table.scan(columns=["nam"]).plan()
        with pytest.raises(Invalid):
            table.scan("nosuch = 1").plan()

    def test_an_empty_table(self, catalog: icebench.Catalog) -> None:
        made = catalog.create_table("db.empty", ROWS)
        scan = made.scan("id = 1")
        assert scan.snapshot is None
        assert scan.plan().files.num_rows == 0
        assert scan.to_arrow().schema.names == ["id", "name"]
        assert scan.count() == 0

    def test_work_is_counted_exactly_and_repeats(self, table: icebench.Table) -> None:
        def count() -> dict[str, int]:
            counters = icebench.Counters()
            fresh = icebench.load_table(table.metadata_location)
            fresh.scan("id = 5", columns=["name"], counters=counters).to_arrow()
            return counters.as_dict()

        counted = count()
        assert count() == counted
        assert counted[names.MANIFESTS_IN_LIST] == 2
        assert counted[names.FILES_PLANNED] == 1
        assert counted[names.ROWS_RETURNED] == 1
        # A manifest list and two manifests; then ranges of one data file.
        assert counted[names.STORAGE_REQUESTS_READ] == 3
        assert counted[names.STORAGE_BYTES_READ] > 0

    def test_a_second_plan_reads_nothing(self, table: icebench.Table) -> None:
        first, second = icebench.Counters(), icebench.Counters()
        table.scan(counters=first).plan()
        table.scan(counters=second).plan()
        assert first[names.STORAGE_REQUESTS_READ] > 0
        assert second[names.STORAGE_REQUESTS_READ] == 0

    def test_a_count_trusts_no_summary(self, catalog: icebench.Catalog, table: icebench.Table) -> None:
        table.delete("id = 1", "merge-on-read", snapshot_properties={"total-records": "999"})
        assert table.scan().count() == 4

    def test_a_missing_file_is_named(self, table: icebench.Table) -> None:
        (path,) = table.scan("id = 5").plan().files["file_path"].to_pylist()
        table.store.delete(path)
        with pytest.raises(FileNotFound, match=r"needed by table db\.t, snapshot"):
            table.scan("id = 5").to_arrow()


class TestChanges:
    def test_data_may_be_a_stream(self, table: icebench.Table) -> None:
        reader = pa.RecordBatchReader.from_batches(ROWS, rows(6, 7).to_batches())
        snapshot = table.append(reader, snapshot_properties={"batch": "1"})
        assert snapshot.summary["batch"] == "1"
        assert snapshot == table.current_snapshot
        assert ids(table.scan().to_arrow()) == [1, 2, 3, 4, 5, 6, 7]

    def test_rows_that_do_not_fit_leave_nothing(self, table: icebench.Table) -> None:
        before = {info.location for info in table.store.list(table.location)}
        with pytest.raises(Invalid, match="nosuch"):
            table.append(pa.table({"nosuch": [1]}))
        assert {info.location for info in table.store.list(table.location)} == before
        assert len(table.snapshots) == 2

    def test_other_data_is_refused(self, table: icebench.Table) -> None:
        with pytest.raises(Invalid, match="pyarrow Table"):
            table.append([{"id": 1}])

    def test_another_handle_sees_it_after_a_refresh(self, catalog: icebench.Catalog, table: icebench.Table) -> None:
        other = catalog.load_table("db.t")
        table.append(rows(6))
        assert other.scan().count() == 5
        assert other.refresh() is other
        assert other.scan().count() == 6

    def test_scans_do_not_change_with_the_handle(self, table: icebench.Table) -> None:
        scan = table.scan()
        table.append(rows(6))
        assert scan.count() == 5
        assert table.scan().count() == 6

    def test_a_dropped_table(self, catalog: icebench.Catalog, table: icebench.Table) -> None:
        catalog.drop_table("db.t")
        with pytest.raises(NotFound):
            table.refresh()
        with pytest.raises(NotFound):
            table.append(rows(6))

    def test_a_table_made_again_is_taken_on(self, catalog: icebench.Catalog, table: icebench.Table) -> None:
        catalog.drop_table("db.t")
        catalog.create_table("db.t", ROWS)
        assert table.refresh().scan().count() == 0


def test_a_table_by_its_file_is_read_only(table: icebench.Table) -> None:
    opened = icebench.load_table(table.location)
    assert opened.name == "t"
    assert opened.refresh().scan().count() == 5
    with pytest.raises(Unsupported, match="read-only"):
        opened.append(rows(6))
    with pytest.raises(Unsupported, match="read-only"):
        opened.delete("id = 1", "merge-on-read")


def test_two_columns_of_one_full_name_are_refused(tmp_path: Path) -> None:
    """Names would find either: a filter, and a delete by it, the rows of the wrong one."""
    catalog = icebench.load_catalog(str(tmp_path))
    struct = pa.struct([("b", pa.int64())])
    for fields in ([("a.b", pa.int64()), ("a", struct)], [("a", pa.int64()), ("a", pa.string())]):
        with pytest.raises(Invalid, match="several columns would be called 'a"):
            catalog.create_table("db.t", pa.schema(fields))
    any_schema = {"write.spark.accept-any-schema": "true"}
    table = catalog.create_table("db.t", pa.schema([("a", struct), ("c", pa.int64())]), properties=any_schema)
    for change in (
        lambda: table.update_schema(lambda s: s.add_column("a.b", icebench.LONG)),
        lambda: table.update_schema(lambda s: s.rename_column("c", "a.b")),
        lambda: table.append(pa.table({"a.b": [1]}), merge_schema=True),
    ):
        with pytest.raises(Invalid, match=r"'a\.b'"):
            change()
    assert table.refresh().schema().name_of == {1: "a", 3: "a.b", 2: "c"}
