import gc
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.measure.interleave import Case, ClockExecutor, interleave, interleave_unevenly, out_of_collection
from tests.unit.bench.measure.scripted import Clock


class Listening:
    """An executor that notes the order and gives each case the seconds in its name."""

    def __init__(self, broken: frozenset[str] = frozenset()) -> None:
        self.order: list[str] = []
        self._broken = broken

    def run(self, case: Case) -> float:
        self.order.append(case.name)
        if case.name in self._broken and self.order.count(case.name) == 2:
            raise OSError("gone")
        return float(case.name)


def case(name: str) -> Case:
    return Case(name, lambda: lambda: None)


CASES = [case(name) for name in ("1", "2", "3", "4")]


@given(st.integers(1, 6), st.integers(0, 3), st.integers(0, 99))
def test_every_round_runs_every_case_once(repetitions: int, warmups: int, seed: int) -> None:
    executor = Listening()
    found = interleave(CASES, repetitions=repetitions, warmups=warmups, random=Random(seed), executor=executor)
    rounds = [executor.order[i : i + 4] for i in range(0, len(executor.order), 4)]
    assert len(rounds) == repetitions + warmups
    assert all(sorted(names) == ["1", "2", "3", "4"] for names in rounds)
    assert found.seconds == {c.name: [float(c.name)] * repetitions for c in CASES}
    assert not found.errors


def test_the_order_is_drawn_anew_and_follows_the_seed() -> None:
    orders = []
    for seed in (5, 5, 6):
        executor = Listening()
        interleave(CASES, repetitions=20, warmups=0, random=Random(seed), executor=executor)
        orders.append(executor.order)
    assert orders[0] == orders[1] != orders[2]
    rounds = {tuple(orders[0][i : i + 4]) for i in range(0, 80, 4)}
    assert len(rounds) > 8
    assert {names[0] for names in rounds} == {"1", "2", "3", "4"}


def test_slow_cases_stop_earlier_and_the_rounds_they_share_come_first() -> None:
    executor = Listening()
    cases, rounds = {name: case(name) for name in ("1", "2", "3")}, {"1": 4, "2": 2, "3": 4}
    found = interleave_unevenly(cases, rounds=rounds, warmups=1, random=Random(1), executor=executor)
    assert found.seconds == {name: [float(name)] * count for name, count in rounds.items()}
    shared, rest = executor.order[:9], executor.order[9:]
    assert all(sorted(shared[i : i + 3]) == ["1", "2", "3"] for i in range(0, 9, 3))  # one warm-up, two rounds
    assert all(sorted(rest[i : i + 2]) == ["1", "3"] for i in range(0, 4, 2))
    assert len(rest) == 4


def test_of_uneven_cases_one_that_raises_has_no_samples() -> None:
    executor = Listening(broken=frozenset({"2"}))
    cases = {name: case(name) for name in ("1", "2")}
    found = interleave_unevenly(cases, rounds={"1": 1, "2": 3}, warmups=0, random=Random(1), executor=executor)
    assert found.seconds == {"1": [1.0]}
    assert set(found.errors) == {"2"}


def test_a_case_that_raises_is_taken_out_and_the_others_go_on() -> None:
    executor = Listening(broken=frozenset({"2"}))
    found = interleave(CASES, repetitions=3, warmups=1, random=Random(1), executor=executor)
    assert set(found.seconds) == {"1", "3", "4"}
    assert all(len(samples) == 3 for samples in found.seconds.values())
    assert isinstance(found.errors["2"], OSError)
    assert executor.order.count("2") == 2


def test_only_the_thunk_is_timed() -> None:
    clock, happened = Clock(), []

    def run() -> None:
        happened.append("run")
        clock.pass_(0.5)

    def prepare() -> Callable[[], object]:
        happened.append("prepare")
        clock.pass_(10)
        return run

    def settle() -> None:
        happened.append("settle")
        clock.pass_(100)

    assert ClockExecutor(clock, settle).run(Case("x", prepare)) == 0.5
    assert happened == ["prepare", "settle", "run"]


def test_a_result_is_freed_after_the_clock_has_stopped() -> None:
    clock = Clock()

    class Heavy:
        def __del__(self) -> None:
            clock.pass_(7)

    assert ClockExecutor(clock, lambda: None).run(Case("x", lambda: Heavy)) == 0
    assert clock.now == 7


def test_rounds_are_told() -> None:
    told: list[tuple[int, int]] = []
    interleave(
        CASES,
        repetitions=2,
        warmups=1,
        random=Random(0),
        executor=Listening(),
        after_round=lambda done, total: told.append((done, total)),
    )
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("cases", "repetitions", "warmups"), [([case("1"), case("1")], 1, 0), (CASES, 0, 0), (CASES, 1, -1)]
)
def test_what_cannot_be_run(cases: list[Case], repetitions: int, warmups: int) -> None:
    with pytest.raises(ValueError, match=r"share a name|repetitions"):
        interleave(cases, repetitions=repetitions, warmups=warmups, random=Random(0), executor=Listening())


def test_what_exists_is_out_of_collection_for_a_while() -> None:
    before = gc.get_freeze_count()
    with out_of_collection():
        assert gc.get_freeze_count() > before + 1000
    assert gc.get_freeze_count() == 0


def test_and_back_in_it_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), out_of_collection():
        _ = 1 / 0
    assert gc.get_freeze_count() == 0
