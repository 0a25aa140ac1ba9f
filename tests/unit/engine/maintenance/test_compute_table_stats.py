from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import icebench
from icebench.engine.codec.puffin.file import NewBlob, read_blob, read_footer, write_puffin
from icebench.engine.codec.puffin.theta import NDV, SEED, THETA_SKETCH, ThetaSketch, decode_theta, encode_theta
from icebench.engine.columnar.single_values import single_value_hashes
from icebench.engine.commit.changes.statistics import UpdateStatistics
from icebench.engine.maintenance.statistics_file import commit_blobs
from icebench.engine.read.reader import read_files
from icebench.engine.spec.statistics import BlobMetadata, StatisticsFile
from icebench.engine.spec.types import VARIANT
from icebench.errors import CorruptTable, Invalid, NotFound, Unsupported, ValidationFailed

MODULE = "icebench.engine.maintenance.compute_table_stats"
ROWS = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("t", pa.string()),
        pa.field("s", pa.struct([pa.field("x", pa.int32())])),
        pa.field("l", pa.list_(pa.int64())),
    ]
)


@pytest.fixture
def table(catalog: icebench.Catalog) -> icebench.Table:
    made = catalog.create_table("db.t", ROWS)
    append(made, range(10))
    return made


def append(table: icebench.Table, ids: range) -> None:
    rows = [{"id": i, "t": f"t{i % 3}" if i % 4 else None, "s": {"x": i % 2}, "l": [i]} for i in ids]
    table.append(pa.Table.from_pylist(rows, schema=ROWS))


def newest(table: icebench.Table) -> StatisticsFile:
    return table.refresh().metadata.statistics[-1]


def blobs(table: icebench.Table) -> dict[tuple[str, tuple[int, ...]], bytes]:
    data = table.store.read(newest(table).statistics_path)
    return {(blob.type, blob.fields): read_blob(data, blob) for blob in read_footer(data).blobs}


def test_what_data_sketches_makes_of_the_same_texts() -> None:
    """Of none, one and three texts, by datasketches 5.2.0, but for the seed's hash of none, and bytes that are not
    used."""
    three = "02030300001acc93030000000000803f1ca799a23e04a7013d1a6331878cdf0bdf25e4a8fdab2e28"
    one = "01030300003acc93df25e4a8fdab2e28"
    sketches = {
        (): "01030300001e0000",
        ("värt0",): one,
        ("värt0", "värtx1", "värtxx2"): three,
    }
    for texts, expected in sketches.items():
        sketch = ThetaSketch().with_values(single_value_hashes(pa.array(texts, pa.string()), SEED))
        assert encode_theta(sketch).hex() == expected


def test_columns_on_the_top_level_are_counted_by_default(table: icebench.Table) -> None:
    done = table.maintenance.compute_table_stats()
    assert (done.distinct_values, done.files, done.files_read) == ({"id": 10, "t": 3}, 1, 1)
    file = newest(table)
    assert (file.snapshot_id, file.statistics_path) == (done.snapshot_id, done.statistics_path)
    assert [(blob.type, blob.fields, blob.properties) for blob in file.blob_metadata] == [
        (THETA_SKETCH, (1,), {NDV: "10"}),
        (THETA_SKETCH, (2,), {NDV: "3"}),
    ]
    snapshot = table.current_snapshot
    assert snapshot is not None
    sources = {(blob.snapshot_id, blob.sequence_number) for blob in file.blob_metadata}
    assert sources == {(snapshot.snapshot_id, snapshot.sequence_number)}
    assert decode_theta(blobs(table)[THETA_SKETCH, (1,)]).estimate == 10


def test_columns_in_structs_are_counted_if_they_are_named(table: icebench.Table) -> None:
    done = table.maintenance.compute_table_stats(["s.x", "id", "s.x"])
    assert done.distinct_values == {"s.x": 2, "id": 10}


def test_former_snapshots_are_counted_with_their_columns(table: icebench.Table) -> None:
    first = table.metadata.current_snapshot_id
    table.update_schema(lambda schema: schema.rename_column("id", "number").add_column("new", icebench.INT))
    append_more = pa.table({"number": pa.array([77], pa.int64())})
    table.append(append_more)
    done = table.maintenance.compute_table_stats(snapshot_id=first)
    assert (done.distinct_values, done.snapshot_id) == ({"id": 10, "t": 3}, first)
    assert table.maintenance.compute_table_stats().distinct_values == {"number": 11, "t": 3, "new": 0}


