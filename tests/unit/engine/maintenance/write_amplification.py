"""``python -m tests.unit.engine.maintenance.write_amplification [STRATEGY] [APPENDS]``: what a clustering pass after each append rewrites."""

from __future__ import annotations

import sys
import tempfile

import numpy as np
import pyarrow as pa

import engine

_ROWS = 2_000
_TARGET_BYTES = 128 << 10
_KEYS = {"sort": "a", "zorder": "a, b", "hilbert": "a, b"}


def main(strategy: str = "sort", appends: str = "200") -> int:
    """Print bytes rewritten for each byte of the table, beside full re-sorting after each append."""
    rng = np.random.default_rng(1)
    properties = {
        "icebench.clustering.strategy": strategy,
        "icebench.clustering.keys": _KEYS[strategy],
        "write.target-file-size-bytes": str(_TARGET_BYTES),
    }
    rewritten = resorted = size = 0
    depths = []
    with tempfile.TemporaryDirectory() as place:
        columns = {name: pa.int64() for name in "abx"}
        table = engine.load_catalog(place).create_table("db.t", pa.schema(columns.items()), properties=properties)
        for _ in range(int(appends)):
            table.append(pa.table({name: rng.integers(0, 1 << 40, _ROWS) for name in columns}))
            done = table.maintenance.cluster()
            size = sum(table.inspect.files()["file_size_in_bytes"].to_pylist())
            rewritten += done.rewritten_bytes
            resorted += size
            depths.append(done.depth_after)
        files = table.inspect.files().num_rows
    sys.stdout.write(
        f"{strategy}: {rewritten / size:.2f} times the table's bytes rewritten, {resorted / size:.1f} by full "
        f"re-sorting; mean depth {np.mean(depths):.1f}, {files} files\n"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
