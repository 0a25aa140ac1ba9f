from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.workloads.revisions import ERAS, era_of, key_count, origin_of, row_valid_in, validity_of
from bench.workloads.sales_calendar import date_key

ROWS = 600
EPOCH = date(1970, 1, 1)


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
        validity = validity_of(np.array(its_rows))
        valid = [
            row
            for row, begin, end, has_end in zip(its_rows, validity.begin, validity.end, validity.has_end, strict=True)
            if EPOCH + timedelta(days=int(begin)) <= day and (not has_end or day <= EPOCH + timedelta(days=int(end)))
        ]
        # A dimension that ends inside a thing lacks its later revisions; the last one there is stands for them.
        expected = valid[0] if valid else its_rows[-1]
        assert row_valid_in(np.array([thing]), era, rows).tolist() == [expected]


def test_revisions_of_a_thing_follow_without_gap() -> None:
    for its_rows in rows_by_thing(ROWS):
        validity = validity_of(np.array(its_rows))
        assert validity.begin[0] == (date(1998, 1, 1) - EPOCH).days
        assert (validity.begin[1:] == validity.end[:-1] + 1).all()
        assert validity.has_end.tolist() == [True] * (len(its_rows) - 1) + [False]
        assert set(validity.first_row.tolist()) == {its_rows[0]}


def test_each_era_is_reached() -> None:
    keys = np.array([date_key(date(1998, 1, 1) + timedelta(days=n)) for n in range(1_826)], np.int32)
    assert np.unique(era_of(keys)).tolist() == list(range(ERAS))


@pytest.mark.parametrize("column", ["item.i_color", "store.s_city"])
def test_a_revision_keeps_a_column_half_of_the_time(column: str) -> None:
    rows = np.arange(1, 60_001)
    origin = origin_of(3, column, rows)
    first = validity_of(rows).first_row
    assert (origin >= first).all()
    assert (origin <= rows).all()
    # A kept column shows what the row before shows, so a chain of keeping leads to one origin.
    kept = origin < rows
    assert (origin[kept] == origin[rows[kept] - 2]).all()
    revised = rows > first
    assert not kept[~revised].any()
    assert abs(kept[revised].mean() - 0.5) < 0.02
