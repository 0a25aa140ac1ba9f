from __future__ import annotations

import gc
import json
import math
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from pathlib import Path
from random import Random
from threading import Barrier

import pytest

import icebench
from icebench.bench.gate.cases import time_cases
from icebench.bench.gate.cases.baton import Baton
from icebench.bench.gate.cases.work import Case
from icebench.bench.gate.decisions.baseline import Baseline, CaseResult, encode
from icebench.bench.gate.decisions.counter_verdict import ExitCode
from icebench.bench.gate.decisions.outcome import CaseOutcome, Outcome
from icebench.bench.gate.decisions.time_verdict import CONFIRMING, LOOKS, SUSPECTING, Stand
from icebench.bench.gate.revisions.build import CaseProcessFailed, OutOfTime, Unbuildable
from icebench.bench.gate.revisions.pairs import Pairs, compare_revisions, unaccepted

Seconds = Callable[[int], float]


def counted(**counters: int) -> Baseline:
    return Baseline(cases={"a": CaseResult(counters=counters, checksum="c")})


@dataclass
class Scripted:
    """A side whose seconds are given: name -> a function of the number of the run, or an error."""

    name: str
    seconds: Mapping[str, Seconds | str]
    counts: Baseline | CaseProcessFailed = field(default_factory=lambda: counted(files_planned=1))
    runs: list[list[str]] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)
    began: list[bool] = field(default_factory=list)
    given: list[float] = field(default_factory=list)
    needs: float = 0.0

    def run(
        self,
        module: str,
        *arguments: str,
        seed: int = 0,
        seconds: float = math.inf,
        beside: socket.socket | None = None,
    ) -> str:
        if beside is not None:
            beside.close()
        self.given.append(seconds)
        if seconds < self.needs:
            raise OutOfTime
        if module == "icebench.bench.gate.cases.count_cases":
            if isinstance(self.counts, CaseProcessFailed):
                raise self.counts
            return encode(self.counts)
        _, *names = takewhile(lambda each: not each.startswith("--"), arguments)
        if "--profile" in arguments:
            own = 0.5 if self.name == "head" else 0.1
            return json.dumps([[["scan", f"f{n}"], own * n] for n in range(3)])
        self.runs.append(names)
        self.seeds.append(seed)
        self.began.append("--second" not in arguments)
        found = {}
        for name in names:
            given = self.seconds[name]
            found[name] = {"error": given} if isinstance(given, str) else {"seconds": [given(len(self.runs))]}
        return json.dumps(found)


def noisy(seconds: float, amount: float = 0.02, seed: int = 0) -> Seconds:
    random = Random(seed)
    return lambda _: seconds * math.exp(random.gauss(0, amount))


def pairs_of(base: Mapping[str, Seconds | str], head: Mapping[str, Seconds | str]) -> tuple[Pairs, Scripted, Scripted]:
    sides = Scripted("base", base), Scripted("head", head)
    return Pairs(base=sides[0], head=sides[1], warehouse=Path("tables"), random=Random(1)), *sides


