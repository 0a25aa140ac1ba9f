from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from icebench.engine.storage.directory_cache import DirectoryCache
from icebench.errors import Invalid, StorageFailed


class Clock:
    """Every look is a second later."""

    def __init__(self, start: float = 1_000_000_000) -> None:
        self.seconds = start

    def __call__(self) -> float:
        self.seconds += 1
        return self.seconds


def kept(cache: DirectoryCache, names: str) -> str:
    return "".join(name for name in names if cache.load(name) is not None)


def stored(place: Path, name: str, clock: Clock) -> None:
    """Give a file the time of the test's clock, which `store` leaves to the file system."""
    now = clock()
    os.utime(place / f"{name}.cache", (now, now))


def test_bytes_come_back(tmp_path: Path) -> None:
    cache = DirectoryCache(f"{tmp_path}/made", limit_bytes=100)
    assert cache.load("a") is None
    assert cache.store("a", b"one")
    assert cache.store("a", memoryview(b"two"))
    found = cache.load("a")
    assert found is not None
    assert found.to_pybytes() == b"two"
    cache.discard("a")
    cache.discard("a")
    assert cache.load("a") is None
    assert found.to_pybytes() == b"two"  # what is mapped stays


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    clock = Clock()
    cache = DirectoryCache(str(tmp_path), limit_bytes=35, now=clock)
    for name in "abc":
        cache.store(name, b"x" * 10)
        stored(tmp_path, name, clock)
    assert cache.load("a") is not None
    cache.store("d", b"x" * 10)
    assert sorted(p.stem for p in tmp_path.glob("*.cache")) == ["a", "c", "d"]
    assert not cache.store("e", b"x" * 36)
    smaller = DirectoryCache(str(tmp_path), limit_bytes=15, now=clock)
    assert len(list(tmp_path.glob("*.cache"))) == 1
    assert not kept(smaller, "bce")


def test_a_full_directory_is_not_listed_at_each_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listings = 0
    scandir = os.scandir

    def counted(path: Path) -> Any:
        nonlocal listings
        listings += 1
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counted)
    cache = DirectoryCache(str(tmp_path), limit_bytes=1000)
    for number in range(200):
        assert cache.store(f"{number:03}", b"x" * 10)
        assert cache.load(f"{number:03}") is not None
    assert 0.8 * 1000 < sum(p.stat().st_size for p in tmp_path.glob("*.cache")) <= 1000
    assert listings <= 12


def test_the_newest_file_stays_if_it_is_within_the_limit(tmp_path: Path) -> None:
    cache = DirectoryCache(str(tmp_path), limit_bytes=100)
    (tmp_path / "old.cache").write_bytes(b"x" * 50)
    os.utime(tmp_path / "old.cache", (1, 1))
    assert cache.store("a", b"x" * 10)
    assert cache.store("b", b"x" * 97)
    assert kept(cache, "ab") == "b"


def test_what_other_processes_add_is_counted_now_and_then(tmp_path: Path) -> None:
    cache = DirectoryCache(str(tmp_path), limit_bytes=1000)
    for name in ("a", "b"):
        (tmp_path / f"{name}.cache").write_bytes(b"x" * 900)
    for number in range(256):
        cache.store("own", str(number % 10).encode())
    assert sum(p.stat().st_size for p in tmp_path.glob("*.cache")) <= 1000


def test_what_died_half_way_is_removed_some_time(tmp_path: Path) -> None:
    clock = Clock()
    old, young = tmp_path / "old.tmp", tmp_path / "young.tmp"
    for file, age in ((old, 4000), (young, 10)):
        file.write_bytes(b"half")
        os.utime(file, (clock.seconds - age,) * 2)
    (tmp_path / "not ours").write_bytes(b"")
    DirectoryCache(str(tmp_path), limit_bytes=0, now=clock)
    left = {p.name for p in tmp_path.iterdir()}
    assert {"young.tmp", "not ours"} <= left
    assert "old.tmp" not in left


def test_a_name_that_cannot_be_written_is_not_kept(tmp_path: Path) -> None:
    cache = DirectoryCache(str(tmp_path), limit_bytes=100, new_id=lambda: uuid.UUID(int=7))
    (tmp_path / "a.cache").mkdir()
    assert not cache.store("a", b"x")
    assert cache.load("a") is None
    assert not list(tmp_path.glob("*7.tmp"))


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(Invalid):
        DirectoryCache(str(tmp_path), limit_bytes=-1)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageFailed):
        DirectoryCache(f"{tmp_path}/file/below", limit_bytes=1)
