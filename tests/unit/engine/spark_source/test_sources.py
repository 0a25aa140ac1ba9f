"""The data source without Spark's machine: what its readers and writers do when Spark calls them."""

from __future__ import annotations

import datetime as dt
import pickle
import re
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.sql import datasource as sd
from pyspark.sql import types as st

import icebench
from icebench.engine.codec.manifests.manifest_writer import encode_manifest
from icebench.engine.columnar.schemas import from_arrow_schema
from icebench.engine.operations.row_source import WrittenRows
from icebench.engine.spark.arrow_batches import spark_batch
from icebench.engine.spark_source.batch_writer import TaskFiles
from icebench.engine.spark_source.datasource import TableSource
from icebench.engine.spark_source.filters import pushed
from icebench.engine.spark_source.options import read_options, stream_options, write_options
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry
from icebench.engine.table import Table
from icebench.engine.write.data_files import write_data_files
from icebench.errors import Invalid, Unsupported, ValidationFailed

FIELDS = pa.schema(
    [
        ("id", pa.int64()),
        ("x", pa.float64()),
        ("name", pa.string()),
        ("d", pa.decimal128(7, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("u", pa.uuid()),
    ]
)


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {
            "id": ids,
            "x": [float("nan") if n % 3 == 0 else n / 2 for n in ids],
            "name": [None if n % 4 == 0 else f"n{n}" for n in ids],
            "d": [Decimal(n) for n in ids],
            "at": [dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=n) for n in ids],
            "u": [bytes([n] * 16) for n in ids],
        },
        schema=FIELDS,
    )


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    made = catalog.create_table("db.t", FIELDS)
    for start in range(0, 30, 10):
        made.append(rows(*range(start, start + 10)))
    return made


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    return {"catalog": f"sqlite:///{tmp_path}/catalog.db", "warehouse": str(tmp_path), "path": "db.t"}


def read(reader: Any, partitions: list[Any]) -> list[int]:
    # An executor gets copies.
    copy = pickle.loads(pickle.dumps(reader))
    found = [row for p in pickle.loads(pickle.dumps(partitions)) for b in copy.read(p) for row in b.to_pylist()]
    return sorted(row["id"] for row in found)


@pytest.mark.parametrize(
    ("filters", "text"),
    [
        ([sd.EqualTo(("id",), 5)], "id = 5"),
        ([sd.GreaterThan(("x",), 3.0), sd.LessThanOrEqual(("id",), 20)], "x > 3 and id <= 20"),
        ([sd.Not(sd.In(("name",), ("n1", "n2")))], "not (name in ('n1', 'n2'))"),
        ([sd.IsNull(("name",))], "name is null"),
        ([sd.Not(sd.EqualNullSafe(("name",), "n1"))], "name != 'n1' or name is null"),
        ([sd.EqualNullSafe(("name",), None)], "name is null"),
        ([sd.StringStartsWith(("name",), "n1")], "name like 'n1%'"),
        ([sd.GreaterThanOrEqual(("d",), Decimal("7.00")), sd.LessThan(("d",), Decimal("9.00"))], "d >= 7 and d < 9"),
        ([sd.GreaterThan(("at",), dt.datetime(2020, 1, 20, tzinfo=dt.UTC))], "at > '2020-01-20T00:00:00+00:00'"),
    ],
)
def test_pushed_filters_mean_what_they_say_and_prune(
    table: Table, place: dict[str, str], filters: list[sd.Filter], text: str
) -> None:
    source = TableSource({**place, "pushdown": "true", "split-size": "1"})
    reader = source.reader(source.schema())
    assert list(reader.pushFilters(filters)) == []
    partitions = list(reader.partitions())
    scan = table.scan(text)
    assert read(reader, partitions) == sorted(scan.to_arrow().column("id").to_pylist())
    assert len(partitions) == max(scan.plan().files.num_rows, 1)


def test_what_can_not_be_pushed_stays_with_spark(table: Table) -> None:
    stays: list[sd.Filter] = [
        sd.StringEndsWith(("name",), "1"),
        sd.StringContains(("name",), "1"),
        sd.EqualTo(("u",), "01010101-0101-0101-0101-010101010101"),
        sd.In(("id",), (1, None)),
        sd.EqualTo(("id",), [1]),
        sd.IsNull(("nosuch",)),
        sd.Not(sd.StringContains(("name",), "1")),
    ]
    predicate, left = pushed([*stays, sd.EqualTo(("id",), 1)], table.schema())
    assert left == stays
    assert str(predicate) == "id = 1"


