from __future__ import annotations

from dataclasses import replace

import pytest

from icebench.engine.spec.partition_evolution import PartitionSpecUpdate
from icebench.engine.spec.partitioning import (
    PartitionField,
    PartitionSpec,
    PlannedPartitions,
    check_promotions,
    common_partition_type,
    partition_spec,
)
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Bucket, Day, Identity, Transform, Void
from icebench.engine.spec.types import (
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    VARIANT,
    GeospatialType,
    NestedField,
    Type,
    list_type,
)
from icebench.errors import Invalid, Unsupported


def schema(**columns: Type) -> Schema:
    return Schema(tuple(NestedField(field_id=n, name=name, type=t) for n, (name, t) in enumerate(columns.items(), 1)))


def spec_of(source_id: int, transform: Transform, spec_id: int = 0) -> PartitionSpec:
    return PartitionSpec(
        (PartitionField(source_ids=(source_id,), field_id=1000, name="p", transform=transform),), spec_id
    )


def test_a_dropped_source_has_the_type_that_it_had_last() -> None:
    spec, now = spec_of(2, Identity()), schema(a=STRING)
    former = [schema(a=STRING, n=INT), schema(a=STRING, n=LONG), now]
    assert spec.partition_type(now, former).fields[0].type == LONG
    assert spec.partition_type(now).fields[0].type == UNKNOWN


def test_a_field_that_became_void_keeps_its_type() -> None:
    changed = schema(n=LONG)
    specs = [spec_of(1, Void(), 1), spec_of(1, Bucket(4), 0)]
    assert [f.type for f in common_partition_type(specs, changed).fields] == [INT]


def test_the_newest_spec_names_a_field() -> None:
    old = spec_of(1, Identity(), 0)
    new = PartitionSpec((replace(old.fields[0], name="q"),), 1)
    assert [f.name for f in common_partition_type([new, old], schema(n=LONG)).fields] == ["q"]


def test_fields_of_version_1_that_share_an_id() -> None:
    """As in Iceberg Java, whose scans do not need one type for all specs."""
    own = schema(n=LONG, m=LONG, s=STRING)
    voided = [spec_of(1, Identity(), 0), spec_of(1, Void(), 1)]
    for other, types in ((spec_of(2, Identity(), 2), [LONG]), (spec_of(1, Bucket(4), 2), [LONG, INT])):
        for specs in ([voided[0], other], [*voided, other]):
            with pytest.raises(Unsupported, match=r"share the id 1000: 'p' = identity\(1\) and 'p' = "):
                common_partition_type(specs, own)
            planned = PlannedPartitions.of(specs, own)
            assert [f.type for f in planned.type.fields] == types
            assert [f.name for f in planned.type.fields] == ["p", "p_2"][: len(types)]
            assert {spec.spec_id: list(planned.places[spec.spec_id].items()) for spec in specs} == {
                **{spec.spec_id: [(0, spec.fields[0])] for spec in specs},
                2: [(len(types) - 1, other.fields[0])],
            }
    for make in (common_partition_type, lambda *given: PlannedPartitions.of(*given).type):
        assert [f.type for f in make([*voided, spec_of(1, Identity(), 2)], own).fields] == [LONG]
        assert [f.type for f in make([spec_of(3, Void()), spec_of(1, Bucket(4), 1)], own).fields] == [INT]


def test_fields_of_one_name_are_told_apart() -> None:
    own = schema(n=LONG, m=LONG, s=STRING)
    fields = [
        PartitionField(source_ids=(n,), field_id=999 + n, name=p, transform=Identity())
        for n, p in ((1, "p"), (2, "p_2"))
    ]
    planned = PlannedPartitions.of([PartitionSpec(tuple(fields), 0), spec_of(1, Bucket(4), 2)], own)
    assert [f.name for f in planned.type.fields] == ["p", "p_2", "p_2_2"]


def test_a_void_field_of_version_1_keeps_the_type_of_the_last_that_had_its_id() -> None:
    own = schema(n=LONG, m=LONG, s=STRING)
    planned = PlannedPartitions.of([spec_of(1, Identity(), 0), spec_of(1, Bucket(4), 1), spec_of(1, Void(), 2)], own)
    assert [f.type for f in planned.type.fields] == [LONG, INT]
    assert [list(planned.places[spec_id]) for spec_id in (0, 1, 2)] == [[0], [1], [1]]


def test_a_source_is_not_inside_a_list() -> None:
    inside = schema(n=list_type(7, LONG))
    with pytest.raises(Invalid, match="inside a list or map"):
        partition_spec(inside, [("n.element", Identity())])


@pytest.mark.parametrize(("transform", "refused"), [(Day(), False), (Identity(), True), (Bucket(4), True)])
def test_a_date_becomes_a_timestamp_where_partition_values_stay_the_same(
    transform: Transform, *, refused: bool
) -> None:
    old, new = schema(d=DATE), schema(d=TIMESTAMP)
    if refused:
        with pytest.raises(Invalid, match="'p' has other values then"):
            check_promotions([spec_of(1, transform)], old, new)
    else:
        check_promotions([spec_of(1, transform)], old, new)


def test_two_fields_of_one_id_are_refused() -> None:
    fields = [
        PartitionField(source_ids=(1,), field_id=1000, name=name, transform=transform)
        for name, transform in (("a", Identity()), ("b", Void()))
    ]
    with pytest.raises(Invalid, match="partition field id 1000 is used twice"):
        PartitionSpec(tuple(fields)).check(Schema((NestedField(field_id=1, name="a", type=LONG),)))


@pytest.mark.parametrize("type_", [VARIANT, GeospatialType("geometry"), GeospatialType("geography")])
def test_void_does_not_take_what_partition_tuples_cannot_hold(type_: Type) -> None:
    with pytest.raises(Invalid, match=f"cannot partition 'a' of type {type_} by void"):
        spec_of(1, Void()).check(schema(a=type_), voids=True)
    spec_of(1, Void()).check(schema(a=STRING), voids=True)
    with pytest.raises(Invalid, match="by void"):
        partition_spec(schema(a=type_), [("a", "void")])
    with pytest.raises(Invalid, match="by void"):
        PartitionSpecUpdate(schema(a=type_), PartitionSpec(), (), 999).add_field("a", "void")
    spec_of(1, Void()).check(schema(a=type_))  # that a table of another writer has
    spec_of(2, Void()).check(schema(a=type_))
