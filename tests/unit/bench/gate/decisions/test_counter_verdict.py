from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.gate.decisions.baseline import Baseline, CaseResult
from icebench.bench.gate.decisions.counter_kinds import Kind, kind_of
from icebench.bench.gate.decisions.counter_verdict import (
    Accepted,
    Change,
    ExitCode,
    Verdict,
    accept,
    admissible,
    compare,
)

COUNTERS = ("files_planned", "row_groups_skipped", "rows_returned", "storage_requests_read")


def result(checksum: str = "c0ffee", **counters: int) -> CaseResult:
    return CaseResult(counters=counters, checksum=checksum)


def compared(accepted: Baseline, now: Mapping[str, CaseResult]) -> Verdict:
    return compare(accepted, Baseline(cases=now))


def accepting(old: Baseline, now: Mapping[str, CaseResult], allowed: Collection[str] = ()) -> Accepted:
    return accept(old, Baseline(cases=now), allowed)


def baseline(**cases: CaseResult) -> Baseline:
    return Baseline(cases=cases)


def test_equal_counts_pass_without_a_finding() -> None:
    verdict = compared(baseline(scan=result(files_planned=3)), {"scan": result(files_planned=3)})
    assert verdict.exit_code is ExitCode.PASS
    assert verdict.findings == ()
    assert (verdict.cases, verdict.counters) == (1, 1)


def test_an_increase_fails_and_names_case_counter_and_values() -> None:
    verdict = compared(baseline(scan=result(files_planned=8)), {"scan": result(files_planned=9)})
    assert verdict.exit_code is ExitCode.REGRESSION
    assert [str(f) for f in verdict.findings] == ["scan: files_planned increased 8 -> 9 (+12.5%)"]


def test_a_decrease_passes_and_offers_the_ratchet() -> None:
    verdict = compared(baseline(scan=result(files_planned=8)), {"scan": result(files_planned=4)})
    assert verdict.exit_code is ExitCode.PASS
    assert verdict.can_ratchet
    assert [f.change for f in verdict.findings] == [Change.DECREASED]


@pytest.mark.parametrize("now", [7, 9])
def test_work_avoided_may_move_either_way(now: int) -> None:
    verdict = compared(baseline(scan=result(row_groups_skipped=8)), {"scan": result(row_groups_skipped=now)})
    assert verdict.exit_code is ExitCode.PASS
    assert [f.change for f in verdict.findings] == [Change.MOVED]


@pytest.mark.parametrize("now", [result(rows_returned=9), result(rows_returned=11), result("other", rows_returned=10)])
def test_another_answer_is_a_regression_even_with_less_work(now: CaseResult) -> None:
    verdict = compared(baseline(scan=result(rows_returned=10)), {"scan": now})
    assert verdict.exit_code is ExitCode.REGRESSION
    assert [f.change for f in verdict.findings] == [Change.ANSWER_CHANGED]


def test_cases_and_counters_outside_the_baseline_are_a_configuration_fault() -> None:
    accepted = baseline(old=result(files_planned=1), both=result(files_planned=1, gone=2))
    verdict = compared(accepted, {"both": result(files_planned=1, fresh=3), "new": result(files_planned=1)})
    assert verdict.exit_code is ExitCode.CONFIGURATION
    assert [str(f) for f in verdict.findings] == [
        "new: this case is not in the baseline",
        "old: this case is in the baseline and was not run",
        "both: counter fresh (3) is not in the baseline",
        "both: counter gone (baseline 2) was not counted",
    ]


def test_work_that_a_case_does_for_the_first_time_is_an_increase() -> None:
    accepted = baseline(plain=result(files_planned=1), deletes=result(files_planned=1, delete_files_loaded=2))
    now = {
        "plain": result(files_planned=1, delete_files_loaded=1),
        "deletes": result(files_planned=1, delete_files_loaded=2),
    }
    verdict = compared(accepted, now)
    assert [str(f) for f in verdict.findings] == ["plain: delete_files_loaded increased 0 -> 1"]
    assert verdict.exit_code is ExitCode.REGRESSION


