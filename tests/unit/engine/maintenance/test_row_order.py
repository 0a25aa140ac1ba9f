"""The order of rows of several partitions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.maintenance.row_order import Ordering, _order
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
