"""Plans that executors make, against plans made here: the same files, the same counters, the same errors."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icebench
from icebench.engine.file_indexes.lookup import INDEXES_UNUSABLE
from icebench.engine.plan.planner import PlanningMode
from icebench.engine.plan.scan import ScanPlan
from icebench.engine.spark.planning import SparkExecutors, spark_executors
from icebench.engine.spec.manifest import ManifestContent
from icebench.engine.spec.types import STRING
from icebench.engine.table import Table
from icebench.errors import CorruptTable, FileNotFound, Invalid, StorageFailed
from tests.property.remote_planning import assert_same
from tests.spark.deleted_tables import FIELDS, open_catalog, rows, with_every_delete

BOTH = {"data": "distributed", "deletes": "distributed"}
NEITHER = {"data": "local", "deletes": "local"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("planning")


@pytest.fixture(scope="module")
def table(place: Path) -> Table:
    """Two specs, two schemas, deletes of every kind, an index, and ten manifests or so."""
    made = with_every_delete(place)
    made.update_schema(lambda schema: schema.add_column("late", STRING))
    made.append(rows(3000, 3100).append_column("late", pa.array(["x"] * 100)))
    made.maintenance.build_index("name")
    return made


def by_executors(spark: SparkSession, table: Table, filter: str | None) -> ScanPlan:
    """Planned by as many tasks as there are manifests."""
    modes: dict[ManifestContent, PlanningMode] = dict.fromkeys(ManifestContent, "distributed")
    scan = replace(table.scan(filter)._scan, executors=SparkExecutors(spark, modes, task_bytes=1))
    return scan.plan()


@pytest.mark.parametrize(
    "filter",
    [
        None,
        "day = 1",
        "day = 1 and id > 1500",
        "id between 30 and 160",
        "id < 0",
        "late = 'x'",
        "late is null and id in (1, 150, 1150)",
        "name = 'n1150'",
        "name = 'none of them'",
        "id = 1 or (day = 2 and name > 'n5')",
    ],
)
def test_executors_plan_as_the_driver_does(spark: SparkSession, table: Table, filter: str | None) -> None:
    here = table.scan(filter).plan()
    assert here.modes == NEITHER
    there = by_executors(spark, table, filter)
    assert_same(there, here)
    assert there.modes["data"] == ("distributed" if here.counters["entries_decoded"] else "local")


def test_the_public_way(spark: SparkSession, table: Table) -> None:
    here, there = icebench.Counters(), icebench.Counters()
    expected = icebench.load_table(table.metadata_location).scan("id < 1500", counters=here).plan()
    again = icebench.load_table(table.metadata_location).scan("id < 1500", counters=there)
    with counted_jobs(spark) as jobs:
        plan = again.plan(spark, mode="distributed")
        assert jobs() == 2
    assert plan.modes == BOTH
    assert_same(plan, expected)
    assert there.as_dict() == here.as_dict()  # what executors read is counted, too
    frame = table.scan("id < 1500", ["id"]).to_spark(spark, planning_mode="distributed")
    assert sorted(row.id for row in frame.collect()) == sorted(
        table.scan("id < 1500", ["id"]).to_arrow()["id"].to_pylist()
    )
    increment = table.incremental_append_scan(filter="id > 10")
    assert_same(increment.plan(spark, mode="distributed"), increment.plan())


@contextmanager
def counted_jobs(spark: SparkSession) -> Iterator[Callable[[], int]]:
    """How many jobs were started within."""
    context, group = spark.sparkContext, uuid.uuid4().hex
    context.setJobGroup(group, "counted")

    def count() -> int:
        context._jsc.sc().listenerBus().waitUntilEmpty(10_000)  # Spark's status hears of jobs a little later
        return len(context.statusTracker().getJobIdsForGroup(group))

    try:
        yield count
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # which removes it


def test_small_tables_are_planned_here(spark: SparkSession, table: Table) -> None:
    empty = open_catalog(Path(table.location).parents[1]).create_table("db.empty", FIELDS)
    with counted_jobs(spark) as jobs:
        for plan in (table.scan().plan(spark), table.scan().plan(spark, mode="local"), table.scan().plan(mode="auto")):
            assert plan.modes == NEITHER
        assert empty.scan().plan(spark, mode="distributed").modes == NEITHER
        assert jobs() == 0


def test_size_and_table_decide(spark: SparkSession, table: Table) -> None:
    manifests = table.inspect.manifests()
    lengths, contents = manifests["length"].to_numpy(), manifests["content"].to_numpy()
    sizes = {content: int(lengths[contents == content].sum()) for content in (0, 1)}
    assert 0 < sizes[1] != sizes[0]
    for limit in (min(sizes.values()), max(sizes.values())):
        modes: dict[ManifestContent, PlanningMode] = dict.fromkeys(ManifestContent, "auto")
        executors = SparkExecutors(spark, modes, local_bytes=limit)
        plan = replace(table.scan()._scan, executors=executors).plan()
        assert plan.modes == {
            "data": "distributed" if sizes[0] > limit else "local",
            "deletes": "distributed" if sizes[1] > limit else "local",
        }
    properties = {"read.data-planning-mode": "local", "read.delete-planning-mode": "DISTRIBUTED"}
    plan = replace(table.scan()._scan, executors=spark_executors(spark, properties)).plan()
    assert plan.modes == {"data": "local", "deletes": "distributed"}
    plan = replace(table.scan()._scan, executors=spark_executors(spark, properties, "distributed")).plan()
    assert plan.modes == BOTH


def test_wrong_modes_are_refused(spark: SparkSession, table: Table) -> None:
    with pytest.raises(Invalid, match="'somewhere' is none of"):
        table.scan().plan(spark, mode="somewhere")  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="data-planning-mode"):
        spark_executors(spark, {"read.data-planning-mode": "somewhere"})
    with pytest.raises(Invalid, match="needs a Spark session"):
        table.scan().plan(mode="distributed")


def broken(place: Path) -> tuple[Table, list[Path]]:
    """A table of three manifests, and where they are, in the order of the list."""
    made = open_catalog(place).create_table("db.broken", FIELDS)
    for start in (0, 10, 20):
        made.append(rows(start, start + 10))
    return made, [Path(path.removeprefix("file:")) for path in made.inspect.manifests()["path"].to_pylist()]


def test_errors_are_those_of_planning_here(spark: SparkSession, tmp_path: Path) -> None:
    _, manifests = broken(tmp_path)
    manifests[2].write_bytes(b"Obj\1 and then nothing")
    for kind in (CorruptTable, FileNotFound):
        made = open_catalog(tmp_path).load_table("db.broken")  # with nothing in its cache
        with pytest.raises(kind) as here:
            made.scan().plan()
        with pytest.raises(kind) as there:
            by_executors(spark, made, None)
        assert (str(there.value), vars(there.value)) == (str(here.value), vars(here.value))
        manifests[0].unlink(missing_ok=True)
    assert str(made.current_snapshot.snapshot_id) in str(there.value)  # type: ignore[union-attr]


def test_what_the_storage_refuses_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    made, manifests = broken(tmp_path)
    manifests[1].unlink()
    manifests[1].mkdir()
    with pytest.raises(StorageFailed) as here:
        made.scan().plan()
    with pytest.raises(StorageFailed) as there:
        by_executors(spark, made, None)
    assert str(there.value) == str(here.value)


def test_an_index_that_is_gone_is_counted_once(spark: SparkSession, tmp_path: Path) -> None:
    made, _ = broken(tmp_path)
    made.maintenance.build_index("name")
    for file in made.metadata.statistics:
        Path(file.statistics_path.removeprefix("file:")).unlink()
    plan = by_executors(spark, made, "name in ('n5', 'n15', 'n25')")
    assert plan.counters[INDEXES_UNUSABLE] == 1
    assert_same(plan, icebench.load_table(made.metadata_location).scan("name in ('n5', 'n15', 'n25')").plan())