def test_work_that_one_case_no_longer_does_is_a_decrease() -> None:
    accepted = baseline(a=result(files_planned=1, delete_files_loaded=1), b=result(delete_files_loaded=1))
    verdict = compared(accepted, {"a": result(files_planned=1), "b": result(delete_files_loaded=1)})
    assert [f.change for f in verdict.findings] == [Change.DECREASED]


def test_no_case_at_all_is_a_configuration_fault() -> None:
    assert compared(baseline(), {}).exit_code is ExitCode.CONFIGURATION


def test_regressions_come_before_everything_else() -> None:
    accepted = baseline(a=result(files_planned=5, rows_decoded=5))
    verdict = compared(accepted, {"a": result(files_planned=4, rows_decoded=6), "b": result()})
    assert verdict.exit_code is ExitCode.REGRESSION
    assert [f.change for f in verdict.findings] == [Change.INCREASED, Change.NEW_CASE, Change.DECREASED]


def test_accepting_takes_decreases_and_new_cases() -> None:
    now = {"a": result(files_planned=4), "b": result(files_planned=1)}
    accepted = accepting(baseline(a=result(files_planned=5)), now)
    assert accepted.refused == ()
    assert accepted.baseline == Baseline(cases=now)


def test_accepting_refuses_an_increase_until_it_is_named() -> None:
    old, now = baseline(a=result(files_planned=5)), {"a": result(files_planned=6)}
    refused = accepting(old, now)
    assert refused.baseline is old
    assert [f.name for f in refused.refused] == ["a:files_planned"]
    assert accepting(old, now, allowed={"a:rows_decoded", "b"}).refused == refused.refused
    allowed = accepting(old, now, allowed={"a:files_planned"})
    assert allowed.baseline.cases == now
    assert allowed.refused == ()


def test_accepting_takes_a_named_increase_within_its_tolerance_too() -> None:
    old = baseline(a=result(function_calls=10_000, rows_decoded=5))
    now = {"a": result(function_calls=10_090, rows_decoded=5)}
    assert accepting(old, now).baseline == old
    assert accepting(old, now, allowed={"a:function_calls"}).baseline.cases == now
    assert accepting(old, now, allowed={"a:rows_decoded"}).baseline == old


def test_only_what_never_differs_between_runs_is_admissible() -> None:
    same = baseline(a=result(files_planned=1, rows_decoded=2), b=result(files_planned=1))
    assert admissible([same, same, same]) == ()
    more = baseline(a=result(files_planned=1, rows_decoded=2, rows_deleted=0), b=result(files_planned=1))
    assert admissible([same, more]) == admissible([more, same]) == ("a:rows_deleted",)
    other = baseline(a=result("else", files_planned=1, rows_decoded=3))
    assert admissible([same, other]) == ("a:checksum", "a:rows_decoded", "b")
    close = baseline(a=result(function_calls=10_000))
    assert admissible([close, baseline(a=result(function_calls=10_100))]) == ()
    assert admissible([close, baseline(a=result(function_calls=10_600))]) == ("a:function_calls",)


@pytest.mark.parametrize(
    ("counter", "before", "within", "beyond"),
    [
        ("storage_bytes_read", 100_000, 105_000, 105_100),
        ("manifest_bytes_decoded", 10, 74, 75),
        ("arrow_bytes_allocated", 100_000, 101_000, 101_100),
        ("arrow_bytes_peak", 1_000_000, 1_100_000, 1_100_100),
        ("function_calls", 10_000, 10_100, 10_200),
        ("parquet_values_decoded", 10_000, 10_000, 10_001),
    ],
)
def test_what_repeats_inexactly_has_a_tolerance(counter: str, before: int, within: int, beyond: int) -> None:
    accepted = baseline(a=CaseResult(checksum="c", counters={counter: before}))
    assert compared(accepted, {"a": CaseResult(checksum="c", counters={counter: within})}).findings == ()
    worse = compared(accepted, {"a": CaseResult(checksum="c", counters={counter: beyond})})
    assert [f.name for f in worse.findings] == [f"a:{counter}"]
    assert worse.exit_code is ExitCode.REGRESSION


