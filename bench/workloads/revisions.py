"""Slowly changing dimensions: item and store keep a row for each revision of a thing.

As in dsdgen, rows come in sixes that hold three things: one with a single row, one with two revisions, one with three.
So the rows, the thing (business key) and the dates of validity follow from one another by arithmetic. Revisions change
halfway through the six years of data for a thing with two, and after each third for a thing with three.

A revision keeps about half of the columns of the one before. Which ones is a draw of its own for each column and row.
"""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.workloads.draws import Int32s, Int64s, words
from bench.workloads.sales_calendar import date_key

FIRST_DAY = date(1998, 1, 1)
_ROWS_OF_SIX = 6
_KEYS_OF_SIX = 3

# The last day of a revision. The data's six years are 2,190 days; a half is 1,095 of them and a third is 730.
_END_FIRST_THIRD = date(2000, 1, 1)
_END_FIRST_HALF = date(2000, 12, 31)
_END_SECOND_THIRD = date(2001, 12, 31)

ERAS = 4

# For each place in a group of six: the revision's number from 0, and its first and last day (None: still valid).
_REVISION = np.array([0, 0, 1, 0, 1, 2])
_EPOCH = date(1970, 1, 1).toordinal()


def _day(day: date) -> int:
    return day.toordinal() - _EPOCH


_BEGIN_DAYS = np.array(
    [
        _day(FIRST_DAY),
        _day(FIRST_DAY),
        _day(_END_FIRST_HALF) + 1,
        _day(FIRST_DAY),
        _day(_END_FIRST_THIRD) + 1,
        _day(_END_SECOND_THIRD) + 1,
    ],
    np.int32,
)
_END_DAYS = np.array(
    [0, _day(_END_FIRST_HALF), 0, _day(_END_FIRST_THIRD), _day(_END_SECOND_THIRD), 0],
    np.int32,
)
_HAS_END = np.array([False, True, False, True, True, False])

# How far the row valid in an era lies from the key's first row; rows: a key's place of three, columns: the era.
_STEP = np.array([[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 1, 2]], np.int32)
_FIRST_ROW = np.array([1, 2, 4], np.int32)


class Validity(NamedTuple):
    """When rows of a dimension are valid.

    Attributes:
        begin: First day, in days since 1970-01-01.
        end: Last day, in days since 1970-01-01; meaningless where `has_end` is false.
        has_end: False for the revision that is valid today.
        first_row: The surrogate key of the first revision of the same thing.
    """

    begin: Int32s
    end: Int32s
    has_end: NDArray[np.bool_]
    first_row: Int64s


def key_count(rows: int) -> int:
    """How many things (business keys) a dimension of so many rows holds."""
    sixes, left = divmod(rows, _ROWS_OF_SIX)
    return sixes * _KEYS_OF_SIX + int(np.count_nonzero(_REVISION[:left] == 0))


def era_of(date_keys: Int32s) -> Int32s:
    """Which of the four stretches between revision changes each date falls in, 0 to 3."""
    changes = np.array([date_key(_END_FIRST_THIRD), date_key(_END_FIRST_HALF), date_key(_END_SECOND_THIRD)])
    return (date_keys[:, np.newaxis] > changes).sum(axis=1, dtype=np.int32)


def row_valid_in(keys: Int64s, era: int, rows: int) -> Int32s:
    """The surrogate key (from 1) of the revision of each thing (from 0) that is valid in an era.

    Where the dimension ends before that revision, the last one it holds stands for it.
    """
    place = keys % _KEYS_OF_SIX
    row = keys // _KEYS_OF_SIX * _ROWS_OF_SIX + _FIRST_ROW[place] + _STEP[place, era]
    return np.minimum(row, rows).astype(np.int32)


def validity_of(surrogate_keys: Int64s) -> Validity:
    """Dates and first revision of rows, given by their surrogate keys (from 1)."""
    place = (surrogate_keys - 1) % _ROWS_OF_SIX
    return Validity(_BEGIN_DAYS[place], _END_DAYS[place], _HAS_END[place], surrogate_keys - _REVISION[place])


def origin_of(seed: int, column: str, surrogate_keys: Int64s) -> Int64s:
    """The row whose draw a column of each row shows: its own, or an earlier revision's that it kept.

    Args:
        seed: The workload's seed.
        column: Table and column, for example ``"item.i_color"``.
        surrogate_keys: Rows, from 1.
    """
    revision = _REVISION[(surrogate_keys - 1) % _ROWS_OF_SIX]
    stream = f"{column}.kept"
    kept = (revision > 0) & ((words(seed, stream, surrogate_keys) & np.uint64(1)) == 1)
    before = surrogate_keys - 1
    kept_before = (revision > 1) & ((words(seed, stream, before) & np.uint64(1)) == 1)
    return surrogate_keys - kept - (kept & kept_before)
