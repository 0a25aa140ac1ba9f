from __future__ import annotations

from collections import deque
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.plan.files_table import DELETE_FILE
from icebench.engine.plan.tasks import ScanTask, TaskPacking, combined_tasks, splits_of
from icebench.errors import Invalid

MB = 1 << 20


def files(*rows: dict[str, Any]) -> pa.Table:
    """A plan's files, as far as tasks look at them."""
    deletes = [each for r in rows for each in r.get("deletes", [])]
    references = pa.DictionaryArray.from_arrays(
        pa.array(range(len(deletes)), pa.int32()), pa.array(deletes, DELETE_FILE)
    )
    ends = [0, *accumulate(len(r.get("deletes", [])) for r in rows)]
    return pa.table(
        {
            "file_size_in_bytes": pa.array([r["size"] for r in rows], pa.int64()),
            "split_offsets": pa.array([r.get("offsets") for r in rows], pa.list_(pa.int64())),
            "deletes": pa.ListArray.from_arrays(pa.array(ends, pa.int32()), references),
            "spec_id": pa.array([r.get("spec", 0) for r in rows], pa.int32()),
            "partition": pa.array(
                [{"p": r.get("p"), "n": r.get("n")} for r in rows],
                pa.struct([pa.field("p", pa.string()), pa.field("n", pa.int32())]),
            ),
        }
    )


def delete(size: int, part: int | None = None) -> dict[str, Any]:
    return {
        "content": 1,
        "file_path": "d",
        "file_format": "parquet",
        "record_count": 1,
        "file_size_in_bytes": size,
        "sequence_number": 1,
        "content_size_in_bytes": part,
    }


def pieces(tasks: list[ScanTask]) -> list[list[tuple[int, int, int]]]:
    return [list(zip(t.file_index.tolist(), t.start.tolist(), t.length_bytes.tolist(), strict=True)) for t in tasks]


def test_splits_by_offsets_and_by_size() -> None:
    found = splits_of(files({"size": 100, "offsets": [4, 40, 80]}, {"size": 100}), split_bytes=60, open_file_cost=0)
    assert list(zip(found.file_index, found.start, found.length_bytes, strict=True)) == [
        (0, 0, 40),
        (0, 40, 40),
        (0, 80, 20),
        (1, 0, 60),
        (1, 60, 40),
    ]


@pytest.mark.parametrize("offsets", [[40, 40], [80, 4], [4, 100], [-1], []])
def test_offsets_that_make_no_sense_are_ignored(offsets: list[int]) -> None:
    found = splits_of(files({"size": 100, "offsets": offsets}), split_bytes=100, open_file_cost=0)
    assert (found.start.tolist(), found.length_bytes.tolist()) == ([0], [100])


def test_deletes_weigh() -> None:
    table = files({"size": 10, "deletes": [delete(7), delete(1000, part=5)]}, {"size": 10})
    assert splits_of(table, split_bytes=100, open_file_cost=0).weight.tolist() == [22, 10]
    assert splits_of(table, split_bytes=100, open_file_cost=20).weight.tolist() == [60, 20]


def test_neighbours_in_one_task_are_joined() -> None:
    tasks = combined_tasks(files({"size": 100, "offsets": [4, 40, 80]}), TaskPacking(split_bytes=80, open_file_cost=0))
    assert pieces(tasks) == [[(0, 0, 80)], [(0, 80, 20)]]


def test_small_files_share_a_task() -> None:
    tasks = combined_tasks(files(*[{"size": 1000}] * 70), TaskPacking())
    assert [len(t) for t in tasks] == [32, 32, 6]
    assert tasks[0].size_bytes == 32_000


def test_nothing() -> None:
    assert combined_tasks(files(), TaskPacking()) == []
    assert pieces(combined_tasks(files({"size": 0}), TaskPacking())) == [[(0, 0, 0)]]


