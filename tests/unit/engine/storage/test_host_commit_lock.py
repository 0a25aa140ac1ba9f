"""The host's commit lock: who waits for whom, and that nobody waits for long, or for a dead holder."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import pyarrow as pa
import pytest

import icebench
from icebench.engine.runtime.counters import COMMIT_ATTEMPTS, Counters
from icebench.engine.storage import host_commit_lock as locks
from icebench.engine.storage.host_commit_lock import host_commit_lock

TABLE = "9e8b7f4c"
LOCKED = {"icebench.commit.host-lock.enabled": "true"}


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / f"icebench-commit-locks-{os.geteuid()}"


class Elsewhere:
    """Another writer, in a thread of its own, that holds the lock until it is released."""

    def __init__(self) -> None:
        self._end = threading.Event()
        has = threading.Event()

        def hold() -> None:
            with host_commit_lock(TABLE, limit_seconds=9, sleep=time.sleep):
                has.set()
                self._end.wait(60)

        self._thread = threading.Thread(target=hold)
        self._thread.start()
        has.wait(60)

    def let_go(self) -> None:
        self._end.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()


def test_nobody_waits_where_nobody_is() -> None:
    slept: list[float] = []
    for _ in range(2):
        with host_commit_lock(TABLE, limit_seconds=9, sleep=slept.append) as waited:
            assert not waited
    assert slept == []


def test_the_second_waits_until_the_first_lets_go() -> None:
    first = Elsewhere()
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 5:
            first.let_go()

    with host_commit_lock(TABLE, limit_seconds=9, sleep=sleep) as waited:
        assert waited
    assert len(slept) == 5
    assert slept == sorted(slept, reverse=True)


def test_who_has_waited_long_enough_goes_ahead() -> None:
    slept: list[float] = []
    with Elsewhere():
        with host_commit_lock(TABLE, limit_seconds=0.5, sleep=slept.append) as waited:
            assert waited
        # The one that went ahead has not released the other's lock.
        with host_commit_lock(TABLE, limit_seconds=0.01, sleep=slept.append) as waited:
            assert waited
    assert 0.5 <= sum(slept) < 0.6


def test_tables_do_not_wait_for_each_other() -> None:
    with (
        host_commit_lock(TABLE, limit_seconds=9, sleep=time.sleep),
        host_commit_lock("another", limit_seconds=9, sleep=time.sleep) as waited,
    ):
        assert not waited


def test_a_lock_ends_with_its_holder() -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with host_commit_lock(TABLE, limit_seconds=9, sleep=time.sleep):
            os.write(writing, b"x")
            time.sleep(60)
        os._exit(0)
    os.read(reading, 1)
    with host_commit_lock(TABLE, limit_seconds=0.01, sleep=time.sleep) as waited:
        assert waited
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with host_commit_lock(TABLE, limit_seconds=0.01, sleep=time.sleep) as waited:
        assert not waited


def test_a_child_does_not_keep_the_lock_of_its_parent() -> None:
    reading, writing = os.pipe()
    with host_commit_lock(TABLE, limit_seconds=9, sleep=time.sleep):
        child = os.fork()
        if child == 0:
            os.read(reading, 1)
            os._exit(0)
    with host_commit_lock(TABLE, limit_seconds=0.01, sleep=time.sleep) as waited:
        assert not waited
    os.write(writing, b"x")
    os.waitpid(child, 0)


@pytest.mark.parametrize("spoil", ["others may write", "the group may write", "a file", "a link"])
def test_a_directory_that_others_may_write_is_not_used(own_directory: Path, spoil: str) -> None:
    if spoil == "a file":
        own_directory.touch()
    elif spoil == "a link":
        own_directory.symlink_to(own_directory.parent)
    else:
        own_directory.mkdir()
        own_directory.chmod(0o775 if spoil == "the group may write" else 0o757)
    assert locks.directory() is None
    with Elsewhere(), host_commit_lock(TABLE, limit_seconds=9, sleep=time.sleep) as waited:
        assert not waited


def test_without_a_place_for_temporary_files_there_are_no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> str:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr("tempfile.gettempdir", refuse)
    with host_commit_lock(TABLE, limit_seconds=9, sleep=time.sleep) as waited:
        assert not waited


def test_a_thread_does_not_wait_for_itself() -> None:
    with host_commit_lock(TABLE, limit_seconds=9, sleep=time.sleep):
        with host_commit_lock(TABLE, limit_seconds=9, sleep=time.sleep) as waited:
            assert not waited
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(waits).result()
    assert not waits()


def waits() -> bool:
    with host_commit_lock(TABLE, limit_seconds=0.01, sleep=time.sleep) as waited:
        return waited


def test_a_commit_that_waited_starts_from_the_table_as_it_is_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = icebench.load_catalog(str(tmp_path / "wh")).create_table(
        "db.t", pa.schema([("a", pa.int64())]), properties=LOCKED
    )
    other = icebench.load_catalog(str(tmp_path / "wh")).load_table("db.t")
    waits, lock = threading.Event(), locks._lock

    def note(descriptor: int) -> bool:
        found = lock(descriptor)
        if not found:
            waits.set()
        return found

    monkeypatch.setattr(locks, "_lock", note)
    counters = Counters()
    with host_commit_lock(table.metadata.table_uuid, limit_seconds=9, sleep=time.sleep):
        waiting = threading.Thread(target=lambda: other.append(pa.table({"a": [1]}), counters=counters))
        waiting.start()
        assert waits.wait(60)
        table.append(pa.table({"a": [2]}))
    waiting.join()
    assert counters[COMMIT_ATTEMPTS] == 1
    table.refresh()
    assert sorted(table.scan().to_arrow()["a"].to_pylist()) == [1, 2]


def test_writers_of_one_machine_do_not_collide(tmp_path: Path) -> None:
    def opened() -> icebench.Table:
        return icebench.load_catalog(str(tmp_path / "wh")).load_table("db.t")

    schema = pa.schema([("a", pa.int64())])
    # The longest wait for the lock grows with it: a minute, on however busy a machine.
    properties = {**LOCKED, "commit.retry.min-wait-ms": "1000"}
    table = icebench.load_catalog(str(tmp_path / "wh")).create_table("db.t", schema, properties=properties)

    def write(writer: int) -> int:
        counters = Counters()
        own = opened()
        for number in range(3):
            own.append(pa.table({"a": [10 * writer + number]}), counters=counters)
        return counters[COMMIT_ATTEMPTS]

    with ThreadPoolExecutor(8) as pool:
        attempts = list(pool.map(write, range(8)))
    # Without the lock a writer that lost five times would have given up. Who finds it free may have loaded the table
    # before another one's commit, which takes one attempt more.
    assert 24 <= sum(attempts) <= 28
    found = table.refresh().scan().to_arrow()["a"].to_pylist()
    assert sorted(found) == [10 * writer + number for writer in range(8) for number in range(3)]


def test_only_tables_that_ask_for_the_lock_take_it(tmp_path: Path, own_directory: Path) -> None:
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    rows = pa.table({"a": [1]})
    catalog.create_table("db.plain", rows.schema).append(rows)
    assert not own_directory.exists()
    catalog.create_table("db.locked", rows.schema, properties=LOCKED).append(rows)
    assert len(list(own_directory.iterdir())) == 1
