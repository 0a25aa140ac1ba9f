"""Thousands of damaged files: reading gives the right rows or says what is wrong where, and never crashes, hangs, or
takes memory without bound.

A case is known by a seed and its number: `python -m tests.fault.replay SEED NUMBER` reads it again.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fault.campaign import SEED, Figures, scaled, sizes
from tests.fault.fork_server import ForkServer

CASE_SECONDS = 60.0
"""A hang, on however busy a machine."""
PEAK_BYTES = 512 << 20
"""Ten times what the largest bomb inflates to; the files themselves have kilobytes."""
FINE = {
    "right",
    "different",
    "CorruptTable",
    "TooLarge",
    "Unsupported",
    "FileNotFound",
    "NotFound",
    "Invalid",
    "StorageFailed",
}
"""`different` is what no checksum, count or length gives away: a bound, a name, a number in an unsealed place."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watches a process through /proc")


@sizes(100, 10_000)
def test_damage_is_noticed_or_harmless(tmp_path: Path, figures: Figures, size: int) -> None:
    cases = size if size < 1000 else scaled(size)
    with ForkServer("tests.fault.damage_reader", tmp_path / "stderr.log") as readers:
        found = list(read_cases(readers, tmp_path / "pipe", cases))
    bad = [each for each in found if each["came"] not in FINE or each["peak_bytes"] > PEAK_BYTES]
    by_cause: dict[str, list[dict[str, Any]]] = {}
    for each in bad:
        by_cause.setdefault(f"{each['came']}: {each['detail'].strip().splitlines()[-1:]}", []).append(each)
    report = [
        f"{len(all_)} x {cause}\n  {[(e['index'], e['kind'], e['damage'], e['peak_bytes'] >> 20) for e in all_[:6]]}\n"
        f"{all_[0]['detail']}"
        for cause, all_ in by_cause.items()
    ]
    assert not bad, f"seed {SEED}: {len(bad)} of {cases}\n" + "\n".join(report)
    by_kind = Counter((each["kind"], each["came"]) for each in found)
    figures(
        cases=cases,
        seed=SEED,
        **Counter(each["came"] for each in found),
        slowest_seconds=max(each["seconds"] for each in found),
        highest_peak_mb=max(each["peak_bytes"] for each in found) >> 20,
        by_kind={f"{kind}: {came}": count for (kind, came), count in sorted(by_kind.items())},
    )


def read_cases(readers: ForkServer, name: Path, cases: int) -> Iterator[dict[str, Any]]:
    """What came of each case. A reader that died or hung is followed by one that goes on after it."""
    os.mkfifo(name)
    pipe = os.open(name, os.O_RDWR | os.O_NONBLOCK)
    following = 0
    while following < cases:
        job = {"seed": SEED, "first": following, "end": cases, "pipe": str(name)}
        pid = readers.start(job)
        rest = b""
        while following < cases:
            alive = bool(select.select([pipe], [], [], CASE_SECONDS if _runs(pid) else 0)[0])
            if not alive:
                break
            *lines, rest = (rest + os.read(pipe, 1 << 16)).split(b"\n")
            for line in lines:
                if line.startswith(b"{"):
                    following += 1
                    yield json.loads(line)
        else:
            assert readers.wait(pid) == 0, readers.said
            break
        hung = _runs(pid)
        if hung:
            readers.kill(pid)
        code = readers.wait(pid)
        came = "hang" if hung else f"crash {code}"
        unknown = {"kind": "?", "damage": "?", "seconds": CASE_SECONDS, "peak_bytes": 0, "detail": readers.said}
        yield {"index": following, "came": came, **unknown}
        following += 1
    os.close(pipe)


def _runs(pid: int) -> bool:
    """Whether a child that nobody waited for has not ended yet."""
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"
