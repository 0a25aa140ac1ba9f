from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from icebench.bench.gate.cases.request_rounds import Rounds

REQUEST = "storage_requests_read"


@pytest.mark.parametrize(("threads", "items", "expected"), [(1, 5, 5), (4, 4, 1), (4, 9, 3), (8, 101, 13)])
def test_what_is_asked_at_once_is_a_round(threads: int, items: int, expected: int) -> None:
    rounds = Rounds(threads)

    def ask(item: int) -> int:
        rounds.add(REQUEST)
        return item

    found = list(rounds.map(ask, range(items)))
    assert found == list(range(items))
    assert (rounds.now, rounds[REQUEST]) == (expected, items)


def test_requests_of_the_caller_are_rounds_of_their_own() -> None:
    rounds = Rounds(2)
    rounds.add(REQUEST)
    for _ in rounds.map(lambda _: rounds.add(REQUEST), range(4)):
        pass
    rounds.add(REQUEST)
    rounds.add("files_planned", 9)
    assert rounds.now == 1 + 2 + 1


def test_a_caller_that_asks_between_results_waits_while_others_go_on() -> None:
    """Four items of one request on two threads, and a request after each result: the caller is done last."""
    rounds = Rounds(2)
    for _ in rounds.map(lambda _: rounds.add(REQUEST), range(4)):
        rounds.add(REQUEST)
    assert rounds.now == 1 + 4


def test_work_that_maps_again_takes_its_rounds_with_it() -> None:
    rounds = Rounds(2)

    def twice(_: int) -> None:
        list(rounds.map(lambda _: rounds.add(REQUEST), range(2)))
        rounds.add(REQUEST)

    assert len(list(rounds.map(twice, range(2)))) == 2
    assert rounds.now == 2


def test_no_more_than_two_items_of_each_thread_are_begun() -> None:
    begun: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            begun.append(number)
            yield number

    assert list(islice(Rounds(3).map(lambda item: item, items()), 1)) == [0]
    assert begun == list(range(6))
