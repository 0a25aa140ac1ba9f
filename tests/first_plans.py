"""Processor time of fresh processes until their first plan, with kept machine code and with Numba's own cache: the two
ways interleaved, over described files, with the planned files counted.

python -m tests.first_plans [FILES [ROUNDS]]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from icebench.bench.tables.cache import DatasetCache
from icebench.bench.tables.metadata_tables import find_or_build
from icebench.bench.workloads.metadata_files import MetadataFiles

_PLAN = """
import sys, time
import icebench
from icebench.engine.kernels.machine_code import MachineCode
if sys.argv[1] == "Numba's cache":
    MachineCode.load = lambda self: None
    MachineCode.compile = lambda self, function: None
print(len(icebench.load_table(sys.argv[2]).scan().plan().files), time.process_time())
"""
WAYS = ("machine code", "Numba's cache")


def main(files: int = 10_000, rounds: int = 3) -> None:
    with tempfile.TemporaryDirectory() as folder:
        location = find_or_build(MetadataFiles(files=files), DatasetCache(Path(folder)), report=lambda _: None)
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for number in range(rounds + 1):  # in the first each way compiles what it keeps
            for way in WAYS if number % 2 else reversed(WAYS):
                done = subprocess.run(
                    [sys.executable, "-c", _PLAN, way, location], check=True, capture_output=True, text=True
                )
                planned, took = done.stdout.split()
                assert int(planned) == files
                if number:
                    seconds[way].append(float(took))
    for way, own in seconds.items():
        sys.stdout.write(f"{files:,} files, {way}: {statistics.median(own):.2f} s ({min(own):.2f} to {max(own):.2f})\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
