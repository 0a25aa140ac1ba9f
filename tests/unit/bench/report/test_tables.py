"""Tables of engines side by side."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from icebench.bench.records.record import Record
from icebench.bench.report.compare import FLOOR, Records
from icebench.bench.report.model import Cell, Table, Tone
from icebench.bench.report.tables import added_costs, against_own, comparison
from tests.unit.bench.report.sample_run import DRIFT, record


def timed(engine: str, samples: Sequence[float], metric: str = "latency_cold") -> Record:
    return record("planning", "all", metric, "s", samples, engine=engine)


def row_of(table: Table | None) -> dict[str, Cell]:
    """The cells of the only row, by column."""
    assert table is not None
    (row,) = table.rows
    return dict(zip(table.columns, row, strict=True))


@pytest.mark.parametrize(
    ("engine", "seconds", "tone", "words"),
    [
        ("pyiceberg", [8 * each for each in DRIFT], Tone.PLAIN, ""),
        ("polars", [0.12 * each for each in DRIFT], Tone.PLAIN, "icebench takes more"),
        ("duckdb", [1.01 * each for each in DRIFT], Tone.DOUBTFUL, "undecided"),
        (FLOOR, [0.12 * each for each in DRIFT], Tone.PLAIN, ""),
    ],
)
def test_only_what_is_undecided_is_doubtful_beside_this_engine(
    engine: str, seconds: Sequence[float], tone: Tone, words: str
) -> None:
    """No competitor is best for taking longer than this engine; where this one certainly loses, the cell says so."""
    both = Records((timed("icebench", DRIFT), timed(engine, seconds)))
    cell = row_of(against_own(both, "Planning", "Filter"))[engine]
    assert cell.tone is tone
    assert cell.detail.partition("] ")[2] == words


def compared(*records: Record) -> dict[str, Cell]:
    return row_of(comparison(Records(records), title="Planning", case_name="Filter"))


def test_the_best_has_the_least_median_and_takes_least_in_the_rounds_of_all() -> None:
    row = compared(timed("icebench", DRIFT), timed("pyiceberg", [3 * each for each in DRIFT]))
    assert row["icebench"].tone is Tone.BEST
    assert row["pyiceberg"].detail.endswith("3x")


def test_who_ran_in_the_calm_rounds_alone_is_not_best() -> None:
    """Its median is the least, and it takes longer in the rounds that it shares."""
    own = timed("icebench", [1.0, 1.0, 2.0, 2.0, 2.0, 2.0])
    row = compared(own, timed("pyiceberg", [1.2, 1.2]), timed("duckdb", [9.0, 9.0, 18.0, 18.0, 18.0, 18.0]))
    assert [cell.tone for cell in row.values()].count(Tone.BEST) == 0
    assert "1.20x" in row["pyiceberg"].detail
    assert " 9x" in row["duckdb"].detail
    assert "x" not in row["icebench"].detail


TICKS = [0.0108, 0.01055, 0.01057, 0.00061, 0.00091, 0.01042, 0.00056]
"""Seconds of a plan by Iceberg Java, as a clock of 10 ms has them."""


def test_processor_time_of_few_ticks_is_compared_with_nothing() -> None:
    own, java = timed("icebench", [0.0081] * 7, "cpu_cold"), timed("iceberg-java", TICKS, "cpu_cold")
    row = compared(own, java, timed("pyiceberg", [0.02] * 7, "cpu_cold"))
    assert row["icebench"].tone is Tone.BEST
    assert "in ticks of 10 ms" in row["iceberg-java"].detail
    assert not row["iceberg-java"].detail.endswith("x")
    assert row_of(against_own(Records((own, java)), "Planning", "Filter"))["iceberg-java"].text == "-"
    assert compared(own, java)["icebench"].tone is Tone.BEST
    # By the clock on the wall, and in more ticks, it is.
    slow = [20 * each for each in TICKS]
    assert "20x" in compared(timed("icebench", TICKS), timed("iceberg-java", slow))["iceberg-java"].detail
    row = compared(timed("icebench", TICKS, "cpu_cold"), timed("iceberg-java", slow, "cpu_cold"))
    assert "20x" in row["iceberg-java"].detail


def added(metric: str, scans: Sequence[Record] = (), **shares: Sequence[float]) -> dict[str, Cell]:
    found = [record("reading", "1%", metric, "ratio", own, engine=engine) for engine, own in shares.items()]
    return row_of(
        added_costs(Records(tuple(found)), Records(tuple(scans)), title="Added", case_name="Scan", base="none")
    )


def test_what_is_added_to_few_ticks_is_not_best() -> None:
    scans = [
        record("reading", "1%", "scan_cpu_cold", "s", samples, engine=engine)
        for engine, samples in (("icebench", [0.0081] * 7), ("iceberg-java", TICKS))
    ]
    row = added("scan_cpu_cold_added", scans, **{"icebench": [0.5] * 7, "iceberg-java": [-0.5] * 7})
    assert row["icebench"].tone is Tone.BEST
    assert "in ticks of 10 ms" in row["iceberg-java"].detail


def test_the_least_is_added_by_medians_and_in_the_same_rounds() -> None:
    row = added("delete_cost_ratio_cold", icebench=[0.5] * 6, pyiceberg=[-0.1] * 6)
    assert row["pyiceberg"].tone is Tone.BEST
    row = added("delete_cost_ratio_cold", icebench=[0.1, 0.1, 0.9, 0.9, 0.9, 0.9], pyiceberg=[0.3, 0.3])
    assert [cell.tone for cell in row.values()].count(Tone.BEST) == 0
