from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.errors import ConfigError
from icebench.bench.gate.recorded_revisions import TIME, Entry, Measured, Series, decode, encode, series_of

CASE = "scan/a"


def entry(number: int, *, ratio: float = 0.0, reference: str = "f" * 40, **counters: int) -> Entry:
    return Entry(
        revision=f"{number:040x}",
        number=number,
        date="2026-01-01T00:00:00+00:00",
        subject=f"change {number}",
        reference=reference,
        pairs=3,
        environment={"python": "3.11"},
        cases={CASE: Measured(log_ratio=ratio, counters=counters), "other": Measured(error="Gone: no such thing")},
    )


def only(quantity: str, entries: list[Entry]) -> Series | None:
    return next((each for each in series_of(entries) if (each.case, each.quantity) == (CASE, quantity)), None)


@given(st.lists(st.builds(entry, st.integers(0, 59), ratio=st.floats(-9, 9), files=st.integers(0)), max_size=5))
def test_what_is_encoded_is_decoded(entries: list[Entry]) -> None:
    assert decode("".join(map(encode, entries)), "history.jsonl") == entries


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"revision": 1}',
        encode(entry(1)).replace('"log_ratio":0.0', '"log_ratio":"fast"').strip(),
        encode(entry(1, files=3)).replace(":3}", ":3.5}").strip(),
        encode(entry(1)).replace('"pairs":3,', "").strip(),
    ],
)
def test_a_damaged_line_is_named_with_its_number(damaged: str) -> None:
    text = encode(entry(1)) + damaged + "\n" + encode(entry(2))
    with pytest.raises(ConfigError, match=r"^history.jsonl, line 2: damaged"):
        decode(text, "history.jsonl")


def test_half_a_line_at_the_end_is_damage() -> None:
    text = encode(entry(1)) + encode(entry(2))[:-20]
    with pytest.raises(ConfigError, match=r"^history.jsonl, line 2: damaged: it does not end in a line feed"):
        decode(text, "history.jsonl")


def test_any_difference_of_a_counter_is_a_change_where_it_was_measured() -> None:
    entries = [entry(n, files=files, same=1) for n, files in enumerate([5, 5, 4, 4, 0, 7])]
    series = only("files", list(reversed(entries)))
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
    beside = replace(old, cases={**old.cases, "beside": Measured(log_ratio=0.0, counters={"files": 1})})
    series = only("files", [beside, new])
    assert series is not None
    assert list(series.values) == [0, 3]


def test_work_avoided_is_in_no_series() -> None:
    assert only("entries_skipped_by_partition", [entry(n, entries_skipped_by_partition=n) for n in range(3)]) is None


def test_a_step_of_processor_time_is_found_with_its_revisions() -> None:
    ratios = [0.01, -0.01, 0.0, 0.01, -0.3, -0.31, -0.29, -0.3]
    series = only(TIME, [entry(n, ratio=ratio) for n, ratio in enumerate(ratios)])
    assert series is not None
    (change,) = series.changes
    assert (change.after.subject, change.at.subject) == ("change 3", "change 4")
    assert change.now / change.before == pytest.approx(math.exp(-0.305), rel=0.01)
    assert change.confidence > 0.99


def test_the_last_measurement_of_a_revision_counts_and_a_case_that_failed_has_none() -> None:
    series = series_of([entry(1, ratio=0.5), entry(2), entry(1, ratio=0.1)])
    assert [(each.case, list(each.values)) for each in series] == [(CASE, [0.1, 0.0])]


def test_ratios_to_different_references_are_not_joined() -> None:
    with pytest.raises(ConfigError, match="2 references"):
        series_of([entry(1), entry(2, reference="e" * 40)])