def test_delete_files_come_with_the_tasks_that_need_them(table: Table, place: dict[str, str]) -> None:
    table.delete("id in (3, 13)", "merge-on-read")
    source = TableSource({**place, "split-size": "1"})
    reader = source.reader(source.schema())
    partitions: list[Any] = list(reader.partitions())
    assert len(partitions) == 3
    assert sorted(len(file.deletes) for p in partitions for file in p.files) == [0, 1, 1]
    assert read(reader, partitions) == [n for n in range(30) if n not in (3, 13)]


def test_a_first_batch_begins_where_it_began_though_the_table_has_moved_on(table: Table, place: dict[str, str]) -> None:
    source = TableSource({**place, "starting-position": "latest"})
    schema = source.schema()
    reader = source.streamReader(schema)
    table.append(rows(40))
    begun = reader.initialOffset()
    assert reader.latestOffset()["snapshot-id"] == begun["snapshot-id"]
    table.append(rows(41))
    end = reader.latestOffset()
    # Spark died after it had noted the batch, so another reader is asked for it.
    table.append(rows(42))
    other = source.streamReader(schema)
    assert read(other, list(other.partitions(end, end))) == []
    assert read(other, list(other.partitions(other.initialOffset(), end))) == [41]
    following = other.latestOffset()
    assert read(other, list(other.partitions(end, following))) == [42]
    assert other.latestOffset() == following


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_stream_does_not_go_on_with_another_table_of_the_name(place: dict[str, str], is_restarted: bool) -> None:
    catalog = icebench.load_catalog(place["catalog"], warehouse=place["warehouse"])
    catalog.create_table("db.t", FIELDS)  # without a snapshot, of which nothing would be missing
    source = TableSource(place)
    reader = source.streamReader(source.schema())
    begun, end = reader.initialOffset(), reader.latestOffset()
    assert list(reader.partitions(begun, end)) == []
    catalog.drop_table("db.t")
    catalog.create_table("db.t", FIELDS).append(rows(1))
    if is_restarted:
        reader = source.streamReader(source.schema())
        assert list(reader.partitions(end, end)) == []
    with pytest.raises(ValidationFailed, match=r"db\.t was dropped or renamed"):
        reader.latestOffset()
    del end["table-uuid"]  # of a checkpoint that was written before
    reader = source.streamReader(source.schema())
    assert list(reader.partitions(end, end)) == []
    assert read(reader, list(reader.partitions(end, reader.latestOffset()))) == [1]


def test_a_schema_that_changes_under_a_stream_is_reported(table: Table, place: dict[str, str]) -> None:
    source = TableSource({**place, "columns": "id,name"})
    reader = source.streamReader(source.schema())
    start, end = reader.initialOffset(), reader.latestOffset()
    table.update_schema(lambda schema: schema.add_column("more", icebench.LONG))
    assert len(read(reader, list(reader.partitions(start, end)))) == 30
    table.update_schema(lambda schema: schema.rename_column("name", "label"))
    with pytest.raises(Invalid, match="name"):
        reader.partitions(start, end)


@pytest.mark.parametrize("limits", [{}, {"streaming-max-files-per-micro-batch": "1"}])
@pytest.mark.parametrize("change", ["copy-on-write", "merge-on-read", "overwrite"])
def test_a_stream_begins_with_the_oldest_state_whatever_its_snapshot_did(
    table: Table, place: dict[str, str], change: str, limits: dict[str, str]
) -> None:
    if change == "overwrite":
        table.overwrite(rows(3, 13, 50), "id in (3, 13)")
    else:
        table.delete("id in (3, 13)", change)  # type: ignore[arg-type]
    state = sorted(table.scan().to_arrow().column("id").to_pylist())
    table.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z", retain_last=1)
    table.append(rows(40))
    found = batches(TableSource({**place, **limits}))
    assert (len(found) == 1) == (not limits)
    assert sorted(id for batch in found for id in batch) == sorted([*state, 40])


def batches(source: TableSource) -> list[list[int]]:
    """What a new stream reads until there is nothing new."""
    reader = source.streamReader(source.schema())
    offset, found = reader.initialOffset(), []
    while (end := reader.latestOffset()) != offset:
        found.append(read(reader, list(reader.partitions(offset, end))))
        offset = end
    return found


