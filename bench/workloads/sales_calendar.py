"""When things are sold: TPC-DS's selling years, seasons and store hours, and the date ranges of its deletes.

TPC-DS specification, comparability zones: days of January to July, August to October, and November to
December are alike among themselves; dsdgen weighs them 29, 66 and 100. Years are uniform.
"""

from __future__ import annotations

import functools
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np

from icebench.bench.workloads.draws import Int32s, Int64s, below, words

# A date's surrogate key is its Julian day number; Python counts days from 0001-01-01 as day 1.
JULIAN_OF_ORDINAL_0 = 1_721_425
UNIX_DAY_0 = date(1970, 1, 1).toordinal() + JULIAN_OF_ORDINAL_0
"""The key of 1970-01-01."""

YEARS = range(1998, 2003)


class Season(NamedTuple):
    """A comparability zone: its months, and the weight of each of its days."""

    first_month: int
    last_month: int
    day_weight: int


SEASONS = (Season(1, 7, 29), Season(8, 10, 66), Season(11, 12, 100))

# Share of a store's sales in each hour from 8 to 20, in percent.
_FIRST_HOUR = 8
_HOUR_WEIGHTS = (4, 8, 12, 7, 8, 9, 12, 4, 4, 12, 8, 8, 4)


def date_key(day: date) -> int:
    """The `d_date_sk` of a day."""
    return day.toordinal() + JULIAN_OF_ORDINAL_0


FIRST_KEY, LAST_KEY = date_key(date(YEARS[0], 1, 1)), date_key(date(YEARS[-1], 12, 31))


def _season_days(season: Season, year: int) -> list[date]:
    first = date(year, season.first_month, 1)
    after = date(year + season.last_month // 12, season.last_month % 12 + 1, 1)
    return [first + timedelta(days=day) for day in range((after - first).days)]


@functools.cache
def _weighted_days() -> tuple[Int32s, Int64s, Int64s]:
    """Each year's date keys, repeated by weight, end to end; where each year begins; how long each year is."""
    years = []
    for year in YEARS:
        keys = [(date_key(day), season.day_weight) for season in SEASONS for day in _season_days(season, year)]
        years.append(np.repeat(np.array([key for key, _ in keys], np.int32), [weight for _, weight in keys]))
    lengths = np.array([len(year) for year in years])
    return np.concatenate(years), np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths


@functools.cache
def _weighted_hours() -> Int32s:
    """The first second of an hour, repeated by weight: one hundred entries."""
    hours = np.arange(_FIRST_HOUR, _FIRST_HOUR + len(_HOUR_WEIGHTS), dtype=np.int32)
    return np.repeat(hours * 3600, _HOUR_WEIGHTS).astype(np.int32)


def dates_in_order(places: Int64s, count: int) -> Int32s:
    """The date keys of places 0 to `count` - 1 among sales in the order of time, with the same seasons."""
    days, _, _ = _weighted_days()
    return days[(places.astype(np.float64) * (len(days) / count)).astype(np.int64)]


def sold_dates(seed: int, tickets: Int64s) -> Int32s:
    """The date key (Julian day) on which each ticket was sold."""
    days, starts, lengths = _weighted_days()
    word = words(seed, "store_sales.date", tickets)
    year = below(word, len(YEARS))
    within = ((word & np.uint64(0xFFFFFFFF)) * lengths[year].astype(np.uint64)) >> np.uint64(32)
    return days[starts[year] + within.astype(np.int64)]


def sold_times(seed: int, tickets: Int64s) -> Int32s:
    """The second of the day at which each ticket was sold, 28,800 to 75,599."""
    word = words(seed, "store_sales.time", tickets)
    return _weighted_hours()[below(word, 100)] + below(word, 3600, shift=0)


def delete_ranges(seed: int, refresh: int) -> list[tuple[date, date]]:
    """The date ranges whose sales one refresh deletes (TPC-DS specification, data maintenance, method DF_SS).

    Args:
        seed: The workload's seed.
        refresh: Which refresh, from 0. Ranges of two refreshes are independent and may meet.

    Returns:
        Three pairs (first day, last day), both inclusive, of two days each: one in the low, one in the medium and one
        in the high season, in this order. Together 0.426 % of the dated sales on average.
    """
    word = words(seed, "store_sales.delete", np.arange(refresh * len(SEASONS), (refresh + 1) * len(SEASONS)))
    ranges = []
    for season, chance in zip(SEASONS, word, strict=True):
        # The last day of a season is no first day: its morrow would belong to another season.
        days = [day for year in YEARS for day in _season_days(season, year)[:-1]]
        first = days[(int(chance) >> 32) * len(days) >> 32]
        ranges.append((first, first + timedelta(days=1)))
    return ranges
