"""Runs the Parquet kernels on damaged column chunks and footers, with all that they load or store in guarded memory.

`python -m tests.fault.guarded_kernels SEED FIRST END` says the number of each case before it runs it, and at the end
how many were decoded and how many refused. A load or store out of bounds is a signal.
"""

from __future__ import annotations

import ctypes
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine.codec import parquet_footer, parquet_layout
from engine.codec.parquet_choice import KERNELS
from engine.codec.parquet_chunk import Chunk, ChunkForm, KeptRows
from engine.codec.parquet_footer import slim_footer
from engine.codec.parquet_footer_chunks import FooterChunks, listed_by_kernel
from engine.codec.parquet_inflate import BadPageError
from tests.fault.damage import BLIND
from tests.fault.guarded_memory import GuardedMemory

_ROWS = (0, 1, 7, 64, 65, 1000, 1025, 3000)
_FORMS: tuple[tuple[pa.DataType, int, int, int], ...] = (
    # type, bytes in the file, form, bytes in the array
    (pa.int32(), 4, parquet_layout.SAME, 4),
    (pa.int64(), 8, parquet_layout.SAME, 8),
    (pa.decimal128(7, 2), 4, parquet_layout.EXTENDED, 16),
    (pa.decimal128(15, 2), 8, parquet_layout.EXTENDED, 16),
    (pa.decimal128(20, 2), 9, parquet_layout.BIG_ENDIAN, 16),
    (pa.decimal128(38, 2), 16, parquet_layout.BIG_ENDIAN, 16),
)


