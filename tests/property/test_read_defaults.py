"""Initial defaults: filters take exactly the rows that are read, whether planning, row groups or rows decide."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import icebench
from icebench.engine.catalog.filesystem import FileSystemCatalog
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.table import Table

ROWS = pa.table({"id": range(4)})
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# With a name mapping, planning cannot know that a file lacks the column: its row groups are looked at.
PLACES: tuple[dict[str, str], ...] = ({}, {"schema.name-mapping.default": "[]"})


def with_default(properties: dict[str, str], type_: icebench.PrimitiveType, default: Any) -> Table:
    """A table of a file of two row groups that is older than the column `c`."""
    catalog = icebench.Catalog(FileSystemCatalog("memory://wh", MemoryStore()))
    catalog.create_namespace("db")
    properties = {"format-version": "3", "write.parquet.row-group-size-bytes": "16", **properties}
    table = catalog.create_table("db.t", ROWS.schema, properties=properties)
    table.append(ROWS)
    table.update_schema(lambda s: s.add_column("c", type_, default=default))
    return table


NUMBERS = (
    st.floats(-(2.0**99), 2.0**99, width=32) | st.floats(-1e38, 1e38) | st.sampled_from([0.1, 2.5, -0.0, 16777217.0])
)


@given(data=st.data(), place=st.sampled_from(PLACES), default=NUMBERS, promoted=st.booleans())
def test_filters_of_a_default_of_type_float(
    data: st.DataObject, place: dict[str, str], default: float, promoted: bool
) -> None:
    table = with_default(place, icebench.FLOAT, default)
    type_: type[np.floating[Any]] = np.float32
    if promoted:
        table.update_schema(lambda s: s.promote_column("c", icebench.DOUBLE))
        type_ = np.float64
    value = float(np.float32(default))
    assert table.scan().to_arrow()["c"].to_pylist() == [value] * 4
    literal = data.draw(st.sampled_from([default, value]) | NUMBERS)
    symbol = data.draw(st.sampled_from(sorted(COMPARISONS)))
    expected = COMPARISONS[symbol](type_(value), type_(literal))
    assert table.scan(filter=f"c {symbol} {literal!r}").to_arrow().num_rows == 4 * expected


@pytest.mark.parametrize("place", PLACES, ids=["planned", "mapped"])
@pytest.mark.parametrize("type_", [icebench.TIMESTAMP, icebench.TIMESTAMP_NS], ids=str)
def test_a_default_of_type_date_that_became_a_timestamp(place: dict[str, str], type_: icebench.PrimitiveType) -> None:
    table = with_default(place, icebench.DATE, 19_000)
    table.update_schema(lambda s: s.promote_column("c", type_))
    table.append(pa.table({"id": [4]}))
    assert {str(each)[:19] for each in table.scan().to_arrow()["c"].to_pylist()} == {"2022-01-08 00:00:00"}
    for symbol, holds in COMPARISONS.items():
        for literal in ("2022-01-07", "2022-01-08", "2022-01-08T00:00:01"):
            expected = holds("2022-01-08T00:00:00", f"{literal}T00:00:00"[:19])
            found = table.scan(filter=f"c {symbol} TIMESTAMP '{literal}'").to_arrow().num_rows
            assert found == 5 * expected, (symbol, literal)
