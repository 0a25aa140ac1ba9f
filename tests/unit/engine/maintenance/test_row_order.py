"""The order of rows of several partitions."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

import icebench
from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.columnar.sorting import order_of, sort_keys
from icebench.engine.maintenance import row_order
from icebench.engine.maintenance.range_files import RangeFiles
from icebench.engine.maintenance.row_order import Ordering, Sample, _Bounds, _order
from icebench.engine.spec.partitioning import partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortField, SortOrder
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import LONG, STRING, NestedField

SCHEMA = Schema((NestedField(field_id=1, name="p", type=STRING), NestedField(field_id=2, name="x", type=LONG)))
BY_P = partition_spec(SCHEMA, [("p", Identity())])
BY_X = SortOrder((SortField(source_ids=(2,), transform=Identity()),), 1)


ORDERINGS = {
    "z-order": Ordering(z_order=(2,)),
    "hilbert": Ordering(hilbert=(2,)),
    "sort": Ordering(sort_order=BY_X),
}


@pytest.mark.parametrize("ordering", ORDERINGS.values(), ids=ORDERINGS)
def test_rows_of_a_partition_are_together_and_in_order(ordering: Ordering) -> None:
    rows = pa.table({"p": list("abbaba"), "x": [5, 1, 6, 2, 3, 4]}, to_arrow_schema(SCHEMA))
    found = rows.take(pa.array(_order(rows, SCHEMA, BY_P, ordering))).to_pylist()
    assert [(row["p"], row["x"]) for row in found] == [("a", 2), ("a", 4), ("a", 5), ("b", 1), ("b", 3), ("b", 6)]


@pytest.mark.parametrize("seed", range(8))
def test_ranges_follow_each_other_and_are_small_whatever_the_keys(seed: int) -> None:
    """Even where all rows have one key, which then keep the order in which they are read."""
    random = Random(seed)
    distinct = [1, 3, 50, 5_000][seed % 4]
    count, ranges, stride = 5_000, 7, 5
    values = [random.choice([None, *range(distinct)]) for _ in range(count)]
    rows = pa.table({"p": [random.choice("ab") for _ in values], "x": values}, to_arrow_schema(SCHEMA))
    descending = SortOrder(
        (SortField(source_ids=(2,), transform=Identity(), direction="desc", null_order="nulls-last"),), 1
    )
    order = BY_X if seed < 4 else descending

    def keys(of: pa.Table):
        return sort_keys(of, BY_P, order, SCHEMA)

    numbers = np.arange(0, count, stride)
    bounds = _Bounds.of(keys(rows.take(pa.array(numbers))), numbers, ranges)
    pieces = [bounds.ranges_of(keys(rows.slice(start, 700)), start) for start in range(0, count, 700)]
    found = np.concatenate(pieces)
    sizes = np.bincount(found, minlength=ranges)
    assert max(sizes) < 1.3 * count / ranges
    by_range = [np.flatnonzero(found == number) for number in range(ranges)]
    ordered = [own[order_of(*keys(rows.take(pa.array(own)))).to_numpy()] for own in by_range]
    assert np.concatenate(ordered).tolist() == order_of(*keys(rows)).to_pylist()


@pytest.mark.parametrize("sizes", [[5], [150], [1_000], [99, 1, 250, 0, 7], [10] * 100, [1_000, 3, 3_000]])
def test_a_sample_is_of_all_rows_evenly(sizes: list[int]) -> None:
    count = sum(sizes)
    rows = pa.table({"x": range(count)}).combine_chunks()
    starts = np.cumsum([0, *sizes[:-1]])
    batches = [rows.slice(start, size).combine_chunks() for start, size in zip(starts, sizes, strict=True)]
    read = (pa.RecordBatch.from_arrays([pa.array(each["x"].to_pylist(), pa.int64())], ["x"]) for each in batches)
    sample = Sample.of(read, rows.schema, least=100)
    assert sample.count == count
    assert sample.rows["x"].to_pylist() == sample.numbers.tolist()
    steps = set(np.diff(sample.numbers).tolist())
    assert sample.numbers[0] == 0
    assert len(steps) <= 1
    assert len(sample.numbers) == -(-count // next(iter(steps), 1))
    assert min(count, 100) <= len(sample.numbers) < 200


def test_fewer_sampled_rows_than_ranges() -> None:
    rows = pa.table({"p": ["a"] * 3, "x": [3, 1, 2]}, to_arrow_schema(SCHEMA))
    keys = sort_keys(rows, BY_P, BY_X, SCHEMA)
    bounds = _Bounds.of(keys, np.arange(3), 50)
    assert bounds.ranges_of(keys, 0).tolist() == [2, 0, 1]


@pytest.mark.parametrize("how", ["sort", "zorder"])
def test_what_is_sorted_at_a_time_is_small_and_equal_keys_keep_their_order(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_order, "_PIECE_ROWS", 100)
    sizes = []
    read = RangeFiles.read

    def noted(files: RangeFiles, number: int) -> pa.Table:
        found = read(files, number)
        sizes.append(found.num_rows)
        return found

    monkeypatch.setattr(RangeFiles, "read", noted)
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", to_arrow_schema(SCHEMA))
    for start in range(0, 3_000, 1_000):
        table.append(pa.table({"p": ["a"] * 1_000, "x": range(start, start + 1_000)}, to_arrow_schema(SCHEMA)))
    before = table.scan().to_arrow()["x"].to_pylist()
    memory = 9_000
    if how == "sort":
        table.maintenance.rewrite_data_files("sort", sort_order=["p"], rewrite_all=True, sort_memory_bytes=memory)
    else:
        table.maintenance.rewrite_data_files("zorder", zorder_by=["p"], rewrite_all=True, sort_memory_bytes=memory)
    assert table.scan().to_arrow()["x"].to_pylist() == before
    assert sum(sizes) == 3_000
    # A row has 13 bytes; a range has a third of the memory, and the sample is of all rows.
    assert max(sizes) * 13 < memory / 3


@pytest.mark.parametrize("curve", ["zorder", "hilbert"])
def test_a_curve_through_one_column_is_its_order_though_little_fits_into_memory(
    tmp_path: Path, curve: Literal["zorder", "hilbert"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_order, "_PIECE_ROWS", 100)
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", to_arrow_schema(SCHEMA))
    values = np.random.default_rng(5).permutation(3_000)
    for own in np.split(values, 3):
        table.append(pa.table({"p": [f"p{x}" for x in own], "x": own}, to_arrow_schema(SCHEMA)))
    by: dict[str, Any] = {"zorder_by": ["x"]} if curve == "zorder" else {"hilbert_by": ["x"]}
    table.maintenance.rewrite_data_files(curve, rewrite_all=True, sort_memory_bytes=3_000, **by)
    assert table.scan().to_arrow().to_pylist() == [{"p": f"p{x}", "x": x} for x in range(3_000)]


@pytest.mark.parametrize("how", ["sort", "zorder", "hilbert"])
def test_rows_that_are_wider_than_the_first_are_not_sorted_in_memory(
    tmp_path: Path, how: Literal["sort", "zorder", "hilbert"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_order, "_PIECE_ROWS", 100)
    sizes = []
    read = RangeFiles.read

    def noted(files: RangeFiles, number: int) -> pa.Table:
        found = read(files, number)
        sizes.append(found.nbytes)
        return found

    monkeypatch.setattr(RangeFiles, "read", noted)
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", to_arrow_schema(SCHEMA))
    values = np.random.default_rng(7).permutation(2_100)
    narrow, wide = values[:100], values[100:]
    table.append(pa.table({"p": [f"{x:0500}" for x in wide], "x": wide}, to_arrow_schema(SCHEMA)))
    # The newest file is read first.
    table.append(pa.table({"p": pa.nulls(100, pa.string()), "x": narrow}, to_arrow_schema(SCHEMA)))
    by: dict[str, Any] = {"sort_order" if how == "sort" else f"{how}_by": ["x"]}
    memory = 300_000
    table.maintenance.rewrite_data_files(how, rewrite_all=True, sort_memory_bytes=memory, **by)
    assert table.scan().to_arrow()["x"].to_pylist() == list(range(2_100))
    assert sum(sizes) > 1_000_000
    assert max(sizes) < memory / 3
