"""Ids that a replaced table gives to columns, partition fields, schemas, specs and sort orders are Iceberg Java's."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from icebench.bench.setup_jars import is_cached
from icebench.engine.codec.metadata_json.partitioning import partition_spec_to_json, sort_order_to_json
from icebench.engine.codec.metadata_json.schema import schema_to_json
from icebench.engine.codec.metadata_json.table import decode_metadata, encode_metadata
from icebench.engine.columnar.schemas import from_arrow_schema
from icebench.engine.commit.changes.replace_table import ReplaceTable
from icebench.engine.commit.staging_context import Staging
from icebench.engine.spec.creation import new_table_metadata
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionSpec, partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.schema_evolution import assign_replacement_ids
from icebench.engine.spec.snapshots import Snapshot, SnapshotRef
from icebench.engine.spec.sorting import SortField, SortOrder
from icebench.engine.spec.transforms import parse_transform
from icebench.engine.spec.types import PrimitiveType, can_promote
from icebench.engine.spec.updates import AddSnapshot, SetSnapshotRef, apply_updates
from icebench.engine.storage.memory import MemoryStore

Definition = tuple[Schema, PartitionSpec, SortOrder]

_PARTS = {"x": pa.string(), "y": pa.date32()}
_TRANSFORMS = {"a": ["identity", "bucket[2]", "bucket[4]"], "b": ["identity", "truncate[1]"], "c": ["day", "month"]}


@st.composite
def definitions(draw: st.DrawFn, *, is_wide: bool) -> Definition:
    """A schema of some columns in any order, and a spec and sort order of some of those.

    A name always has one type, or with `is_wide` a wider one.
    """
    number = pa.int64() if is_wide else pa.int32()

    def struct() -> pa.DataType:
        names = draw(st.lists(st.sampled_from([*_PARTS, "n"]), unique=True, min_size=1))
        return pa.struct([(name, _PARTS.get(name, number)) for name in names])

    types = {"a": number, "b": pa.string(), "c": pa.date32()}
    types |= {"s": struct(), "l": pa.list_(struct()), "m": pa.map_(pa.string(), struct())}
    names = draw(st.lists(st.sampled_from(list(types)), unique=True, min_size=1))
    schema = from_arrow_schema(pa.schema([(name, types[name]) for name in names]))
    keys = [(name, text) for name in names for text in _TRANSFORMS.get(name, ())]
    some = st.lists(st.sampled_from(keys), unique_by=lambda key: key[0]) if keys else st.just([])
    spec = partition_spec(schema, [(name, parse_transform(text)) for name, text in draw(some)])
    order = SortOrder(
        tuple(SortField(source_ids=(schema.id_of[name],), transform=parse_transform(text)) for name, text in draw(some))
    )
    return schema, spec, replace(order, order_id=0 if order.is_unsorted else 1)


@st.composite
def histories(draw: st.DrawFn) -> list[Definition]:
    """A table's definition and its replacements; columns only grow wider."""
    narrow = draw(st.lists(definitions(is_wide=False), min_size=1, max_size=3))
    return [*narrow, *draw(st.lists(definitions(is_wide=True), min_size=1, max_size=2))]


@pytest.mark.slow
@pytest.mark.skipif(not is_cached(), reason="Iceberg's Spark runtime is not in the Ivy cache")
@given(version=st.sampled_from([1, 2, 3]), upgrades=st.booleans(), definitions=histories())
def test_a_replaced_table_is_that_of_iceberg_java(
    spark: SparkSession, version: int, upgrades: bool, definitions: list[Definition]
) -> None:
    schema, spec, order = definitions[0]
    table = new_table_metadata(
        schema, spec, order, location="/t", format_version=version, uuid=uuid.UUID(int=1), now_ms=1_000
    )
    for number, definition in enumerate(definitions[1:]):
        wanted = 3 if upgrades and number else None
        base = with_snapshot(table, 100 + number)
        change = ReplaceTable(*definition, format_version=wanted)
        staged = change.stage(base, Staging(store=MemoryStore()))
        table = apply_updates(base, staged.updates, now_ms=2_000)
        java = replaced_by_java(spark, base, definition, wanted)
        assert without_times(table) == without_times(java)


@given(old=definitions(is_wide=True), new=definitions(is_wide=False))
def test_only_a_type_that_reads_the_former_one_keeps_an_id(old: Definition, new: Definition) -> None:
    base = old[0]
    made, _ = assign_replacement_ids(new[0], base, 100)
    ids = [each.field_id for each in made.walk()]
    assert len(set(ids)) == len(ids)
    for each in made.walk():
        former = base.by_id.get(each.field_id)
        if former is None:
            assert each.field_id > 100
        else:
            assert base.name_of[each.field_id] == made.name_of[each.field_id]
            same_kind = type(former.type) is type(each.type)
            assert (
                same_kind
                if not isinstance(each.type, PrimitiveType)
                else can_promote(former.type, each.type, format_version=2)
            )


def with_snapshot(table: TableMetadata, snapshot_id: int) -> TableMetadata:
    """The table after a commit."""
    is_new = table.format_version >= 3
    snapshot = Snapshot(
        snapshot_id=snapshot_id,
        sequence_number=table.last_sequence_number + 1 if table.format_version > 1 else 0,
        timestamp_ms=1_500,
        manifest_list=f"/t/metadata/{snapshot_id}.avro",
        operation="append",
        summary={},
        schema_id=table.current_schema_id,
        first_row_id=table.next_row_id if is_new else None,
        added_rows=1 if is_new else None,
    )
    ref = SnapshotRef(snapshot_id=snapshot_id, type="branch")
    return apply_updates(table, [AddSnapshot(snapshot), SetSnapshotRef("main", ref)], now_ms=1_500)


def replaced_by_java(
    spark: SparkSession, base: TableMetadata, definition: Definition, version: int | None
) -> TableMetadata:
    iceberg: Any = spark.sparkContext._jvm.org.apache.iceberg  # type: ignore[union-attr]
    schema, spec, order = definition
    java_schema = iceberg.SchemaParser.fromJson(json.dumps(schema_to_json(schema)))
    given = {} if version is None else {"format-version": str(version)}
    replaced = iceberg.TableMetadataParser.fromJson(encode_metadata(base).decode()).buildReplacement(
        java_schema,
        iceberg.PartitionSpecParser.fromJson(java_schema, json.dumps(partition_spec_to_json(spec))),
        iceberg.SortOrderParser.fromJson(java_schema, json.dumps(sort_order_to_json(order))),
        base.location,
        given,
    )
    return decode_metadata(iceberg.TableMetadataParser.toJson(replaced).encode(), location="java")


def without_times(table: TableMetadata) -> TableMetadata:
    """The table without times, and without properties, of which Java adds defaults."""
    return replace(table, last_updated_ms=0, snapshot_log=(), metadata_log=(), properties={})