def written(table: Table, *ids: int) -> list[icebench.DataFile]:
    return write_data_files(rows(*ids), metadata=table.metadata, store=table.store)


def test_a_complete_result_replaces_the_rows_once(table: Table, place: dict[str, str]) -> None:
    schema = st.StructType([st.StructField("id", st.LongType())])
    writer = TableSource(place).streamWriter(schema, overwrite=True)
    for batch, ids in enumerate(((50,), (50, 51))):
        (file,) = written(table, *ids)
        message = TaskFiles(manifest_of(table, file), ("query", batch))
        writer.commit([message], batch)
        assert sorted(table.refresh().scan().to_arrow().column("id").to_pylist()) == list(ids)
    before = table.current_snapshot
    (file,) = written(table, 60)
    writer.commit([TaskFiles(manifest_of(table, file), ("query", 1))], 1)
    assert table.refresh().current_snapshot == before
    assert not Path(file.file_path).exists()
    # The same where the batch's snapshot expired.
    table.append(rows(61))
    table.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z", retain_last=1)
    before = table.current_snapshot
    (file,) = written(table, 62)
    writer.commit([TaskFiles(manifest_of(table, file), ("query", 1))], 1)
    assert table.refresh().current_snapshot == before


@pytest.mark.parametrize("text", ["not-a-uuid", "", "0" * 31, "0x" + "1" * 30, "1_" * 15 + "11"])
def test_a_text_that_is_no_uuid_is_reported(table: Table, place: dict[str, str], text: str) -> None:
    writer = TableSource(place).writer(st.StructType([]), overwrite=False)
    batch = pa.record_batch({"id": [1, 2], "u": [None, text]})
    with pytest.raises(Invalid, match=f"column 'u': {re.escape(repr(text))} is not a uuid"):
        writer.write(iter([batch]))


def manifest_of(table: Table, file: icebench.DataFile) -> bytes:
    entry = ManifestEntry(status=EntryStatus.ADDED, snapshot_id=0, data_file=file)
    return encode_manifest(
        [entry], schema=table.schema(), spec=table.spec, format_version=3, content=ManifestContent.DATA, snapshot_id=0
    ).data


def test_an_abort_after_a_commit_of_unknown_outcome_removes_nothing(table: Table, place: dict[str, str]) -> None:
    (file,) = written(table, 70)
    message = TaskFiles(manifest_of(table, file), ("query", 0))
    stream = TableSource(place).streamWriter(st.StructType([]), overwrite=False)
    stream.abort([message], 0)
    TableSource(place).writer(st.StructType([]), overwrite=False).abort([message])
    assert Path(file.file_path).exists()
    stream.abort([message, None], 0)
    assert not Path(file.file_path).exists()


def test_a_commit_that_certainly_failed_removes_its_files(table: Table, place: dict[str, str]) -> None:
    table.create_tag("named", snapshot_id=table.snapshots[0].snapshot_id)
    source = TableSource({**place, "branch": "named"})
    for overwrite in (False, True):
        (file,) = written(table, 71)
        message = TaskFiles(manifest_of(table, file), ("query", 0))
        with pytest.raises(Invalid, match="named"):
            source.writer(st.StructType([]), overwrite=overwrite).commit([message])
        assert not Path(file.file_path).exists()
        (file,) = written(table, 72)
        with pytest.raises(Invalid, match="named"):
            source.streamWriter(st.StructType([]), overwrite=overwrite).commit(
                [TaskFiles(manifest_of(table, file), ("query", 0))], 0
            )
        assert not Path(file.file_path).exists()


