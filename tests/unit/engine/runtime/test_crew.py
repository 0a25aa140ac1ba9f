from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.runtime.crew import Crew
from engine.runtime.local import LocalRunner


def test_alone_all_parts_are_done_in_the_callers_thread() -> None:
    found = Crew().each(lambda n: (n, threading.current_thread()), [3, 1, 2])
    assert found == [(n, threading.current_thread()) for n in (3, 1, 2)]
    assert Crew().each(str, []) == []


def test_one_who_helps_takes_parts_and_ends_with_the_work() -> None:
    crew = Crew()
    together = threading.Barrier(2, timeout=10)

    def part(n: int) -> threading.Thread:
        together.wait()
        return threading.current_thread()

    with ThreadPoolExecutor(1) as pool:
        with crew.working():
            helping = pool.submit(crew.help)
            found = crew.each(part, range(8))
        helping.result(timeout=10)
    assert len(set(found)) == 2


def test_nobody_waits_for_work_that_is_not_there() -> None:
    crew = Crew()
    crew.help()
    with crew.working():
        pass
    crew.help()


def test_an_error_is_raised_when_nobody_is_at_a_part_any_longer() -> None:
    crew = Crew()
    both = threading.Barrier(2, timeout=10)
    done = []

    def part(n: int) -> None:
        if n < 2:
            both.wait()
        if n == 0:
            raise ValueError("first")
        done.append(n)

    with ThreadPoolExecutor(1) as pool:
        with crew.working():
            helping = pool.submit(crew.help)
            with pytest.raises(ValueError, match="first"):
                crew.each(part, range(100))
        helping.result(timeout=10)
    assert 1 in done
    assert len(done) < 100


@given(
    pieces=st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=8),
    threads=st.integers(1, 4),
    helpers=st.integers(0, 3),
    bad=st.sets(st.integers(0, 9), max_size=2),
)
def test_results_are_those_of_one_thread(pieces: list[list[int]], threads: int, helpers: int, bad: set[int]) -> None:
    crew = Crew()

    def part(n: int) -> int:
        if n in bad:
            raise ValueError(n)
        return n * n

    def piece(parts: list[int] | None) -> list[int]:
        if parts is None:
            crew.help()
            return []
        with crew.working():
            return crew.each(part, parts)

    expected: list[list[int]] = []
    for parts in pieces:
        if bad.intersection(parts):
            break
        expected.append([n * n for n in parts])
    found = []
    works: list[list[int] | None] = [*pieces, *[None] * helpers]
    if len(expected) == len(pieces):
        found = list(LocalRunner(threads).map(piece, works))
        assert found == expected + [[]] * helpers
        return
    with pytest.raises(ValueError, match=r"^\d$"):  # noqa: PT012 - which are given before is part of what is promised
        for result in LocalRunner(threads).map(piece, works):
            found.append(result)
    assert found == expected
