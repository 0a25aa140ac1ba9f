"""``format("icebench")``, streams: each appended row is read once and each batch written once, whoever dies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from icebench.engine.spark_source import register
from icebench.engine.table import Table
from tests.interop.histories.places import directory_place
from tests.spark.deleted_tables import FIELDS, open_catalog, place_of, rows

Batch = tuple[int, list[int]]


@pytest.fixture(autouse=True, scope="module")
def registered(spark: SparkSession) -> None:
    register(spark)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = open_catalog(tmp_path).create_table("db.t", FIELDS, partition_spec=[("day", "identity")])
    made.append(rows(0, 3))  # three files of one row
    made.append(rows(3, 4))
    return made


def stream(spark: SparkSession, directory: Path, **options: object) -> DataFrame:
    named = {name.replace("_", "-"): str(value) for name, value in options.items()}
    return spark.readStream.format("icebench").options(**place_of(directory), **named).load("db.t")


class Seen:
    """Batches as they come, by what `foreachBatch` is given."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        self.batches.append((batch_id, sorted(row.id for row in frame.select("id").collect())))


def run(frame: DataFrame, seen: Seen, checkpoint: Path) -> None:
    """A query that reads what there is, and dies."""
    finish(lambda: frame.writeStream.foreachBatch(seen).option("checkpointLocation", str(checkpoint)).start())


def finish(start: Callable[[], StreamingQuery]) -> None:
    for is_last in (False, False, True):
        query = start()
        try:
            query.processAllAvailable()
        except PySparkException as error:
            # Spark gives the Python process of a source ten seconds to start, which a busy machine does not.
            if is_last or "failed to connect back" not in str(error):
                raise
        else:
            return
        finally:
            query.stop()


def forget_last_commit(checkpoint: Path) -> int:
    """As if the query had died when a batch was done and Spark had not noted it yet."""
    done = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdecimal())
    (checkpoint / "commits" / str(done)).unlink()
    (checkpoint / "commits" / f".{done}.crc").unlink(missing_ok=True)
    return done