@pytest.mark.parametrize("kind", ["append", "overwrite", "dynamic", "merge", "stream", "complete"])
def test_files_are_not_committed_to_another_table_that_has_the_name_now(
    table: Table, place: dict[str, str], kind: str
) -> None:
    table.set_properties({"write.spark.accept-any-schema": "true"})
    catalog = icebench.load_catalog(place["catalog"], warehouse=place["warehouse"])
    options = {"dynamic": {"overwrite-mode": "dynamic"}, "merge": {"merge-schema": "true"}}.get(kind, {})
    source = TableSource({**place, **options})
    schema = st.StructType([st.StructField("id", st.LongType())])
    is_stream, overwrite = kind in ("stream", "complete"), kind in ("overwrite", "dynamic", "complete")
    writer: Any = (source.streamWriter if is_stream else source.writer)(schema, overwrite=overwrite)
    (file,) = written(table, 71)
    message = TaskFiles(manifest_of(table, file), ("query", 0))
    catalog.drop_table("db.t")
    other = catalog.create_table("db.t", FIELDS, properties={"write.spark.accept-any-schema": "true"})
    other.append(rows(100))
    with pytest.raises(ValidationFailed, match="was dropped or renamed meanwhile"):
        writer.commit([message], *([0] if is_stream else []))
    assert not Path(file.file_path).exists()
    assert other.refresh().scan().to_arrow().column("id").to_pylist() == [100]
    assert len(other.snapshots) == 1


def test_a_batch_is_appended_once(table: Table) -> None:
    assert table.append_batch(rows(80), stream_id="s", batch_id=4) is not None
    (file,) = written(table, 81)
    assert table.append_batch(WrittenRows((file,)), stream_id="s", batch_id=4) is None
    assert table.append_batch(rows(82), stream_id="s", batch_id=3) is None
    assert table.append_batch(rows(), stream_id="s", batch_id=5) is None
    assert table.append_batch(rows(83), stream_id="other", batch_id=0) is not None
    assert table.scan("id >= 80").count() == 2


@pytest.mark.parametrize("batch_id", [-1, 10**19, 10**5_000], ids=["negative", "large", "vast"])
def test_a_batch_that_would_not_be_found_again_is_refused(table: Table, batch_id: int) -> None:
    before = sorted(info.location for info in table.store.list(table.location))
    with pytest.raises(Invalid, match="batch id"):
        table.append_batch(rows(80), stream_id="s", batch_id=batch_id)
    stream = table.keyed_stream(["id"], stream_id="s")
    stream.delete(pa.table({"id": pa.array([1], pa.int64())}))
    with pytest.raises(Invalid, match="batch id"):
        stream.commit(batch_id)
    assert sorted(info.location for info in table.store.list(table.location)) == before


