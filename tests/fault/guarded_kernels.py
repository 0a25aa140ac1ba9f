"""Runs the Parquet kernels on damaged column chunks and footers, with all that they load or store in guarded memory.

`python -m tests.fault.guarded_kernels SEED FIRST END` says the number of each case before it runs it, and at the end
how many were decoded and how many refused. A load or store out of bounds is a signal.
"""

from __future__ import annotations

import sys
from collections import Counter
from random import Random

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
from tests.fault.guarded_calls import GuardedCalls

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
    GuardedCalls(Random(int(seed))).install()
    for number in range(int(first), int(end)):
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        counts.update(case(Random(f"{seed} {number}")))
    sys.stdout.write(f"{dict(counts)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
