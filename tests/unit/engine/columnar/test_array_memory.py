from __future__ import annotations

import ctypes
import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.columnar.array_memory import ArrayMemory

MEGABYTE = 1 << 20


def filled(memory: ArrayMemory, size_bytes: int, value: int) -> pa.Buffer:
    buffer = memory.allocate(size_bytes)
    ctypes.memset(buffer.address, value, size_bytes)
    return buffer


def test_a_block_is_used_again_when_no_slice_of_its_array_is_left() -> None:
    memory = ArrayMemory()
    array = pa.Array.from_buffers(pa.int64(), MEGABYTE // 8, [None, filled(memory, MEGABYTE, 7)])
    address = array.buffers()[1].address
    part = array.slice(100, 1)
    del array
    assert memory.idle_bytes == 0
    assert memory.allocate(MEGABYTE).address != address
    del part
    assert address in {buffer.address for buffer in [memory.allocate(MEGABYTE) for _ in range(2)]}


def test_a_column_of_a_few_rows_less_takes_the_same_block() -> None:
    memory = ArrayMemory()
    address = filled(memory, 4 * MEGABYTE, 1).address
    gc.collect()
    found = memory.allocate(4 * MEGABYTE - 40_000)
    assert (found.address, found.size) == (address, 4 * MEGABYTE - 40_000)
    assert memory.idle_bytes == 0


def test_no_more_waits_than_is_allowed() -> None:
    memory = ArrayMemory(3 * MEGABYTE)
    held = [filled(memory, MEGABYTE, n) for n in range(5)]
    assert memory.idle_bytes == 0
    held.clear()
    assert 0 < memory.idle_bytes <= 3 * MEGABYTE


def test_blocks_of_another_size_make_room() -> None:
    memory = ArrayMemory(2 * MEGABYTE)
    filled(memory, 2 * MEGABYTE, 1)
    assert memory.idle_bytes == 2 * MEGABYTE
    buffer = filled(memory, MEGABYTE, 2)
    assert memory.idle_bytes == 0
    del buffer
    assert memory.idle_bytes == MEGABYTE


def test_small_arrays_and_huge_ones_are_the_allocators() -> None:
    memory = ArrayMemory(MEGABYTE)
    for size in (0, 100, 2 * MEGABYTE):
        assert len(filled(memory, size, 1).to_pybytes()) == size
    assert memory.idle_bytes == 0


def test_what_there_is_no_room_for_is_a_memory_error() -> None:
    with pytest.raises(MemoryError):
        ArrayMemory(1 << 62).allocate(1 << 60)


@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12)), max_size=30),
    idle=st.sampled_from([0, MEGABYTE, 64 * MEGABYTE]),
)
def test_what_is_held_keeps_its_bytes(steps: list[tuple[int, int]], idle: int) -> None:
    memory = ArrayMemory(idle)
    held: dict[int, tuple[pa.Buffer, int]] = {}
    for number, (place, quarters) in enumerate(steps):
        held.pop(place, None)
        held[place] = filled(memory, quarters * MEGABYTE // 4, number % 251), number % 251
        for buffer, value in held.values():
            view = np.frombuffer(buffer, np.uint8)
            assert view[0] == view[-1] == value
            assert (view[::4096] == value).all()
        assert memory.idle_bytes <= idle


def test_threads_share_it() -> None:
    memory = ArrayMemory(8 * MEGABYTE)

    def work(value: int) -> bool:
        for _ in range(30):
            view = np.frombuffer(filled(memory, MEGABYTE, value), np.uint8)
            if not (view[::4096] == value).all():
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))
    assert memory.idle_bytes <= 8 * MEGABYTE
