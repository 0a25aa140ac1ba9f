from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

import pytest

from engine.errors import CommitConflict, Invalid, Unsupported
from engine.spec.creation import new_table_metadata
from engine.spec.metadata import TableMetadata
from engine.spec.partitioning import partition_spec
from engine.spec.schema import Schema
from engine.spec.snapshots import MetadataLogEntry, Snapshot, SnapshotLogEntry, SnapshotRef
from engine.spec.sorting import SortField, SortOrder
from engine.spec.statistics import PartitionStatisticsFile, StatisticsFile
from engine.spec.transforms import Bucket, Identity
from engine.spec.types import LONG, STRING, TIMESTAMP_NS, NestedField
from engine.spec.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUuid,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    TableUpdate,
    UpgradeFormatVersion,
    apply_updates,
    updates_to_order,
    updates_to_schema,
    updates_to_spec,
)

NOW = 1_000
SCHEMA = Schema(
    (NestedField(field_id=1, name="id", type=LONG, required=True), NestedField(field_id=2, name="name", type=STRING))
)
UUID = uuid.UUID(int=7)


def table(format_version: int = 2) -> TableMetadata:
    return new_table_metadata(SCHEMA, location="/t", uuid=UUID, now_ms=NOW, format_version=format_version)


def apply(base: TableMetadata, *updates: TableUpdate, now_ms: int = 5_000) -> TableMetadata:
    return apply_updates(base, updates, now_ms=now_ms)


def snapshot(n: int, *, sequence_number: int | None = None, timestamp_ms: int | None = None) -> Snapshot:
    return Snapshot(
        snapshot_id=n,
        parent_snapshot_id=n - 1 if n > 1 else None,
        sequence_number=n if sequence_number is None else sequence_number,
        timestamp_ms=NOW + n if timestamp_ms is None else timestamp_ms,
        manifest_list=f"/t/metadata/snap-{n}.avro",
        operation="append",
    )


def branch(n: int) -> SnapshotRef:
    return SnapshotRef(snapshot_id=n, type="branch")


def with_snapshots(count: int) -> TableMetadata:
    base = table()
    for n in range(1, count + 1):
        base = apply(base, AddSnapshot(snapshot(n)), SetSnapshotRef("main", branch(n)))
    return base


def current(metadata: TableMetadata) -> list[int]:
    return [entry.snapshot_id for entry in metadata.snapshot_log]


