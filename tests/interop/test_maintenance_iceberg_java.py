"""Iceberg Java and PyIceberg read its tables after our maintenance: the same rows at every snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

import icebench
from icebench.bench.advise.columns import apply_proposals, examine_columns
from icebench.engine.spec.snapshots import Snapshot
from tests.interop.histories.model import bag
from tests.interop.histories.places import Place, directory_place

BATCHES = 6
NEVER = "2999-01-01T00:00:00Z"
NUMBERS = count()


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = directory_place(spark, tmp_path_factory.mktemp("maintained"), "maintained")
    yield made
    made.close()


class Readers:
    """Reads each snapshot by Iceberg Java and PyIceberg, and remembers the rows that Java saw when it was new."""

    def __init__(self, spark: SparkSession, name: str, table: icebench.Table) -> None:
        self.spark, self.name, self.table = spark, name, table
        self.rows: dict[int, list[str]] = {}

    def java(self, snapshot_id: int) -> list[str]:
        return rows_of(self.spark.sql(f"select * from {self.name} version as of {snapshot_id}").toArrow())

    def pyiceberg(self, snapshot_id: int) -> list[str]:
        table = StaticTable.from_metadata(self.table.metadata_location)
        return rows_of(table.scan(snapshot_id=snapshot_id).to_arrow())

    def remember(self) -> None:
        newest = head(self.table.refresh()).snapshot_id
        self.rows[newest] = self.java(newest)

    def check(self, rows: list[str], *, new: bool = True) -> None:
        """Every snapshot has the rows that it had; snapshots that are new have `rows`, and so has the table."""
        snapshots = self.table.refresh().snapshots
        assert new == any(each.snapshot_id not in self.rows for each in snapshots)
        for each in snapshots:
            expected = self.rows.setdefault(each.snapshot_id, rows)
            for read in (self.java, self.pyiceberg):
                assert read(each.snapshot_id) == expected, f"{read.__name__} of {each.summary}"
        assert rows_of(self.spark.table(self.name).toArrow()) == rows


def head(table: icebench.Table) -> Snapshot:
    assert table.current_snapshot is not None
    return table.current_snapshot


def rows_of(table: pa.Table) -> list[str]:
    return bag(table.select(sorted(table.column_names)).to_pylist())


def written(version: int, spark: SparkSession, place: Place) -> Readers:
    """A partitioned table that Java created, filled with batches that overlap, evolved and deleted from."""
    own = f"db.t{next(NUMBERS)}"
    name = f"{place.spark_catalog}.{own}"
    spark.sql(
        f"create table {name} (id bigint not null, a int, b int, note string, price decimal(12,2)) using iceberg "
        f"partitioned by (bucket(2, id)) tblproperties ('format-version'='{version}', "
        "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', "
        "'write.metadata.metrics.max-inferred-column-defaults'='3')"
    )
    readers = Readers(spark, name, place.ours.load_table(own))
    for batch in range(BATCHES):
        spark.sql(
            f"insert into {name} select {batch} * 100 + id, cast(id * 7919 % 101 as int), cast(id * 104729 % 97 as int)"
            ", if(id % 9 = 0, null, concat('n', id)), cast(id * 1.25 as decimal(12,2)) from range(100)"
        )
        readers.remember()
    spark.sql(f"alter table {name} rename column note to remark")
    spark.sql(f"delete from {name} where id % 10 = 3")
    readers.remember()
    spark.sql(f"update {name} set b = b + 1000 where a = 50")
    readers.remember()
    return readers


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "version"), [("sort", 2), ("zorder", 3), ("hilbert", 2)])
def test_java_and_pyiceberg_read_every_snapshot(strategy: str, version: int, spark: SparkSession, place: Place) -> None:
    """Of a table that was clustered, rewritten, and whose columns and snapshots were gone through."""
    made = written(version, spark, place)
    table = made.table
    rows = made.rows[head(table).snapshot_id]
    table.set_properties({"icebench.clustering.strategy": strategy, "icebench.clustering.keys": "a, b"})
    assert table.maintenance.cluster().merges
    made.check(rows)
    table.maintenance.rewrite_data_files(rewrite_all=True, remove_dangling_deletes=True)
    made.check(rows)
    table.maintenance.rewrite_manifests()
    made.check(rows)
    assert not table.scan().plan().counters["delete_files_planned"]
    assert apply_proposals(table, examine_columns(table, used=["price"]).proposals)
    assert table.refresh().schema().fields[0].name == "price"
    table.maintenance.expire_snapshots(older_than=NEVER, retain_last=3)
    assert len(table.refresh().snapshots) == 3
    made.check(rows, new=False)
    # Java appends under the modes of metrics and the order of columns that are declared now.
    spark.sql(f"insert into {made.name} (id, a, b, remark, price) values (9000, 1, 2, 'new', null)")
    added = {"a": 1, "b": 2, "id": 9000, "price": None, "remark": "new"}
    made.check(sorted([*rows, *bag([added])]))
