"""Small files that would decode to gigabytes, of every format and codec: what reads them says so, in time and without
the memory."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fault.bombs import BOMBS
from tests.fault.campaign import SEED, Figures, scaled, sizes
from tests.fault.fork_server import ForkServer

PEAK_BYTES = 1 << 30
SECONDS = 5
"""Of processor time, which other work on the machine does not add to."""
REFUSED = {"TooLarge", "CorruptTable", "Unsupported"}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watches a process through /proc")


@sizes(len(BOMBS), 2_000)
def test_bombs_are_refused(tmp_path: Path, figures: Figures, size: int) -> None:
    cases = size if size == len(BOMBS) else scaled(size)
    found = []
    with ForkServer("tests.fault.bomb_reader", tmp_path / "stderr.log") as readers:
        for index in range(cases):
            pipe = tmp_path / "found.json"
            code = readers.wait(readers.start({"seed": SEED, "index": index, "pipe": str(pipe)}))
            assert code == 0, f"seed {SEED}, bomb {index}: ended with {code}: {readers.said}"
            found.append({"index": index, **json.loads(pipe.read_text())})
    # What is read after all is within the limits of the reader, and may take its time: all of it was wanted.
    bad = [
        each
        for each in found
        if each["peak_bytes"] > max(PEAK_BYTES, 10 * each["bytes"])
        or (each["came"] != "read" and (each["came"] not in REFUSED or each["seconds"] > SECONDS))
    ]
    assert not bad, f"seed {SEED}: {len(bad)} of {cases}\n" + "\n".join(map(str, bad[:20]))
    figures(
        bombs=cases,
        seed=SEED,
        **Counter(each["came"] for each in found),
        slowest_seconds=max(each["seconds"] for each in found if each["came"] != "read"),
        highest_peak_mb=max(each["peak_bytes"] for each in found) >> 20,
    )
