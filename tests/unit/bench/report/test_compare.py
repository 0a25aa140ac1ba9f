from __future__ import annotations

from dataclasses import replace

import pytest

from icebench.bench.records.record import Record
from icebench.bench.report.compare import FLOOR, Records, best, bounds, median, ordered, ratio, spread, table_names
from tests.unit.bench.report.sample_run import record


def timed(*samples: float, engine: str = "icebench", layout: str = "monthly", case: str = "all") -> Record:
    return record("planning", case, "latency_cold", "s", samples, engine=engine, layout=layout)


def test_a_ratio_of_pairs_ignores_what_both_suffer() -> None:
    base = timed(1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    head = timed(*(3 * s for s in base.samples))
    found = ratio(base, head)
    assert found is not None
    assert found.ratio == pytest.approx(3)
    assert 2.5 < found.low < 3 < found.high < 3.5
    assert found.differs


def test_an_interval_around_one_does_not_differ() -> None:
    found = ratio(timed(1.0, 1.1, 1.2, 1.0, 1.1, 1.2), timed(1.1, 1.0, 1.1, 1.1, 1.2, 1.1))
    assert found is not None
    assert not found.differs


def test_few_samples_and_unequal_numbers_of_them_have_an_interval_too() -> None:
    for head in (timed(100.0), timed(100.0, 98.0, 102.0, 99.0)):
        found = ratio(timed(2.0, 2.0), head)
        assert found is not None
        assert found.ratio == pytest.approx(50, rel=0.02)
        assert found.differs


def test_there_is_no_ratio_to_nothing() -> None:
    assert ratio(timed(0.0, 1.0), timed(1.0, 1.0)) is None


def test_order_statistics_come_from_the_summary() -> None:
    one = timed(3.0, 1.0, 2.0)
    assert median(one) == 2.0
    assert spread(one) == pytest.approx(0.5)
    assert bounds(one) is not None
    assert bounds(timed(1.0)) is None


def test_the_best_is_the_lowest_median() -> None:
    slow, fast = timed(2.0), timed(1.0)
    assert best([slow, fast]) is fast
    assert best([]) is None


def test_known_names_come_first_in_their_order() -> None:
    assert ordered(["c", "a", "b", "a"], ["b", "x", "a"]) == ("b", "a", "c")


def test_records_are_asked_by_their_fields() -> None:
    records = Records(
        (timed(1.0, layout="b"), timed(2.0, layout="a"), timed(3.0, layout="a", engine="other")),
        layout_order=("a", "b"),
        engine_order=("other",),
    )
    assert [median(r) for r in records.where(layout="a").all] == [2.0, 3.0]
    assert records.one(layout="a", engine="other") is records.all[2]
    assert records.one(layout="c") is None
    assert records.engines == ("other", "icebench")
    assert [(case, layout, len(found.all)) for case, layout, found in records.cases()] == [
        ("all", "a", 2),
        ("all", "b", 1),
    ]
    assert not records.where(layout="c")


def test_tables_are_called_by_their_workload_where_several_have_a_layout() -> None:
    records = [replace(timed(1.0, layout=layout), workload=w) for w, layout in (("v", "a"), ("w", "a"), ("w", "b"))]
    assert table_names(records) == {("v", "a"): "v, a", ("w", "a"): "w, a", ("w", "b"): "b"}
    assert [(name, len(own.all)) for name, own in Records(tuple(records)).by_workload()] == [("v", 1), ("w", 2)]
    assert [name for name, _ in Records(tuple(records[1:])).by_workload()] == [""]


def test_the_floor_is_never_the_best() -> None:
    floor, slow = timed(1.0, engine=FLOOR), timed(3.0, engine="icebench")
    assert best([floor, timed(4.0, engine="duckdb"), slow]) is slow
    assert best([floor]) is None