def test_what_a_case_has_loaded_is_not_walked_before_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collecting it took most of a process."""
    loaded: list[object] = []
    walked: list[int] = []

    def prepare(catalog: object, counters: object) -> Callable[[], None]:
        assert catalog is counters or catalog is None
        walked.append(len(gc.get_objects()))
        return lambda: loaded.extend([[n] for n in range(100_000)] if not loaded else [])

    monkeypatch.setattr(icebench, "Counters", lambda: None)
    ticks = count()
    try:
        time_cases._timed(Case("case", prepare), None, lambda: float(next(ticks)), Baton())  # type: ignore[arg-type]
    finally:
        gc.unfreeze()
    assert len(walked) == 8
    assert max(walked[2:]) < 100_000


@pytest.mark.parametrize("dies_at", [0, 4, None])
def test_a_case_has_as_many_turns_whatever_happens_in_it(dies_at: int | None) -> None:
    """Or the other side of the pair would wait for them."""
    turns, runs, now = [0], count(), [0.0]

    class Counted(Baton):
        @contextmanager
        def turn(self) -> Iterator[None]:
            turns[0] += 1
            yield

    def run() -> None:
        number = next(runs)
        if number == dies_at:
            raise ValueError("gone")
        now[0] += 1.0 + number

    case = Case("case", lambda _catalog, _counters: run)
    try:
        found = time_cases._timed(case, None, lambda: now[0], Counted())  # type: ignore[arg-type]
    finally:
        gc.unfreeze()
    assert turns[0] == 8
    assert found == ({"seconds": [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]} if dies_at is None else {"error": "ValueError: gone"})


def test_a_short_case_is_run_several_times_in_a_turn() -> None:
    now, runs = [0.0], [0]

    def run() -> None:
        runs[0] += 1
        now[0] += 0.006

    try:
        found = time_cases._timed(Case("case", lambda _catalog, _counters: run), None, lambda: now[0], Baton())  # type: ignore[arg-type]
    finally:
        gc.unfreeze()
    assert runs[0] == 8 * 3
    assert found["seconds"] == pytest.approx([0.006] * 6)


def test_equal_revisions_pass_at_the_first_look() -> None:
    pairs, base, head = pairs_of({"a": noisy(1.0)}, {"a": noisy(1.0, seed=1)})
    outcome = compare_revisions(pairs, ["a"], Baseline())
    assert outcome.exit_code is ExitCode.PASS
    assert len(base.runs) == len(head.runs) == LOOKS[0]
    assert base.seeds == head.seeds
    assert len(set(base.seeds)) == LOOKS[0]


def test_a_side_beside_itself_shows_what_its_processes_differ_by() -> None:
    side = Scripted("both", {"a": noisy(1.0)})
    ratio = Pairs(base=side, head=side, warehouse=Path("tables"), random=Random(1)).decide(["a"])["a"].ratio
    assert len(side.runs) == 2 * LOOKS[0]
    assert ratio is not None
    assert (ratio.low or 0) < ratio.estimate < (ratio.high or 0)


def test_a_slower_case_is_confirmed_on_fresh_pairs_without_the_others() -> None:
    pairs, base, _ = pairs_of({"a": noisy(1.0), "b": noisy(1.0)}, {"a": noisy(1.3, seed=1), "b": noisy(1.0, seed=2)})
    outcome = compare_revisions(pairs, ["a", "b"], Baseline())
    assert outcome.exit_code is ExitCode.REGRESSION
    assert outcome.cases["b"].stand is Stand.PASS
    found = outcome.cases["a"]
    assert found.stand is Stand.REGRESSED
    assert found.ratio is not None
    assert 1.25 < (found.ratio.low or 0) < found.ratio.estimate < (found.ratio.high or 0) < 1.35
    assert found.ratio.pairs == CONFIRMING[0]
    assert len(base.runs) == SUSPECTING + CONFIRMING[0]
    assert base.runs[-1] == ["a"]
    assert [function for function, *_ in found.profile] == ["f2", "f1", "f0"]
    assert found.profile[0] == ("f2", 0.2, 1.0)


def test_a_suspicion_that_fresh_pairs_do_not_show_is_no_regression() -> None:
    pairs, *_ = pairs_of({"a": noisy(1.0)}, {"a": lambda run: 1.3 if run <= SUSPECTING else 1.0})
    found = compare_revisions(pairs, ["a"], Baseline()).cases["a"]
    assert found.stand is Stand.PASS
    assert found.ratio is not None
    assert found.ratio.pairs == CONFIRMING[0]


def test_one_side_of_a_pair_begins_and_it_is_drawn_which() -> None:
    pairs, base, head = pairs_of({"a": noisy(1.0)}, {"a": noisy(1.0)})
    for seed in range(3):
        pairs.random, pairs.cases = Random(seed), {}
        pairs.decide(["a"])
    assert [not began for began in base.began] == head.began
    assert set(base.began) == {False, True}


def test_the_ratio_of_a_pair_is_that_of_runs_beside_each_other() -> None:
    """Here the machine takes twice as long from the second turn on, and something disturbs one run."""
    pairs, *_ = pairs_of({}, {})
    logs: dict[str, list[float]] = {"a": []}
    pairs._take(logs, ["a"], [{"a": {"seconds": [1.0, 2.0, 2.0]}}, {"a": {"seconds": [1.1, 2.2, 9.9]}}])
    assert logs["a"] == [pytest.approx(math.log(1.1))]


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_so_many_pairs_run_at_once(at_once: int) -> None:
    pairs, base, head = pairs_of({"a": noisy(1.0)}, {"a": noisy(1.0, seed=1)})
    together = Barrier(at_once, timeout=20)
    numbers: list[int] = []

    class Met(Pairs):
        def _pair(self, names: Sequence[str], number: int, seed: int) -> list[Mapping[str, time_cases.Time]]:
            together.wait()
            numbers.append(number)
            return super()._pair(names, number, seed)

    met = Met(base=base, head=head, warehouse=pairs.warehouse, random=Random(1), at_once=at_once)
    assert met.decide(["a"])["a"].stand is Stand.PASS
    assert len(base.runs) == len(head.runs) == LOOKS[0]
    assert sorted(numbers) == sorted([*range(at_once)] * (LOOKS[0] // at_once))


def test_a_dead_case_of_head_fails_and_of_base_is_incomparable_and_the_others_go_on() -> None:
    cases: dict[str, Seconds | str] = {"dead": "ValueError: gone", "new": noisy(1.0), "fine": noisy(1.0)}
    pairs, *_ = pairs_of({**cases, "dead": noisy(1.0), "new": "KeyError: 'new'"}, cases)
    outcome = compare_revisions(pairs, ["dead", "new", "fine"], Baseline())
    assert outcome.exit_code is ExitCode.ERROR
    assert {name: case.stand for name, case in outcome.cases.items()} == {
        "dead": Stand.FAILED,
        "new": Stand.INCOMPARABLE,
        "fine": Stand.PASS,
    }
    assert outcome.cases["dead"].note == "head: ValueError: gone"


def test_without_time_nothing_is_decided() -> None:
    now = iter(range(0, 10_000, 10))
    pairs, base, _ = pairs_of({"a": noisy(1.0, 0.5)}, {"a": noisy(1.0, 0.5, seed=1)})
    pairs.clock, pairs.deadline = lambda: float(next(now)), 100.0
    outcome = compare_revisions(pairs, ["a"], Baseline())
    assert outcome.exit_code is ExitCode.INCONCLUSIVE
    assert 0 < len(base.runs) < LOOKS[-1]


def test_a_suspect_whose_fresh_pairs_are_fine_passes_at_the_deadline_too() -> None:
    now = iter(range(0, 10_000, 10))
    pairs, base, _ = pairs_of({"a": noisy(1.0)}, {"a": lambda run: 1.3 if run <= SUSPECTING else 1.0})
    pairs.clock, pairs.deadline = lambda: float(next(now)), 600.0
    found = compare_revisions(pairs, ["a"], Baseline()).cases["a"]
    assert SUSPECTING + 5 <= len(base.runs) < SUSPECTING + CONFIRMING[0]
    assert found.stand is Stand.PASS


def test_a_case_that_is_clear_when_the_budget_ends_passes_between_two_looks() -> None:
    now = iter(range(0, 10_000, 10))
    wild = random_of(3)
    pairs, base, _ = pairs_of({"a": noisy(1.0)}, {"a": lambda run: {1: 1.16, 2: 1.065}.get(run) or wild(run)})
    pairs.clock, pairs.deadline = lambda: float(next(now)), 245.0
    found = compare_revisions(pairs, ["a"], Baseline()).cases["a"]
    assert LOOKS[0] < len(base.runs) < LOOKS[1]
    assert found.stand is Stand.PASS


def random_of(seed: int) -> Seconds:
    return noisy(1.0, 0.005, seed)


@pytest.mark.parametrize("at_once", [1, 2])
def test_no_step_takes_longer_than_the_budget(at_once: int) -> None:
    """Counting, each process of a pair, and profiling: what does not fit is ended, and what is known is said."""
    now = [0.0]

    def passing(seconds: float) -> Seconds:
        def of(_: int) -> float:
            now[0] += 30.0
            return seconds

        return of

    for needs, runs in ((1_000.0, 0), (0.0, None)):
        now[0] = 0.0
        pairs, base, head = pairs_of({"a": passing(1.0)}, {"a": passing(1.0)})
        pairs.clock, pairs.deadline, pairs.at_once = lambda: now[0], 200.0, at_once
        head.needs = needs
        outcome = compare_revisions(pairs, ["a"], Baseline())
        assert outcome.exit_code is ExitCode.INCONCLUSIVE
        assert max(base.given + head.given) <= 200.0
        assert now[0] <= 260.0
        if runs == 0:
            assert base.runs == []
            assert outcome.notes == ["The budget was over while counting."]
            assert outcome.cases["a"].stand is Stand.INCONCLUSIVE
        else:
            assert 0 < len(base.runs) < LOOKS[0]


def test_a_regression_without_time_for_a_profile_is_one() -> None:
    pairs, _, head = pairs_of({"a": noisy(1.0)}, {"a": noisy(1.3, seed=1)})
    decide = Pairs.decide

    class Late(Pairs):
        def decide(self, names: Sequence[str]) -> Mapping[str, CaseOutcome]:
            found = decide(self, names)
            self.deadline = self.clock()
            return found

    late = Late(base=pairs.base, head=head, warehouse=pairs.warehouse, random=Random(1))
    found = compare_revisions(late, ["a"], Baseline()).cases["a"]
    assert found.stand is Stand.REGRESSED
    assert found.stacks == ()


@pytest.mark.parametrize(("seconds", "code"), [(1.0, ExitCode.PASS), (1.3, ExitCode.REGRESSION)])
def test_where_calls_alone_rise_a_little_time_decides(seconds: float, code: ExitCode) -> None:
    pairs, base, head = pairs_of({"a": noisy(1.0), "b": noisy(1.0)}, {"a": noisy(seconds, seed=1), "b": noisy(1.0)})
    base.counts, head.counts = counted(function_calls=10_000), counted(function_calls=10_400)
    outcome = compare_revisions(pairs, ["b"], Baseline())  # a is timed, too
    assert outcome.exit_code is code
    assert list(outcome.counters) == []
    assert outcome.notes[0] == "a: function_calls increased 10000 -> 10400 (+4.0%); time decides"
    assert base.runs[0] == ["b", "a"]


@pytest.mark.parametrize(
    "counts", [{"function_calls": 10_501, "files_planned": 1}, {"function_calls": 10_400, "files_planned": 2}]
)
def test_more_calls_or_other_work_fail_as_ever(counts: dict[str, int]) -> None:
    pairs, base, head = pairs_of({"a": noisy(1.0)}, {"a": noisy(1.0)})
    base.counts, head.counts = counted(function_calls=10_000, files_planned=1), counted(**counts)
    outcome = compare_revisions(pairs, ["a"], Baseline())
    assert outcome.exit_code is ExitCode.REGRESSION
    assert base.runs == []


def test_more_work_fails_before_anything_is_timed() -> None:
    pairs, base, head = pairs_of({"a": noisy(1.0)}, {"a": noisy(1.0)})
    head.counts = counted(files_planned=2)
    outcome = compare_revisions(pairs, ["a"], Baseline())
    assert outcome.exit_code is ExitCode.REGRESSION
    assert outcome.counters == ["a: files_planned increased 1 -> 2 (+100.0%)"]
    assert base.runs == []


def test_a_base_that_cannot_run_the_cases_of_today_is_no_error_of_head() -> None:
    pairs, base, head = pairs_of({"a": noisy(1.0)}, {"a": noisy(1.0)})
    base.counts = CaseProcessFailed("base: AttributeError: no scan")
    with pytest.raises(Unbuildable, match="base cannot run the cases of this checkout: base: AttributeError: no scan"):
        compare_revisions(pairs, ["a"], Baseline())
    base.counts, head.counts = head.counts, base.counts
    with pytest.raises(CaseProcessFailed):
        compare_revisions(pairs, ["a"], Baseline())


@pytest.mark.parametrize(
    ("accepted", "remain"),
    [
        (Baseline(), ["a:files_planned", "a:function_calls"]),
        (counted(files_planned=2, function_calls=1_000), ["a:function_calls"]),
        (counted(files_planned=3, function_calls=1_990), []),
    ],
)
def test_what_heads_baseline_accepts_is_no_regression(accepted: Baseline, remain: list[str]) -> None:
    base, head = counted(files_planned=1, function_calls=1_000), counted(files_planned=2, function_calls=2_000)
    assert [finding.name for finding in unaccepted(base, head, accepted)] == remain


def test_a_baseline_of_another_environment_accepts_exact_counters_only() -> None:
    base, head = counted(files_planned=1, function_calls=1_000), counted(files_planned=2, function_calls=2_000)
    for more in (1_990, 3_000):
        accepted = replace(counted(files_planned=2, function_calls=more), environment={"python": "3.13"})
        assert [finding.name for finding in unaccepted(base, head, accepted)] == ["a:function_calls"]


def test_another_answer_is_accepted_as_it_is_alone() -> None:
    base, head = counted(rows_returned=12_044), counted(rows_returned=12_000)
    for known, remain in ((12_044, ["a:rows_returned"]), (12_001, ["a:rows_returned"]), (12_000, [])):
        found = unaccepted(base, head, counted(rows_returned=known))
        assert [finding.name for finding in found] == remain


def test_no_case_is_incomparable() -> None:
    assert Outcome(base="b", head="h").exit_code is ExitCode.CONFIGURATION
