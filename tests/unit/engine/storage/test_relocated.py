from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from icebench.engine.storage.memory import MemoryStore
from icebench.engine.storage.relocated import RelocatedStore
from icebench.engine.storage.resolve import Stores
from icebench.errors import FileNotFound, Unsupported


@pytest.fixture
def store() -> RelocatedStore:
    inner = MemoryStore()
    inner.write("memory://new/t/data/a", b"0123")
    inner.write("memory://other/deep/b", b"56")
    inner.write("memory://elsewhere/c", b"7")
    return RelocatedStore(
        lambda location: inner, {"s3://old/t": "memory://new/t/", "s3://old/t/deep/": "memory://other/deep"}
    )


def test_reads_go_to_the_new_place(store: RelocatedStore) -> None:
    assert store.read("s3://old/t/data/a") == b"0123"
    assert store.read("s3://old/t/data/a", 1, 2) == b"12"
    assert store.size("s3://old/t/data/a") == 4
    assert store.exists("s3://old/t/data/a")
    assert store.open_input("s3://old/t/data/a").read() == b"0123"
    assert store.physical("s3://old/t/data/a") == "memory://new/t/data/a"
    with pytest.raises(FileNotFound):
        store.read("s3://old/t/data/missing")


def test_the_longest_prefix_wins(store: RelocatedStore) -> None:
    assert store.read("s3://old/t/deep/b") == b"56"


def test_a_prefix_ends_at_a_segment(store: RelocatedStore) -> None:
    assert store.physical("s3://old/table2/x") == "s3://old/table2/x"
    assert store.physical("s3://old/t") == "memory://new/t"


def test_other_locations_are_read_where_they_say(store: RelocatedStore) -> None:
    assert store.read("memory://elsewhere/c") == b"7"


def test_listings_keep_the_old_names(store: RelocatedStore) -> None:
    assert [(f.location, f.size_bytes) for f in store.list("s3://old/t")] == [("s3://old/t/data/a", 4)]


def test_nothing_is_written(store: RelocatedStore) -> None:
    assert not store.creates_atomically
    for attempt in (
        lambda: store.write("s3://old/t/x", b""),
        lambda: store.delete("s3://old/t/data/a"),
        lambda: store.open_output("s3://old/t/x"),
    ):
        with pytest.raises(Unsupported, match="read-only"):
            attempt()
    store.write("memory://elsewhere/d", b"8")  # what is not read from another place is not moved
    assert store.read("memory://elsewhere/d") == b"8"


@pytest.mark.parametrize(
    ("old", "location", "expected"),
    [
        ("/a", "file:/a/f", "/n/f"),
        ("/a", "file:///a/f", "/n/f"),
        ("file:/a/", "/a/f", "/n/f"),
        ("s3a://b/t", "s3://b/t/f", "/n/f"),
        ("s3://b/t", "s3://c/t/f", "s3://c/t/f"),
        ("s3://b/t", "/t/f", "/t/f"),
        ("/t", "s3://b/t/f", "s3://b/t/f"),
        ("hdfs://h:1/t", "/t/f", "/n/f"),
        ("hdfs://h:1/t", "hdfs:///t/f", "/n/f"),
        ("hdfs://h:1/t", "hdfs://i:1/t/f", "hdfs://i:1/t/f"),
        ("./t", "t/f", "/n/f"),
        ("t", "././t/f", "/n/f"),
        ("t", "/t/f", "/t/f"),
        ("/t", "t/f", "/base/t/f"),
        ("/t", "./f", "/base/f"),
    ],
)
def test_a_prefix_covers_all_spellings(old: str, location: str, expected: str) -> None:
    assert RelocatedStore(lambda _: MemoryStore(), {old: "/n"}, "/base").physical(location) == expected


def test_a_copy_in_another_process_opens_stores_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"1")
    stores = Stores({"s3.region": "x"})
    moved = RelocatedStore(stores, {"s3://old": str(tmp_path)})
    assert moved.read("s3://old/f") == b"1"
    assert pickle.loads(pickle.dumps(moved)).read("s3://old/f") == b"1"
    stores("memory://x")
    with pytest.raises(Unsupported, match="of this process alone"):
        pickle.dumps(moved)
