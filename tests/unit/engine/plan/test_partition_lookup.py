"""Manifests found by the partitions of files, against the partitions that they list."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.codec.manifests.partition_summaries import PartitionSummaries
from icebench.engine.plan.partition_lookup import may_list_partitions
from icebench.engine.spec.creation import new_table_metadata
from icebench.engine.spec.manifest import ManifestContent, ManifestFile, PartitionFieldSummary
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import Partition, partition_key, partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import DATE, DOUBLE, LONG, STRING, UUID, DecimalType, NestedField, PrimitiveType
from icebench.engine.spec.values import Value, encode_value
from tests.unit.engine.columnar.value_strategies import values

TYPES: list[PrimitiveType] = [LONG, DOUBLE, STRING, UUID, DATE, DecimalType(5, 2), DecimalType(30, 4)]


def table(types: Sequence[PrimitiveType]) -> TableMetadata:
    schema = Schema(tuple(NestedField(field_id=i, name=f"c{i}", type=t) for i, t in enumerate(types, 1)))
    spec = partition_spec(schema, [(f.name, Identity()) for f in schema.fields])
    return new_table_metadata(schema, spec, location="memory://t", uuid=uuid.UUID(int=1), now_ms=1, format_version=2)


def manifest(summaries: tuple[PartitionFieldSummary, ...] | None, name: str = "m") -> ManifestFile:
    return ManifestFile(
        manifest_path=name,
        manifest_length=1,
        partition_spec_id=0,
        content=ManifestContent.DATA,
        added_snapshot_id=1,
        partitions=summaries,
    )


def listing(partitions: Sequence[Partition], metadata: TableMetadata) -> ManifestFile:
    summaries = PartitionSummaries(metadata.spec.partition_type(metadata.schema))
    summaries.add(partitions)
    return manifest(summaries.finish())


def few(type_: PrimitiveType) -> st.SearchStrategy[Value | None]:
    zeros = st.sampled_from([0.0, -0.0, math.nan]) if type_ == DOUBLE else st.nothing()
    return st.none() | zeros | values(type_)


@given(st.data(), st.lists(st.sampled_from(TYPES), min_size=1, max_size=2))
def test_no_manifest_that_lists_a_partition_is_passed_over(data: st.DataObject, types: list[PrimitiveType]) -> None:
    metadata = table(types)
    partitions = st.lists(st.tuples(*map(few, types)), min_size=1, max_size=3)
    listed = data.draw(st.lists(partitions, min_size=1, max_size=4))
    wanted = data.draw(partitions) + listed[0][:1]
    found = may_list_partitions([listing(each, metadata) for each in listed], wanted, metadata.spec, metadata)
    keys = {partition_key(0, each) for each in wanted}
    for own, may in zip(listed, found.tolist(), strict=True):
        assert may or keys.isdisjoint(partition_key(0, each) for each in own)


@pytest.mark.parametrize(
    ("type_", "listed", "others"),
    [
        (LONG, [3, 5], [2, 6, None]),
        (STRING, ["b", None], ["a", "c"]),
        (DOUBLE, [1.0], [None, 0.0, 2.0]),
        (DOUBLE, [math.nan], [0.0, None]),
        (UUID, [uuid.UUID(int=5)], [uuid.UUID(int=4), uuid.UUID(int=1 << 127)]),
    ],
)
def test_others_are_passed_over(type_: PrimitiveType, listed: list[Value | None], others: list[Value | None]) -> None:
    metadata = table([type_])
    own = [listing([(value,) for value in listed], metadata)]
    for value in others:
        assert may_list_partitions(own, [(value,)], metadata.spec, metadata).tolist() == [False], value
    together = [(value,) for value in [*others, listed[0]]]
    assert may_list_partitions(own, together, metadata.spec, metadata).tolist() == [True]


def test_where_nan_is_nobody_knows() -> None:
    metadata = table([DOUBLE])
    one = encode_value(DOUBLE, 1.0)
    unknown = PartitionFieldSummary(contains_null=False, contains_nan=None, lower_bound=one, upper_bound=one)
    manifests = [manifest(None), manifest((unknown,)), manifest((replace(unknown, contains_nan=False),))]
    assert may_list_partitions(manifests, [(math.nan,)], metadata.spec, metadata).tolist() == [True, True, True]


def in_java(value: uuid.UUID) -> tuple[int, int]:
    """The key of `java.util.UUID.compareTo`."""
    raw = value.bytes
    return int.from_bytes(raw[:8], "big", signed=True), int.from_bytes(raw[8:], "big", signed=True)


@given(st.lists(values(UUID), min_size=1, max_size=4), st.sampled_from([in_java, lambda value: value.bytes]))
def test_uuids_are_found_in_whichever_order_the_writer_took_them(
    listed: list[uuid.UUID], order: Callable[[uuid.UUID], Any]
) -> None:
    metadata = table([UUID])
    lower, upper = (encode_value(UUID, each(listed, key=order)) for each in (min, max))
    summary = PartitionFieldSummary(contains_null=False, contains_nan=None, lower_bound=lower, upper_bound=upper)
    for value in listed:
        assert may_list_partitions([manifest((summary,))], [(value,)], metadata.spec, metadata).all()


def test_bounds_of_uuids_in_the_order_of_java_may_lie_inside_the_values() -> None:
    """Java compares the second halves as signed numbers, too: these bounds are in order and leave a value out."""
    metadata = table([UUID])
    least, lower, upper, greatest = (
        uuid.UUID(int=i) for i in ((1 << 64) + 1, (1 << 64) + (1 << 63), (2 << 64) + 5, (2 << 64) + (1 << 63))
    )
    summary = PartitionFieldSummary(
        contains_null=False, lower_bound=encode_value(UUID, lower), upper_bound=encode_value(UUID, upper)
    )
    for value in (least, lower, upper, greatest):
        assert may_list_partitions([manifest((summary,))], [(value,)], metadata.spec, metadata).tolist() == [True]
    outside = (uuid.UUID(int=5), uuid.UUID(int=3 << 64))
    assert not may_list_partitions([manifest((summary,))], [(u,) for u in outside], metadata.spec, metadata).any()