class TestSnapshots:
    def test_adding_one_makes_it_current_by_reference_only(self) -> None:
        added = apply(table(), AddSnapshot(snapshot(1)))
        assert added.current_snapshot is None
        assert added.last_sequence_number == 1
        assert added.last_updated_ms == NOW + 1
        moved = apply(added, SetSnapshotRef("main", branch(1)), now_ms=9_000)
        assert moved.current_snapshot == snapshot(1)
        # The snapshot was not added in this batch, so it became current now.
        assert moved.snapshot_log == (SnapshotLogEntry(timestamp_ms=9_000, snapshot_id=1),)

    def test_log_takes_the_time_of_a_new_snapshot(self) -> None:
        assert with_snapshots(2).snapshot_log == (
            SnapshotLogEntry(timestamp_ms=NOW + 1, snapshot_id=1),
            SnapshotLogEntry(timestamp_ms=NOW + 2, snapshot_id=2),
        )

    def test_rolling_back_is_logged(self) -> None:
        assert current(apply(with_snapshots(3), SetSnapshotRef("main", branch(1)))) == [1, 2, 3, 1]

    def test_a_snapshot_current_only_within_a_batch_leaves_no_log(self) -> None:
        batch: Sequence[TableUpdate] = [
            AddSnapshot(snapshot(1)),
            SetSnapshotRef("main", branch(1)),
            AddSnapshot(snapshot(2)),
            SetSnapshotRef("main", branch(2)),
        ]
        result = apply(table(), *batch)
        assert current(result) == [2]
        assert [s.snapshot_id for s in result.snapshots] == [1, 2]

    def test_an_id_is_used_once(self) -> None:
        with pytest.raises(Invalid, match="snapshot 1 exists"):
            apply(with_snapshots(1), AddSnapshot(snapshot(1, sequence_number=2)))

    def test_a_taken_sequence_number_is_a_conflict_also_between_branches(self) -> None:
        base = with_snapshots(2)
        for taken in (1, 2):
            with pytest.raises(CommitConflict, match="sequence number"):
                apply(base, AddSnapshot(snapshot(9, sequence_number=taken)), SetSnapshotRef("other", branch(9)))
        apply(base, AddSnapshot(snapshot(9, sequence_number=3)))

    def test_v1_has_no_sequence_numbers(self) -> None:
        base = apply(table(1), AddSnapshot(snapshot(1, sequence_number=0)))
        base = apply(base, AddSnapshot(snapshot(2, sequence_number=0)))
        assert base.last_sequence_number == 0

    def test_v3_assigns_row_ids(self) -> None:
        def with_rows(n: int, first: int | None, rows: int | None) -> Snapshot:
            return replace(snapshot(n), first_row_id=first, added_rows=rows)

        base = apply(table(3), AddSnapshot(with_rows(1, 0, 10)))
        assert base.next_row_id == 10
        assert apply(base, AddSnapshot(with_rows(2, 10, 5))).next_row_id == 15
        with pytest.raises(CommitConflict, match="first row id 9"):
            apply(base, AddSnapshot(with_rows(2, 9, 5)))
        # Staged before the table was upgraded: to be staged again.
        with pytest.raises(CommitConflict, match="first-row-id"):
            apply(base, AddSnapshot(with_rows(2, None, None)))

    def test_removing_takes_statistics_and_references_along(self) -> None:
        stats = StatisticsFile(snapshot_id=1, statistics_path="/s", file_size_in_bytes=1, file_footer_size_in_bytes=1)
        partition_stats = PartitionStatisticsFile(snapshot_id=1, statistics_path="/p", file_size_in_bytes=1)
        tag = SnapshotRef(snapshot_id=1, type="tag")
        base = apply(
            with_snapshots(3), SetStatistics(stats), SetPartitionStatistics(partition_stats), SetSnapshotRef("old", tag)
        )
        result = apply(base, RemoveSnapshots(frozenset({1, 99})))
        assert [s.snapshot_id for s in result.snapshots] == [2, 3]
        assert (result.statistics, result.partition_statistics) == ((), ())
        assert set(result.refs) == {"main"}
        assert result.current_snapshot_id == 3

    def test_a_hole_ends_the_history_before_it(self) -> None:
        base = apply(with_snapshots(4), SetSnapshotRef("main", branch(2)))
        assert current(base) == [1, 2, 3, 4, 2]
        assert current(apply(base, RemoveSnapshots(frozenset({3})))) == [4, 2]

    def test_removing_the_current_snapshot_leaves_none(self) -> None:
        result = apply(with_snapshots(1), RemoveSnapshots(frozenset({1})))
        assert result.current_snapshot is None
        assert result.refs == {}
        assert current(result) == []


class TestReferences:
    def test_only_known_snapshots_are_referred_to(self) -> None:
        with pytest.raises(Invalid, match="snapshot 7"):
            apply(with_snapshots(1), SetSnapshotRef("main", branch(7)))

    def test_main_is_a_branch_and_kinds_do_not_change(self) -> None:
        tag = SnapshotRef(snapshot_id=1, type="tag")
        base = apply(with_snapshots(1), SetSnapshotRef("v1", tag))
        with pytest.raises(Invalid, match="main"):
            apply(base, SetSnapshotRef("main", tag))
        with pytest.raises(Invalid, match="'v1' is a tag"):
            apply(base, SetSnapshotRef("v1", branch(1)))

    def test_another_branch_does_not_touch_the_current_snapshot(self) -> None:
        base = with_snapshots(1)
        result = apply(base, AddSnapshot(snapshot(2)), SetSnapshotRef("audit", branch(2)))
        assert result.current_snapshot_id == 1
        assert current(result) == [1]

    def test_removing(self) -> None:
        base = apply(with_snapshots(1), SetSnapshotRef("audit", branch(1)))
        assert set(apply(base, RemoveSnapshotRef("audit")).refs) == {"main"}
        assert apply(base, RemoveSnapshotRef("main")).current_snapshot is None
        assert apply(base, RemoveSnapshotRef("unknown")) is base


