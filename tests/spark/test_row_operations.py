"""Deletes, updates and upserts on executors: the rows, their lineage and the summary are those of the local way."""

from __future__ import annotations

import datetime as dt
import math
import os
import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icebench
from icebench.engine.operations import executor_changes
from icebench.engine.operations.row_changes import Mode
from icebench.engine.runtime.counters import FILES_WRITTEN, Counters
from icebench.engine.spark import keyed_frame
from icebench.engine.spec.snapshots import Snapshot
from icebench.errors import Invalid, Unsupported, ValidationFailed

ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("p", pa.string()), pa.field("x", pa.int32())])
EXAMPLES = 4 * int(os.environ.get("ICEBENCH_SOAK", "50")) // 50
MODES: tuple[Mode, ...] = ("copy-on-write", "merge-on-read")
COUNTS = ("deleted-records", "added-records", "added-position-deletes", "total-records")
LINEAGE = ["_row_id", "_last_updated_sequence_number"]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tasks for the smallest table."""
    monkeypatch.setattr(executor_changes, "LEAST_GROUP_BYTES", 1)


def rows(*given: tuple[int, str, int | None]) -> pa.Table:
    return pa.table({name: [row[at] for row in given] for at, name in enumerate(ROWS.names)}, ROWS)


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table)


def contents(table: icebench.Table) -> list[dict[str, Any]]:
    """The rows, with their lineage."""
    own = LINEAGE if table.metadata.format_version == 3 else []
    names = [f.name for f in table.metadata.schema.fields]
    found: list[dict[str, Any]] = table.scan(columns=[*names, *own]).to_arrow().to_pylist()
    return found


def bag(found: list[dict[str, Any]], next_row_id: int | None) -> Counter[str]:
    """The rows; ids that the last commit gave follow the order of files, which is another on executors."""
    found_rows = []
    for row in found:
        new = next_row_id is not None and row.get("_row_id", -1) >= next_row_id
        found_rows.append(str({**row, "_row_id": "new"} if new else row))
    return Counter(found_rows)


def made(place: Path, seed: int) -> icebench.Table:
    """A random table; of the same seed the same rows, files, deletes and row ids."""
    draw = random.Random(seed)
    version = draw.choice([1, 2, 3, 3])
    granularity = draw.choice(["file", "partition"])
    table = icebench.load_catalog(str(place)).create_table(
        "db.t",
        ROWS,
        partition_spec=draw.choice([[], [("p", "identity")], [("id", "bucket[3]")]]),
        properties={"format-version": str(version), "write.delete.granularity": granularity},
    )
    for start in range(0, 40, 10):
        own = [(i, draw.choice("abc"), draw.choice([None, *range(20)])) for i in range(start, start + 10)]
        table.append(rows(*own))
    if version > 1 and draw.random() < 0.7:
        table.delete(f"x > {draw.randrange(20)}", "merge-on-read")
    if version > 1 and not table.metadata.spec.fields and draw.random() < 0.5:
        stream = table.keyed_stream(["id"])
        stream.delete(rows(*((draw.randrange(40), "", None) for _ in range(5))).select(["id"]))
        stream.commit()
        table = icebench.load_catalog(str(place)).load_table("db.t")
    return table


def plus(batch: pa.RecordBatch) -> pa.Array:
    return pa.array([None if x is None else x + 100 for x in batch.column("x").to_pylist()], pa.int32())


def draw_change(draw: random.Random, mode: Mode) -> Callable[[icebench.Table, SparkSession | None], Snapshot | None]:
    """A random change, made here or on executors."""
    text = draw.choice(["id < {}", "id = {}", "x >= {}", "x is null and id > {}", "p = 'a'", "id >= 0", "id < -1"])
    text = text.format(draw.randrange(30))
    match draw.choice(["delete", "update", "function", "upsert", "upsert", "overwrite"]):
        case "delete":
            return lambda table, spark: table.delete(text, mode, spark=spark)
        case "update":
            return lambda table, spark: table.update(text, {"p": "new", "x": icebench.sql("x + 1")}, mode, spark=spark)
        case "function":
            return lambda table, spark: table.update(text, {"x": plus}, mode, spark=spark)
        case "overwrite":
            coming = rows(*((draw.randrange(99), draw.choice("abc"), 7) for _ in range(3)))
            return lambda table, spark: table.overwrite(coming if spark is None else frame_of(spark, coming), text)
    ids = draw.sample(range(60), draw.randrange(1, 20))
    coming = rows(*((i, draw.choice("abc"), -i) for i in ids))
    return lambda table, spark: table.upsert(coming if spark is None else frame_of(spark, coming), ["id"], mode)


@pytest.mark.parametrize("seed", range(4, 4 + EXAMPLES))
def test_executors_do_what_is_done_here(
    spark: SparkSession, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:  # as if there were many rows
        for limit in ("_BROADCAST_ROWS", "_TASK_ROWS", "MOST_VALUES"):
            monkeypatch.setattr(keyed_frame, limit, 2)
    here, there = made(tmp_path / "here", seed), made(tmp_path / "there", seed)
    assert contents(here) == contents(there)
    draw = random.Random(seed + 1000)
    first_new = here.metadata.next_row_id
    for counts in (COUNTS, ("total-records",)):  # then files are others, and what is written again with them
        mode = "copy-on-write" if here.metadata.format_version == 1 else draw.choice(MODES)
        change = draw_change(draw, mode)
        done = [change(here, None), change(there, spark)]
        found = contents(there)
        assert bag(contents(here), first_new) == bag(found, first_new)
        assert len({row["_row_id"] for row in found if "_row_id" in row}) in {0, len(found)}
        summaries = [each and (each.operation, {name: each.summary.get(name) for name in counts}) for each in done]
        assert summaries[0] == summaries[1]


UTC = dt.UTC
KEYS: dict[str, tuple[pa.DataType, Any, list[Any], list[Any]]] = {
    # name: type, a value for all rows that differ elsewhere, values in the table, values that come
    "text": (pa.string(), "-", ["a", "b", "", "ä"], ["b", "c", ""]),
    "double": (pa.float64(), 9.0, [0.0, -0.0, math.nan, math.inf, 1.5], [-0.0, math.nan, 2.0]),
    "float": (pa.float32(), 9.0, [0.0, -0.0, math.nan, 1.5], [0.0, math.nan, 0.1]),
    "decimal": (pa.decimal128(20, 2), Decimal(9), [Decimal(1), Decimal("-2.50")], [Decimal("-2.50"), Decimal(3)]),
    "date": (pa.date32(), dt.date(1999, 9, 9), [dt.date(1, 1, 1), dt.date(2020, 2, 29)], [dt.date(2020, 2, 29)]),
    "time": (
        pa.timestamp("us", tz="UTC"),
        dt.datetime(1999, 9, 9, tzinfo=UTC),
        [dt.datetime(1969, 1, 1, 0, 0, 0, 1, UTC), dt.datetime(2024, 1, 1, tzinfo=UTC)],
        [dt.datetime(1969, 1, 1, 0, 0, 0, 1, UTC), dt.datetime(2025, 1, 1, tzinfo=UTC)],
    ),
    "bytes": (pa.binary(), b"-", [b"", b"\0", b"x"], [b"\0", b"y"]),
    "fixed": (pa.binary(2), b"--", [b"ab", b"cd"], [b"cd", b"ef"]),
    "truth": (pa.bool_(), False, [True], [True]),
    "uuid": (pa.uuid(), uuid.UUID(int=9).bytes, [uuid.UUID(int=10).bytes], [uuid.UUID(int=10).bytes, b"x" * 16]),
    "narrow.er": (pa.int32(), 9, [1, 2, 3], [2, 4]),
}
WIDE = pa.schema([*(pa.field(name, each[0]) for name, each in KEYS.items()), pa.field("of a", pa.int32())])


def keyed(at: int, mark: int) -> list[dict[str, Any]]:
    """Rows that differ in one key each, of the values at this place of `KEYS`."""
    usual = {name: each[1] for name, each in KEYS.items()}
    return [{**usual, name: key, "of a": mark} for name, each in KEYS.items() for key in each[at]]


def arrow_of(given: list[dict[str, Any]]) -> pa.Table:
    return pa.table([pa.array([row[f.name] for row in given], f.type) for f in WIDE], schema=WIDE)


def test_a_key_that_is_no_uuid_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    fields = pa.schema([pa.field("u", pa.uuid()), pa.field("n", pa.int64())])
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", fields)
    table.append(pa.table({"u": [uuid.UUID(int=1).bytes, None], "n": [1, 2]}, fields))
    before = contents(table)
    for text, key in (("not-a-uuid", "u"), ("1" * 31, "n")):
        with pytest.raises(Invalid, match="column 'u': a text is not a uuid"):
            table.upsert(spark.createDataFrame([(text, 3)], "u string, n bigint").coalesce(1), [key])
    assert contents(table.refresh()) == before


@pytest.mark.parametrize("mode", MODES)
def test_keys_of_every_type(spark: SparkSession, tmp_path: Path, mode: Mode) -> None:
    old, new = keyed(2, 1), keyed(3, 2)
    tables = []
    for place in ("here", "there"):
        table = icebench.load_catalog(str(tmp_path / place)).create_table(
            "db.t", WIDE, properties={"format-version": "3"}
        )
        table.append(arrow_of([*old, *({**old[0], name: None} for name in KEYS)]))
        tables.append(table)
    coming = arrow_of(new)
    tables[0].upsert(coming, list(KEYS), mode)
    # Spark has no uuid, for which capital letters are the same, and no fixed; its long is matched with an int.
    casts = {"fixed": pa.binary(), "narrow.er": pa.int64(), "float": pa.float32()}
    for name, type_ in casts.items():
        coming = coming.set_column(coming.column_names.index(name), name, coming.column(name).cast(type_))
    texts = pa.array([str(uuid.UUID(bytes=row["uuid"])).upper() for row in new])
    coming = coming.set_column(coming.column_names.index("uuid"), "uuid", texts)
    tables[1].upsert(frame_of(spark, coming), list(KEYS), mode)
    bags = [bag(contents(table), len(old) + len(KEYS)) for table in tables]
    assert bags[0] == bags[1]
    replaced = [sum(row["of a"] == 1 for row in table.scan().to_arrow().to_pylist()) for table in tables]
    assert replaced == [len(old) + len(KEYS) - 14] * 2


def test_sources_that_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path, 1)
    before = table.metadata.current_snapshot_id
    files = {info.location for info in table.store.list(table.location)}
    for given, reason in [
        (rows((1, "a", 1), (2, "b", 2), (1, "c", 3)), r"the key \{'id': 1\} is given twice"),
        (pa.table({"id": [1, None], "p": ["a", "b"], "x": pa.array([1, 2], pa.int32())}), "'id' holds a null"),
        (pa.table({"id": [1], "p": ["a"]}), "column 'x' is not given"),
        (rows((1, "a", 1)).append_column("y", pa.array([1])), "'y' is not in the table"),
        (pa.table({"id": ["1"], "p": ["a"], "x": pa.array([1], pa.int32())}), "the table needs int64"),
        (pa.table({"id": [1], "p": ["a"], "x": [2**40]}), "'x' does not fit"),
    ]:
        with pytest.raises(Invalid, match=reason):
            table.upsert(given, ["id"], "copy-on-write")
        with pytest.raises(Invalid, match=reason):
            table.upsert(frame_of(spark, given), ["id"], "copy-on-write")
    assert table.upsert(frame_of(spark, rows()), ["id"], "copy-on-write") is None
    assert icebench.load_catalog(str(tmp_path)).load_table("db.t").metadata.current_snapshot_id == before
    assert {info.location for info in table.store.list(table.location)} == files
    streamed = spark.readStream.format("rate").load()
    with pytest.raises(Unsupported, match="stream"):
        table.upsert(streamed.selectExpr("value AS id", "'a' AS p", "1 AS x"), ["id"], "copy-on-write")


def test_a_frame_that_never_is_the_same_runs_once(spark: SparkSession, tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", ROWS, properties={"format-version": "3"})
    table.append(rows(*((i, "old", i) for i in range(100))))

    def draw(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            drawn = [2 * i + os.urandom(1)[0] % 2 for i in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_pydict({"id": pa.array(drawn, pa.int64())})

    ids = spark.range(0, 50, 1, 2).mapInArrow(draw, "id bigint")
    drawn = ids.select("id", F.lit("new").alias("p"), F.lit(1).alias("x"))
    table.upsert(drawn, ["id"], "merge-on-read")
    found = table.scan().to_arrow().to_pylist()
    assert sorted(row["id"] for row in found) == list(range(100))
    assert Counter(row["p"] for row in found) == {"old": 50, "new": 50}


@pytest.mark.parametrize(
    ("kind", "mode"), [("delete", "copy-on-write"), ("delete", "merge-on-read"), ("upsert", "merge-on-read")]
)
def test_what_others_commit_meanwhile_fails_it(spark: SparkSession, tmp_path: Path, kind: str, mode: Mode) -> None:
    """As it does here, and no new file stays."""
    for place, session in (("here", None), ("there", spark)):
        table = icebench.load_catalog(str(tmp_path / place)).create_table(
            "db.t", ROWS, properties={"format-version": "2", "commit.retry.min-wait-ms": "1"}
        )
        table.append(rows(*((i, "a", i) for i in range(10))))
        other = icebench.load_catalog(str(tmp_path / place)).load_table("db.t")
        began = {info.location for info in table.store.list(f"{table.location}/data")}
        transaction = table.transaction()
        change(transaction, kind, mode, session)
        other.append(rows((3, "b", 3)))
        added = {info.location for info in table.store.list(f"{table.location}/data")} - began
        assert len(added) > 1
        with pytest.raises(ValidationFailed):
            transaction.commit()
        left = {info.location for info in table.store.list(f"{table.location}/data")} - began
        assert len(left) == 1


def change(table: Any, kind: str, mode: Mode, spark: SparkSession | None) -> None:
    coming = rows((3, "c", 33), (99, "c", 99))
    if kind == "delete":
        table.delete("id = 3", mode, spark=spark)
    elif kind == "update":
        table.update("id = 3", {"p": "c"}, mode, spark=spark)
    else:
        table.upsert(coming if spark is None else frame_of(spark, coming), ["id"], mode)


@pytest.mark.parametrize(
    ("kind", "mode"), [("update", "copy-on-write"), ("upsert", "copy-on-write"), ("upsert", "merge-on-read")]
)
def test_rows_of_the_same_transaction_get_ids_at_its_end(
    spark: SparkSession, tmp_path: Path, kind: str, mode: Mode
) -> None:
    found = []
    for place, session in (("here", None), ("there", spark)):
        table = icebench.load_catalog(str(tmp_path / place)).create_table(
            "db.t", ROWS, properties={"format-version": "3"}
        )
        table.append(rows((1, "a", 1)))
        with table.transaction() as transaction:
            transaction.append(rows((3, "b", 3), (4, "b", 4)))
            change(transaction, kind, mode, session)
            icebench.load_catalog(str(tmp_path / place)).load_table("db.t").append(rows((7, "other", 7)))
        made = icebench.load_catalog(str(tmp_path / place)).load_table("db.t")
        ids = [row["_row_id"] for row in contents(made)]
        assert len(set(ids)) == len(ids)
        found.append(bag(contents(made), 1))
    assert found[0] == found[1]


def test_a_task_that_fails_leaves_no_files(spark: SparkSession, tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", ROWS, properties={"format-version": "2"})
    for start in range(0, 40, 10):
        table.append(rows(*((i, "a", i) for i in range(start, start + 10))))
    *_, gone = table.scan().plan().files["file_path"].to_pylist()
    kept = Path(gone).rename(tmp_path / "kept")
    before = {info.location for info in table.store.list(f"{table.location}/data")}
    with pytest.raises(icebench.errors.FileNotFound, match="no such file"):
        table.update("x % 2 = 0", {"p": "z"}, "merge-on-read", spark=spark)
    assert {info.location for info in table.store.list(f"{table.location}/data")} == before
    kept.rename(gone)
    folder = tmp_path / "db" / "t" / "data"
    coming = frame_of(spark, rows(*((i, "b", i) for i in range(0, 40, 3))))
    # Its rows are matched and deletes are written before the rows themselves, which do not fit.
    wrong = coming.withColumn("x", F.lit(2**40))
    with pytest.raises(Invalid, match="'x' does not fit"):
        table.upsert(wrong, ["id"], "merge-on-read")
    assert {str(path) for path in folder.rglob("*.parquet")} == {*before, gone}
    assert table.scan(filter="p = 'b'").count() == 0


def test_work_is_counted_and_done_in_tasks(spark: SparkSession, tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", ROWS, properties={"format-version": "3"})
    for start in range(0, 40, 10):
        table.append(rows(*((i, "a", i) for i in range(start, start + 10))))
    counters = Counters()
    table.delete("id % 10 = 1", "merge-on-read", spark=spark, counters=counters)
    vectors = {row["file_path"] for row in table.inspect.delete_files().to_pylist()}
    assert len(vectors) == 4
    assert counters[FILES_WRITTEN] == 4 + 2  # with the manifest and the manifest list
    limit = 5

    def below(batch: pa.RecordBatch) -> pa.Array:
        return pa.array([min(x, limit) for x in batch.column("x").to_pylist()], pa.int32())

    table.update("id >= 0", {"x": below}, "copy-on-write", spark=spark)
    assert max(table.scan().to_arrow()["x"].to_pylist()) == limit


@pytest.mark.parametrize("mode", MODES)
def test_whole_files_go_without_being_read(spark: SparkSession, tmp_path: Path, mode: Mode) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", ROWS, properties={"format-version": "3"})
    for start in range(0, 30, 10):
        table.append(rows(*((i, "a", i) for i in range(start, start + 10))))
    (first,) = table.scan(filter="id < 10").plan().files["file_path"].to_pylist()
    Path(first).unlink()
    snapshot = table.delete("id < 10", mode, spark=spark)
    assert snapshot is not None
    assert (snapshot.summary["deleted-data-files"], snapshot.summary["total-records"]) == ("1", "20")
    assert table.scan().count() == 20
    table.update("id >= 20", {"p": "whole"}, mode, spark=spark)
    assert table.scan(filter="p = 'whole'").count() == 10
    assert table.scan().count() == 20


def test_what_this_process_alone_has_is_refused(spark: SparkSession) -> None:
    catalog = icebench.load_catalog("memory://lake")
    table = catalog.create_table("db.t", ROWS, properties={"format-version": "2"})
    table.append(rows((1, "a", 1), (2, "a", 2)))
    with pytest.raises(Unsupported, match="this process alone"):
        table.delete("id = 1", "merge-on-read", spark=spark)
