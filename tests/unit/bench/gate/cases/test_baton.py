from __future__ import annotations

import os
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from icebench.bench.gate.cases.baton import Baton, keep_processor


def both(first_turns: int, second_turns: int) -> list[str]:
    """The order of turns of two that have so many, after which each goes away."""
    order: list[str] = []

    def run(name: str, turns: int, end: socket.socket) -> None:
        baton = Baton(end, starts=name == "a")
        for _ in range(turns):
            with baton.turn():
                order.append(name)
        end.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, "ab", (first_turns, second_turns), socket.socketpair(), timeout=20))
    return order


def test_each_has_two_turns_after_the_first() -> None:
    assert "".join(both(8, 8)) == "abbaabbaabbaabba"


@pytest.mark.parametrize(("first", "second"), [(3, 9), (9, 3)])
def test_a_partner_that_ends_is_not_waited_for(first: int, second: int) -> None:
    order = both(first, second)
    assert (order.count("a"), order.count("b")) == (first, second)


def test_a_turn_that_fails_is_passed_on() -> None:
    ends = socket.socketpair()
    with pytest.raises(ValueError, match="gone"), Baton(ends[0]).turn():
        raise ValueError("gone")
    ends[1].settimeout(5)
    assert len(ends[1].recv(1)) == 1


def test_one_alone_has_all_turns() -> None:
    baton = Baton()
    for _ in range(4):
        with baton.turn():
            pass


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_a_process_is_kept_on_one_of_its_processors() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        for number in range(5):
            os.sched_setaffinity(0, allowed)
            keep_processor(number)
            assert os.sched_getaffinity(0) == {sorted(allowed)[number % len(allowed)]}
    finally:
        os.sched_setaffinity(0, allowed)
