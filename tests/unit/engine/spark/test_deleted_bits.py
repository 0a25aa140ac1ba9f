"""Where files find their bits: each in a slot of its own, or not at all."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from icebench.engine.deletes.files import FileRead
from icebench.engine.deletes.loaded_deletes import FileDeletes
from icebench.engine.spark.deleted_bits import bits_of, slots_of
from icebench.engine.spark.file_chunks import LocatedFile


def placed(size: int | None, rows: int, positions: list[int] | None) -> LocatedFile:
    deleted = None if positions is None else np.array(positions, np.int64)
    file = FileRead(file_path=f"{size}.parquet", record_count=rows, file_size_in_bytes=size)
    return LocatedFile(file, file.file_path, FileDeletes(deleted))


def listed(*sizes: int) -> Counter[tuple[str, int]]:
    """What Spark sees of files that are named by their size."""
    return Counter((f"{size}.parquet", size) for size in sizes)


@given(sizes=st.lists(st.integers(1, 2**39), min_size=1, max_size=80, unique=True))
def test_different_sizes_have_different_slots(sizes: list[int]) -> None:
    slots = slots_of(sizes)
    if slots is not None:
        found = [slots.of(size) for size in sizes]
        assert len(set(found)) == len(sizes)
        assert all(0 <= slot < slots.count <= 4096 for slot in found)


files_strategy = st.dictionaries(
    st.integers(1, 10**9),
    st.integers(0, 200).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n)))),
    max_size=6,
)


@given(found=files_strategy.filter(len))
def test_a_row_tests_its_own_bit(found: dict[int, tuple[int, set[int]]]) -> None:
    files = [placed(size, rows, sorted(gone) or None) for size, (rows, gone) in found.items()]
    bits = bits_of(files, lambda: listed(*found))
    assume(bits is not None)
    assert bits is not None
    words = np.concatenate([bits.words_of(file) for file in files])
    known = bits.known()
    count = bits.slots.count
    for size, (rows, gone) in found.items():
        slot = bits.slots.of(size)
        assert (known[slot], known[slot + 2 * count]) == (size, rows)
        for row in range(rows):
            word = int(words[known[slot + count] + (row >> 6)])
            assert (word >> (row & 63)) & 1 == (row in gone)


def test_tens_of_files_have_slots_and_thousands_have_none() -> None:
    sizes = np.random.default_rng(1).integers(40_000_000, 50_000_000, 5000)
    assert slots_of(sizes[:60].tolist()) is not None
    assert slots_of(np.unique(sizes).tolist()) is None
    assert slots_of([7, 8, 7]) is None
    assert slots_of([1 << 20, 2 << 20, 3 << 20]) is not None  # alike in their lower bits


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ([5, 5], listed(5, 5)),
        ([5, None], listed(5)),
        ([5, 6], listed(5, 7)),
        ([5, 6], Counter({("5.parquet", 6): 1, ("6.parquet", 5): 1})),
    ],
    ids=["twice", "unknown", "wrong", "swapped"],
)
def test_files_that_sizes_do_not_distinguish_have_none(
    sizes: list[int | None], found: Counter[tuple[str, int]]
) -> None:
    assert bits_of([placed(size, 10, [1]) for size in sizes], lambda: found) is None


def test_more_bits_than_a_task_should_get_are_none() -> None:
    assert bits_of([placed(5, 64 << 20, [1])], lambda: listed(5)) is not None
    assert bits_of([placed(5, (64 << 20) + 1, [1])], lambda: listed(5)) is None
