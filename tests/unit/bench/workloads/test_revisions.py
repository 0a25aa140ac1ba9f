from datetime import date, timedelta

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from icebench.bench.workloads.revisions import ERAS, era_of, key_count, row_valid_in
from icebench.bench.workloads.sales_calendar import date_key

LAST_DAYS: tuple[list[date], ...] = ([], [date(2000, 12, 31)], [date(2000, 1, 1), date(2001, 12, 31)])
"""Of the revisions of things that have one, two and three, but for the last."""


def rows_by_thing(rows: int) -> list[list[int]]:
    """Brute force: the rows of each thing, from the rule of one, two and three revisions."""
    things: list[list[int]] = []
    row = 1
    while row <= rows:
        length = len(things) % 3 + 1
        things.append(list(range(row, min(row + length, rows + 1))))
        row += length
    return things


@given(rows=st.integers(0, 100))
def test_key_count(rows: int) -> None:
    assert key_count(rows) == len(rows_by_thing(rows))


@given(rows=st.integers(1, 100), ordinal=st.integers(0, 1_825))
@example(rows=6, ordinal=730)  # the last day of each revision, and its morrow
@example(rows=6, ordinal=731)
@example(rows=6, ordinal=1_095)
@example(rows=6, ordinal=1_096)
@example(rows=6, ordinal=1_460)
@example(rows=6, ordinal=1_461)
def test_the_row_sold_is_the_one_valid_on_the_day(rows: int, ordinal: int) -> None:
    day = date(1998, 1, 1) + timedelta(days=ordinal)
    era = int(era_of(np.array([date_key(day)], np.int32))[0])
    for thing, its_rows in enumerate(rows_by_thing(rows)):
        revision = sum(day > last for last in LAST_DAYS[thing % 3])
        # A dimension that ends inside a thing lacks its later revisions; the last one there is stands for them.
        expected = its_rows[min(revision, len(its_rows) - 1)]
        assert row_valid_in(np.array([thing]), era, rows).tolist() == [expected]


def test_each_era_is_reached() -> None:
    keys = np.array([date_key(date(1998, 1, 1) + timedelta(days=n)) for n in range(1_826)], np.int32)
    assert np.unique(era_of(keys)).tolist() == list(range(ERAS))