@pytest.mark.parametrize(
    ("parse", "options", "message"),
    [
        (read_options, {"snapshotid": "1"}, "no option 'snapshotid'"),
        (read_options, {"snapshot-id": "x"}, "no whole number"),
        (read_options, {"snapshot-id": "1", "tag": "t"}, "different states"),
        (read_options, {"start-snapshot-id": "1", "branch": "b"}, "no state of its own"),
        (read_options, {"end-snapshot-id": "1"}, "give start-snapshot-id"),
        (read_options, {"table": "db.t"}, "give the table once"),
        (read_options, {"columns": '["a"'}, "no JSON list"),
        (stream_options, {"snapshot-id": "1"}, "no option"),
        (stream_options, {"streaming-max-files-per-micro-batch": "0"}, "not positive"),
        (stream_options, {"stream-from-timestamp": "1", "starting-position": "latest"}, "give one"),
        (write_options, {"overwrite-mode": "some"}, "none of static, dynamic"),
        (write_options, {"overwrite-mode": "dynamic", "overwrite-filter": "a = 1"}, "different things"),
    ],
)
def test_wrong_options_are_reported(parse: Any, options: dict[str, str], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        parse({"path": "db.t", "catalog": "sqlite:///c.db", **options})


def test_options_of_a_stream_that_can_not_be_followed(table: Table, place: dict[str, str]) -> None:
    for options in ({"merge-schema": "true"}, {"overwrite-mode": "dynamic"}, {"overwrite-filter": "id = 1"}):
        table.set_properties({"write.spark.accept-any-schema": "true"})
        with pytest.raises(Unsupported):
            TableSource({**place, **options}).streamWriter(st.StructType([]), overwrite=True)


def test_names_with_commas_and_properties() -> None:
    options = read_options({"path": "/t", "Columns": '["a,b", "c"]', "catalog.s3.region": "x"})
    assert options.columns == ("a,b", "c")
    assert options.place.properties == {"s3.region": "x"}


def test_a_changelog_says_what_happened(table: Table, place: dict[str, str]) -> None:
    first = table.snapshots[0].snapshot_id
    table.delete("id in (3, 13)", "merge-on-read")
    expected = table.changelog_scan(first, columns=["id"]).to_arrow().to_pylist()
    source = TableSource({**place, "changelog": "true", "start-snapshot-id": str(first), "columns": "id"})
    reader = source.reader(source.schema())
    table.append(rows(90))  # after the query was planned
    found = [
        row for p in reader.partitions() for b in pickle.loads(pickle.dumps(reader)).read(p) for row in b.to_pylist()
    ]
    assert found == expected
    assert {row["_change_type"] for row in found} == {"INSERT", "DELETE"}


def test_a_stream_of_changes_begins_with_the_oldest_state(table: Table, place: dict[str, str]) -> None:
    """Whoever replays the changes has the rows of the table."""
    table.delete("id in (3, 13)", "merge-on-read")
    table.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z", retain_last=1)
    (oldest,) = table.snapshots
    options = {**place, "streaming-changelog": "true"}
    source = TableSource(options)
    reader = source.streamReader(source.schema())
    assert reader.latestOffset()["snapshot-id"] == oldest.snapshot_id
    table.append(rows(40, 41))
    table.update("id = 5", {"name": "new"})
    table.update_schema(lambda schema: schema.rename_column("name", "label"))
    source = TableSource(options)
    reader = source.streamReader(source.schema())
    offset, live = reader.initialOffset(), Counter[str]()
    for batch in range(2):
        end = reader.latestOffset()
        parts = pickle.loads(pickle.dumps(reader.partitions(offset, end)))
        batches = [b for part in parts for b in reader.read(part) if isinstance(b, pa.RecordBatch)]
        for row in [row for b in batches for row in b.to_pylist()]:
            kind, ordinal, snapshot_id = (row.pop(name) for name in list(row)[-3:])
            live[str(row)] += {"INSERT": 1, "DELETE": -1}[kind]
            assert batch or (kind, ordinal, snapshot_id) == ("INSERT", 0, oldest.snapshot_id)
        offset = end
    assert reader.latestOffset() == offset
    expected = [spark_batch(b, table.schema()).to_pylist() for b in table.scan().to_arrow().to_batches()]
    assert +live == Counter(str(row) for batch in expected for row in batch)
    assert -live == Counter()


def test_the_oldest_state_is_read_with_the_columns_of_the_table(table: Table, place: dict[str, str]) -> None:
    table.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z", retain_last=1)
    table.update_schema(lambda schema: schema.rename_column("name", "label").add_column("more", icebench.LONG))
    assert batches(TableSource(place)) == [list(range(30))]


def test_a_changelog_of_an_empty_table_stays_empty(place: dict[str, str], table: Table) -> None:
    catalog = icebench.load_catalog(place["catalog"], warehouse=place["warehouse"])
    empty = catalog.create_table("db.empty", FIELDS)
    source = TableSource({**place, "path": "db.empty", "changelog": "true", "columns": "id"})
    reader = source.reader(source.schema())
    empty.append(rows(1))
    assert read(reader, list(reader.partitions())) == []
    again = source.reader(source.schema())
    assert read(again, list(again.partitions())) == [1]


def test_a_stream_of_changes_goes_on_where_it_stopped(table: Table, place: dict[str, str]) -> None:
    first = table.snapshots[0].snapshot_id
    source = TableSource({**place, "streaming-changelog": "true", "columns": "id"})
    schema = source.schema()
    assert schema.names == ["id", "_change_type", "_change_ordinal", "_commit_snapshot_id"]
    reader = source.streamReader(schema)
    start, middle = reader.initialOffset(), reader.latestOffset()
    assert read(reader, list(reader.partitions(start, middle))) == list(range(30))
    table.delete("id = 3", "copy-on-write")
    other = source.streamReader(schema)
    assert read(other, list(other.partitions(middle, middle))) == []
    assert read(other, list(other.partitions(middle, other.latestOffset()))) == [3]
    # Restarted where all that it has read was expired.
    table.append(rows(90))
    table.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z", retain_last=2)
    done = other.latestOffset()
    for options in ({}, {"stream-from-snapshot-id": str(first)}):
        source = TableSource({**place, "streaming-changelog": "true", "columns": "id", **options})
        again = source.streamReader(source.schema())
        assert read(again, list(again.partitions(done, done))) == []
        table.append(rows(91))
        assert read(again, list(again.partitions(done, again.latestOffset()))) == [91]
        done = again.latestOffset()
    with pytest.raises(Invalid, match="a changelog has whole snapshots"):
        stream_options({**place, "streaming-changelog": "true", "split-size": "1"})


def test_uuids_are_texts_and_fixed_values_binary_at_every_depth():
    one = UUID(int=7)
    inner = pa.struct([("u", pa.uuid()), ("f", pa.binary(2)), ("n", pa.int64())])
    rows: dict[str, list[Any]] = {
        "u": [one.bytes, None],
        "l": [[{"u": one.bytes, "f": b"ab", "n": 1}, None], None],
        "m": [[("k", one.bytes), ("l", None)], []],
        "d": [[b"cd"], [None]],
    }
    types = {"u": pa.uuid(), "l": pa.list_(inner), "m": pa.map_(pa.string(), pa.uuid()), "d": pa.list_(pa.binary(2))}
    arrays = [pa.array(rows["u"], pa.binary(16)).cast(pa.uuid())] + [nested(rows[n], types[n]) for n in ("l", "m", "d")]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(rows))
    shown = spark_batch(batch, from_arrow_schema(batch.schema))
    text = str(one)
    assert shown.to_pydict() == {
        "u": [text, None],
        "l": [[{"u": text, "f": b"ab", "n": 1}, None], None],
        "m": [[("k", text), ("l", None)], []],
        "d": [[b"cd"], [None]],
    }


