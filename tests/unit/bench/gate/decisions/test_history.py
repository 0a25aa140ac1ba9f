from __future__ import annotations

import math
from dataclasses import replace

import pytest

from icebench.bench.gate.decisions.counter_kinds import Kind, kind_of
from icebench.bench.gate.decisions.history import TIME, Entry, Measured, Series, comparable, series_of
from icebench.bench.report.history_page import shown_causes
from tests.simulated_history import NOISES, rates, rates_of_copies, recorded

CASE = "scan/a"


def entry(number: int, *, log: float = 0.0, reference: str = "f" * 40, **counters: int) -> Entry:
    return Entry(
        revision=f"{number:040x}",
        number=number,
        date="2026-01-01T00:00:00+00:00",
        subject=f"change {number}",
        reference=reference,
        pairs=3,
        environment={"python": "3.11"},
        cases={CASE: Measured(ratio=math.exp(log), counters=counters), "other": Measured(error="Gone: no such thing")},
    )


def only(quantity: str, entries: list[Entry]) -> Series | None:
    return next((each for each in series_of(entries) if (each.case, each.quantity) == (CASE, quantity)), None)


def test_any_difference_of_a_counter_is_a_change_where_it_was_measured() -> None:
    entries = [entry(n, files=files, same=1) for n, files in enumerate([5, 5, 4, 4, 0, 7])]
    series = only("files", entries)
    assert series is not None
    assert [(c.after.subject, c.at.subject, c.before, c.now, c.confidence, c.size) for c in series.changes] == [
        ("change 1", "change 2", 5, 4, 1.0, "-20.0%"),
        ("change 3", "change 4", 4, 0, 1.0, "-100.0%"),
        ("change 4", "change 5", 0, 7, 1.0, "+7"),
    ]
    assert only("same", entries) is None


def test_a_counter_that_an_engine_does_not_have_is_unknown_and_one_that_a_case_lacks_is_nothing() -> None:
    old, new = entry(1), entry(2, files=3)
    assert only("files", [old, new]) is None
    beside = replace(old, cases={**old.cases, "beside": Measured(ratio=1.0, counters={"files": 1})})
    series = only("files", [beside, new])
    assert series is not None
    assert list(series.values) == [0, 3]


def test_work_avoided_is_in_no_series() -> None:
    assert only("entries_skipped_by_partition", [entry(n, entries_skipped_by_partition=n) for n in range(3)]) is None


def test_a_step_of_processor_time_is_found_with_its_revisions() -> None:
    logs = [0.01, -0.01, 0.0, 0.01, -0.3, -0.31, -0.29, -0.3]
    series = only(TIME, [entry(n, log=log) for n, log in enumerate(logs)])
    assert series is not None
    (change,) = series.changes
    assert (change.after.subject, change.at.subject) == ("change 3", "change 4")
    assert change.now / change.before == pytest.approx(math.exp(-0.305), rel=0.01)
    assert change.confidence > 0.99


def test_a_step_between_two_machines_says_so() -> None:
    logs = [0.0, 0.01, 0.0, -0.3, -0.31, -0.3]
    machines = [
        {"cpu": "a" if n < 3 else "b", "cases": "c", "numpy": "2", **({"new": "1"} if n > 3 else {})} for n in range(6)
    ]
    for moved, causes in ((True, ("cpu",)), (False, ())):
        entries = [
            replace(entry(n, log=log), environment=machines[n] if moved else machines[0]) for n, log in enumerate(logs)
        ]
        series = only(TIME, entries)
        assert series is not None
        (change,) = series.changes
        assert change.other_causes == causes
        assert shown_causes(change) == ("; cpu changed, too" if moved else "")


def test_a_case_that_failed_has_no_series() -> None:
    series = series_of([entry(1, log=0.5), entry(2)])
    assert [(each.case, list(each.values)) for each in series] == [(CASE, [0.5, 0.0])]


def test_ratios_to_different_references_are_not_joined() -> None:
    old, new, again = entry(1), entry(3, reference="e" * 40), entry(3)
    middle = entry(2)
    assert comparable([new, again, middle, old]) == [[old, middle, again], [new]]
    assert comparable([entry(4), new]) == [[new], [entry(4)]]


