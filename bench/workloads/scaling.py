"""How many rows each table has at a scale factor, known without generating.

TPC-DS specification 3.2.0, Table 3-2. The specification names nine scale factors; between two of them the
counts are interpolated linearly (dsdgen does the same for dimensions), and below scale factor 1, which it does not
know, they shrink in proportion down to a smallest size at which every join and every ticket still works.
"""

from __future__ import annotations

import bisect
import math

from bench.workloads.revisions import key_count

_SCALES = (1, 10, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)

_ROWS: dict[str, tuple[int, ...]] = {
    "store_returns": (
        287_514,
        2_875_432,
        28_795_080,
        86_393_244,
        287_999_764,
        863_989_652,
        2_879_970_104,
        8_639_952_111,
        28_800_018_820,
    ),
    "catalog_sales": (
        1_441_548,
        14_401_261,
        143_997_065,
        431_969_836,
        1_439_980_416,
        4_320_078_880,
        14_399_964_710,
        43_200_404_822,
        143_999_334_399,
    ),
    "catalog_returns": (
        144_067,
        1_439_749,
        14_404_374,
        43_193_472,
        143_996_756,
        432_018_033,
        1_440_033_112,
        4_319_925_093,
        14_400_175_879,
    ),
    "web_sales": (
        719_384,
        7_197_566,
        72_001_237,
        216_009_853,
        720_000_376,
        2_159_968_881,
        7_199_963_324,
        21_600_036_511,
        71_999_670_164,
    ),
    "web_returns": (
        71_763,
        719_217,
        7_197_670,
        21_599_377,
        71_997_522,
        216_003_761,
        720_020_485,
        2_160_007_345,
        7_199_904_459,
    ),
    "warehouse": (5, 10, 15, 17, 20, 22, 25, 27, 30),
    "call_center": (6, 24, 30, 36, 42, 48, 54, 60, 60),
    "catalog_page": (11_718, 12_000, 20_400, 26_000, 30_000, 36_000, 40_000, 46_000, 50_000),
    "web_page": (60, 200, 2_040, 2_604, 3_000, 3_600, 4_002, 4_602, 5_004),
    "web_site": (30, 42, 24, 48, 54, 66, 78, 84, 96),
    "reason": (35, 45, 55, 60, 65, 67, 70, 72, 75),
    "store_sales": (
        2_880_404,
        28_800_991,
        287_997_024,
        864_001_869,
        2_879_987_999,
        8_639_936_081,
        28_799_983_563,
        86_399_341_874,
        287_997_818_084,
    ),
    "item": (18_000, 102_000, 204_000, 264_000, 300_000, 360_000, 402_000, 462_000, 502_000),
    "store": (12, 102, 402, 804, 1_002, 1_350, 1_500, 1_704, 1_902),
    "customer": (100_000, 500_000, 2_000_000, 5_000_000, 12_000_000, 30_000_000, 65_000_000, 80_000_000, 100_000_000),
    "customer_address": (
        50_000,
        250_000,
        1_000_000,
        2_500_000,
        6_000_000,
        15_000_000,
        32_500_000,
        40_000_000,
        50_000_000,
    ),
    "promotion": (300, 500, 1_000, 1_300, 1_500, 1_800, 2_000, 2_300, 2_500),
    "customer_demographics": (1_920_800,) * 9,
}
_FIXED = {"date_dim": 73_049, "household_demographics": 7_200, "time_dim": 86_400, "ship_mode": 20}
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