def test_another_environment_compares_exact_counters_only() -> None:
    accepted = Baseline(cases={"a": result(function_calls=10, files_planned=1)}, environment={"python": "3.11"})
    now = Baseline(cases={"a": result(function_calls=9_999, files_planned=2)}, environment={"python": "3.12"})
    verdict = compare(accepted, now)
    assert [f.name for f in verdict.findings] == ["a:files_planned"]
    assert verdict.counters == 1


def test_what_is_accepted_uncompared_is_listed() -> None:
    old = Baseline(cases={"a": result(function_calls=10_000, modules_imported=9)}, environment={"python": "3.11"})
    now = Baseline(cases={"a": result(function_calls=30_000, modules_imported=9)}, environment={"python": "3.12"})
    moved = accept(old, now)
    assert moved.baseline == now
    said = "a: function_calls of another environment, not compared, 10000 -> 30000 (+200.0%)"
    assert list(map(str, moved.moved)) == [said]


def test_small_increases_do_not_move_the_baseline() -> None:
    old = baseline(a=result(function_calls=10_000, files_planned=2))
    moved = accepting(old, {"a": result(function_calls=10_100, files_planned=1)})
    assert moved.baseline == baseline(a=result(function_calls=10_000, files_planned=1))
    better = accepting(old, {"a": result(function_calls=5_000, files_planned=2)})
    assert better.baseline == baseline(a=result(function_calls=5_000, files_planned=2))


CASES = st.dictionaries(
    st.sampled_from("abc"),
    st.builds(
        CaseResult,
        counters=st.fixed_dictionaries({name: st.integers(0, 3) for name in COUNTERS}),
        checksum=st.sampled_from(["x", "y"]),
    ),
)


@given(before=CASES, now=CASES)
def test_the_verdict_is_that_of_a_plain_comparison(before: dict[str, CaseResult], now: dict[str, CaseResult]) -> None:
    verdict = compared(baseline(**before), now)
    regressed = any(
        now[case].checksum != before[case].checksum
        or any(
            (n > before[case].counters[c] and kind_of(c) is not Kind.AVOIDED)
            or (n != before[case].counters[c] and kind_of(c) is Kind.ANSWER)
            for c, n in now[case].counters.items()
        )
        for case in before.keys() & now.keys()
    )
    if regressed:
        assert verdict.exit_code is ExitCode.REGRESSION
    elif before.keys() != now.keys() or not now:
        assert verdict.exit_code is ExitCode.CONFIGURATION
    else:
        assert verdict.exit_code is ExitCode.PASS


@given(before=CASES, now=CASES)
def test_after_accepting_everything_by_name_the_gate_passes(
    before: dict[str, CaseResult], now: dict[str, CaseResult]
) -> None:
    names = [f.name for f in compared(baseline(**before), now).findings]
    moved = accepting(baseline(**before), now, allowed=names)
    assert moved.refused == ()
    assert compared(moved.baseline, now).findings == ()


def test_answers_of_different_snapshots_are_not_compared() -> None:
    before = Baseline(cases={"a": CaseResult(counters={"n": 1}, checksum="x", snapshot="1")})
    same = Baseline(cases={"a": CaseResult(counters={"n": 1}, checksum="y", snapshot="1")})
    later = Baseline(cases={"a": CaseResult(counters={"n": 1}, checksum="y", snapshot="2")})
    assert [finding.change for finding in compare(before, same).findings] == [Change.ANSWER_CHANGED]
    assert compare(before, later).findings == ()
    assert accept(before, later).baseline == later