def test_ratios_of_other_cases_are_not_joined() -> None:
    """A case that does more is no step of the engine. What could not be run has no digest."""
    one, three = (replace(entry(n), environment={"cases": "a"}) for n in (1, 3))
    two, four = (replace(entry(n, log=0.5), environment={"cases": "b"}) for n in (2, 4))
    gone = replace(entry(0), environment={}, cases={}, error="cannot be built")
    assert comparable([four, gone, three, two, one]) == [[one, three], [gone, two, four]]
    assert comparable([gone]) == [[gone]]


def test_steps_planted_into_the_noise_that_was_recorded_are_found() -> None:
    """`python -m tests.simulated_history` has the rates; these are few, to see that they are still such."""
    for step, least in ((0.05, 35), (0.1, 39)):
        found = rates(8, NOISES["as recorded"], step)
        assert found.series == 40
        assert found.found >= least
        assert found.others <= 4
    assert rates(8, NOISES["as recorded"], 0.0).others <= 1


def test_a_step_planted_into_a_copy_of_the_recorded_history_is_found() -> None:
    for seeds, series in (((), 18), ((1, 2), 36)):
        large, small = (rates_of_copies(step, seeds) for step in (0.1, 0.05))
        assert large.series == small.series == series
        assert large.found >= series - len(seeds)
        assert small.found >= 0.4 * series


def changed_at(entries: list[Entry]) -> dict[tuple[str, str], set[str]]:
    return {(s.case, s.quantity): {c.at.revision for c in s.changes} for s in series_of(entries) if s.quantity != TIME}


@pytest.mark.parametrize("place", [1, 3, 6])
def test_a_step_of_one_planted_into_each_recorded_counter_is_found_where_it_is(place: int) -> None:
    entries = recorded()
    stepped = [*entries[:place], *map(_with_one_more, entries[place:])]
    before, after = changed_at(entries), changed_at(stepped)
    at = entries[place].revision
    followed = [
        (name, counter)
        for name, case in entries[-1].cases.items()
        for counter in case.counters
        if kind_of(counter) is not Kind.AVOIDED
    ]
    assert len(followed) > 50
    for key in followed:
        unplanted = before.get(key, set())
        assert after[key] - {at} == unplanted - {at}
        assert at in after[key] or at in unplanted, "one more may be what made up for one less"


def _with_one_more(entry: Entry) -> Entry:
    cases = {
        name: replace(case, counters={counter: value + 1 for counter, value in case.counters.items()})
        for name, case in entry.cases.items()
    }
    return replace(entry, cases=cases)


def test_a_ratio_is_estimated_by_all_pairs_and_has_the_interval_of_their_ranks() -> None:
    pairs = (0.9, 1.0, 1.1, 1.2, 1.3, 8.0)
    case = Measured(ratio=1.15, samples=pairs)
    assert math.exp(case.log) == pytest.approx(math.sqrt(1.1 * 1.2), rel=0.02)
    assert case.interval == pytest.approx((0.9, 8.0)), "six pairs: from the least to the greatest"
    assert Measured(ratio=1.15, samples=pairs[:5]).interval is None
    assert Measured(ratio=1.15).log == math.log(1.15)


def test_a_revision_that_is_known_badly_makes_no_step() -> None:
    def pairs(log: float, spread: float) -> Measured:
        logs = [log + spread * offset for offset in (-1.3, -0.6, -0.2, 0.2, 0.6, 1.3)]
        return Measured(ratio=math.exp(log), samples=tuple(map(math.exp, logs)))

    def history(spread: float) -> list[Entry]:
        logs = [0.0, 0.004, -0.004, 0.002, -0.002, 0.001, 0.06, 0.055]
        return [
            replace(entry(n), cases={CASE: pairs(log, spread if log > 0.05 else 0.01)}) for n, log in enumerate(logs)
        ]

    exact, loose = (only(TIME, history(spread)) for spread in (0.01, 0.3))
    assert exact is not None
    assert loose is not None
    assert [change.at.subject for change in exact.changes] == ["change 6"]
    assert not loose.changes
