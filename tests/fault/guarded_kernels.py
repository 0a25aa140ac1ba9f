"""Runs the kernels of Parquet footers on damaged ones, with all that they load or store in guarded memory.

`python -m tests.fault.guarded_kernels SEED FIRST END` says the number of each case before it runs it, and at the end
how many were read and how many refused. A load or store out of bounds is a signal.
"""

from __future__ import annotations

import sys
from collections import Counter
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from icebench.engine.formats.parquet import footer as parquet_footer
from icebench.engine.formats.parquet.footer import slim_footer
from icebench.engine.formats.parquet.footer_chunks import listed_by_kernel
from icebench.engine.formats.parquet.machine_kernels import LIST_CHUNKS, SLIM_FOOTER
from icebench.engine.formats.parquet.thrift import BINARY, LIST, STRUCT, read_field, read_list, read_struct, skip
from icebench.engine.formats.parquet.thrift_writing import varint
from tests.fault.damage import BLIND
from tests.fault.guarded_calls import GuardedCalls

TRUE, INT32, DOUBLE = 1, 5, 7
"""Kinds of Thrift's fields."""
_TYPES = (pa.int32(), pa.int64(), pa.decimal128(7, 2), pa.string(), pa.struct({"x": pa.int32(), "y": pa.string()}))


def footer_of(random: Random) -> tuple[bytes, int, int]:
    """The footer of a small file, its row groups and leaves."""
    rows = random.choice([0, 1, 7, 40])
    fields = [
        pa.field(f"c{n}", random.choice(_TYPES), metadata={"PARQUET:field_id": str(n)})
        for n in range(random.choice([1, 2, 9]))
    ]
    table = pa.Table.from_arrays([pa.nulls(rows, f.type) for f in fields], schema=pa.schema(fields))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=random.choice([3, 100]), store_schema=random.random() < 0.5)
    data: bytes = sink.getvalue().to_pybytes()
    metadata = pq.read_metadata(pa.BufferReader(data))
    size = int.from_bytes(data[-8:-4], "little")
    return data[-8 - size : -8], metadata.num_row_groups, metadata.num_columns


def with_children(random: Random, footer: bytes) -> bytes:
    """The root of the schema says its number of children again and again, the right one last, or says it by something
    that is no number."""
    number, kind, at = read_field(footer, 0, 0)
    while number != 2:  # FileMetaData.schema
        number, kind, at = read_field(footer, skip(footer, at, kind), number)
    _, _, root = read_list(footer, at)
    end = skip(footer, root, STRUCT)
    numbers = random.choice([1, 1 << 10]), read_struct(footer, root)[0][5]
    again, right = (bytes([INT32, *varint(5 << 1), *varint(number << 1)]) for number in numbers)
    other = bytes([random.choice([TRUE, DOUBLE, BINARY, LIST, STRUCT]), *varint(5 << 1), *varint(20), *b"\xff" * 20])
    more = random.choice([again * random.choice([0, 40, 4_000]) + right, right * 4_000, other])
    return footer[: end - 1] + more + b"\0" + footer[end:]


def case(random: Random) -> list[str]:
    footer, groups, leaves = footer_of(random)
    if groups:
        assert listed_by_kernel(footer, groups, leaves)[0] is not None
    found = []
    for _ in range(10):
        bad = random.choice([*BLIND, with_children])(random, footer)
        listed = listed_by_kernel(bad, max(1, groups), leaves)[0]
        slim = slim_footer(bad, [random.choice([-1, 0, 1])])
        found.append(f"footer {'refused' if listed is None and slim is None else 'read'}")
    return found


def main(seed: str, first: str, end: str) -> None:
    assert LIST_CHUNKS.load()
    assert SLIM_FOOTER.load()
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