def test_only_new_files_are_read(table: icebench.Table) -> None:
    table.maintenance.compute_table_stats()
    append(table, range(5, 20))
    append(table, range(30, 40))
    done = table.maintenance.compute_table_stats(["id"])
    assert (done.distinct_values, done.files, done.files_read) == ({"id": 30}, 3, 2)
    assert table.maintenance.compute_table_stats(["id"]).files_read == 0
    # Of this column the newest sketch is the first snapshot's.
    done = table.maintenance.compute_table_stats(["t", "id"])
    assert (done.distinct_values, done.files_read) == ({"t": 3, "id": 30}, 2)


def with_deletes(table: icebench.Table) -> None:
    table.delete("id < 3", "merge-on-read")


def with_fewer_files(table: icebench.Table) -> None:
    table.delete("id >= 50", "copy-on-write")


def promoted(table: icebench.Table) -> None:
    table.update_schema(lambda schema: schema.promote_column("s.x", icebench.LONG))


def damaged(table: icebench.Table) -> None:
    path = newest(table).statistics_path
    data = table.store.read(path)
    table.store.delete(path)
    table.store.write(path, data[:20] + bytes(20) + data[40:])


def deleted(table: icebench.Table) -> None:
    table.store.delete(newest(table).statistics_path)


def of_another_writer(table: icebench.Table) -> None:
    old = newest(table)
    encoded = write_puffin(
        [NewBlob(type=kind, fields=fields, data=data) for (kind, fields), data in blobs(table).items()],
        properties={"created-by": "another"},
    )
    table.store.delete(old.statistics_path)
    table.store.write(old.statistics_path, encoded.data)


def of_another_writer_beside_ours(table: icebench.Table) -> None:
    of_another_writer(table)
    table.maintenance.build_index("id")
    table.maintenance.compute_table_stats(["t"])


@pytest.mark.parametrize(
    "change",
    [
        with_deletes,
        with_fewer_files,
        promoted,
        damaged,
        deleted,
        of_another_writer,
        of_another_writer_beside_ours,
    ],
)
def test_all_files_are_read_where_former_sketches_cannot_be_used(
    table: icebench.Table, change: Callable[[icebench.Table], None]
) -> None:
    append(table, range(50, 60))
    table.maintenance.compute_table_stats(["id", "s.x"])
    change(table)
    append(table, range(100, 110))
    done = table.maintenance.compute_table_stats(["id", "s.x"])
    rows = table.scan().to_arrow()
    assert done.files_read == done.files
    assert done.distinct_values == {"id": len(set(rows["id"].to_pylist())), "s.x": 2}


def test_other_blobs_of_the_snapshot_stay(table: icebench.Table) -> None:
    table.maintenance.build_index("id")
    table.maintenance.compute_table_stats(["t"])
    table.maintenance.compute_table_stats(["id"])
    table.maintenance.compute_table_stats(["t"])
    assert sorted(blobs(table)) == [
        (THETA_SKETCH, (1,)),
        (THETA_SKETCH, (2,)),
        ("icebench-file-index-v1", (1,)),
    ]
    assert table.scan("id = 77").plan().counters["entries_skipped_by_index"] == 0  # metrics exclude the file
    assert len(table.metadata.statistics) == 1


