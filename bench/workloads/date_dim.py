"""The dimension date_dim: a row for each day from 1900-01-02 to 2100-01-01, the same for any seed and scale.

Calendar facts are the Gregorian calendar's own. dsdgen errs in a few of them (quarters at their borders, the last day
of the month, holidays in leap years, the day a quarter ago); docs/design/generator.md lists these.
"""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bench.workloads.arrays import BatchBuilder, Bools, business_keys, chosen, flags, numbered
from bench.workloads.draws import Int64s
from bench.workloads.sales_calendar import JULIAN_OF_ORDINAL_0, date_key

FIRST_KEY = date_key(date(1900, 1, 2))
# The day that the data calls today.
_TODAY = date(2003, 1, 8)
UNIX_DAY_0 = date(1970, 1, 1).toordinal() + JULIAN_OF_ORDINAL_0
_DAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_HOLIDAYS = ((1, 1), (7, 4), (12, 25))

Days = NDArray[np.datetime64]


def _months_before(days: Days, months: int) -> Days:
    """The same day of an earlier month, or that month's last day where it is shorter."""
    month = days.astype("datetime64[M]")
    wanted = month - months
    last = (wanted + 1).astype("datetime64[D]") - 1
    return np.minimum(wanted.astype("datetime64[D]") + (days - month.astype("datetime64[D]")), last)


def _is_holiday(days: Days) -> Bools:
    month = days.astype("datetime64[M]")
    month_of_year = month.astype(np.int64) % 12 + 1
    day_of_month = (days - month.astype("datetime64[D]")).astype(np.int64) + 1
    holiday = np.zeros(len(days), bool)
    for moy, dom in _HOLIDAYS:
        holiday |= (month_of_year == moy) & (day_of_month == dom)
    return holiday


def _key(days: Days) -> Int64s:
    return days.astype("datetime64[D]").astype(np.int64) + UNIX_DAY_0


def batch(schema: pa.Schema, start: int, stop: int) -> pa.RecordBatch:
    """Rows `start` to `stop`, exclusive, of date_dim."""
    key = np.arange(start, stop) + FIRST_KEY
    days = (key - UNIX_DAY_0).astype("datetime64[D]")
    month = days.astype("datetime64[M]")
    month_seq = month.astype(np.int64) + (1970 - 1900) * 12
    year = 1900 + month_seq // 12
    moy = month_seq % 12 + 1
    quarter = (moy + 2) // 3
    dow = (key + 1) % 7  # Julian days are Mondays where divisible by seven; Sunday is 0
    # Weeks begin on the weekday of the table's first day, a Tuesday, as dsdgen has it.
    week_seq = (key - FIRST_KEY) // 7 + 1
    today_week = (date_key(_TODAY) - FIRST_KEY) // 7 + 1
    this_year = year == _TODAY.year

    builder = BatchBuilder(schema, stop - start)
    integers = {
        "d_date_sk": key,
        "d_date": key - UNIX_DAY_0,
        "d_month_seq": month_seq,
        "d_week_seq": week_seq,
        "d_quarter_seq": (year - 1900) * 4 + quarter,
        "d_year": year,
        "d_dow": dow,
        "d_moy": moy,
        "d_dom": (days - month.astype("datetime64[D]")).astype(np.int64) + 1,
        "d_qoy": quarter,
        "d_fy_year": year,
        "d_fy_quarter_seq": (year - 1900) * 4 + quarter,
        "d_fy_week_seq": week_seq,
        "d_first_dom": _key(month),
        "d_last_dom": _key(month + 1) - 1,
        "d_same_day_ly": _key(_months_before(days, 12)),
        "d_same_day_lq": _key(_months_before(days, 3)),
    }
    for name, values in integers.items():
        builder.integers(name, values)
    builder.strings("d_date_id", business_keys(key))
    builder.strings("d_day_name", chosen(_DAY_NAMES, dow))
    builder.strings("d_quarter_name", pc.binary_join_element_wise(numbered(year), numbered(quarter), "Q"))
    flag_columns = {
        "d_holiday": _is_holiday(days),
        "d_weekend": dow >= 5,  # Friday and Saturday, as dsdgen has it
        "d_following_holiday": _is_holiday(days - 1),
        "d_current_day": key == date_key(_TODAY),
        "d_current_week": week_seq == today_week,
        "d_current_month": this_year & (moy == _TODAY.month),
        "d_current_quarter": this_year & (quarter == (_TODAY.month + 2) // 3),
        "d_current_year": this_year,
    }
    for name, flag in flag_columns.items():
        builder.strings(name, flags(flag))
    return builder.finish()
