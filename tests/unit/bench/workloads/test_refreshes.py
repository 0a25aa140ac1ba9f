"""Refreshes against a list of rows that is added to and deleted from, one statement after the other."""

from __future__ import annotations

import pytest

from icebench.bench.definition import Definition
from icebench.bench.errors import ConfigError
from icebench.bench.workloads.dated_sales import DatedSales
from icebench.bench.workloads.definitions import WORKLOADS
from icebench.bench.workloads.refreshes import Refreshes
from icebench.bench.workloads.tpcds import Tpcds

SALES = DatedSales.of(Tpcds(scale=0.003, seed=5))


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_what_is_left_is_what_statements_leave_one_by_one(share: float) -> None:
    refreshes = Refreshes(sales=SALES, batches=4, share=share)
    every = SALES.batch(0, SALES.rows).to_pylist()
    each = round(SALES.rows * share)
    kept = every[: len(every) - 4 * each]
    assert refreshes.first_rows == len(kept)
    for batch in range(5):
        assert refreshes.live(batch).to_pylist() == kept
        end = len(every) - (4 - batch - 1) * each
        ranges = SALES.tpcds.delete_ranges(batch + 1)
        kept = [
            row
            for row in [*kept, *every[end - each : end]]
            if row["ss_sold_date"] is None or not any(a <= row["ss_sold_date"] <= b for a, b in ranges)
        ]


def test_each_refresh_deletes_other_days() -> None:
    refreshes = Refreshes(sales=SALES, batches=12, share=0.01)
    assert len({refreshes.deleted(batch) for batch in range(1, 13)}) == 12
    for first, last in SALES.tpcds.delete_ranges(3):
        assert f"(ss_sold_date >= '{first}' and ss_sold_date <= '{last}')" in refreshes.deleted(3)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"refreshes": 10, "share": 0.1}, "x.share: 10 refreshes of 0.1 of the rows leave none before the first"),
        ({"refreshes": 2, "deletes": ["equality"]}, r"x.deletes\[0\]: unknown kind 'equality'"),
        ({"refreshes": 2, "measured": [3]}, r"x.measured\[0\]: there is no batch 3 of 2"),
    ],
)
def test_wrong_refreshes_are_one_line(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        WORKLOADS["refreshes"].parse(Definition({"scale": 0.001, **values}, "x"))
