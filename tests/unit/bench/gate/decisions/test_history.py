from __future__ import annotations

import math
from dataclasses import replace

import pytest

from icebench.bench.gate.decisions.history import TIME, Entry, Measured, Series, by_reference, series_of

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


def test_a_case_that_failed_has_no_series() -> None:
    series = series_of([entry(1, log=0.5), entry(2)])
    assert [(each.case, list(each.values)) for each in series] == [(CASE, [0.5, 0.0])]


def test_ratios_to_different_references_are_not_joined() -> None:
    old, new, again = entry(1), entry(3, reference="e" * 40), entry(3)
    middle = entry(2)
    found = by_reference([new, again, middle, old])
    assert list(found.items()) == [("f" * 40, [old, middle, again]), ("e" * 40, [new])]
    assert list(by_reference([entry(4), new])) == ["e" * 40, "f" * 40]
