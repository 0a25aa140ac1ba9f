"""Processor time of fresh processes until the first rows of a small table, of one or more checkouts interleaved; the
rows are counted.

python -m tests.first_rows [ROUNDS [CHECKOUT ...]]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

import icebench
from tests.tidy.source import REPOSITORY

_READ = """
import sys, time
import icebench
rows = icebench.load_catalog(sys.argv[1]).load_table("db.t").scan(filter=sys.argv[2] or None).to_arrow()
print(rows.num_rows, time.process_time())
"""
FILTERS = {"": 300, "id >= 250": 50}
"""Filter -> how many rows it keeps."""


def main(rounds: int, checkouts: Sequence[str]) -> None:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # as users have it: compiled once
    seconds: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as warehouse:
        catalog = icebench.load_catalog(warehouse)
        table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("name", pa.string())]))
        for start in (0, 100, 200):
            table.append(pa.table({"id": range(start, start + 100), "name": [f"n{n}" for n in range(100)]}))
        for number in range(rounds + 1):  # the first compiles modules
            for checkout in checkouts:
                for filter, expected in FILTERS.items():
                    command = [str(Path(checkout, ".venv", "bin", "python")), "-c", _READ, warehouse, filter]
                    done = subprocess.run(
                        command, check=True, capture_output=True, text=True, cwd=checkout, env=environment
                    )
                    rows, took = done.stdout.split()
                    assert int(rows) == expected
                    if number:
                        seconds.setdefault((checkout, filter), []).append(float(took))
    for (checkout, filter), own in seconds.items():
        sys.stdout.write(
            f"{checkout}, filter {filter!r}: {min(own):.2f} s at least, {sorted(own)[len(own) // 2]:.2f}\n"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 7, sys.argv[2:] or [str(REPOSITORY)])
