from __future__ import annotations

from decimal import Decimal

import pytest

from icebench.engine.inspect.readable_metrics import readable_metrics
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import STRING, DecimalType, NestedField
from icebench.errors import CorruptTable

SCHEMA = Schema((NestedField(field_id=3, name="name", type=STRING),))


def file(**bounds: dict[int, bytes]) -> DataFile:
    return DataFile(file_path="s3://b/f", file_format="parquet", record_count=1, file_size_in_bytes=1, **bounds)  # type: ignore[arg-type]


def test_bounds_have_the_type_of_their_column() -> None:
    (found,) = readable_metrics(SCHEMA, [file(lower_bounds={3: b"a"}, upper_bounds={3: b"b"})]).to_pylist()
    assert (found["name"]["lower_bound"], found["name"]["upper_bound"]) == ("a", "b")


def test_a_bound_that_is_none_is_reported_with_its_file() -> None:
    with pytest.raises(
        CorruptTable, match=r"the manifest entry of s3://b/f at upper_bounds\.3: not a serialized string"
    ):
        readable_metrics(SCHEMA, [file(upper_bounds={3: b"\x80"})])


def test_decimals_beyond_the_precision_are_null() -> None:
    """As StarRocks writes them: 9.99 in little-endian order is read as another number."""
    prices = Schema((NestedField(field_id=3, name="price", type=DecimalType(3, 2)),))
    bounds = file(lower_bounds={3: (-999).to_bytes(2, "big", signed=True)}, upper_bounds={3: b"\xe7\x03\0\0"})
    (found,) = readable_metrics(prices, [bounds]).to_pylist()
    assert (found["price"]["lower_bound"], found["price"]["upper_bound"]) == (Decimal("-9.99"), None)
