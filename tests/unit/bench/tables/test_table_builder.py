"""Layouts built from raw files, each checked against its own claim and those of all others."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import icebench
from icebench.bench.errors import DatasetFailed
from icebench.bench.layouts.layout import Layout, Term
from icebench.bench.tables import table_shape
from icebench.bench.tables.raw_files import RawFiles
from icebench.bench.tables.table_builder import TABLE, BuildCost, TableBuild, build_table
from icebench.bench.tables.table_shape import check_manifests, check_shape
from icebench.bench.truth.manifests import live_files
from icebench.bench.truth.metadata import load_table_json

ROWS = 12_000
V2 = {"format-version": "2"}
BY_ITEM = (Term(column="item"), Term(column="id"))
LAYOUTS = [
    Layout(name="arrival", files=6, properties=V2),
    Layout(name="monthly", partition=(Term(column="day", transform="month"),), files=6, properties=V2),
    Layout(name="sorted", sort=BY_ITEM, files=6, properties=V2),
    Layout(
        name="descending",
        sort=(Term(column="day", descending=True, nulls_last=True), Term(column="item")),
        files=6,
        properties=V2,
    ),
    Layout(
        name="bucketed", partition=(Term(column="item", transform="bucket[3]"),), sort=BY_ITEM, files=9, properties=V2
    ),
    Layout(
        name="truncated",
        partition=(Term(column="item", transform="truncate[50]"), Term(column="flag")),
        files=6,
        properties=V2,
    ),
    Layout(name="yearly", partition=(Term(column="day", transform="year"),), files=8, properties=V2),
    Layout(name="zorder", zorder=("day", "item"), files=16, properties=V2),
    Layout(name="hilbert", hilbert=("day", "item"), files=16, properties=V2),
    Layout(name="snappy", files=6, properties={**V2, "write.parquet.compression-codec": "snappy"}),
    *(
        Layout(name=codec, files=6, properties={**V2, "write.parquet.compression-codec": codec})
        for codec in ("gzip", "lz4", "uncompressed")
    ),
    *(
        Layout(
            name=name,
            files=2,
            properties={**V2, "write.metadata.metrics.default": "counts", "write.parquet.row-group-size-bytes": size},
        )
        for name, size in (("row groups", "20000"), ("large row groups", "500000"))
    ),
    Layout(name="targeted", properties={**V2, "write.target-file-size-bytes": "18000"}, sort=BY_ITEM),
    Layout(
        name="large files",
        properties={**V2, "write.metadata.metrics.default": "full", "write.target-file-size-bytes": "150000"},
    ),
    Layout(name="version 3", files=6, properties={"format-version": "3"}),
    Layout(name="without statistics", files=6, properties={**V2, "write.metadata.metrics.default": "none"}),
    Layout(
        name="indexed",
        files=6,
        file_index=("item",),
        properties={**V2, "write.parquet.bloom-filter-enabled.column.item": "true"},
    ),
    Layout(
        name="clustered manifests",
        partition=(Term(column="day", transform="month"),),
        files=6,
        cluster_manifests=True,
        properties={**V2, "commit.manifest.target-size-bytes": "4000"},
    ),
]
IMPLIED = {
    "arrival": {"sorted", "descending", "indexed"},
    "zorder": {"hilbert"},
    "hilbert": {"zorder"},
    "monthly": {"clustered manifests"},
    "clustered manifests": {"monthly"},  # which has one manifest
}
"""By layout: others that are all that it claims, and more."""


def no_session() -> SparkSession:
    raise AssertionError("rows that stay here need no Spark")


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> RawFiles:
    random = np.random.default_rng(7)
    days = random.integers(0, 400, ROWS)
    table = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "item": pa.array(random.integers(0, 150, ROWS), pa.int32()),
            "day": pa.array([None if d == 399 else date(2000, 6, 1) + timedelta(days=int(d)) for d in days]),
            "flag": pa.array(days % 2 == 0),
            "price": pa.array(
                [Decimal(int(n)).scaleb(-2) for n in random.integers(0, 10**6, ROWS)], pa.decimal128(9, 2)
            ),
            "label": pa.array([f"label {n}" for n in random.integers(0, 10**9, ROWS)]),
            "place": pa.array([{"x": int(n)} for n in days]),
        }
    )
    folder = tmp_path_factory.mktemp("raw")
    paths = []
    for part in range(3):
        paths.append(folder / f"{part}.parquet")
        pq.write_table(table.slice(part * ROWS // 3, ROWS // 3), paths[-1], compression="zstd")
    size = sum(path.stat().st_size for path in paths)
    return RawFiles(schema=table.schema, paths=tuple(paths), rows=ROWS, size_bytes=size)


@pytest.fixture(scope="module")
def tables(raw: RawFiles, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Layout, str, BuildCost]]:
    """By name: each layout, its table, and its cost."""
    found = {}
    for layout in LAYOUTS:
        folder = tmp_path_factory.mktemp("table")
        built = build_table(layout, raw, folder, spark=no_session)
        found[layout.name] = (layout, built["metadata_location"], BuildCost(**built["cost"]))
    return found


def rows_of(location: str) -> pa.Table:
    files = live_files(load_table_json(location))
    columns = ["id", "item", "day", "flag", "price", "label", "place"]
    return pa.concat_tables([pq.ParquetFile(file.path).read(columns=columns) for file in files])


@pytest.mark.parametrize("name", [layout.name for layout in LAYOUTS])
def test_a_layout_keeps_every_row_and_is_what_it_claims(
    raw: RawFiles, tables: Mapping[str, tuple[Layout, str, BuildCost]], name: str
) -> None:
    layout, location, _ = tables[name]
    check_shape(layout, location, ROWS)
    check_manifests(name, location)
    found = rows_of(location).sort_by("id").combine_chunks()
    for column in raw.schema.names:
        assert found[column].to_pylist() == raw.reader().read_all()[column].to_pylist()


@pytest.mark.parametrize("claimed", [layout.name for layout in LAYOUTS])
def test_no_other_layout_passes_for_it(
    tables: Mapping[str, tuple[Layout, str, BuildCost]], claimed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_shape, "_properties", lambda *_: iter(()))  # files are to show it
    layout = tables[claimed][0]
    passed = set()
    for name, (_, location, _) in tables.items():
        with suppress(DatasetFailed):
            check_shape(layout, location, ROWS)
            passed.add(name)
    assert passed == {claimed, *IMPLIED.get(claimed, ())}


def test_arrival_order_is_kept(tables: Mapping[str, tuple[Layout, str, BuildCost]]) -> None:
    files = live_files(load_table_json(tables["arrival"][1]))
    spans = sorted(tuple(pc.min_max(pq.read_table(f.path, columns=["id"])["id"]).as_py().values()) for f in files)
    assert [high + 1 for _, high in spans[:-1]] == [low for low, _ in spans[1:]]


def test_what_comes_of_a_build_is_counted(tables: Mapping[str, tuple[Layout, str, BuildCost]]) -> None:
    for _, location, cost in tables.values():
        files = live_files(load_table_json(location))
        live = sum(file.size_bytes for file in files)
        assert cost.files == len(files)
        assert cost.manifests >= 1
        assert cost.bytes_written >= live
        assert cost.bytes_on_disk > live
    # Rows that are brought into order are written twice, and what they were before is gone from the disk.
    arrival, ordered = tables["arrival"][2], tables["sorted"][2]
    assert ordered.bytes_written > 1.5 * arrival.bytes_written
    assert ordered.bytes_on_disk < 1.5 * arrival.bytes_on_disk
    assert arrival.bytes_compacted == 0
    live = sum(file.size_bytes for file in live_files(load_table_json(tables["sorted"][1])))
    assert ordered.bytes_compacted == live < ordered.bytes_written


def test_what_is_built_again_is_the_same_table(
    raw: RawFiles, tables: Mapping[str, tuple[Layout, str, BuildCost]], tmp_path: Path
) -> None:
    """In one attempt, however many the first one needed to find the size of files."""
    ticks = count()
    for name in ("arrival", "sorted", "zorder"):
        layout, _, cost = tables[name]
        (tmp_path / name).mkdir()
        (tmp_path / f"{name} again").mkdir()
        first = build_table(layout, raw, tmp_path / name, spark=no_session)
        again = TableBuild.prepare(
            layout,
            raw,
            tmp_path / f"{name} again",
            spark=no_session,
            enlarged=first["enlarged"],
            clock=lambda: float(next(ticks)),
        )
        again.write()
        location, found = again.finish()
        check_shape(layout, location, ROWS)
        assert found.files == cost.files
        assert again.compaction_seconds == (0 if name == "arrival" else 1)


def damaged(layout: Layout, location: str, message: str) -> None:
    with pytest.raises(DatasetFailed, match=message):
        check_shape(layout, location, ROWS)


@pytest.mark.parametrize("name", ["sorted", "zorder", "hilbert", "arrival", "snappy"])
def test_layouts_have_nearly_as_many_files_as_are_wanted(
    tables: Mapping[str, tuple[Layout, str, BuildCost]], name: str
) -> None:
    layout, location, cost = tables[name]
    assert layout.files is not None
    assert cost.files == pytest.approx(layout.files, rel=0.35)
    # Of a table that was built again nothing is left from before.
    catalogs = Path(load_table_json(location).values["location"]).parents[2].rglob("catalog.db")
    assert len(list(catalogs)) == 1


def test_faults_are_named(tables: Mapping[str, tuple[Layout, str, BuildCost]]) -> None:
    layout, location, _ = tables["arrival"]
    damaged(replace(layout, files=40), location, r"it has \d+ data files, not about 40, in 1 partitions")
    damaged(replace(layout, files=1), location, "data files, not about 1")
    with pytest.raises(DatasetFailed, match="it has 12000 rows, not 11999"):
        check_shape(layout, location, ROWS - 1)
    damaged(replace(layout, sort=BY_ITEM), location, r"\.parquet is not sorted by item, id")
    damaged(
        replace(layout, zorder=("day", "item"), files=6), location, "of the values of day each, not 90% or less|not 1"
    )
    levelled = {**layout.properties, "write.parquet.compression-level": "9"}
    damaged(replace(layout, properties=levelled), location, "its property .*compression-level is None, not 9")
    damaged(replace(layout, file_index=("id",)), location, "it has no file index of id")
    damaged(replace(layout, partition=(Term(column="item"),)), location, r"its partition spec is \[\], not \[\('item'")


def test_files_of_sorted_rows_that_overlap_are_not_sorted_over_the_table(raw: RawFiles, tmp_path: Path) -> None:
    layout = next(layout for layout in LAYOUTS if layout.name == "sorted")
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    table = catalog.create_table(TABLE, raw.schema)
    rows = raw.reader().read_all()
    for part in range(6):
        table.append(rows.slice(part * ROWS // 6, ROWS // 6).sort_by([("item", "ascending"), ("id", "ascending")]))
    damaged(layout, table.metadata_location, r"\.parquet and .*\.parquet overlap in item, id")
    table.maintenance.rewrite_data_files(
        "sort", sort_order=["item", "id"], rewrite_all=True, target_file_size_bytes=60_000
    )
    check_shape(layout, table.metadata_location, ROWS)
    catalog.close()


def test_manifests_that_share_partitions_are_not_clustered(raw: RawFiles, tmp_path: Path) -> None:
    layout = next(layout for layout in LAYOUTS if layout.cluster_manifests)
    build_table(layout, raw, tmp_path, spark=no_session)
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/0/catalog.db", warehouse=str(tmp_path / "0"))
    table = catalog.load_table(TABLE)
    table.append(raw.reader())
    with pytest.raises(DatasetFailed, match=r"its \d+ manifests share partitions"):
        check_shape(replace(layout, files=20), table.metadata_location, 2 * ROWS)
    table.maintenance.rewrite_manifests(by_partition=True)
    check_shape(replace(layout, files=20), table.metadata_location, 2 * ROWS)
    catalog.close()
