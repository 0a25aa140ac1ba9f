from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from icebench.bench.workloads.returns import Returns
from icebench.bench.workloads.scaling import row_count

NONE = pa.schema([])


@pytest.mark.parametrize("scale", [1, 10_000])
def test_returns_are_of_sales_in_their_order(scale: int) -> None:
    """The last, too, where rows times sales exceed 64 bits."""
    returns, sales = row_count("store_returns", scale), row_count("store_sales", scale)
    rows = np.r_[np.arange(1_000), np.arange(returns - 1_000, returns)]
    sold = Returns(table="store_returns", scale=scale, seed=1, sales_schema=NONE, schema=NONE).sold(rows)
    least = np.array([int(row) * sales // returns for row in rows])
    assert ((sold >= least) & (sold < least + sales // returns)).all()
    assert sold[-1] < sales
