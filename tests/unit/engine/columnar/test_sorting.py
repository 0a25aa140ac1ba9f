"""Rows in a sort order."""

import pyarrow as pa
import pytest

from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.columnar.sorting import sorted_table
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortField, SortOrder
from icebench.engine.spec.transforms import Bucket, Identity, Truncate
from icebench.engine.spec.types import LONG, STRING, NestedField
from icebench.errors import Unsupported

SCHEMA = Schema((NestedField(field_id=1, name="id", type=LONG), NestedField(field_id=2, name="name", type=STRING)))
BY_NAME = PartitionSpec((PartitionField(source_ids=(2,), field_id=1000, name="name", transform=Identity()),))


def table(*rows: tuple[int | None, str | None]) -> pa.Table:
    arrow = to_arrow_schema(SCHEMA)
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(arrow)]
    return pa.table(columns, schema=arrow)


def test_by_partition_and_then_by_the_order() -> None:
    order = SortOrder((SortField(source_ids=(1,), transform=Identity(), direction="desc", null_order="nulls-last"),), 1)
    found = sorted_table(table((1, "b"), (None, "a"), (3, "a"), (2, None), (4, "a")), BY_NAME, order, SCHEMA)
    assert list(zip(*found.to_pydict().values(), strict=True)) == [(2, None), (4, "a"), (3, "a"), (None, "a"), (1, "b")]


def test_keys_are_compared_by_their_transforms() -> None:
    tens = SortField(source_ids=(1,), transform=Truncate(10), direction="desc")
    order = SortOrder((tens, SortField(source_ids=(2,), transform=Identity())), 1)
    found = sorted_table(table((1, "b"), (19, "b"), (11, "a"), (9, "a")), PartitionSpec(), order, SCHEMA)
    assert list(zip(*found.to_pydict().values(), strict=True)) == [(11, "a"), (19, "b"), (9, "a"), (1, "b")]


def test_a_transform_of_several_columns_is_not_taken_for_one_of_the_first() -> None:
    order = SortOrder((SortField(source_ids=(1, 2), transform=Bucket(3)),), 1)
    with pytest.raises(Unsupported, match=r"bucket\[3\] of several columns"):
        sorted_table(table((1, "b")), PartitionSpec(), order, SCHEMA)
