"""What finds the inefficiencies of work.toml: the gate, a counter at a time; `make check` runs the gate itself."""

import pytest

from icebench.bench.gate.cases.count_cases import counted
from icebench.bench.gate.decisions.baseline import Baseline, decode
from icebench.bench.gate.decisions.counter_verdict import REGRESSIONS, compare
from tests.tidy.source import REPOSITORY

BASELINE = decode((REPOSITORY / "results" / "baselines" / "counters.json").read_text())


@pytest.fixture(scope="module")
def now() -> Baseline:
    return counted()


@pytest.mark.parametrize("counter", sorted({name for case in BASELINE.cases.values() for name in case.counters}))
def test_no_case_does_more_work_than_the_baseline(now: Baseline, counter: str) -> None:
    findings = [f for f in compare(BASELINE, now).findings if f.change in REGRESSIONS and f.counter == counter]
    assert not findings, "; ".join(str(finding) for finding in findings[:3])
