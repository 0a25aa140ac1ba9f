"""What larger pieces, and beginning row groups ahead, gain with large local row groups."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest

import icebench
from icebench.engine.read import row_group, row_group_stream

FILES, ROWS = 4, 1_000_000
RUNS = 11
NOT_AHEAD = {(row_group_stream, "_MOST_BEGUN"): 1, (row_group_stream, "_AHEAD_BYTES"): 0}
SMALL_PIECES = {(row_group, "_MOST_ROWS"): 1 << 17, (row_group, "_MOST_FILTERED_ROWS"): 1 << 17}
WAYS: list[Mapping[tuple[ModuleType, str], int]] = [{}, NOT_AHEAD, NOT_AHEAD | SMALL_PIECES]
CASES: list[tuple[list[str], str | None]] = [
    (["whole"], None),
    (["amount"], None),
    (["name"], None),
    (["whole", "amount", "name"], None),
    (["whole", "amount", "name"], "part < 10"),
]


def rows(random: np.random.Generator) -> pa.Table:
    cents = pa.array(random.integers(0, 9_999_999, ROWS)).cast(pa.decimal128(19, 0))
    return pa.table(
        {
            "part": pa.array(random.integers(0, 1000, ROWS), pa.int32()),
            "whole": random.integers(0, 1 << 40, ROWS),
            "amount": pa.Array.from_buffers(pa.decimal128(7, 2), ROWS, cents.buffers()),
            "name": [f"item {number}" for number in random.integers(0, 5000, ROWS).tolist()],
        }
    )


@contextmanager
def using(way: Mapping[tuple[ModuleType, str], int]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), value in way.items():
            patch.setattr(module, name, value)
        yield


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("share_deleted", [0, 1], ids="{} % deleted".format)
def test_ways_read_the_same_of_large_row_groups(tmp_path: Path, share_deleted: int) -> None:
    """``pytest -m soak -s`` prints the figures of docs/design/reading.md: the time and processor time as it is, as a
    share of those without row groups begun ahead, and of those with pieces of 131,072 rows as well."""
    random = np.random.default_rng(1)
    properties = {"write.parquet.row-group-size-bytes": str(1 << 30), "write.delete.mode": "merge-on-read"}
    with closing(icebench.load_catalog(str(tmp_path))) as catalog:
        table = catalog.create_table("db.t", rows(random).schema, properties=properties)
        for _ in range(FILES):
            table.append(rows(random))
        if share_deleted:
            table.delete(f"part >= {1000 - 10 * share_deleted}")
        for columns, filter in CASES:
            scan = table.scan(filter, columns)
            with using(NOT_AHEAD | SMALL_PIECES):
                expected = scan.to_arrow()
            assert scan.to_arrow().equals(expected)
            seconds = np.empty((len(WAYS), 2, RUNS))
            for turn in range(RUNS):
                for number, way in enumerate(WAYS):
                    with using(way):
                        begun = time.perf_counter(), time.process_time()
                        assert sum(len(batch) for batch in scan.to_batches()) == len(expected)
                        seconds[number, :, turn] = time.perf_counter() - begun[0], time.process_time() - begun[1]
            medians = np.median(seconds, axis=-1)
            shares = " | ".join(f"{clock:.2f} | {processor:.2f}" for clock, processor in medians[0] / medians[1:])
            said = f"{', '.join(columns)}{f' where {filter}' if filter else ''}, {share_deleted} % deleted"
            print(f"| {said} | {shares} |")  # noqa: T201
