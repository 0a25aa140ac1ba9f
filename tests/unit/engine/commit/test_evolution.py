"""Metadata-only changes: schema, spec, sort order, properties, format version."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from icebench.engine.codec.metadata_json.table import decode_metadata, encode_metadata
from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.evolution import (
    ReplaceSortOrder,
    UpdateProperties,
    UpdateSchema,
    UpdateSpec,
    UpgradeFormat,
)
from icebench.engine.commit.changes.replace_table import ReplaceTable
from icebench.engine.commit.committer import Unknown
from icebench.engine.spec.name_mapping import parse_name_mapping
from icebench.engine.spec.partitioning import UNPARTITIONED, partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import UNSORTED, SortField, SortOrder
from icebench.engine.spec.transforms import Bucket, Identity
from icebench.engine.spec.types import DOUBLE, LONG, STRING, NestedField, StructType
from icebench.engine.spec.updates import (
    RemovePartitionSpecs,
    RemoveProperties,
    RemoveSchemas,
    SetProperties,
    apply_updates,
)
from icebench.errors import Invalid, StorageFailed
from tests.unit.engine.commit.tables import BY_DAY, SCHEMA, data_file, lost, metadata, world


def commit(w, *changes):
    return w.transaction().commit(list(changes)).metadata


def test_two_writers_add_different_columns():
    w = world()
    w.committer.before = [lambda: commit(w, UpdateSchema(lambda s: s.add_column("theirs", LONG)))]
    found = commit(w, UpdateSchema(lambda s: s.add_column("ours", STRING)))
    assert [f.name for f in found.schema.fields] == ["id", "day", "theirs", "ours"]
    assert found.schema.id_of == {"id": 1, "day": 2, "theirs": 3, "ours": 4}
    assert found.last_column_id == 4


def test_two_writers_add_the_same_column():
    w = world()
    w.committer.before = [lambda: commit(w, UpdateSchema(lambda s: s.add_column("x", LONG)))]
    with pytest.raises(Invalid, match="exists"):
        commit(w, UpdateSchema(lambda s: s.add_column("x", LONG)))


def test_a_lost_answer_does_not_add_a_column_twice():
    w = world()
    w.committer.answers = [lambda _: Unknown(cause=StorageFailed("reset"), metadata_location="v1")]
    found = commit(w, UpdateSchema(lambda s: s.add_column("x", LONG)))
    assert [f.name for f in found.schema.fields] == ["id", "day", "x"]
    assert w.committer.versions == 1


def test_a_lost_answer_is_settled_by_the_metadata_where_the_catalog_names_no_file():
    w = world()
    w.committer.answers = [lost]
    found = commit(w, UpdateSchema(lambda s: s.add_column("x", LONG)))
    assert [f.name for f in found.schema.fields] == ["id", "day", "x"]
    assert w.committer.versions == 1


def test_nothing_to_change_commits_nothing():
    w = world()
    assert commit(w, UpdateSchema(lambda s: s)) is w.metadata
    assert len(w.metadata.schemas) == 1


def test_a_default_of_the_other_zero_is_a_change():
    w = world(metadata(3))
    commit(w, UpdateSchema(lambda s: s.add_column("x", DOUBLE, default=0.0)))
    for change, zero in [
        (UpdateSchema(lambda s: s.set_write_default("x", -0.0)), "-0.0"),
        (UpdateSchema(lambda s: s.set_write_default("x", 0.0)), "0.0"),
    ]:
        changed = reread(commit(w, change)).schema.find("x")
        assert (str(changed.initial_default), str(changed.write_default)) == ("0.0", zero)
    assert commit(w, UpdateSchema(lambda s: s.set_write_default("x", 0.0))) is w.metadata
    assert len(w.metadata.schemas) == 3  # of the base, and of both zeros


def test_the_default_spec_keeps_its_source():
    w = world(metadata(spec=BY_DAY))
    with pytest.raises(Invalid, match="column 'day' is needed by partition field 'day'"):
        commit(w, UpdateSchema(lambda s: s.drop_column("day")))
    found = commit(w, UpdateSpec(lambda s: s.drop_field("day")), UpdateSchema(lambda s: s.drop_column("day")))
    assert found.spec.is_unpartitioned
    assert [f.name for f in found.schema.fields] == ["id"]


def test_specs_evolve_and_come_back():
    w = world(metadata(spec=BY_DAY))
    found = commit(w, UpdateSpec(lambda s: s.drop_field("day").add_field("id", Bucket(8))))
    assert [f.name for f in found.spec.fields] == ["id_bucket_8"]
    assert (found.default_spec_id, found.last_partition_id) == (1, 1001)
    back = commit(w, UpdateSpec(lambda s: s.drop_field("id_bucket_8").add_field("day", Identity())))
    assert (back.default_spec_id, len(back.partition_specs)) == (0, 2)


def test_sort_orders_get_ids_and_are_used_again():
    w = world()
    order = SortOrder((SortField(source_ids=(1,), transform=Identity()),))
    assert commit(w, ReplaceSortOrder(order)).default_sort_order_id == 1
    assert commit(w, ReplaceSortOrder(SortOrder())).default_sort_order_id == 0
    assert commit(w, ReplaceSortOrder(order)).default_sort_order_id == 1
    with pytest.raises(Invalid, match="field id 9"):
        commit(w, ReplaceSortOrder(SortOrder((SortField(source_ids=(9,), transform=Identity()),))))


def lowered(w, **ids):
    """As some writers leave the ids that were assigned last."""
    w.committer.state = replace(w.committer.state, metadata=replace(w.metadata, **ids))


def reread(found):
    assert decode_metadata(encode_metadata(found)) == found
    return found


@pytest.mark.parametrize(
    "change",
    [
        UpdateSchema(lambda s: s.add_column("new", LONG)),
        ReplaceTable(Schema((*SCHEMA.fields, NestedField(field_id=3, name="new", type=LONG))), UNPARTITIONED, UNSORTED),
    ],
    ids=["update", "replacement"],
)
def test_a_new_column_is_numbered_after_all_that_were_ever_there(change):
    w = world()
    commit(w, UpdateSchema(lambda s: s.add_column("old", LONG)))
    commit(w, UpdateSchema(lambda s: s.drop_column("old")))
    lowered(w, last_column_id=1)
    assert commit(w, UpdateSchema(lambda s: s)) is w.metadata
    found = reread(commit(w, change))  # although the catalog compares with the number that it has stored
    assert (found.schema.id_of, found.last_column_id) == ({"id": 1, "day": 2, "new": 4}, 4)


@pytest.mark.parametrize(
    "change",
    [
        UpdateSpec(lambda s: s.add_field("id", Bucket(8))),
        ReplaceTable(SCHEMA, partition_spec(SCHEMA, [("day", Identity()), ("id", Bucket(8))]), UNSORTED),
    ],
    ids=["update", "replacement"],
)
@pytest.mark.parametrize("version", [1, 2])
def test_a_new_partition_field_is_numbered_after_all_that_were_ever_there(change, version):
    w = world(metadata(version, spec=BY_DAY))
    lowered(w, last_partition_id=999)
    found = reread(commit(w, change))
    assert ([f.field_id for f in found.spec.fields], found.last_partition_id) == ([1000, 1001], 1001)


def test_numbers_of_removed_schemas_and_specs_stay_taken():
    w = world(metadata(spec=BY_DAY))
    commit(w, UpdateSchema(lambda s: s.add_column("old", LONG)), UpdateSpec(lambda s: s.drop_field("day")))
    commit(w, UpdateSchema(lambda s: s.drop_column("old")))
    lowered(w, last_column_id=1, last_partition_id=999)
    removals = RemoveSchemas(frozenset({1})), RemovePartitionSpecs(frozenset({0}))
    found = apply_updates(w.metadata, removals, now_ms=1)
    assert (found.last_column_id, found.last_partition_id) == (3, 1000)


def test_properties_are_set_and_removed():
    w = world(metadata(properties={"a": "1", "b": "2"}))
    assert commit(w, UpdateProperties({"c": "3", "a": "0"}, frozenset({"b"}))).properties == {"a": "0", "c": "3"}


def test_properties_of_columns_follow_renames_and_go_with_the_column():
    properties = {
        "write.metadata.metrics.column.id": "counts",
        "write.parquet.bloom-filter-enabled.column.id": "true",
        "write.parquet.bloom-filter-fpp.column.day": "0.1",
        "write.metadata.metrics.column.s.inner": "full",
        "write.metadata.metrics.column.s": "none",
        "write.metadata.metrics.column.gone": "none",
        "write.metadata.metrics.default": "full",
    }
    w = world(metadata())
    inner = StructType((NestedField(field_id=1, name="inner", type=LONG),))
    commit(w, UpdateSchema(lambda s: s.add_column("s", inner)))
    commit(w, UpdateProperties(properties))
    found = commit(w, UpdateSchema(lambda s: s.drop_column("day").rename_column("id", "day").rename_column("s", "t")))
    assert found.properties == {
        "write.metadata.metrics.column.day": "counts",
        "write.parquet.bloom-filter-enabled.column.day": "true",
        "write.metadata.metrics.column.t.inner": "full",
        "write.metadata.metrics.column.t": "none",
        "write.metadata.metrics.column.gone": "none",
        "write.metadata.metrics.default": "full",
    }


def test_lists_of_columns_follow_renames_and_drops():
    keys, bloom = "icebench.clustering.keys", "write.orc.bloom.filter.columns"
    w = world(metadata(properties={keys: "s.inner, id", bloom: "id,day,gone"}))
    inner = StructType((NestedField(field_id=1, name="inner", type=LONG),))
    commit(w, UpdateSchema(lambda s: s.add_column("s", inner)))
    change = UpdateSchema(lambda s: s.drop_column("day").rename_column("id", "day").rename_column("s", "t"))
    staged = change.stage(w.metadata, w.staging())
    assert [u for u in staged.updates if isinstance(u, RemoveProperties | SetProperties)] == [
        SetProperties({keys: "t.inner,day", bloom: "day,gone"})
    ]
    found = commit(w, change)
    assert found.properties == {keys: "t.inner,day", bloom: "day,gone"}
    with pytest.raises(Invalid, match=r"column t\.inner is a key of the clustering: take it out of icebench"):
        commit(w, UpdateSchema(lambda s: s.drop_column("t")))
    commit(w, UpdateProperties({bloom: "day"}, frozenset({keys})))
    assert commit(w, UpdateSchema(lambda s: s.drop_column("day"))).properties == {}


def test_upgrades_go_forward_with_rows_numbered_from_the_next_commit():
    w = world(metadata(1))
    commit(w, Append(data_files=[data_file("one", rows=10)]))
    assert commit(w, UpgradeFormat(2)).last_sequence_number == 0
    commit(w, Append(data_files=[data_file("two", rows=5)]))
    found = commit(w, UpgradeFormat(3))
    assert (found.format_version, found.next_row_id, found.last_sequence_number) == (3, 0, 1)
    found = commit(w, Append(data_files=[data_file("three", rows=7)]))
    assert found.next_row_id == 22
    with pytest.raises(Invalid, match="downgrade"):
        commit(w, UpgradeFormat(2))
    assert w.files() == {"one": 0, "two": 1, "three": 2}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    "upgrade",
    [UpgradeFormat, lambda version: ReplaceTable(SCHEMA, UNPARTITIONED, UNSORTED, format_version=version)],
    ids=["upgrade", "replacement"],
)
@pytest.mark.parametrize("is_overtaken", [False, True])
def test_a_table_without_a_uuid_gets_one_with_version_2(upgrade, version, is_overtaken):
    w = world(replace(metadata(1), table_uuid=""))
    commit(w, Append(data_files=[data_file("one")]))
    assert commit(w, UpgradeFormat(1)).table_uuid == ""
    theirs = []
    if is_overtaken:
        w.committer.before = [lambda: theirs.append(commit(w, UpgradeFormat(2)).table_uuid)]
    found = commit(w, upgrade(version), UpdateProperties({"a": "1"}))
    assert (found.format_version, found.properties) == (version, {"a": "1"})
    assert str(uuid.UUID(found.table_uuid)) == found.table_uuid
    assert theirs in ([], [found.table_uuid])
    assert decode_metadata(encode_metadata(found), location="x").table_uuid == found.table_uuid
    # It keeps it.
    assert commit(w, UpgradeFormat(3)).table_uuid == found.table_uuid


def test_several_changes_in_one_commit():
    w = world()
    found = commit(
        w,
        UpdateSchema(lambda s: s.add_column("n", LONG)),
        UpdateSpec(lambda s: s.add_field("n", Bucket(2))),
        UpdateProperties({"owner": "me"}),
    )
    assert w.committer.versions == 1
    assert found.spec.fields[0].source_id == 3
    assert found.properties["owner"] == "me"


def test_the_name_mapping_learns_new_names():
    mapping = '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["day"]}]'
    w = world(metadata(properties={"schema.name-mapping.default": mapping}))
    found = commit(w, UpdateSchema(lambda s: s.rename_column("day", "night").add_column("more", LONG)))
    names = {
        f.field_id: set(f.names) for f in parse_name_mapping(found.properties["schema.name-mapping.default"]).fields
    }
    assert names == {1: {"id"}, 2: {"day", "night"}, 3: {"more"}}


@pytest.mark.parametrize("name", ["region", "area"])
def test_no_column_takes_the_name_of_another_columns_partition_field(name):
    """Iceberg Java opens no such table: it binds all specs, those of older files too, to the current schema."""
    w = world(metadata(spec=UNPARTITIONED))
    commit(w, UpdateSchema(lambda s: s.add_column("region", STRING)))
    commit(w, UpdateSpec(lambda s: s.add_field("region", "identity").add_field("id", Bucket(4), name="area")))
    commit(w, UpdateSpec(lambda s: s.drop_field("region").drop_field("area")))
    if name == "region":
        commit(w, UpdateSchema(lambda s: s.rename_column("region", "moved")))
    with pytest.raises(Invalid, match="would have the name of a partition field"):
        commit(w, UpdateSchema(lambda s: s.add_column(name, LONG)))
    if name == "region":
        # A field without its source may share its name.
        commit(w, UpdateSchema(lambda s: s.drop_column("moved")))
        assert "region" in commit(w, UpdateSchema(lambda s: s.add_column("region", LONG))).schema.id_of