def test_blobs_that_are_set_while_values_are_read_stay(table: icebench.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def and_index(*args: Any, **options: Any) -> Iterator[Any]:
        yield from read_files(*args, **options)
        table.maintenance.build_index("id")

    monkeypatch.setattr(f"{MODULE}.read_files", and_index)
    table.maintenance.compute_table_stats(["id"])
    assert len(blobs(table)) == 2


def test_a_file_that_is_set_at_the_same_moment_is_a_conflict(
    table: icebench.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after_another(*args: Any) -> Any:
        monkeypatch.undo()
        table.maintenance.build_index("id")
        return commit_blobs(*args)

    monkeypatch.setattr(f"{MODULE}.commit_blobs", after_another)
    with pytest.raises(ValidationFailed, match="run the operation again"):
        table.maintenance.compute_table_stats(["id"])
    assert [kind for kind, _ in blobs(table)] == ["icebench-file-index-v1"]


def test_what_cannot_be_counted_is_refused(table: icebench.Table, catalog: icebench.Catalog) -> None:
    compute = table.maintenance.compute_table_stats
    with pytest.raises(Invalid, match="inside a list or map"):
        compute(["l.element"])
    with pytest.raises(Unsupported, match="'l' of type list"):
        compute(["l"])
    with pytest.raises(Invalid, match="no column"):
        compute(["nothing"])
    with pytest.raises(NotFound):
        compute(snapshot_id=1)
    with pytest.raises(Invalid, match="without a snapshot"):
        catalog.create_table("db.e", ROWS).maintenance.compute_table_stats()
    assert not table.refresh().metadata.statistics
    three = catalog.create_table("db.v", pa.schema([("l", pa.list_(pa.int64()))]), properties={"format-version": "3"})
    three.update_schema(lambda schema: schema.add_column("v", VARIANT))
    three.append(pa.table({"l": pa.array([[1]], pa.list_(pa.int64()))}))
    with pytest.raises(Invalid, match="there is no column"):
        three.maintenance.compute_table_stats()
    with pytest.raises(Unsupported, match="'v' of type variant"):
        three.maintenance.compute_table_stats(["v"])


WRONG_BELOW_9 = ([3, 9], [0, 3], [3, 3])


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\x01\x03", CorruptTable),
        (encode_theta(ThetaSketch())[:1] + b"\x04" + bytes(6), Unsupported),
        (bytes.fromhex("01030300003acc94df25e4a8fdab2e28"), Unsupported),
        (bytes.fromhex("01030300003acc93"), CorruptTable),
        *((encode_theta(ThetaSketch(np.array(hashes, np.uint64), 9)), CorruptTable) for hashes in WRONG_BELOW_9),
    ],
)
def test_damaged_sketches_are_reported(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        decode_theta(data)


def test_the_profile_has_the_newest_sketch_of_each_column(table: icebench.Table) -> None:
    table.maintenance.compute_table_stats()
    first = table.metadata.current_snapshot_id
    append(table, range(10, 20))
    table.maintenance.compute_table_stats(["id"])
    second = table.metadata.current_snapshot_id
    assert estimates(table) == {"id": 20, "t": 3}
    append(table, range(20, 25))
    table.maintenance.rewrite_data_files(rewrite_all=True)
    table.delete("id = 24", "merge-on-read")
    found = table.maintenance.profile()
    assert estimates(table) == {"id": 20, "t": 3}
    assert found.table_statistics is not None
    assert (found.table_statistics.snapshot_id, found.table_statistics.changed_share) == (second, 6 / 20)
    assert estimates(table, first) == {"id": 10, "t": 3}
    before = table.maintenance.profile(snapshot_id=first).table_statistics
    assert before is not None
    assert before.changed_share == 0


def estimates(table: icebench.Table, snapshot_id: int | None = None) -> dict[str, int]:
    columns = table.maintenance.profile(snapshot_id=snapshot_id).columns
    return {column.name: column.distinct_values for column in columns if column.distinct_values is not None}


@pytest.mark.parametrize(("properties", "fields"), [({}, (1,)), ({NDV: "-1"}, (1,)), ({NDV: "7"}, (1, 2))])
def test_sketches_that_give_no_number_of_a_column_are_passed_over(
    table: icebench.Table, properties: dict[str, str], fields: tuple[int, ...]
) -> None:
    snapshot = table.current_snapshot
    assert snapshot is not None
    own = {"snapshot_id": snapshot.snapshot_id, "sequence_number": 1}
    blob = BlobMetadata(type=THETA_SKETCH, fields=fields, properties=properties, **own)
    file = StatisticsFile(
        snapshot_id=snapshot.snapshot_id,
        statistics_path="/nowhere",
        file_size_in_bytes=1,
        file_footer_size_in_bytes=1,
        blob_metadata=(blob,),
    )
    table.maintenance.table.commit([UpdateStatistics(table=[file])])
    table.refresh()
    assert estimates(table) == {}
