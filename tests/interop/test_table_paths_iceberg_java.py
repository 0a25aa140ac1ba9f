"""Tables that were copied by `rewrite_table_path`, beside Iceberg Java's procedure of that name.

The same list of files; and the same rows for Iceberg Java, PyIceberg and us once nothing is left at the old place.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

import icebench
from icebench.engine.maintenance import moved_manifests, rewrite_table_path
from icebench.engine.maintenance.moved_manifests import Move, MovedManifest
from icebench.engine.spec.locations import parts
from icebench.engine.spec.manifest import ManifestFile
from tests.interop.histories.places import Place, directory_place
from tests.interop.test_maintenance_iceberg_java import rows_of

NUMBERS = count()


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = directory_place(spark, tmp_path_factory.mktemp("copied"), "copied")
    yield made
    made.close()


class Written:
    """A table that Iceberg Java writes: partitioned, with a branch and a tag, deletes of all kinds and statistics."""

    def __init__(self, version: int, spark: SparkSession, place: Place) -> None:
        self.spark, self.place, self.version = spark, place, version
        self.own = f"db.t{next(NUMBERS)}"
        self.name = f"{place.spark_catalog}.{self.own}"
        modes = "".join(f", 'write.{each}.mode'='merge-on-read'" for each in ("delete", "update", "merge"))
        spark.sql(
            f"create table {self.name} (id bigint, part string, n int) using iceberg partitioned by (bucket(2, id)) "
            f"tblproperties ('format-version'='{version}'{modes if version > 1 else ''})"
        )
        self.append(0)
        self.append(100)
        spark.sql(f"alter table {self.name} create tag before")
        self.delete("id % 10 = 3")
        spark.sql(f"alter table {self.name} create branch side")
        self.append(200, f"{self.name}.branch_side")
        spark.sql(f"alter table {self.name} add column note string")

    @property
    def table(self) -> icebench.Table:
        return self.place.ours.load_table(self.own)

    def append(self, start: int, into: str | None = None) -> None:
        columns = "id, concat('p', id % 3), cast(id % 7 as int)"
        columns += ", null" if "note" in self.spark.table(self.name).columns else ""
        self.spark.sql(f"insert into {into or self.name} select {columns} from range({start}, {start + 60})")

    def delete(self, condition: str) -> None:
        self.spark.sql(f"delete from {self.name} where {condition}")

    def go_on(self) -> None:
        """More of everything, old deletes superseded and manifests written again."""
        self.append(300)
        self.delete("id % 10 in (3, 4)")
        self.spark.sql(f"call {self.place.spark_catalog}.system.rewrite_manifests('{self.own}')")
        if self.version == 2:
            stream = self.table.keyed_stream(["id"])
            stream.delete(pa.table({"id": [5, 305]}))
            stream.commit()
        self.spark.sql(f"call {self.place.spark_catalog}.system.compute_table_stats('{self.own}')")
        self.append(400)

    def by_java(self, target: Path, staging: Path, start: str | None = None) -> dict[str, str]:
        """What Java's procedure lists."""
        start_version = "" if start is None else f", start_version => '{start}'"
        (row,) = self.spark.sql(
            f"call {self.place.spark_catalog}.system.rewrite_table_path(table => '{self.own}', "
            f"source_prefix => '{self.table.location}', target_prefix => '{target}', "
            f"staging_location => '{staging}'{start_version})"
        ).collect()
        return listed(row.file_list_location)

    def by_us(self, target: Path, staging: Path, start: str | None = None) -> dict[str, str]:
        table = self.table
        done = table.maintenance.rewrite_table_path(
            table.location, str(target), staging_location=str(staging), start_version=start
        )
        assert done.file_list_location is not None
        return listed(done.file_list_location)


def listed(location: str) -> dict[str, str]:
    """Source -> target, as paths."""
    with Path(parts(location)[2]).open(encoding="utf-8") as file:
        return {parts(source)[2]: parts(target)[2] for source, target in csv.reader(file)}


def relative(copies: dict[str, str], staging: Path, target: Path) -> set[tuple[str, str]]:
    return {(each.replace(str(staging), "staged"), to.removeprefix(str(target))) for each, to in copies.items()}


def copy(copies: dict[str, str]) -> None:
    for source, target in copies.items():
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def everything(table: icebench.Table) -> dict[Any, list[str]]:
    """The rows of each snapshot, branch and tag, by us."""
    found = {each.snapshot_id: rows_of(table.scan(snapshot_id=each.snapshot_id).to_arrow()) for each in table.snapshots}
    return found | {name: rows_of(table.scan(ref=name).to_arrow()) for name in table.refs}


def check_readers(spark: SparkSession, directory: Path, version: str, expected: dict[Any, list[str]]) -> None:
    """All three read these rows of a table that was copied there, in parts or at once."""
    metadata = f"{directory}/metadata/{version}"
    ours = icebench.load_table(metadata, relocate={}, verify="strict")
    assert everything(ours) == expected
    foreign = StaticTable.from_metadata(metadata)
    for which, rows in expected.items():
        java = spark.read.format("iceberg").option("versionAsOf", str(which)).load(str(directory))
        assert rows_of(java.toArrow()) == rows
        # PyIceberg refuses equality deletes.
        if isinstance(which, int) and ours.metadata.snapshot(which).summary.get("total-equality-deletes") == "0":
            assert rows_of(foreign.scan(snapshot_id=which).to_arrow()) == rows


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_copy_has_the_rows_of_the_original(
    version: int, spark: SparkSession, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copied once half way, and brought up to date, beside a whole copy by Java of the same state."""
    made = Written(version, spark, place)
    encoded: dict[tuple[str, str], bytes] = {}

    def move_manifest(manifest: ManifestFile, move: Move, *args: Any, **options: Any) -> MovedManifest:
        # The same manifest becomes the same bytes in each part; said here, since a reader would see the length alone.
        moved = moved_manifests.move_manifest(manifest, move, *args, **options)
        assert encoded.setdefault((manifest.manifest_path, move.target), moved.data) == moved.data
        return moved

    monkeypatch.setattr(rewrite_table_path, "move_manifest", move_manifest)
    ours, javas = tmp_path / "ours", tmp_path / "java"
    half = made.by_us(ours, tmp_path / "half")
    assert relative(half, tmp_path / "half", ours) == relative(
        made.by_java(javas, tmp_path / "java half"), tmp_path / "java half", javas
    )
    copy(half)
    start = made.table.metadata_location.rpartition("/")[2]
    check_readers(spark, ours, start, everything(made.table))

    made.go_on()
    newer = made.by_us(ours, tmp_path / "rest", start)
    of_java = made.by_java(javas, tmp_path / "java rest", start)
    assert relative(newer, tmp_path / "rest", ours) == relative(of_java, tmp_path / "java rest", javas)
    copy(newer)
    whole = made.by_java(javas, tmp_path / "java whole")
    ours_whole = made.by_us(tmp_path / "again", tmp_path / "whole")
    assert relative(ours_whole, tmp_path / "whole", tmp_path / "again") == relative(
        whole, tmp_path / "java whole", javas
    )
    copy(whole)
    expected = everything(made.table)
    version_name = made.table.metadata_location.rpartition("/")[2]
    shutil.move(parts(made.table.location)[2], tmp_path / "gone")
    check_readers(spark, ours, version_name, expected)
    assert everything(icebench.load_table(f"{javas}/metadata/{version_name}", relocate={})) == expected