def test_a_stream_goes_on_exactly_where_it_stopped(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    frame = stream(spark, tmp_path, streaming_max_files_per_micro_batch=2)
    first = Seen()
    run(frame, first, checkpoint)
    assert [len(ids) for _, ids in first.batches] == [2, 2]
    assert sorted(id for _, ids in first.batches for id in ids) == [0, 1, 2, 3]
    # A batch that was done but not noted comes again, the same, and nothing else does.
    last = forget_last_commit(checkpoint)
    table.append(rows(10, 11))
    again = Seen()
    run(frame, again, checkpoint)
    assert again.batches == [first.batches[-1], (last + 1, [10])]


def test_what_is_no_append_stops_the_stream_unless_it_is_skipped(
    spark: SparkSession, table: Table, tmp_path: Path
) -> None:
    table.delete("id = 3", "copy-on-write")
    table.append(rows(20, 21))
    seen = Seen()
    with pytest.raises(PySparkException, match="streaming-skip-delete-snapshots=true skips"):
        run(stream(spark, tmp_path), seen, tmp_path / "checkpoint")
    assert seen.batches == [(0, [0, 1, 2, 3])]
    run(stream(spark, tmp_path, streaming_skip_delete_snapshots="true"), seen, tmp_path / "checkpoint")
    assert seen.batches[1:] == [(1, [20])]


def test_a_batch_is_committed_once(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    sink = open_catalog(tmp_path).create_table("db.sink", FIELDS)
    checkpoint = tmp_path / "checkpoint"

    def write(frame: DataFrame) -> None:
        options = {**place_of(tmp_path), "table": "db.sink", "checkpointLocation": str(checkpoint)}
        finish(lambda: frame.writeStream.format("icebench").options(**options).start())

    write(stream(spark, tmp_path))
    assert sink.refresh().scan().count() == 4
    (snapshot,) = sink.snapshots
    assert snapshot.summary["icebench.stream-batch-id"] == "0"
    files = data_files(tmp_path)
    # The commit was made, and the query died before it knew.
    forget_last_commit(checkpoint)
    write(stream(spark, tmp_path))
    assert [s.snapshot_id for s in sink.refresh().snapshots] == [snapshot.snapshot_id]
    assert data_files(tmp_path) == files
    # A batch that fails leaves nothing, and is whole when it comes again.
    table.append(rows(30, 60))
    files = data_files(tmp_path)
    with pytest.raises(PySparkException, match="boom"):
        write(stream(spark, tmp_path).withColumn("day", F.expr("if(id = 59, raise_error('boom'), day)")))
    assert len(sink.refresh().snapshots) == 1
    write(stream(spark, tmp_path))
    assert sorted(sink.refresh().scan().to_arrow().column("id").to_pylist()) == [0, 1, 2, 3, *range(30, 60)]


@pytest.mark.parametrize("expiry", ["ours", "java"])
def test_a_batch_outlives_the_expiry_of_its_snapshot(
    spark: SparkSession, table: Table, tmp_path: Path, expiry: str
) -> None:
    """The query dies between the sink's commit and Spark's note of it; then its snapshot is expired."""
    place = directory_place(spark, tmp_path / "wh", f"streamed_{expiry}")
    sink = place.ours.create_table("db.sink", FIELDS)
    sink.append(rows(100, 101))
    checkpoint = tmp_path / "checkpoint"
    options = {
        "catalog": str(tmp_path / "wh" / "warehouse"),
        "table": "db.sink",
        "checkpointLocation": str(checkpoint),
    }

    def write() -> None:
        finish(lambda: stream(spark, tmp_path).writeStream.format("icebench").options(**options).start())

    write()
    table.append(rows(4, 7))
    write()
    forget_last_commit(checkpoint)
    sink.refresh()
    if expiry == "ours":
        sink.maintenance.rewrite_data_files(rewrite_all=True)
        sink.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z", retain_last=1)
    else:
        name = place.spark_catalog
        spark.sql(f"call {name}.system.rewrite_data_files(table => 'db.sink', options => map('rewrite-all', 'true'))")
        spark.sql(f"call {name}.system.rewrite_manifests(table => 'db.sink', use_caching => false)")
        spark.sql(
            f"call {name}.system.expire_snapshots(table => 'db.sink', older_than => timestamp '2999-01-01', "
            "retain_last => 1)"
        )
    assert len(sink.refresh().snapshots) == 1
    write()
    assert sorted(sink.refresh().scan().to_arrow()["id"].to_pylist()) == [*range(7), 100]
    table.append(rows(7, 8))
    write()
    assert sorted(sink.refresh().scan().to_arrow()["id"].to_pylist()) == [*range(8), 100]
    place.close()


@pytest.mark.parametrize("changelog", ["true", "false"])
@pytest.mark.parametrize("start", ["earliest", "snapshot"])
def test_a_stream_goes_on_where_what_came_before_it_was_expired(
    spark: SparkSession, table: Table, tmp_path: Path, start: str, changelog: str
) -> None:
    """Nothing that it still has to read is missing."""
    first = table.snapshots[0].snapshot_id
    options: dict[str, object] = {"streaming_changelog": True} if changelog == "true" else {}
    if start == "snapshot":
        options["stream_from_snapshot_id"] = first
    seen = Seen()
    run(stream(spark, tmp_path, **options), seen, tmp_path / "checkpoint")
    assert seen.batches == [(0, [3] if start == "snapshot" else [0, 1, 2, 3])]
    table.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z", retain_last=1)
    table.append(rows(4, 5))
    run(stream(spark, tmp_path, **options), seen, tmp_path / "checkpoint")
    table.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z", retain_last=1)
    run(stream(spark, tmp_path, **options), seen, tmp_path / "checkpoint")
    assert seen.batches[1:] == [(1, [4])]


def data_files(directory: Path) -> set[Path]:
    return set(directory.rglob("*.parquet"))
