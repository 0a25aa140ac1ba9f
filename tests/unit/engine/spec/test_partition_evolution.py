"""Partition spec changes: ids reused for known fields, void fields in v1."""

from __future__ import annotations

import pytest

from icebench.engine.spec.partition_evolution import PartitionSpecUpdate
from icebench.engine.spec.partitioning import UNPARTITIONED, partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Bucket, Day, Identity, Month, Truncate, Void
from icebench.engine.spec.types import LONG, TIMESTAMP, NestedField, list_type
from icebench.errors import Invalid

SCHEMA = Schema(
    (
        NestedField(field_id=1, name="id", type=LONG),
        NestedField(field_id=2, name="ts", type=TIMESTAMP),
        NestedField(field_id=3, name="many", type=list_type(4, LONG)),
    )
)
BY_MONTH = partition_spec(SCHEMA, [("ts", Month())])


def update(base=BY_MONTH, history=(BY_MONTH,), version=2):
    return PartitionSpecUpdate(SCHEMA, base, history, 1000, version)


def test_month_to_day_keeps_neither_field_nor_id():
    spec, last = update().drop_field("ts_month").add_field("ts", Day()).apply()
    assert update().drop_field("ts_month").add_field("ts", "day").apply() == (spec, last)
    assert [(f.name, f.field_id, str(f.transform)) for f in spec.fields] == [("ts_day", 1001, "day")]
    assert (spec.spec_id, last) == (1, 1001)


def test_version_1_leaves_a_void_field_in_place():
    spec, _ = update(version=1).drop_field("ts_month").add_field("id", Bucket(4)).apply()
    assert [(f.field_id, f.transform) for f in spec.fields] == [(1000, Void()), (1001, Bucket(4))]


@pytest.mark.parametrize("version", [1, 2])  # also after an upgrade
def test_a_field_comes_back_beside_the_void_one_that_it_left_in_version_1(version):
    dropped, last = update(version=1).drop_field("ts_month").apply()
    history = (BY_MONTH, dropped)
    spec, last = PartitionSpecUpdate(SCHEMA, dropped, history, last, version).add_field("ts", Month()).apply()
    assert [(f.name, f.field_id, f.transform) for f in spec.fields] == [
        ("ts_month_1000", 1000, Void()),
        ("ts_month", 1001, Month()),
    ]
    assert (spec.spec_id, last) == (2, 1001)


def test_a_field_of_an_earlier_spec_gets_its_id_again():
    daily, last = update().drop_field("ts_month").add_field("ts", Day()).apply()
    back = PartitionSpecUpdate(SCHEMA, daily, (BY_MONTH, daily), last)
    spec, last_after = back.drop_field("ts_day").add_field("ts", Month()).apply()
    assert spec == BY_MONTH
    assert last_after == last


def test_dropping_all_fields_gives_an_unpartitioned_spec_with_its_own_id():
    spec, _ = update().drop_field("ts_month").apply()
    assert spec.is_unpartitioned
    assert spec.spec_id == 1
    again, _ = update(spec, (BY_MONTH, spec, UNPARTITIONED)).add_field("ts", Month()).apply()
    assert again == BY_MONTH


def test_buckets_and_truncations_are_distinguished_by_their_widths():
    spec, _ = update().add_field("id", Bucket(4)).add_field("id", Bucket(8)).add_field("id", Truncate(10)).apply()
    assert [f.name for f in spec.fields] == ["ts_month", "id_bucket_4", "id_bucket_8", "id_trunc_10"]


def test_a_void_field_may_have_the_name_of_a_column():
    by_id = partition_spec(SCHEMA, [("id", Identity())])
    dropped, _ = update(by_id, (by_id,), 1).drop_field("id").apply()
    later = PartitionSpecUpdate(SCHEMA, dropped, (by_id, dropped), 1000, 2).add_field("ts", Day())
    assert [(f.name, str(f.transform)) for f in later.apply()[0].fields] == [("id", "void"), ("ts_day", "day")]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda u: u.add_field("ts", Month()), "already"),
        (lambda u: u.add_field("nope", Identity()), "no column"),
        (lambda u: u.add_field("id", Day()).apply(), "cannot partition"),
        (lambda u: u.add_field("many.element", Identity()).apply(), "list or map"),
        (lambda u: u.drop_field("ts_day"), "there are: ts_month"),
        (lambda u: u.drop_field("ts_month").drop_field("ts_month"), "no partition field"),
        (lambda u: u.drop_field("ts_month").rename_field("ts_month", "m"), "no partition field"),
        (lambda u: u.rename_field("ts_month", "m").drop_field("ts_month"), "this update renames it"),
        (lambda u: u.rename_field("ts_month", "id").apply(), "'id' has the name of a column"),
        (lambda u: u.add_field("ts", Day(), name="ts").apply(), "'ts' has the name of a column"),
    ],
)
def test_illegal_changes_are_refused(change, reason):
    with pytest.raises(Invalid, match=reason):
        change(update())