def nested(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Values of a nested type with uuids in it, which Arrow does not make of Python values."""
    return pa.array(values, stored_type(type_)).cast(type_)


def stored_type(type_: pa.DataType) -> pa.DataType:
    if isinstance(type_, pa.UuidType):
        return pa.binary(16)
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(stored_type(field.type)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, stored_type(type_.item_type))
    return pa.list_(stored_type(type_.value_type)) if pa.types.is_list(type_) else type_


SECRET = "zq8f3a"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("catalog", f"postgresql://u:{SECRET}@host/db"),
        ("catalog", f"https://host/x?access_token={SECRET}"),
        ("warehouse", f"hdfs://u:{SECRET}@host/x"),
        ("path", f"s3://u:{SECRET}@bucket/x"),
        ("catalog.uri", f"postgresql://u:{SECRET}@host/db"),
        ("catalog.header.X-Key", SECRET),
        ("catalog.adls.account-key", SECRET),
        ("catalog.adls.auth.shared-key.account.key", SECRET),
        ("catalog.s3.proxy-uri", f"http://u:{SECRET}@host:1"),
        ("catalog.oauth2-server-uri", f"https://u:{SECRET}@host/x"),
    ],
)
def test_a_secret_that_spark_would_show_is_refused(name: str, value: str) -> None:
    for parse in (read_options, stream_options, write_options):
        with pytest.raises(Invalid, match="which Spark shows") as caught:
            parse({"catalog": "lake", "path": "db.t", name: value})
        assert SECRET not in repr(caught.value)
    own = name.removeprefix("catalog.").lower()
    if own != name.lower():
        given = {"catalog": "lake", "path": "db.t", f"catalog-secret.{own}": value}
        assert f"catalog-secret.{own}" in str(caught.value)
        assert read_options(given).place.properties == {own: value}


def test_a_property_is_given_once() -> None:
    given = {"catalog.s3.secret-access-key": "a", "catalog-secret.s3.secret-access-key": "b"}
    with pytest.raises(Invalid, match="same property"):
        read_options({"catalog": "lake", "path": "db.t", **given})


def test_options_that_are_no_secrets_pass() -> None:
    given = {"catalog": "https://host:8443/x@y", "path": "db.t", "filter": f"url = 'http://u:{SECRET}@h'"}
    given |= {"catalog.token-exchange-enabled": "true", "catalog.s3.endpoint": "http://host:9000"}
    assert read_options(given).filter == given["filter"]


def test_a_configured_catalog_goes_to_executors_and_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, table: Table, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__ADLS__ACCOUNT_KEY", SECRET)
    options = read_options({"catalog": "Lake", "catalog-name": "default", "path": "db.t", "token": SECRET})
    assert SECRET not in repr(options)
    assert "lake" not in repr(options).lower()
    reader = pickle.loads(pickle.dumps(replace(options.place, token=None)))
    monkeypatch.delenv("PYICEBERG_CATALOG__LAKE__URI")
    monkeypatch.delenv("PYICEBERG_CATALOG__LAKE__ADLS__ACCOUNT_KEY")
    assert reader.load().scan().count() == 30
