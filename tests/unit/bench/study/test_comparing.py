"""Two records of a run side by side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icebench.bench.records.record import Record
from icebench.bench.report.compare import between, pooled
from icebench.bench.study.comparing import effect, least_of
from tests.unit.bench.report.sample_run import sample_run

BASE = replace(
    sample_run().records[0],
    workload="one",
    samples=(1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
    places=tuple((0, number) for number in range(6)),
)
HEAD = replace(BASE, layout="unpartitioned", samples=tuple(2.1 * sample for sample in BASE.samples))


def test_rounds_of_one_workload_are_compared_with_each_other() -> None:
    """What disturbs a round disturbs both: the ratio is known though the samples are spread far."""
    found = effect([(BASE, HEAD)])
    assert found == pooled([(BASE, HEAD)])
    assert found.high < 4


def test_rounds_of_two_workloads_are_not() -> None:
    """They have the same numbers, and are not the same moments."""
    cases = [(BASE, replace(HEAD, workload="two"))]
    found = effect(cases)
    assert found == between(cases)
    assert found.high > effect([(BASE, HEAD)]).high
    mixed = [(BASE, HEAD), *cases]
    assert effect(mixed) == between(mixed)


@pytest.mark.parametrize("cases", [[], [(BASE, replace(HEAD, samples=(0.0,) * 6))]])
def test_nothing_is_not_compared(cases: list[tuple[Record, Record]]) -> None:
    with pytest.raises(ValueError, match="nothing to compare"):
        effect(cases)


def test_the_least_of_several_is_by_their_ratios_to_the_first() -> None:
    factors = {"a": 1.0, "b": 0.5, "c": 0.7}
    made = {name: replace(BASE, samples=tuple(f * s for s in BASE.samples)) for name, f in factors.items()}
    assert least_of(list(made), lambda first, second: effect([(made[first], made[second])])) == "b"
    assert least_of(["a"], lambda first, second: effect([])) == "a"