class TestSchemas:
    wider = Schema((*SCHEMA.fields, NestedField(field_id=3, name="note", type=STRING)))

    def test_the_one_added_last_becomes_current(self) -> None:
        result = apply(table(), AddSchema(self.wider), SetCurrentSchema())
        assert result.current_schema_id == 1
        assert result.schema.fields == self.wider.fields
        assert result.last_column_id == 3
        assert len(result.schemas) == 2

    def test_an_equal_schema_is_used_again(self) -> None:
        base = apply(table(), AddSchema(self.wider), SetCurrentSchema())
        result = apply(base, AddSchema(replace(SCHEMA, schema_id=9)), SetCurrentSchema())
        assert result.current_schema_id == 0
        assert len(result.schemas) == 2

    def test_column_ids_never_go_back(self) -> None:
        with pytest.raises(Invalid, match="last column id"):
            apply(table(), AddSchema(self.wider, last_column_id=1))

    def test_types_of_later_versions_are_refused(self) -> None:
        nanos = Schema((NestedField(field_id=1, name="at", type=TIMESTAMP_NS),))
        with pytest.raises(Invalid, match="'at' of type timestamp_ns needs format version 3"):
            apply(table(), AddSchema(nanos))
        apply(table(3), AddSchema(nanos))
        with_default = Schema((NestedField(field_id=1, name="n", type=LONG, initial_default=1),))
        with pytest.raises(Invalid, match="default of column 'n'"):
            apply(table(), AddSchema(with_default))

    def test_nothing_added_and_unknown_ids(self) -> None:
        with pytest.raises(Invalid, match="none has been added"):
            apply(table(), SetCurrentSchema())
        with pytest.raises(Invalid, match="no schema with id 4"):
            apply(table(), SetCurrentSchema(4))

    def test_the_current_one_stays(self) -> None:
        base = apply(table(), AddSchema(self.wider), SetCurrentSchema())
        assert [s.schema_id for s in apply(base, RemoveSchemas(frozenset({0}))).schemas] == [1]
        with pytest.raises(Invalid, match="current schema"):
            apply(base, RemoveSchemas(frozenset({1})))


class TestSpecsAndOrders:
    def test_specs(self) -> None:
        spec = partition_spec(SCHEMA, [("id", Bucket(4))])
        result = apply(table(), AddPartitionSpec(spec), SetDefaultSpec())
        assert result.spec == replace(spec, spec_id=1)
        assert result.last_partition_id == 1000
        again = apply(result, AddPartitionSpec(spec), SetDefaultSpec())
        assert again is result
        assert apply(result, SetDefaultSpec(0)).spec.is_unpartitioned
        with pytest.raises(Invalid, match="default partition spec"):
            apply(result, RemovePartitionSpecs(frozenset({1})))
        assert [s.spec_id for s in apply(result, RemovePartitionSpecs(frozenset({0}))).partition_specs] == [1]

    def test_orders(self) -> None:
        order = SortOrder((SortField(source_ids=(1,), transform=Identity()),))
        result = apply(table(), AddSortOrder(order), SetDefaultSortOrder())
        assert result.sort_order == replace(order, order_id=1)
        assert apply(result, AddSortOrder(SortOrder()), SetDefaultSortOrder()).sort_order.order_id == 0
        with pytest.raises(Invalid, match="no sort order with id 5"):
            apply(result, SetDefaultSortOrder(5))
        unknown = SortOrder((SortField(source_ids=(9,), transform=Identity()),))
        with pytest.raises(Invalid, match="field id 9"):
            apply(result, AddSortOrder(unknown))


class TestTheRest:
    def test_properties(self) -> None:
        base = apply(table(), SetProperties({"a": "1", "b": "2"}))
        result = apply(base, SetProperties({"b": "3"}), RemoveProperties(frozenset({"a", "never"})))
        assert result.properties == {"b": "3"}
        assert base.properties == {"a": "1", "b": "2"}

    def test_statistics_replace_those_of_their_snapshot(self) -> None:
        one = StatisticsFile(snapshot_id=1, statistics_path="/1", file_size_in_bytes=1, file_footer_size_in_bytes=1)
        two = replace(one, snapshot_id=2, statistics_path="/2")
        base = apply(table(), SetStatistics(one), SetStatistics(two))
        assert apply(base, SetStatistics(replace(one, statistics_path="/new"))).statistics == (
            two,
            replace(one, statistics_path="/new"),
        )
        assert apply(base, RemoveStatistics(1)).statistics == (two,)
        part = PartitionStatisticsFile(snapshot_id=1, statistics_path="/p", file_size_in_bytes=1)
        with_part = apply(base, SetPartitionStatistics(part), SetPartitionStatistics(part))
        assert with_part.partition_statistics == (part,)
        assert apply(with_part, RemovePartitionStatistics(1)).partition_statistics == ()

    def test_format_versions_only_rise(self) -> None:
        assert apply(table(1), UpgradeFormatVersion(2)).format_version == 2
        assert apply(table(2), UpgradeFormatVersion(3)).next_row_id == 0
        base = table(2)
        assert apply(base, UpgradeFormatVersion(2)) is base
        with pytest.raises(Invalid, match="downgrade"):
            apply(base, UpgradeFormatVersion(1))
        with pytest.raises(Unsupported, match="format version 4"):
            apply(base, UpgradeFormatVersion(4))

    def test_uuid_is_given_once(self) -> None:
        assert apply(replace(table(), table_uuid=""), AssignUuid("u")).table_uuid == "u"
        with pytest.raises(Invalid, match="uuid"):
            apply(table(), AssignUuid("other"))

    def test_location(self) -> None:
        assert apply(table(), SetLocation("/new/")).location == "/new"

    def test_nothing_changed_is_the_base_itself(self) -> None:
        base = table()
        assert apply(base) is base
        assert apply(base, SetProperties({})) is base

    def test_time_does_not_go_back(self) -> None:
        assert apply(table(), SetProperties({"a": "1"}), now_ms=NOW - 500).last_updated_ms == NOW
        assert apply(table(), SetProperties({"a": "1"}), now_ms=NOW + 500).last_updated_ms == NOW + 500


