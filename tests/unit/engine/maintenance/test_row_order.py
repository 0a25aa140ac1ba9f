"""The order of rows of several partitions."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.columnar.sorting import order_of, sort_keys
from icebench.engine.maintenance.row_order import Ordering, _Bounds, _order
from icebench.engine.spec.partitioning import partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortField, SortOrder
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import LONG, STRING, NestedField

SCHEMA = Schema((NestedField(field_id=1, name="p", type=STRING), NestedField(field_id=2, name="x", type=LONG)))
BY_P = partition_spec(SCHEMA, [("p", Identity())])
BY_X = SortOrder((SortField(source_ids=(2,), transform=Identity()),), 1)


ORDERINGS = {
    "z-order": Ordering(z_order=(2,)),
    "hilbert": Ordering(hilbert=(2,)),
    "sort": Ordering(sort_order=BY_X),
}


@pytest.mark.parametrize("ordering", ORDERINGS.values(), ids=ORDERINGS)
def test_rows_of_a_partition_are_together_and_in_order(ordering: Ordering) -> None:
    rows = pa.table({"p": list("abbaba"), "x": [5, 1, 6, 2, 3, 4]}, to_arrow_schema(SCHEMA))
    found = rows.take(pa.array(_order(rows, SCHEMA, BY_P, ordering))).to_pylist()
    assert [(row["p"], row["x"]) for row in found] == [("a", 2), ("a", 4), ("a", 5), ("b", 1), ("b", 3), ("b", 6)]


@pytest.mark.parametrize("seed", range(8))
def test_ranges_follow_each_other_and_are_small_whatever_the_keys(seed: int) -> None:
    """Even where all rows have one key, which then keep the order in which they are read."""
    random = Random(seed)
    distinct = [1, 3, 50, 5_000][seed % 4]
    count, ranges, stride = 5_000, 7, 5
    values = [random.choice([None, *range(distinct)]) for _ in range(count)]
    rows = pa.table({"p": [random.choice("ab") for _ in values], "x": values}, to_arrow_schema(SCHEMA))
    descending = SortOrder(
        (SortField(source_ids=(2,), transform=Identity(), direction="desc", null_order="nulls-last"),), 1
    )
    order = BY_X if seed < 4 else descending

    def keys(of: pa.Table):
        return sort_keys(of, BY_P, order, SCHEMA)

    numbers = np.arange(0, count, stride)
    bounds = _Bounds.of(keys(rows.take(pa.array(numbers))), numbers, ranges)
    pieces = [bounds.ranges_of(keys(rows.slice(start, 700)), start) for start in range(0, count, 700)]
    found = np.concatenate(pieces)
    sizes = np.bincount(found, minlength=ranges)
    assert max(sizes) < 1.3 * count / ranges
    by_range = [np.flatnonzero(found == number) for number in range(ranges)]
    ordered = [own[order_of(*keys(rows.take(pa.array(own)))).to_numpy()] for own in by_range]
    assert np.concatenate(ordered).tolist() == order_of(*keys(rows)).to_pylist()


def test_fewer_sampled_rows_than_ranges() -> None:
    rows = pa.table({"p": ["a"] * 3, "x": [3, 1, 2]}, to_arrow_schema(SCHEMA))
    keys = sort_keys(rows, BY_P, BY_X, SCHEMA)
    bounds = _Bounds.of(keys, np.arange(3), 50)
    assert bounds.ranges_of(keys, 0).tolist() == [2, 0, 1]
