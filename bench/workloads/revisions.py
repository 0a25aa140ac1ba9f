"""Slowly changing dimensions: items have a row for each revision of a thing, and a sale names the one valid on its day.

As in dsdgen, rows come in sixes that hold three things: one with a single row, one with two revisions, one with three.
So the rows, the thing (business key) and the dates of validity follow from one another by arithmetic. Revisions change
halfway through the six years of data for a thing with two, and after each third for a thing with three.
"""

from __future__ import annotations

from datetime import date

import numpy as np

from icebench.bench.workloads.draws import Int32s, Int64s
from icebench.bench.workloads.sales_calendar import date_key

_ROWS_OF_SIX = 6
_KEYS_OF_SIX = 3

# The last day of a revision. The data's six years are 2,190 days; a half is 1,095 of them and a third is 730.
_END_FIRST_THIRD = date(2000, 1, 1)
_END_FIRST_HALF = date(2000, 12, 31)
_END_SECOND_THIRD = date(2001, 12, 31)

ERAS = 4

# For each place in a group of six: the revision's number from 0.
_REVISION = np.array([0, 0, 1, 0, 1, 2])
# How far the row valid in an era lies from the key's first row; rows: a key's place of three, columns: the era.
_STEP = np.array([[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 1, 2]], np.int32)
_FIRST_ROW = np.array([1, 2, 4], np.int32)


def key_count(rows: int) -> int:
    """How many things (business keys) a dimension of that many rows holds."""
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