class GuardedKernels:
    """Stands in for functions of `KERNELS`: the memory that they are told of is copied between guards and back.

    Args:
        random: Whether memory ends at a guard or begins there.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._free: list[GuardedMemory] = []
        self._decode_page = KERNELS.decode_page
        self._scan_pages = KERNELS.scan_pages
        self._list_chunks = KERNELS.list_chunks
        self._slim_footer = KERNELS.slim_footer

    def scan_pages(self, numbers: Sequence[int]) -> int:
        at = parquet_layout
        table = numbers[at.SCAN_ROOM] * at.PAGE_WIDTH * 8
        sizes = {at.SCAN_CHUNK: numbers[at.SCAN_SIZE], at.SCAN_TABLE: table}
        return self._guarded(self._scan_pages, numbers, sizes)

    def list_chunks(self, numbers: Sequence[int]) -> tuple[int, int]:
        at = parquet_layout
        table = numbers[at.LIST_ROOM] * at.CHUNK_WIDTH * 8
        sizes = {at.LIST_FOOTER: numbers[at.LIST_SIZE], at.LIST_TABLE: table, at.LIST_STACK: 16 * at.STACK_DEPTH}
        found: tuple[int, int] = self._guarded(self._list_chunks, numbers, sizes)
        return found

    def slim_footer(self, numbers: Sequence[int]) -> int:
        at = parquet_layout
        size = numbers[at.SLIM_SIZE]
        sizes = {
            at.SLIM_FOOTER: size,
            at.SLIM_WANTED: 8 * numbers[at.SLIM_WANTED_COUNT],
            at.SLIM_IS_KEPT: 2 * size,
            at.SLIM_STACK: 16 * at.STACK_DEPTH,
            at.SLIM_OUT: size + 64,
        }
        return self._guarded(self._slim_footer, numbers, sizes)

    def decode_page(self, numbers: Any) -> int:
        at = parquet_layout
        rows = numbers[at.OUT_ROWS]
        sizes = {
            at.VALUES_AT: numbers[at.VALUES_SIZE],
            at.DICTIONARY_AT: max(1, numbers[at.DICTIONARY_VALUES]) * numbers[at.DICTIONARY_WIDTH],
            at.OUT_AT: (rows + 1) * numbers[at.OUT_WIDTH],
            at.VALIDITY_AT: (rows >> 6 << 3) + 24,
            at.KEEP_AT: (numbers[at.KEEP_ROW] + numbers[at.VALUES] + 7) // 8 + 16,
            at.SCRATCH_AT: numbers[at.SCRATCH_SIZE],
        }
        if numbers[at.LEVELS] == at.LEVELS_APART:
            sizes[at.LEVELS_AT] = numbers[at.LEVELS_SIZE]
        return self._guarded(self._decode_page, numbers, sizes)

    def _guarded(self, kernel: Callable[[Any], Any], numbers: Any, sizes: dict[int, int]) -> Any:
        """Call a kernel with the memory at some of its numbers, of so many bytes, between guards."""
        at_end = self._random.random() < 0.7
        used, own = [], {slot: numbers[slot] for slot, size in sizes.items() if numbers[slot]}
        made = numbers if isinstance(numbers, ctypes.Array) else list(numbers)
        for slot, address in own.items():
            memory = self._taken(sizes[slot])
            made[slot] = memory.put(address, sizes[slot], at_end=at_end)
            used.append((memory, address, made[slot], sizes[slot]))
        found = kernel(made)
        for memory, address, place, size in used:
            ctypes.memmove(address, place, size)
            self._free.append(memory)
        for slot, address in own.items():
            made[slot] = address
        return found

    def _taken(self, size: int) -> GuardedMemory:
        for place, memory in enumerate(self._free):
            if memory.holds(size):
                return self._free.pop(place)
        return GuardedMemory(size)


def written(random: Random, type_: pa.DataType) -> bytes:
    """A file of one column, without checksums and uncompressed, so that damage reaches the kernels."""
    rows = random.choice(_ROWS)
    share, distinct = random.choice([0.0, 0.3, 1.0]), random.choice([1, 5, 10_000])
    numbers = [None if random.random() < share else random.randrange(distinct) for _ in range(rows)]
    array = pa.array(numbers, pa.int64()).cast(pa.decimal128(19, 0)).cast(type_) if pa.types.is_decimal(type_) else None
    field = pa.field("c", type_, nullable=share > 0 or random.random() < 0.5)
    table = pa.table([pa.array(numbers, type_) if array is None else array], schema=pa.schema([field]))
    is_integer = not pa.types.is_decimal(type_) or type_.precision <= 18
    encoding = random.choice(["PLAIN", "BYTE_STREAM_SPLIT", *(["DELTA_BINARY_PACKED"] if is_integer else [])])
    is_dictionary = random.random() < 0.4
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression="NONE",
        use_dictionary=is_dictionary,
        column_encoding=None if is_dictionary else {"c": encoding},
        data_page_version=random.choice(["1.0", "2.0"]),
        data_page_size=random.choice([64, 4096, 1 << 20]),
        store_decimal_as_integer=True,
    )
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decode(random: Random, data: bytes, form: ChunkForm) -> str:
    """One column chunk, damaged or not: what came of it."""
    keep = None
    if random.random() < 0.6:
        keep = KeptRows(
            np.array([random.random() < random.choice([0.02, 0.5, 0.98]) for _ in range(form.values)], bool)
        )
    rows = form.values if keep is None else keep.count
    out = np.empty((rows + 1) * form.out_width, np.uint8)
    validity = np.zeros((rows >> 6 << 3) + 24, np.uint8)
    addresses = [array.__array_interface__["data"][0] for array in (out, validity)]
    try:
        chunk = Chunk(data, form)
        if not chunk.is_known:
            return "left"
        chunk.decode(addresses[0], addresses[1] if form.is_optional else 0, rows, keep)
    except BadPageError:
        return "refused"
    return "decoded"


def case(random: Random) -> list[str]:
    type_, width, how, out_width = random.choice(_FORMS)
    file = written(random, type_)
    size = int.from_bytes(file[-8:-4], "little")
    footer = file[-8 - size : -8]
    metadata = pq.read_metadata(pa.BufferReader(file))
    column = metadata.schema.column(0)
    found = []
    for group in range(metadata.num_row_groups):
        place = FooterChunks(footer, metadata.num_row_groups, 1).place(group, 0)
        assert place is not None
        assert place.codec is not None
        form = ChunkForm(
            values=place.values,
            codec=place.codec,
            is_optional=column.max_definition_level == 1,
            is_integer=width in (4, 8),
            width=width,
            form=how,
            out_width=out_width,
        )
        whole = file[place.start : place.start + place.size]
        assert decode(random, whole, form) == "decoded"
        found += [decode(random, _damaged(random, whole), form) for _ in range(10)]
    for _ in range(5):
        bad = _damaged(random, footer)
        listed = listed_by_kernel(bad, max(1, metadata.num_row_groups), 1)[0]
        slim = slim_footer(bad, [random.choice([-1, 0, 1])])
        found.append(f"footer {'refused' if listed is None and slim is None else 'read'}")
    return found


def _damaged(random: Random, data: bytes) -> bytes:
    return random.choice(BLIND)(random, data) if data else data


def main(seed: str, first: str, end: str) -> None:
    assert KERNELS.load()
    parquet_footer._FEWEST_BYTES = 0
    counts: Counter[str] = Counter()
    guarded = GuardedKernels(Random(int(seed)))
    for name in ("scan_pages", "list_chunks", "slim_footer", "decode_page"):
        setattr(KERNELS, name, getattr(guarded, name))
    for number in range(int(first), int(end)):
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        counts.update(case(Random(f"{seed} {number}")))
    sys.stdout.write(f"{dict(counts)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
