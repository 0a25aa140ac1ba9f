from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from bench.engines.row_oracle import RowOracle

ROWS = pa.table(
    {
        "id": [1, 2, None, 4],
        "day": [date(2000, 1, 1), None, date(2000, 1, 3), date(2000, 1, 4)],
        "price": pa.array([Decimal("1.00"), Decimal("2.50"), None, Decimal("100.51")], pa.decimal128(7, 2)),
        "name": ["ab", "b", None, "it's"],
    }
)


@pytest.mark.parametrize(
    ("filter", "count"),
    [
        ("id > 1", 2),
        ("not id > 1", 1),
        ("id is null or id = 4", 2),
        ("day >= '2000-01-02' and day < '2000-01-04'", 1),
        ("price > 100.5", 1),
        ("name like 'a%'", 1),
        ("name = 'it''s'", 1),
        ("id in (1, 4) and id between 2 and 9", 1),
        ("true", 4),
    ],
)
def test_only_true_counts(filter: str, count: int) -> None:
    oracle = RowOracle()
    assert oracle.count(ROWS, filter) == count
    assert oracle.count(ROWS.slice(0, 0), filter) == 0
