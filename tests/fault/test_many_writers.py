"""Many writer processes on one table: every acknowledged row is there once, and nobody starves."""

from __future__ import annotations

import os
import select
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import quantiles

import pytest

import icebench
from tests.fault.campaign import KINDS, Figures, Kind, Place, scaled, sizes
from tests.fault.fork_server import ForkServer
from tests.fault.operations import ROWS, SPEC, marker, rows_of

Said = list[list[str]]
FULL = (16, 50)
PROPERTIES = {"commit.retry.num-retries": "1000"}
"""More than any writer should need; the waits are the defaults."""
LOCKED = {"icebench.commit.host-lock.enabled": "true"}


@pytest.mark.parametrize("locking_hosts", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
@sizes((4, 5), FULL)
def test_every_acknowledged_row_is_there_once(
    tmp_path: Path,
    *,
    request: pytest.FixtureRequest,
    writers: ForkServer,
    figures: Figures,
    kind: Kind,
    locking_hosts: int,
    size: tuple[int, int],
) -> None:
    count, appends = size[0], size[1] if size[1] < 10 else scaled(size[1])
    place = kind(tmp_path, request)
    catalog = place.open()
    catalog.create_table(
        "db.t", ROWS, partition_spec=SPEC, properties={**PROPERTIES, **(LOCKED if locking_hosts else {})}
    )
    started = time.monotonic()
    said = run_writers(writers, place, tmp_path, count=count, appends=appends, hosts=max(locking_hosts, 1))
    seconds = time.monotonic() - started
    done = [words for words in said if words[0] == "done"]
    table = catalog.load_table("db.t")
    assert rows_of(table) == sorted((id_of(int(words[1])), int(words[1])) for words in done)
    check_history(table, len(done))
    if size == FULL:
        # The one session of all tests; only here, because it takes longer than the sample.
        spark = request.getfixturevalue("spark")
        read = spark.read.format("iceberg").load(table.metadata_location)
        assert sorted(map(tuple, read.select("id", "n").collect())) == rows_of(table)
    assert len(done) == count * appends, [words for words in said if words[0] == "failed"]
    catalog.close()
    attempts = [int(words[2]) for words in done]
    waits = sorted(float(words[3]) for words in done)
    figures(
        commits=len(done),
        seconds=f"{seconds:.1f}",
        commits_a_second=f"{len(done) / seconds:.1f}",
        attempts_a_commit=f"{sum(attempts) / len(done):.2f}",
        most_attempts=max(attempts),
        seconds_of_a_commit_p50=f"{quantiles(waits, n=100)[49]:.2f}",
        seconds_of_a_commit_p99=f"{quantiles(waits, n=100)[98]:.2f}",
    )


def id_of(number: int) -> int:
    return marker(number).first


def run_writers(writers: ForkServer, place: Place, home: Path, *, count: int, appends: int, hosts: int) -> Said:
    """Run `count` writers at the same time, and what they said, line by line, as words.

    Those of one host have a directory for temporary files in common, where its commit lock is.
    """
    jobs: dict[int, int] = {}
    places = [home / f"host-{number}" for number in range(hosts)]
    for each in places:
        each.mkdir()
    for number in range(count):
        name = home / f"pipe-{number}"
        os.mkfifo(name)
        pipe = os.open(name, os.O_RDWR | os.O_NONBLOCK)
        temporary = str(places[number % hosts])
        job = {"kind": "appends", "catalog": place.arguments, "pipe": str(name), "temporary": temporary}
        jobs[writers.start({**job, "first": number * appends, "end": (number + 1) * appends})] = pipe
    said: dict[int, bytes] = dict.fromkeys(jobs.values(), b"")
    while sum(text.count(b"\n") for text in said.values()) < count * appends:
        ready = select.select(list(said), [], [], 60)[0]
        assert ready, f"no commit in a minute: {writers.said}"
        for pipe in ready:
            said[pipe] += os.read(pipe, 1 << 16)
    for pid, pipe in jobs.items():
        assert writers.wait(pid) == 0, writers.said
        os.close(pipe)
    return [line.split() for text in said.values() for line in text.decode().splitlines()]


def check_history(table: icebench.Table, commits: int) -> None:
    """One snapshot for each commit, in one line, whose summaries add up."""
    snapshots = table.snapshots
    assert [s.sequence_number for s in snapshots] == list(range(1, commits + 1))
    assert [s.parent_snapshot_id for s in snapshots[1:]] == [s.snapshot_id for s in snapshots[:-1]]
    assert all(a.timestamp_ms <= b.timestamp_ms for a, b in pairwise(snapshots))
    totals = [(s.summary["total-records"], s.summary["total-data-files"]) for s in snapshots]
    assert totals == [(str(n), str(n)) for n in range(1, commits + 1)]
    assert {(s.summary["added-records"], s.summary["added-data-files"]) for s in snapshots} == {("1", "1")}
    # The files of the head's manifests, not only its summary.
    paths = Counter(table.inspect.files()["file_path"].to_pylist())
    assert len(paths) == commits == paths.total()
