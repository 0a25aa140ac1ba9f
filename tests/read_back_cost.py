"""What reading new files back costs: writes the same rows with and without it, interleaved, and prints ratios.

python -m tests.read_back_cost [ROWS]
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.storage.memory import MemoryStore
from icebench.engine.write.data_files import write_data_files
from tests.unit.engine.write.metadata_for_writes import metadata_of

ROUNDS = 7


def nested_rows(count: int) -> pa.Table:
    """A struct in a struct, a list of structs and a map, a tenth of all null."""
    random = np.random.default_rng(1)

    def some(values: npt.NDArray[Any]) -> pa.Array:
        return pa.array(values, mask=random.random(len(values)) < 0.1)

    names = np.char.add("name", random.integers(0, 5000, count).astype(str)).astype(object)
    inner = [some(random.integers(0, 1 << 40, count)), some(random.random(count)), some(names)]
    point = pa.StructArray.from_arrays(inner, ["a", "b", "c"], mask=pa.array(random.random(count) < 0.1))
    outer = pa.StructArray.from_arrays([some(random.integers(0, 1 << 20, count)), point], ["x", "in"])
    ends = np.concatenate([[0], np.cumsum(random.integers(0, 5, count))]).astype(np.int32)
    entries = [some(random.integers(0, 99, ends[-1])), some(random.random(ends[-1]))]
    lists = pa.ListArray.from_arrays(pa.array(ends), pa.StructArray.from_arrays(entries, ["p", "q"]))
    maps = pa.MapArray.from_arrays(pa.array(ends), pa.array(np.arange(ends[-1])), entries[1])
    return pa.table({"s": outer, "l": lists, "m": maps})


def with_flat_columns(rows: pa.Table) -> pa.Table:
    """The same with 16 columns of numbers and texts."""
    random = np.random.default_rng(2)
    for place in range(8):
        numbers = random.integers(0, 1 << 40, rows.num_rows)
        rows = rows.append_column(f"i{place}", [numbers]).append_column(f"t{place}", [pa.array(numbers).cast("string")])
    return rows


def seconds(rows: pa.Table, file_format: str, read_back: str) -> float:
    """Processor time of one write."""
    properties = {"write.format.default": file_format, "icebench.write.read-back": read_back}
    metadata = metadata_of(rows.schema, properties=properties)
    start = time.process_time()
    write_data_files(rows, metadata=metadata, store=MemoryStore())
    return time.process_time() - start


def main() -> None:
    nested = nested_rows(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
    for name, rows in (("nested columns", nested), ("16 flat columns besides", with_flat_columns(nested))):
        for file_format in ("orc", "avro"):
            ratios = []
            for _ in range(ROUNDS):
                plain = seconds(rows, file_format, "none")
                ratios.append(seconds(rows, file_format, "nested") / plain)
            median = statistics.median(ratios)
            sys.stdout.write(f"{file_format}, {name}: {median:.2f} ({min(ratios):.2f} to {max(ratios):.2f})\n")


if __name__ == "__main__":
    main()
