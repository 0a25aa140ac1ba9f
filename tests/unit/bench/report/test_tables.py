"""Tables of engines side by side."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from icebench.bench.records.record import Record
from icebench.bench.report.compare import FLOOR, Records
from icebench.bench.report.model import Cell, Table, Tone
from icebench.bench.report.tables import against_own
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
