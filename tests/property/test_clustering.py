"""What a clustering pass chooses, against definitions worked out file by file; the rows that it leaves are in
`test_table_machine`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.maintenance.clustering import KeyRanges, average_depth, choose_merges, within_budget

FILES = st.integers(1, 3).flatmap(
    lambda dimensions: st.lists(
        st.tuples(
            st.integers(0, 2),
            st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=dimensions, max_size=dimensions),
            st.integers(1, 50),
            st.integers(0, 20),
        ),
        min_size=1,
        max_size=30,
    )
)
"""Of each file its partition, its box, its bytes and its run."""


def key_ranges(files: list[tuple[int, list[tuple[int, int]], int, int]]) -> KeyRanges:
    boxes = np.sort(np.array([box for _, box, _, _ in files]), axis=2).transpose(1, 2, 0)
    partition, size_bytes, run = (np.array([each[i] for each in files]) for i in (0, 2, 3))
    bounds = [(each, each**1.5) for each in boxes]  # so that no middle is another's bound
    return KeyRanges.of(partition=partition, bounds=bounds, size_bytes=size_bytes, run=run)


@given(FILES)
def test_depth_and_bytes_are_those_of_boxes(files: list[tuple[int, list[tuple[int, int]], int, int]]) -> None:
    found = key_ranges(files)
    count, dimensions = len(files), len(found.low)

    def holds(i: int, d: int, at: int) -> bool:
        return bool(found.low[d, i] <= at <= found.high[d, i])

    depth = found.depths(found.partition)
    for i in range(count):
        own = [j for j in range(count) if found.partition[j] == found.partition[i]]
        if dimensions == 1:
            points = range(found.low[0, i], found.high[0, i] + 1)
            assert depth[i] == max(sum(holds(j, 0, at) for j in own) for at in points)
        else:
            boxes = [[sorted(at**1.5 for at in box) for box in files[j][1]] for j in range(count)]
            middle = [(low + high) / 2 for low, high in boxes[i]]
            assert depth[i] == sum(
                all(low <= at <= high for at, (low, high) in zip(middle, boxes[j], strict=True)) for j in own
            )
        everything = sum(float(found.size_bytes[j]) for j in own)
        expected = everything
        for d in range(dimensions):
            low, high = sorted(at**1.5 for at in files[i][1][d])
            within = 0.0
            for j in own:
                begin, end = sorted(at**1.5 for at in files[j][1][d])
                inside = low <= begin <= high if begin == end else max(0.0, min(high, end) - max(low, begin))
                within += files[j][2] * inside / (end - begin or 1)
            expected *= within / everything
        assert found.local_bytes[i] == pytest.approx(expected, rel=1e-3, abs=1e-3)


@given(FILES, st.integers(2, 5), st.none() | st.integers(0, 500))
def test_merges_are_of_one_partition_of_enough_runs_and_within_the_budget(
    files: list[tuple[int, list[tuple[int, int]], int, int]], fan_in: int, budget: int | None
) -> None:
    found = key_ranges(files)
    merges = choose_merges(found, fan_in)
    members = [i for each in merges for i in each.files.tolist()]
    assert len(set(members)) == len(members)
    for each in merges:
        assert len(set(found.partition[each.files].tolist())) == 1
        assert len(set(found.run[each.files].tolist())) >= fan_in
        assert each.size_bytes == found.size_bytes[each.files].sum()
    rates = [each.depth_gained / each.size_bytes for each in merges]
    assert rates == sorted(rates, reverse=True)
    chosen, waiting = within_budget(merges, budget)
    assert sorted(map(id, [*chosen, *waiting])) == sorted(map(id, merges))
    if budget is not None:
        left = budget - sum(each.size_bytes for each in chosen)
        assert left >= 0
        assert all(each.size_bytes > left for each in waiting)


@pytest.mark.parametrize(("fan_in", "width"), [(2, 1.0), (4, 1.0), (4, 0.2)])
def test_a_row_is_rewritten_a_logarithmic_number_of_times(fan_in: int, width: float) -> None:
    # Batches over all keys, or over a fifth of them somewhere.
    appends, keys = 256, 10_000
    chance = np.random.default_rng(7)
    bounds, sizes, runs = np.zeros((2, 0), np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    rewritten = 0
    for number in range(appends):
        low = chance.integers(0, int(keys * (1 - width)) + 1)
        high = low + int(keys * width) - chance.integers(0, 100)
        bounds = np.concatenate([bounds, [[low], [high]]], axis=1)
        sizes, runs = np.append(sizes, 100), np.append(runs, number)
        merges = choose_merges(_keyed(bounds, sizes, runs), fan_in)
        rewritten += sum(each.size_bytes for each in merges)
        for each in merges:
            bounds[:, each.files] = [[bounds[0, each.files].min()], [bounds[1, each.files].max()]]
            sizes[each.files], runs[each.files] = 0, number + appends
            sizes[each.files[0]] = each.size_bytes
        bounds, sizes, runs = bounds[:, sizes > 0], sizes[sizes > 0], runs[sizes > 0]
    assert rewritten <= 100 * appends * math.log(appends, fan_in)
    assert average_depth(_keyed(bounds, sizes, runs)) < fan_in * math.log(appends, fan_in)


def _keyed(bounds: np.ndarray, sizes: np.ndarray, runs: np.ndarray) -> KeyRanges:
    return KeyRanges.of(
        partition=np.zeros(len(sizes), np.int64),
        bounds=[(bounds, bounds.astype(np.float64))],
        size_bytes=sizes,
        run=runs,
    )
