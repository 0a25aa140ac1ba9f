"""Writer processes that are killed with SIGKILL, at any moment: what was acknowledged is there, the rest whole or not.

A writer writes to a pipe around each change. It is killed after a random time, or by itself right before or after
one of the calls that change storage: a file made, written, flushed, linked, removed, a statement run, a transaction
committed, a request sent or its answer received. Of S3 the server kills it, before or after it carries out a request.
Then its table is read by another process and goes on to the next writer.
"""

from __future__ import annotations

import os
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

import icebench
from tests.fault.campaign import KINDS, REMOTE, SEED, Figures, Kind, Place, scaled, sizes
from tests.fault.fork_server import ForkServer
from tests.fault.operations import ROWS, SPEC, Rows, marker, operation, rows_of

PROPERTIES = {"commit.manifest.min-count-to-merge": "5"}
KILLS_EACH = 25
"""Kills that one table lives through: then a new one keeps reading cheap."""
CHANGES = 40
"""More than a writer gets done before it is killed."""


@dataclass
class Campaign:
    """One table after the other, and what each must hold."""

    writers: ForkServer
    place: Place
    pipe: Path
    random: Random
    rows: Rows = field(default_factory=dict)
    next: int = 0
    acknowledged: int = 0
    survived: int = 0
    vanished: int = 0

    def begin(self, format_version: int) -> None:
        """Make a new, empty table in the place of the last one."""
        catalog = self.place.open()
        with suppress(icebench.errors.NotFound):
            catalog.drop_table("db.t")
        with suppress(icebench.errors.AlreadyExists):
            catalog.create_namespace("db")
        properties = {**PROPERTIES, "format-version": str(format_version)}
        catalog.create_table("db.t", ROWS, partition_spec=SPEC, properties=properties)
        catalog.close()
        self.rows = {}

    def kill_one(self, seed: int) -> str:
        """Run a writer of that seed until it is killed; where."""
        at = self.random.randrange(500) if self.random.random() < 0.6 else None
        job = {
            "kind": "changes",
            "catalog": self.place.arguments,
            "pipe": str(self.pipe),
            "seed": seed,
            "first": self.next,
            "end": self.next + CHANGES,
            "kill_at": at if self.place.s3 is None else None,
        }
        killing = nullcontext() if at is None or self.place.s3 is None else self.place.killing(at, self.random)
        # Open at both ends, so that nobody waits for the other; what a killed writer said stays in it.
        pipe = os.open(self.pipe, os.O_RDWR | os.O_NONBLOCK)
        try:
            with killing as found:
                pid = self.writers.start(job)
                if found is not None:
                    found(pid)
                if at is None:
                    delay = self.random.random() * 1.5
                    time.sleep(delay)
                    self.writers.kill(pid)
                code = self.writers.wait(pid)
            assert code in {0, -9}, self.writers.said
            said = words(pipe)
        finally:
            os.close(pipe)
        where = f"seed {seed}, first {self.next}, killed at {at if at is not None else f'{delay:.4f} s'}"
        self.check(seed, said, where)
        return where

    def check(self, seed: int, said: str, where: str) -> None:
        """The table holds what was acknowledged, and the change that was under way whole or not at all."""
        lines = [line.split() for line in said.splitlines()]
        done = [int(number) for word, number in lines if word == "done"]
        begun = [int(number) for word, number in lines if word == "begin"]
        for number in done:
            self.rows = operation(seed, number).meant(self.rows)
        catalog = self.place.open()
        table = catalog.load_table("db.t")
        found = rows_of(table)
        if len(begun) > len(done):
            whole = operation(seed, begun[-1]).meant(self.rows)
            assert found in (sorted(self.rows.items()), sorted(whole.items())), where
            if found == sorted(whole.items()) != sorted(self.rows.items()):
                self.rows, self.survived = whole, self.survived + 1
            else:
                self.vanished += 1
        assert found == sorted(self.rows.items()), where
        # Somebody else can commit.
        extra = marker(self.next)
        extra.make(table)
        self.rows = extra.meant(self.rows)
        found = rows_of(table)
        if len(begun) > len(done) and found != sorted(self.rows.items()):
            # A server may have gone on with the request of a writer that was killed.
            self.rows = operation(seed, begun[-1]).meant(self.rows)
            self.survived, self.vanished = self.survived + 1, self.vanished - 1
        assert found == sorted(self.rows.items()), where
        catalog.close()
        self.acknowledged += len(done)
        self.next += CHANGES


def words(pipe: int) -> str:
    """All that is in a pipe whose writer has ended."""
    try:
        return os.read(pipe, 1 << 16).decode()
    except BlockingIOError:
        return ""


@pytest.mark.parametrize("kind", [*KINDS, *REMOTE])
@sizes(3, 200)
def test_what_was_acknowledged_is_there(
    tmp_path: Path, *, request: pytest.FixtureRequest, writers: ForkServer, figures: Figures, kind: Kind, size: int
) -> None:
    kills = size if size < 10 else scaled(size)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    campaign = Campaign(writers, kind(tmp_path, request), pipe, Random(f"{SEED}-{kind.__name__}"))
    for number in range(kills):
        if number % KILLS_EACH == 0:
            campaign.begin(format_version=2 + number // KILLS_EACH % 2)
        campaign.kill_one(SEED)
    figures(
        kills=kills,
        acknowledged=campaign.acknowledged,
        under_way_and_there=campaign.survived,
        under_way_and_not=campaign.vanished,
        seed=SEED,
    )