class TestMetadataLog:
    def test_the_base_becomes_its_newest_entry(self) -> None:
        base = table()
        result = apply_updates(base, [SetProperties({"a": "1"})], now_ms=2_000, base_location="/t/v1")
        assert result.metadata_log == (MetadataLogEntry(timestamp_ms=NOW, metadata_file="/t/v1"),)

    @pytest.mark.parametrize(("limit", "kept"), [("3", 3), ("1", 1), ("0", 1), ("100", 6)])
    def test_it_is_cut(self, limit: str, kept: int) -> None:
        metadata = apply(table(), SetProperties({"write.metadata.previous-versions-max": limit}))
        for n in range(6):
            metadata = apply_updates(
                metadata, [SetProperties({"n": str(n)})], now_ms=2_000 + n, base_location=f"/t/v{n}"
            )
        files = [entry.metadata_file for entry in metadata.metadata_log]
        assert files == [f"/t/v{n}" for n in range(6)][-kept:]


def test_row_ids_go_on_after_the_snapshot_even_where_it_left_some_out() -> None:
    base = replace(table(3), next_row_id=10)
    added = replace(snapshot(1), first_row_id=12, added_rows=3)
    assert apply(base, AddSnapshot(added)).next_row_id == 15


def test_the_ids_of_removed_schemas_and_specs_are_not_given_again() -> None:
    one, two = (Schema((*SCHEMA.fields, NestedField(field_id=n, name=f"c{n}", type=LONG))) for n in (3, 4))
    base = apply(table(), AddSchema(one), AddSchema(two), SetCurrentSchema())
    assert base.current_schema_id == 2
    changed = apply(base, RemoveSchemas(frozenset({1})), AddSchema(one))
    assert [s.schema_id for s in changed.schemas] == [0, 2, 3]

    specs = [partition_spec(SCHEMA, [("id", Bucket(n))]) for n in (2, 4)]
    base = apply(table(), AddPartitionSpec(specs[0]), AddPartitionSpec(specs[1]), SetDefaultSpec())
    changed = apply(base, RemovePartitionSpecs(frozenset({1})), AddPartitionSpec(specs[0]))
    assert [s.spec_id for s in changed.partition_specs] == [0, 2, 3]


def test_new_ones_are_sent_with_the_ids_that_they_get() -> None:
    """Not every server assigns ids."""
    base, wider = table(), TestSchemas.wider
    spec = partition_spec(SCHEMA, [("id", Bucket(4))])
    order = SortOrder((SortField(source_ids=(1,), transform=Identity()),))
    to_schema, to_spec, to_order = (
        updates_to_schema(base, wider, 3),
        updates_to_spec(base, spec),
        updates_to_order(base, order),
    )
    assert to_schema[0] == AddSchema(replace(wider, schema_id=1), 3)
    assert to_spec[0] == AddPartitionSpec(replace(spec, spec_id=1))
    assert to_order[0] == AddSortOrder(replace(order, order_id=1))
    after = apply(base, *to_schema, *to_spec, *to_order)
    assert (after.current_schema_id, after.default_spec_id, after.default_sort_order_id) == (1, 1, 1)
    assert updates_to_order(after, SortOrder()) == (SetDefaultSortOrder(0),)
