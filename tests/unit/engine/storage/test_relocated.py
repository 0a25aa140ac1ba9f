from __future__ import annotations

import pytest

from engine.errors import FileNotFound, Unsupported
from engine.storage.memory import MemoryStore
from engine.storage.relocated import RelocatedStore


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
