from collections import Counter
from datetime import date, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.workloads.sales_calendar import SEASONS, date_key, delete_ranges, sold_dates, sold_times

TICKETS = np.arange(200_000)


def season_of(day: date) -> int:
    return next(i for i, season in enumerate(SEASONS) if season.first_month <= day.month <= season.last_month)


def test_date_keys_are_julian_days() -> None:
    assert date_key(date(1998, 1, 1)) == 2_450_815
    assert date_key(date(2002, 12, 31)) == 2_452_640


def test_every_day_of_five_years_sells_by_its_weight() -> None:
    keys = sold_dates(1, TICKETS)
    days = {date(1998, 1, 1) + timedelta(days=n) for n in range(1_826)}
    weight_of_year = {
        year: sum(SEASONS[season_of(day)].day_weight for day in days if day.year == year) for year in range(1998, 2003)
    }
    seen = Counter(keys.tolist())
    assert seen.keys() == {date_key(day) for day in days}
    squares = 0.0
    for day in days:
        share = SEASONS[season_of(day)].day_weight / weight_of_year[day.year] / 5
        expected = share * len(TICKETS)
        squares += (seen[date_key(day)] - expected) ** 2 / expected
    assert abs(squares - 1_825) < 5 * np.sqrt(2 * 1_825)


def test_stores_sell_from_8_to_21_by_hour() -> None:
    hours = np.bincount(sold_times(1, TICKETS) // 3600, minlength=24) / len(TICKETS)
    expected = [0] * 8 + [0.04, 0.08, 0.12, 0.07, 0.08, 0.09, 0.12, 0.04, 0.04, 0.12, 0.08, 0.08, 0.04] + [0] * 3
    assert np.abs(hours - expected).max() < 0.004
    seconds = np.bincount(sold_times(1, TICKETS) % 3600, minlength=3600)
    assert seconds.min() > 0


@given(seed=st.integers(0, 2**64), refresh=st.integers(0, 10_000))
def test_deletes_take_two_days_of_each_season(seed: int, refresh: int) -> None:
    ranges = delete_ranges(seed, refresh)
    assert [season_of(first) for first, _ in ranges] == [0, 1, 2]
    for first, last in ranges:
        assert last == first + timedelta(days=1)
        assert season_of(last) == season_of(first)
        assert 1998 <= first.year <= 2002
    assert ranges == delete_ranges(seed, refresh)


def test_no_delete_crosses_into_another_season() -> None:
    # Enough refreshes to draw the last day of a season, if it could be drawn.
    for refresh in range(500):
        for first, last in delete_ranges(1, refresh):
            assert season_of(first) == season_of(last)


def test_each_refresh_has_deletes_of_its_own() -> None:
    assert len({tuple(delete_ranges(1, refresh)) for refresh in range(50)}) == 50


def test_delete_ranges_meet_their_share_of_sales() -> None:
    keys = sold_dates(9, TICKETS)
    hit = np.zeros(len(keys), bool)
    for first, last in delete_ranges(9, 0):
        hit |= (keys >= date_key(first)) & (keys <= date_key(last))
    assert abs(hit.mean() - 390 / (18_320 * 5)) < 0.0007
