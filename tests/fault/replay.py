"""Reads one case of `test_damaged_files` in this process: `python -m tests.fault.replay SEED NUMBER`."""

from __future__ import annotations

import json
import sys

from icebench.engine.formats.parquet.machine_kernels import LIST_CHUNKS, SLIM_FOOTER
from tests.fault.damage_reader import Reader, outcome


def main(seed: str, number: str) -> None:
    assert LIST_CHUNKS.load()
    assert SLIM_FOOTER.load()
    found = outcome(Reader(), int(seed), int(number))
    detail = found.pop("detail")
    sys.stdout.write(f"{json.dumps(found)}\n{detail}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
