"""How many rows each table has at a scale factor, known without generating.

TPC-DS specification 3.2.0, Table 3-2. The specification names nine scale factors; between two of them the
counts are interpolated linearly (dsdgen does the same for dimensions), and below scale factor 1, which it does not
know, they shrink in proportion down to a smallest size at which every join and every ticket still works.
"""

from __future__ import annotations

import bisect
import math

from icebench.bench.workloads.revisions import key_count

_SCALES = (1, 10, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)

_COUNTS = """
store_sales           2880404 28800991 287997024 864001869 2879987999 8639936081 28799983563 86399341874 287997818084
store_returns          287514  2875432  28795080  86393244  287999764  863989652  2879970104  8639952111  28800018820
catalog_sales         1441548 14401261 143997065 431969836 1439980416 4320078880 14399964710 43200404822 143999334399
catalog_returns        144067  1439749  14404374  43193472  143996756  432018033  1440033112  4319925093  14400175879
web_sales              719384  7197566  72001237 216009853  720000376 2159968881  7199963324 21600036511  71999670164
web_returns             71763   719217   7197670  21599377   71997522  216003761   720020485  2160007345   7199904459
item                    18000   102000    204000    264000     300000     360000      402000      462000       502000
store                      12      102       402       804       1002       1350        1500        1704         1902
customer               100000   500000   2000000   5000000   12000000   30000000    65000000    80000000    100000000
customer_address        50000   250000   1000000   2500000    6000000   15000000    32500000    40000000     50000000
customer_demographics 1920800  1920800   1920800   1920800    1920800    1920800     1920800     1920800      1920800
promotion                 300      500      1000      1300       1500       1800        2000        2300         2500
warehouse                   5       10        15        17         20         22          25          27           30
call_center                 6       24        30        36         42         48          54          60           60
catalog_page            11718    12000     20400     26000      30000      36000       40000       46000        50000
web_page                   60      200      2040      2604       3000       3600        4002        4602         5004
web_site                   30       42        24        48         54         66          78          84           96
reason                     35       45        55        60         65         67          70          72           75
"""
_ROWS = {name: tuple(map(int, counts)) for name, *counts in map(str.split, _COUNTS.strip().splitlines())}
"""Table -> its rows at each of `_SCALES`."""
_FIXED = {"household_demographics": 7_200, "time_dim": 86_400, "ship_mode": 20}
WEEKS = 261
"""That inventory is taken in."""

# Smallest sizes. Items: 18 keys, because a ticket of 16 lines needs 16 different ones. Stores: the twelve of scale
# factor 1, because tables are partitioned and filtered by store, and the single one that would be left is no filter.
_SMALLEST = {
    "item": 36,
    "store": 12,
    "customer": 100,
    "customer_address": 50,
    "promotion": 12,
    "customer_demographics": 100,
}

LARGEST_SCALE = float(_SCALES[-1])


def row_count(table: str, scale: float) -> int:
    """Rows of a table at a scale factor.

    Args:
        table: A generated table, or one that store_sales only points to (customer_address, promotion, the two
            demographics), whose count is the domain of the foreign key.
        scale: Scale factor, above 0 and at most 100,000.

    Raises:
        ValueError: The scale is out of range, or the table is not known.
    """
    if not (math.isfinite(scale) and 0 < scale <= LARGEST_SCALE):
        raise ValueError(f"scale factor {scale} is not above 0 and at most {LARGEST_SCALE:.0f}")
    if table in _FIXED:
        return _FIXED[table]
    if table == "inventory":
        return WEEKS * key_count(row_count("item", scale)) * row_count("warehouse", scale)
    if table not in _ROWS:
        raise ValueError(f"no such table: {table!r} (known: {', '.join(sorted([*_ROWS, *_FIXED]))})")
    rows = _ROWS[table]
    if scale < 1:
        return max(_SMALLEST.get(table, 1), int(rows[0] * scale))
    upper = bisect.bisect_left(_SCALES, scale)
    if _SCALES[upper] == scale:
        return rows[upper]
    share = (scale - _SCALES[upper - 1]) / (_SCALES[upper] - _SCALES[upper - 1])
    return rows[upper - 1] + int((rows[upper] - rows[upper - 1]) * share)
