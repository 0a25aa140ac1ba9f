import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.columnar.partitions import group_rows
from icebench.engine.columnar.scalars import to_arrow_array
from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec, partition_key, partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Bucket, Identity, Transform, Truncate
from icebench.engine.spec.types import DOUBLE, INT, STRING, DecimalType, NestedField, StructType
from icebench.engine.spec.values import Value
from icebench.errors import Unsupported
from tests.unit.engine.columnar.value_strategies import values

OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0001))[0]
INNER = NestedField(field_id=4, name="n", type=INT)
SCHEMA = Schema(
    (
        NestedField(field_id=1, name="s", type=STRING),
        NestedField(field_id=2, name="d", type=DecimalType(7, 2)),
        NestedField(field_id=3, name="st", type=StructType((INNER,))),
        NestedField(field_id=5, name="x", type=DOUBLE),
    )
)
FIELDS: list[tuple[str, Transform]] = [
    ("s", Identity()),
    ("s", Truncate(1)),
    ("d", Identity()),
    ("st.n", Bucket(3)),
    ("x", Identity()),
]


def batch_of(rows: list[tuple[Value | None, ...]]) -> pa.RecordBatch:
    columns: list[list[Value | None]] = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    inner = to_arrow_array(INT, columns[2])
    arrays = [
        to_arrow_array(STRING, columns[0]),
        to_arrow_array(DecimalType(7, 2), columns[1]),
        pa.StructArray.from_arrays([inner], fields=[to_arrow_schema(Schema((INNER,))).field(0)]),
        to_arrow_array(DOUBLE, columns[3]),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=to_arrow_schema(SCHEMA))


rows = st.lists(
    st.tuples(
        st.none() | st.sampled_from(["a", "ab", "b"]),
        st.none() | values(DecimalType(7, 2)),
        st.none() | st.integers(0, 5),
        st.none() | st.sampled_from([math.nan, OTHER_NAN, 1.0, 0.0, -0.0]),
    ),
    max_size=12,
)


@given(rows, st.lists(st.sampled_from(FIELDS), max_size=3, unique=True))
def test_groups_are_the_partitions_of_the_rows(
    given_rows: list[tuple[Value | None, ...]], fields: list[tuple[str, Transform]]
) -> None:
    spec = partition_spec(SCHEMA, fields)
    batch = batch_of(given_rows)
    groups = group_rows(batch, spec, SCHEMA)
    place = {"s": 0, "d": 1, "st.n": 2, "x": 3}
    expected: dict[tuple[object, ...], list[int]] = {}
    for number, row in enumerate(given_rows):
        tuple_ = tuple(t.apply(SCHEMA.primitive(SCHEMA.id_of[c]), row[place[c]]) for c, t in fields)
        expected.setdefault(partition_key(0, tuple_), []).append(number)
    order = np.arange(len(given_rows)) if groups.order is None else groups.order
    found = {
        partition_key(0, partition): order[groups.starts[i] : groups.starts[i + 1]].tolist()
        for i, partition in enumerate(groups.partitions if given_rows else ())
    }
    assert found == expected
    assert groups.starts[-1] == len(given_rows)


def test_grouped_rows_stay_where_they_are() -> None:
    spec = partition_spec(SCHEMA, [("s", Identity())])
    clustered = batch_of([("b", None, 1, None), ("b", None, 2, None), ("a", None, 1, None), (None, None, 1, None)])
    groups = group_rows(clustered, spec, SCHEMA)
    assert groups.order is None
    assert groups.partitions == (("b",), ("a",), (None,))
    assert group_rows(clustered, PartitionSpec(), SCHEMA).partitions == ((),)


def test_a_transform_of_several_columns_is_not_taken_for_one_of_the_first() -> None:
    spec = PartitionSpec((PartitionField(source_ids=(4, 1), field_id=1000, name="z", transform=Bucket(3)),))
    with pytest.raises(Unsupported, match=r"'z': bucket\[3\] of several columns"):
        group_rows(batch_of([("a", None, 1, 1.0)]), spec, SCHEMA)