@pytest.mark.parametrize("wrong", [{"split_bytes": 0}, {"lookback": 0}, {"open_file_cost": -1}])
def test_sizes_must_be_positive(wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        TaskPacking(**wrong)


def test_a_table_says_how_its_tasks_are_packed() -> None:
    names = ("target-size", "planning-lookback", "open-file-cost")
    properties = {f"read.split.{name}": str(value) for name, value in zip(names, (70, 2, 0), strict=True)}
    assert TaskPacking.of({}) == TaskPacking(split_bytes=128 << 20, lookback=10, open_file_cost=4 << 20)
    assert TaskPacking.of(properties) == TaskPacking(split_bytes=70, lookback=2, open_file_cost=0)
    assert TaskPacking.of(properties, 50).split_bytes == 50
    with pytest.raises(Invalid, match=r"read\.split\.planning-lookback='0'"):
        TaskPacking.of({"read.split.planning-lookback": "0"})


def packed(weights: list[int], target: int, lookback: int) -> list[list[int]]:
    """Iceberg's packing, item by item."""
    bins: deque[tuple[list[int], int]] = deque()
    done = []
    for item, weight in enumerate(weights):
        place = next((i for i, (_, load) in enumerate(bins) if load + weight <= target), None)
        if place is not None:
            bins[place] = ([*bins[place][0], item], bins[place][1] + weight)
            continue
        bins.append(([item], weight))
        if len(bins) > lookback:
            heaviest = max(range(len(bins)), key=lambda i: (bins[i][1], -i))
            done.append(bins[heaviest][0])
            del bins[heaviest]
    return done + [items for items, _ in bins]


@given(
    weights=st.lists(st.integers(1, 40), max_size=60),
    target=st.integers(1, 60),
    lookback=st.integers(1, 12),
    cost=st.integers(0, 30),
)
def test_packing_is_icebergs(weights: list[int], target: int, lookback: int, cost: int) -> None:
    table = files(*({"size": w, "offsets": [0]} for w in weights))
    tasks = combined_tasks(table, TaskPacking(split_bytes=target, lookback=lookback, open_file_cost=cost))
    assert [t.file_index.tolist() for t in tasks] == packed([max(w, cost) for w in weights], target, lookback)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 500), st.lists(st.integers(0, 500), max_size=5)), max_size=20),
    target=st.integers(1, 400),
)
def test_tasks_cover_each_byte_of_each_file_once(sizes: list[tuple[int, list[int]]], target: int) -> None:
    table = files(*({"size": size, "offsets": offsets} for size, offsets in sizes))
    tasks = combined_tasks(table, TaskPacking(split_bytes=target, open_file_cost=1))
    found: dict[int, list[tuple[int, int]]] = {i: [] for i in range(len(sizes))}
    for file, start, length in (piece for task in pieces(tasks) for piece in task):
        found[file].append((start, start + length))
    for file, (size, offsets) in enumerate(sizes):
        ranges = sorted(found[file])
        assert ranges[0][0] in {0, *offsets[:1]}
        assert ranges[-1][1] == size
        assert all(a[1] == b[0] for a, b in pairwise(ranges))


PLACED = st.fixed_dictionaries(
    {
        "size": st.integers(1, 300),
        "spec": st.integers(0, 1),
        "p": st.sampled_from([None, "a", "b"]),
        "n": st.none() | st.integers(0, 1),
    }
)


@given(st.lists(PLACED, max_size=12), st.integers(1, 200), st.integers(1, 3))
def test_tasks_of_one_partition_each(rows: list[dict[str, Any]], split_bytes: int, lookback: int) -> None:
    table = files(*rows)
    options: dict[str, Any] = {"split_bytes": split_bytes, "lookback": lookback, "open_file_cost": 1}
    tasks = combined_tasks(table, TaskPacking(**options), by_partition=True)
    place = [(row["spec"], row["p"], row["n"]) for row in rows]
    of_task = [{place[file] for file in task.file_index.tolist()} for task in tasks]
    assert all(len(found) == 1 for found in of_task)
    # Each partition is packed as if there were no other, and the partitions come in the order of their files.
    expected = []
    for wanted in dict.fromkeys(place):
        own = [number for number, found in enumerate(place) if found == wanted]
        expected += [
            [(own[file], start, length) for file, start, length in task]
            for task in pieces(combined_tasks(files(*(rows[number] for number in own)), TaskPacking(**options)))
        ]
    assert pieces(tasks) == expected
