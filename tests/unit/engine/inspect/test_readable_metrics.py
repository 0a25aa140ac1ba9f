from __future__ import annotations

import pytest

from icebench.engine.inspect.readable_metrics import readable_metrics
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import STRING, NestedField
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
