from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from icebench.engine.codec.array_views import ManifestColumns
from icebench.engine.plan.cache import ManifestCache, Metrics
from icebench.errors import CorruptTable, Invalid
from tests.property.manifest_batches import manifest_columns

NONE: Metrics = frozenset()


def columns(entries: int = 10) -> ManifestColumns:
    """Columns of a size that grows with the number of entries."""
    return manifest_columns(entries, {})


class Decoder:
    """Counts what is decoded."""

    def __init__(self, entries: int = 10) -> None:
        self.asked: list[Metrics] = []
        self._entries = entries

    def __call__(self, metrics: Metrics) -> ManifestColumns:
        self.asked.append(metrics)
        return columns(self._entries)


def test_decodes_once() -> None:
    cache, decode = ManifestCache(), Decoder()
    first = cache.get(("a", 1), NONE, decode)
    assert cache.get(("a", 1), NONE, decode) is first
    assert cache.get(("a", 2), NONE, decode) is not first  # another length is another file
    assert len(decode.asked) == 2
    assert cache.size_bytes == 2 * first.size_bytes


def test_more_metrics_are_decoded_with_those_known() -> None:
    cache, decode = ManifestCache(), Decoder()
    cache.get(("a", 1), frozenset({1}), decode)
    cache.get(("a", 1), frozenset({2}), decode)
    cache.get(("a", 1), frozenset({1, 2}), decode)
    cache.get(("a", 1), NONE, decode)
    cache.get(("a", 1), None, decode)
    cache.get(("a", 1), frozenset({9}), decode)
    assert decode.asked == [frozenset({1}), frozenset({1, 2}), None]
    assert cache.size_bytes == columns().size_bytes


def test_the_least_recently_used_goes_first() -> None:
    size = columns().size_bytes
    cache, decode = ManifestCache(limit_bytes=2 * size), Decoder()
    for name in ("a", "b", "a", "c"):
        cache.get((name, 1), NONE, decode)
    assert len(decode.asked) == 3
    cache.get(("a", 1), NONE, decode)
    assert len(decode.asked) == 3
    cache.get(("b", 1), NONE, decode)
    assert len(decode.asked) == 4
    assert cache.size_bytes <= 2 * size


def test_a_large_one_takes_the_place_of_several() -> None:
    cache = ManifestCache(limit_bytes=columns(100).size_bytes + columns().size_bytes)
    small = Decoder()
    for name in "abcde":
        cache.get((name, 1), NONE, small)
    cache.get(("large", 1), NONE, Decoder(100))
    assert cache.size_bytes <= columns(100).size_bytes + columns().size_bytes
    cache.get(("e", 1), NONE, small)
    assert len(small.asked) == 5
    cache.get(("d", 1), NONE, small)
    assert len(small.asked) == 6


@pytest.mark.parametrize("limit_bytes", [0, 10])
def test_what_is_larger_than_the_limit_is_not_kept(limit_bytes: int) -> None:
    cache, decode = ManifestCache(limit_bytes), Decoder()
    cache.get(("a", 1), NONE, decode)
    cache.get(("a", 1), NONE, decode)
    assert len(decode.asked) == 2
    assert cache.size_bytes == 0


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(Invalid):
        ManifestCache(-1)


def test_errors_are_not_kept() -> None:
    cache = ManifestCache()

    def fail(_: Metrics) -> ManifestColumns:
        raise CorruptTable("broken")

    for _ in range(2):
        with pytest.raises(CorruptTable):
            cache.get(("a", 1), NONE, fail)
    assert cache.get(("a", 1), NONE, Decoder()).count == 10


def test_threads_wait_for_one_decoding() -> None:
    cache, started, go_on = ManifestCache(), Event(), Event()
    calls = []

    def slowly(metrics: Metrics) -> ManifestColumns:
        calls.append(metrics)
        started.set()
        assert go_on.wait(10)
        return columns()

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(cache.get, ("a", 1), NONE, slowly)
        assert started.wait(10)
        others = [pool.submit(cache.get, ("a", 1), NONE, slowly) for _ in range(3)]
        go_on.set()
        found = {id(each.result(10)) for each in [first, *others]}
    assert len(calls) == len(found) == 1


def test_waiters_get_the_error() -> None:
    cache, started, go_on = ManifestCache(), Event(), Event()

    def fail(_: Metrics) -> ManifestColumns:
        started.set()
        assert go_on.wait(10)
        raise CorruptTable("broken")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get, ("a", 1), NONE, fail)
        assert started.wait(10)
        second = pool.submit(cache.get, ("a", 1), NONE, Decoder())
        go_on.set()
        with pytest.raises(CorruptTable):
            first.result(10)
        error = second.exception(10)
    assert error is None or isinstance(error, CorruptTable)


def test_sizes_stay_right_under_contention() -> None:
    size = columns().size_bytes
    cache, together = ManifestCache(limit_bytes=3 * size), Barrier(4)

    def work(seed: int) -> None:
        together.wait(10)
        for i in range(200):
            cache.get((f"{(seed * 7 + i) % 6}", 1), frozenset({(i * seed) % 3}), Decoder())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert 0 < cache.size_bytes <= 3 * size
    assert cache.size_bytes % size == 0
