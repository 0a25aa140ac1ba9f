from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator

import pytest

from icebench.engine.runtime.local import LocalRunner, available_threads
from icebench.errors import Invalid


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_results_come_in_the_order_of_the_items(threads: int) -> None:
    def slow_start(n: int) -> int:
        time.sleep(0.02 if n == 0 else 0)
        return n * n

    assert list(LocalRunner(threads).map(slow_start, range(50))) == [n * n for n in range(50)]


@pytest.mark.parametrize("threads", [1, 4])
def test_no_items(threads: int) -> None:
    assert list(LocalRunner(threads).map(str, [])) == []


def test_work_is_spread_over_threads() -> None:
    together = threading.Barrier(3, timeout=10)
    assert len(list(LocalRunner(3).map(lambda _: together.wait(), range(3)))) == 3


def test_one_item_runs_in_the_callers_thread() -> None:
    assert list(LocalRunner(4).map(lambda _: threading.current_thread(), [0])) == [threading.current_thread()]


def test_the_first_exception_by_item_is_raised_and_work_ends() -> None:
    done: list[int] = []

    def fail(n: int) -> int:
        if n in (3, 4):
            raise ValueError(n)
        done.append(n)
        return n

    results = LocalRunner(2).map(fail, range(1_000))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="3"):
        next(results)
    assert len(done) < 20


def test_items_are_drawn_only_as_far_as_needed() -> None:
    drawn: list[int] = []

    def items() -> Iterator[int]:
        for n in range(10_000):
            drawn.append(n)
            yield n

    results = LocalRunner(2).map(str, items())
    assert drawn == []
    assert next(results) == "0"
    assert len(drawn) <= 6
    results.close()  # type: ignore[attr-defined]
    assert len(drawn) <= 6


def test_a_runner_may_be_used_within_itself() -> None:
    runner = LocalRunner(2)
    nested = runner.map(lambda n: sum(runner.map(lambda m: n * m, range(10))), range(10))
    assert list(nested) == [n * 45 for n in range(10)]


def test_threads_end_with_the_work() -> None:
    before = threading.active_count()
    assert sum(LocalRunner(4).map(int, range(100))) == 4950
    assert threading.active_count() == before


class Holder:
    """Refers to itself, so that only the garbage collector ends it."""

    def __init__(self, results: Iterator[int]) -> None:
        self.results = results
        self.itself = self


@pytest.mark.timeout(60)
def test_the_garbage_collector_does_not_wait_for_threads() -> None:
    needed, reached, ended = threading.Lock(), threading.Event(), threading.Event()

    def work(n: int) -> int:
        if n:
            reached.set()
            with needed:
                ended.set()
        return n

    holder = Holder(LocalRunner(2).map(work, range(10)))
    with needed:
        assert next(holder.results) == 0
        assert reached.wait(10)
        del holder
        gc.collect()
        assert not ended.is_set()
    assert ended.wait(10)


def test_closing_waits_for_what_is_in_flight() -> None:
    reached, ended = threading.Event(), threading.Event()

    def work(n: int) -> int:
        if n:
            reached.set()
            time.sleep(0.05)
            ended.set()
        return n

    results = LocalRunner(2).map(work, range(3))
    assert next(results) == 0
    assert reached.wait(10)
    results.close()  # type: ignore[attr-defined]
    assert ended.is_set()


def test_at_least_one_thread() -> None:
    assert available_threads() >= 1
    with pytest.raises(Invalid, match="at least one thread"):
        LocalRunner(0)
