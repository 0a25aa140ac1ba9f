"""Two streams into one table that are killed and restarted, beside maintenance and evolution: each batch is there once.

A stream notes in its checkpoint what it has committed, after the commit, as Spark does. It is killed by SIGKILL as in
`tests.fault.test_killed_writers`. Beside it a process compacts the table, expires all snapshots but one or two, as we
do and as another engine does, and adds columns; that one is killed sometimes, too.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.fault.campaign import KINDS, SEED, Figures, Kind, Place, scaled, sizes
from tests.fault.fork_server import ForkServer
from tests.fault.operations import ROWS, marker
from tests.fault.test_killed_writers import words
from tests.fault.writer import batch_ids

STREAMS = (0, 1)
ROUNDS_EACH = 10
"""Rounds that one table lives through: then a new one keeps reading cheap."""


class Streams:
    """A table, its two streams, and what each process said.

    Args:
        writers: Forks processes.
        place: The catalog.
        home: Where checkpoints are.
        seed: Of the campaign.
    """

    def __init__(self, writers: ForkServer, place: Place, home: Path, seed: str) -> None:
        self.writers, self.place, self.home, self.random = writers, place, home, Random(seed)
        self.rounds = 0
        self.counts: Counter[str] = Counter()

    def begin(self) -> None:
        """Make a new table and new streams in the place of the last ones."""
        catalog = self.place.open()
        if catalog.table_exists("db.t"):
            catalog.drop_table("db.t")
        properties = {"commit.retry.num-retries": "20", "commit.retry.min-wait-ms": "10"}
        marker(0).make(catalog.create_table("db.t", ROWS, properties=properties))
        catalog.close()
        for stream in STREAMS:
            self.checkpoint(stream).write_text("")

    def checkpoint(self, stream: int) -> Path:
        return self.home / f"checkpoint-{stream}"

    def noted(self, stream: int) -> int:
        """How many batches the checkpoint has."""
        return len(self.checkpoint(stream).read_text())

    def job(self, kind: str, end: int, *, stream: int = 0, killed: bool) -> dict[str, Any]:
        """A process that is killed at a call, or right between the commit of a batch and its note, or after a time."""
        how = self.random.choice(["call", "call", "unnoted", "time"]) if killed else None
        return {
            "kind": kind,
            "catalog": self.place.arguments,
            "pipe": str(self.home / "pipe"),
            "end": end,
            "stream": stream,
            "checkpoint": str(self.checkpoint(stream)),
            "seed": self.random.randrange(1 << 30),
            "kill_at": self.random.randrange(400) if how == "call" else None,
            "kill_unnoted": self.noted(stream) + self.random.randrange(6) if how == "unnoted" else None,
            "is_timed": how == "time",
        }

    def run(self, *, killed: bool) -> None:
        """Start the streams again, and maintenance beside them; kill them, or let them end."""
        self.rounds += 1
        jobs = [self.job("maintenance", 4, killed=killed and self.random.random() < 0.3)]
        for stream in STREAMS:
            last = self.noted(stream) + (12 if killed else 2)
            jobs.append(self.job("stream", last, stream=stream, killed=killed))
        pipe = os.open(self.home / "pipe", os.O_RDWR | os.O_NONBLOCK)
        try:
            pids = [self.writers.start(job) for job in jobs]
            if timed := [pid for pid, job in zip(pids, jobs, strict=True) if job["is_timed"]]:
                time.sleep(self.random.random() * 1.5)
                for pid in timed:
                    self.writers.kill(pid)
            codes = [self.writers.wait(pid) for pid in pids]
            said = [line.split() for line in words(pipe).splitlines()]
        finally:
            os.close(pipe)
        assert set(codes) <= {0, -9}, self.writers.said
        self.counts["kills"] += codes[1:].count(-9)
        self.counts["kills of maintenance"] += codes[0] == -9
        self.counts.update(line[0] if line[0] in {"skipped", "committed"} else " ".join(line[:3]) for line in said)
        assert not any("unknown" in word for line in said for word in line), said
        self.check(killed=killed)

    def check(self, *, killed: bool) -> None:
        """Each batch is there once and whole: all that are noted, and at most one more."""
        catalog = self.place.open()
        found = Counter(catalog.load_table("db.t").scan(columns=["id"]).to_arrow()["id"].to_pylist())
        catalog.close()
        expected = Counter(marker(0).rows["id"].to_pylist())
        for stream in STREAMS:
            end = self.noted(stream)
            if killed and batch_ids(stream, end)[0] in found:
                self.counts["committed and not noted"] += 1
                end += 1
            expected.update(i for number in range(end) for i in batch_ids(stream, number))
        assert found == expected, f"round {self.rounds}: {(found - expected) + (expected - found)}"


@pytest.mark.parametrize("kind", KINDS)
@sizes(2, 50)
def test_each_batch_is_there_once(
    tmp_path: Path, *, request: pytest.FixtureRequest, writers: ForkServer, figures: Figures, kind: Kind, size: int
) -> None:
    os.mkfifo(tmp_path / "pipe")
    streams = Streams(writers, kind(tmp_path, request), tmp_path, f"{SEED}-{kind.__name__}")
    for number in range(size if size < 10 else scaled(size)):
        if number % ROUNDS_EACH == 0:
            streams.begin()
        streams.run(killed=True)
        if number % ROUNDS_EACH == ROUNDS_EACH - 1 or size < 10:
            streams.run(killed=False)
    assert streams.counts["kills"]
    figures(**{name.replace(" ", "_"): count for name, count in sorted(streams.counts.items())}, seed=SEED)
