"""Files that claim a sort order are read, and compared with Python's own sorting."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.engine.maintenance.profile.figures import OrderFigures
from icebench.engine.read import request

ROWS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("score", pa.float64())])
IDENTITY = icebench.parse_transform("identity")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[icebench.Catalog]:
    with closing(icebench.load_catalog(str(tmp_path))) as catalog:
        yield catalog


def made(catalog: icebench.Catalog, *fields: icebench.SortField) -> icebench.Table:
    return catalog.create_table("db.t", ROWS, sort_order=icebench.SortOrder(fields, 1))


def rows(ids: list[int | None]) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{i}" for i in ids], "score": [1.0] * len(ids)}, ROWS)


def add(table: icebench.Table, ids: list[int | None], order_id: int | None) -> str:
    """A file of these rows in this order, which claims an order."""
    before = set(table.inspect.data_files()["file_path"].to_pylist())
    other = icebench.load_catalog(str(Path(table.location).parents[1])).create_table(f"db.source_{len(before)}", ROWS)
    other.append(rows(ids))
    file = other.inspect.data_files().to_pylist(maps_as_pydicts="strict")[0]
    table.add_files(
        [
            icebench.DataFile(
                file_path=file["file_path"],
                file_format="parquet",
                record_count=len(ids),
                file_size_in_bytes=file["file_size_in_bytes"],
                sort_order_id=order_id,
            )
        ]
    )
    return str(file["file_path"])


def order_of(table: icebench.Table, sample: int = 10) -> OrderFigures:
    found = table.maintenance.profile(sample_files=sample).order
    assert found is not None
    return found


def test_each_direction_and_place_of_nulls(catalog: icebench.Catalog) -> None:
    table = made(
        catalog,
        icebench.SortField(source_ids=(1,), transform=IDENTITY, direction="desc", null_order="nulls-last"),
        icebench.SortField(source_ids=(2,), transform=icebench.parse_transform("truncate[1]")),
    )
    add(table, [9, 7, 7, 2, None], 1)
    others: list[list[int | None]] = [[None, 9, 7], [7, 9], [1, 2]]
    wrong = [add(table, ids, 1) for ids in others]
    add(table, [1, 2], 0)  # claims nothing
    add(table, [1, 2], None)
    found = order_of(table)
    assert (found.claiming_files, found.read_files, found.unsorted_files) == (4, 4, 3)
    assert sorted(found.unsorted_paths) == sorted(wrong)
    assert order_of(table, 2).read_files == 2
    assert table.maintenance.profile().order is None


def test_order_between_batches_counts(catalog: icebench.Catalog) -> None:
    table = made(catalog, icebench.SortField(source_ids=(1,), transform=IDENTITY))
    size = request.BATCH_ROWS
    add(table, [*range(size), *range(size)], 1)
    add(table, list(range(2 * size)), 1)
    assert order_of(table).unsorted_files == 1


def test_random_rows(catalog: icebench.Catalog) -> None:
    table = made(catalog, icebench.SortField(source_ids=(1,), transform=IDENTITY))
    drawn = random.Random(3)
    expected = 0
    for _ in range(12):
        ids = [drawn.choice([None, 1, 2, 3]) for _ in range(drawn.randrange(1, 4))]
        add(table, ids, 1)
        expected += ids != sorted(ids, key=lambda n: (n is not None, n or 0))
    assert 0 < expected < 12
    assert order_of(table, 100).unsorted_files == expected


def test_floating_point_orders_are_not_compared(catalog: icebench.Catalog) -> None:
    table = made(catalog, icebench.SortField(source_ids=(3,), transform=IDENTITY))
    add(table, [2, 1], 1)
    assert order_of(table) == replace(order_of(table), claiming_files=1, uncomparable_files=1, read_files=0)
