"""Each figure of a profile against its definition, worked out file by file."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.codec.avro.file import encode_long
from icebench.engine.maintenance.file_groups import Selection
from icebench.engine.maintenance.profile import column_figures
from icebench.engine.maintenance.profile.figures import DeleteKind, Histogram, Overlap, Quantiles
from icebench.engine.maintenance.profile.overlap import compact_ranks
from icebench.engine.maintenance.profile.table_profile import Subject, TableProfile, profile_table
from icebench.engine.plan.scan import table_scan
from icebench.engine.read.plans import planned_files
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import UNPARTITIONED, PartitionField, PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortField, SortOrder
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import DOUBLE, LONG, STRING, DecimalType, NestedField, PrimitiveType
from icebench.engine.spec.values import Value, encode_value
from tests.property.table_builder import SNAPSHOT_ID, TableBuilder, data_file

Draw = Callable[[st.SearchStrategy[Any]], Any]
NOW_MS = 5_000
MONEY = DecimalType(precision=30, scale=2)
TYPES: dict[int, PrimitiveType] = {1: LONG, 2: STRING, 3: MONEY, 4: DOUBLE, 5: LONG, 6: STRING}
NAMES = dict(enumerate(("id", "name", "price", "score", "part", "kind"), 1))
SCHEMA = Schema(tuple(NestedField(field_id=i, name=NAMES[i], type=t) for i, t in TYPES.items()))


def by(source: int, place: int) -> PartitionField:
    return PartitionField(source_ids=(source,), field_id=place, name=NAMES[source], transform=Identity())


SPECS = (UNPARTITIONED, PartitionSpec((by(5, 1000),), 1), PartitionSpec((by(6, 1001), by(5, 1000)), 2))
TARGET = 1000
ORDERS = (SortOrder(), SortOrder((SortField(source_ids=(1,), transform=Identity()),), 1))
PLACES: dict[int, st.SearchStrategy[Any]] = {
    1: st.integers(-5, 5) | st.integers(0, 2**47) | st.integers(-(2**63), 2**63 - 1),
    2: st.text("ab\x00é", max_size=3),
    3: st.integers(-300, 300).map(lambda n: Decimal(n).scaleb(-2)),
    4: st.floats(allow_nan=False),
    5: st.integers(0, 3),
    6: st.sampled_from(["x", "y"]),
}


@dataclass(frozen=True)
class Drawn:
    """A table and all that was written about it."""

    table: TableMetadata
    builder: TableBuilder
    entries: list[tuple[ManifestContent, ManifestEntry]]
    bounds: dict[str, dict[int, tuple[Value, Value]]]

    @property
    def data(self) -> list[DataFile]:
        return [e.data_file for c, e in self.entries if c == ManifestContent.DATA and e.status != EntryStatus.DELETED]

    @property
    def deletes(self) -> list[DataFile]:
        return [e.data_file for c, e in self.entries if c == ManifestContent.DELETES]

    def mean_age(self, files: Sequence[DataFile]) -> float:
        """In commits, their own included, by the numbers of their entries."""
        snapshot, paths = self.table.current_snapshot, {file.file_path for file in files}
        assert snapshot is not None
        numbers = [e.file_sequence_number or 0 for _, e in self.entries if e.data_file.file_path in paths]
        return sum(snapshot.sequence_number + 1 - each for each in numbers) / max(1, len(numbers))

    def profile(self) -> TableProfile:
        subject = Subject(
            name="t",
            metadata=self.table,
            metadata_location="memory://t/metadata/v7.metadata.json",
            store=self.builder.store,
            runner=LocalRunner(1),
        )
        return profile_table(subject, self.table.current_snapshot, NOW_MS)


def _partition(draw: Draw, spec: PartitionSpec) -> tuple[Value | None, ...]:
    return tuple(draw(st.none() | PLACES[f.source_id]) for f in spec.fields)


def _data_file(draw: Draw, path: str, spec: PartitionSpec) -> tuple[DataFile, dict[int, tuple[Value, Value]]]:
    records = draw(st.integers(1, 40))
    bounds: dict[int, tuple[Value, Value]] = {}
    lower, upper, nulls = {}, {}, {}
    for field_id, type_ in TYPES.items():
        kind = draw(st.sampled_from(["both", "both", "both", "lower", "none", "nulls"]))
        low, high = sorted((draw(PLACES[field_id]), draw(PLACES[field_id])))
        if kind in ("both", "lower"):
            lower[field_id] = encode_value(type_, low)
        if kind == "both":
            upper[field_id] = encode_value(type_, high)
            bounds[field_id] = (low, high)
        nulls[field_id] = records if kind == "nulls" else 0
    groups = draw(st.integers(0, 3))
    file = data_file(
        path,
        records=records,
        size_bytes=draw(st.integers(1, 3000)),
        spec_id=spec.spec_id,
        partition=_partition(draw, spec),
        split_offsets=tuple(range(4, 4 + groups)) or None,
        sort_order_id=draw(st.sampled_from([None, 0, 1, 9])),
        column_sizes={i: draw(st.integers(0, 200)) for i in TYPES},
        null_value_counts=nulls,
        value_counts=dict.fromkeys(TYPES, records),
        lower_bounds=lower,
        upper_bounds=upper,
    )
    return file, bounds


def _delete_file(draw: Draw, path: str, data: Sequence[DataFile]) -> DataFile:
    near = draw(st.sampled_from(data))
    own = data_file(
        path,
        records=draw(st.integers(1, 20)),
        size_bytes=draw(st.integers(1, 5000)),
        spec_id=near.spec_id,
        partition=near.partition,
    )
    match draw(st.sampled_from(["file", "partition", "equality"])):
        case "file":
            return replace(own, content=FileContent.POSITION_DELETES, referenced_data_file=near.file_path)
        case "partition":
            return replace(own, content=FileContent.POSITION_DELETES)
    return replace(own, content=FileContent.EQUALITY_DELETES, equality_ids=(1,))


@st.composite
def drawn_tables(draw: Draw) -> Drawn:
    builder = TableBuilder(SCHEMA, specs=SPECS)
    stated: dict[str, dict[int, tuple[Value, Value]]] = {}
    entries: list[tuple[ManifestContent, ManifestEntry]] = []
    spec_ids = draw(st.sampled_from([[0], [1], [2], [0, 1, 2]]))
    for m in range(draw(st.integers(1, 4))):
        spec = SPECS[draw(st.sampled_from(spec_ids))]
        own = []
        for i in range(draw(st.integers(1, 6))):
            file, bounds = _data_file(draw, f"memory://t/d{m}-{i}", spec)
            stated[file.file_path] = bounds
            status = draw(st.sampled_from([EntryStatus.ADDED, EntryStatus.ADDED, EntryStatus.DELETED]))
            number, snapshot = draw(st.integers(1, 3)), draw(st.sampled_from([SNAPSHOT_ID, 5]))
            own.append(
                ManifestEntry(
                    status=status,
                    snapshot_id=snapshot,
                    sequence_number=number,
                    file_sequence_number=number,
                    data_file=file,
                )
            )
        builder.add_manifest(own, spec_id=spec.spec_id, sequence_number=3)
        entries += [(ManifestContent.DATA, each) for each in own]
    known = [e.data_file for _, e in entries]
    for m in range(draw(st.integers(0, 3))):
        file = _delete_file(draw, f"memory://t/x{m}", known)
        number = draw(st.integers(1, 3))
        entry = ManifestEntry(
            status=EntryStatus.ADDED,
            snapshot_id=SNAPSHOT_ID,
            sequence_number=2,
            file_sequence_number=number,
            data_file=file,
        )
        builder.add_manifest([entry], spec_id=file.spec_id, sequence_number=3)
        entries.append((ManifestContent.DELETES, entry))
    builder.store.write("memory://t/metadata/v7.metadata.json", b"{}" * 50)
    table = replace(
        builder.metadata(),
        properties={"write.target-file-size-bytes": str(TARGET)},
        sort_orders=ORDERS,
        default_sort_order_id=1,
    )
    return Drawn(table, builder, entries, stated)


def _nearest_rank(values: list[int]) -> Quantiles:
    if not values:
        return Quantiles()
    ordered = sorted(values)

    def at(share: float) -> int:
        return ordered[max(1, math.ceil(share * len(ordered))) - 1]

    return Quantiles(
        least=ordered[0],
        p25=at(0.25),
        median=at(0.5),
        p75=at(0.75),
        p95=at(0.95),
        most=ordered[-1],
        mean=sum(values) / len(values),
    )


def _assert_histogram(found: Histogram, values: list[int], sizes: list[int]) -> None:
    ends = [*found.lower[1:], math.inf][: len(found.lower)]
    for low, end, files, size_bytes in zip(found.lower, ends, found.files, found.size_bytes, strict=True):
        own = [size for value, size in zip(values, sizes, strict=True) if low <= value < end]
        assert (files, size_bytes) == (len(own), sum(own))
    assert sum(found.files) == len(values)
    assert not found.files or (found.files[0] and found.files[-1])


def _approx(found: Quantiles, expected: Quantiles) -> None:
    assert math.isclose(found.mean, expected.mean)
    assert replace(found, mean=0) == replace(expected, mean=0)


@given(drawn_tables())
def test_sizes_row_groups_ages_and_sort_orders(drawn: Drawn) -> None:
    profile, data = drawn.profile(), drawn.data
    sizes = [f.file_size_in_bytes for f in data]
    assert (profile.files.files, profile.files.size_bytes) == (len(data), sum(sizes))
    assert profile.files.records == sum(f.record_count for f in data)
    _approx(profile.files.sizes, _nearest_rank(sizes))
    _assert_histogram(profile.files.histogram, sizes, sizes)
    assert profile.files.small_files == sum(size < TARGET * 0.75 for size in sizes)
    assert profile.files.large_files == sum(size > TARGET * 1.8 for size in sizes)
    groups = [len(f.split_offsets or ()) for f in data]
    assert profile.row_groups.row_groups == sum(groups)
    assert profile.row_groups.unknown_files == groups.count(0)
    _approx(profile.row_groups.row_groups_of_file, _nearest_rank([n for n in groups if n]))
    of_known = [e for c, e in drawn.entries if c == ManifestContent.DATA and e.status != EntryStatus.DELETED]
    known = [e for e in of_known if e.snapshot_id == SNAPSHOT_ID]
    _approx(profile.ages.ages_ms, _nearest_rank([NOW_MS - 1000] * len(known)))
    assert profile.ages.unknown_files == len(of_known) - len(known)
    claims = {each.order_id: (each.files, each.size_bytes) for each in profile.sort_orders}
    assert claims == {
        order: (len(own), sum(own))
        for order in {f.sort_order_id for f in data}
        if (own := [f.file_size_in_bytes for f in data if f.sort_order_id == order])
    }
    assert {each.order for each in profile.sort_orders if each.order_id == 1} <= {"id asc nulls-first"}


@given(drawn_tables())
def test_debts_of_compaction_and_deletes(drawn: Drawn) -> None:
    profile = drawn.profile()
    plan = table_scan(drawn.table, drawn.builder.store, runner=LocalRunner(1)).plan()
    files = list(planned_files(plan))
    groups = Selection(target_file_size_bytes=TARGET, output_spec_id=2).groups(files)
    chosen = {file.file_path for group in groups for file in group.files}
    sized = [f for f in drawn.data if not 0.75 * TARGET <= f.file_size_in_bytes <= 1.8 * TARGET]
    assert profile.files.age == pytest.approx(drawn.mean_age(drawn.data))
    assert profile.files.compaction_age == pytest.approx(
        drawn.mean_age([file for file in sized if file.file_path in chosen])
    )
    assert profile.files.compaction_files == sum(len(group.files) for group in groups)
    assert profile.files.compaction_bytes == sum(group.size_bytes for group in groups)
    assert profile.files.compaction_result_files == sum(max(1, -(-group.size_bytes // TARGET)) for group in groups)
    used = {delete.file_path for file in files for delete in file.deletes}
    kinds = {
        FileContent.POSITION_DELETES: profile.deletes.positions,
        FileContent.EQUALITY_DELETES: profile.deletes.equality,
    }
    for content, found in kinds.items():
        own = [f for f in drawn.deletes if f.content == content]
        idle = [f for f in own if f.file_path not in used]
        assert found.age == pytest.approx(drawn.mean_age([f for f in own if f.file_path in used]))
        assert replace(found, age=0.0) == DeleteKind(
            files=len(own),
            records=sum(f.record_count for f in own),
            size_bytes=sum(f.file_size_in_bytes for f in own),
            dangling_files=len(idle),
            dangling_records=sum(f.record_count for f in idle),
            dangling_bytes=sum(f.file_size_in_bytes for f in idle),
        )
    assert profile.deletes.data_files == sum(bool(f.deletes) for f in files)
    assert profile.deletes.data_bytes == sum(f.file_size_in_bytes or 0 for f in files if f.deletes)
    assert profile.deletes.pairs == sum(len(f.deletes) for f in files)
    assert profile.deletes.most_on_a_file == max((len(f.deletes) for f in files), default=0)
    by_position = [
        (sum(d.record_count for d in f.deletes if d.content == 1 and d.referenced_data_file), f.record_count)
        for f in files
    ]
    assert profile.deletes.deleted_records == sum(min(pair) for pair in by_position)
    shared = [f for f in drawn.deletes if f.content == 1 and f.referenced_data_file is None]
    assert profile.deletes.shared_position_files == len(shared)
    assert profile.deletes.heavy_files == sum(gone > 0 and gone >= 0.3 * rows for gone, rows in by_position)


def _overlaps(ranges: Sequence[tuple[Any, Any]]) -> list[tuple[int, int]]:
    """Of each range its overlaps and depth, by looking at every pair and every end of a range."""
    found = []
    for low, high in ranges:
        meeting = sum(a <= high and b >= low for a, b in ranges) - 1
        points = [p for pair in ranges for p in pair if low <= p <= high]
        found.append((meeting, max(sum(a <= p <= b for a, b in ranges) for p in points)))
    return found


def _assert_overlap(found: Overlap | None, expected: list[tuple[int, int]], constant: int) -> None:
    if not expected:
        assert found is None
        return
    assert found is not None
    assert (found.files, found.constant_files) == (len(expected), constant)
    assert math.isclose(found.average_overlaps, sum(meeting for meeting, _ in expected) / len(expected))
    assert math.isclose(found.average_depth, sum(depth for _, depth in expected) / len(expected))
    assert found.most_depth == max(depth for _, depth in expected)
    bins = [(low, end) for low, end in zip(found.depths.lower, [*found.depths.lower[1:], math.inf], strict=True)]
    assert list(found.depths.files) == [sum(low <= depth < end for _, depth in expected) for low, end in bins]


def _comparable(value: Value) -> Value:
    return value.encode() if isinstance(value, str) else value


def _check_columns(drawn: Drawn) -> None:
    profile, data = drawn.profile(), drawn.data
    assert [column.field_id for column in profile.columns] == list(TYPES)
    for column in profile.columns:
        own = [f for f in data if column.field_id in drawn.bounds[f.file_path]]
        pairs = [drawn.bounds[f.file_path][column.field_id] for f in own]
        ranges = [(_comparable(low), _comparable(high)) for low, high in pairs]
        constant = sum(low == high for low, high in ranges)
        _assert_overlap(column.table, _overlaps(ranges), constant)
        nulls = [f for f in data if f.null_value_counts[column.field_id] == f.record_count]
        assert column.files_of_nulls == len(nulls)
        assert column.files_without_bounds == len(data) - len(own) - len(nulls)
        assert column.data_bytes == sum(f.column_sizes[column.field_id] for f in data)
        partitions = defaultdict(list)
        for f, pair in zip(own, ranges, strict=True):
            partitions[f.spec_id, f.partition].append(pair)
        within = [(key, _overlaps(pairs)) for key, pairs in partitions.items()]
        _assert_overlap(column.within_partitions, [each for _, found in within for each in found], constant)
        if column.within_partitions is not None and len({(f.spec_id, f.partition) for f in data}) > 1:
            excess = sorted((sum(depth - 1 for _, depth in found) for _, found in within), reverse=True)
            worst = column.within_partitions.worst
            assert [round(each.files * (each.average_depth - 1)) for each in worst] == [n for n in excess[:5] if n]


@given(st.lists(st.integers(0, 2**40).map(lambda n: n - n % 2**20 + n % 3) | st.integers(-9, 9), max_size=20))
def test_ranks_are_compact_and_in_order(values: list[int]) -> None:
    ranks = compact_ranks(np.array(values, np.int64)).tolist()
    for value, rank in zip(values, ranks, strict=True):
        for other, its in zip(values, ranks, strict=True):
            assert (rank < its) == (value < other)
    assert max(ranks, default=0) < 8 * max(1, len(values))


@given(drawn_tables())
def test_overlaps_and_depths_of_columns(drawn: Drawn) -> None:
    _check_columns(drawn)


@given(drawn_tables(), st.integers(1, 7))
def test_columns_are_the_same_however_many_are_decoded_at_a_time(drawn: Drawn, size: int) -> None:
    whole = drawn.profile().columns
    memory = column_figures._METRICS_MEMORY_BYTES
    try:
        column_figures._METRICS_MEMORY_BYTES = size * 100
        assert drawn.profile().columns == whole
    finally:
        column_figures._METRICS_MEMORY_BYTES = memory


@given(drawn_tables())
def test_bytes_of_statistics(drawn: Drawn) -> None:
    everything = [e.data_file for c, e in drawn.entries if c == ManifestContent.DATA]
    for column in drawn.profile().columns:
        key = len(encode_long(column.field_id))
        bounds = [
            m[column.field_id] for f in everything for m in (f.lower_bounds, f.upper_bounds) if column.field_id in m
        ]
        counts = [
            m[column.field_id]
            for f in everything
            for m in (f.column_sizes, f.value_counts, f.null_value_counts, f.nan_value_counts)
            if column.field_id in m
        ]
        of_bounds = sum(key + len(encode_long(len(bound))) + len(bound) for bound in bounds)
        assert column.bounds_bytes == of_bounds
        assert column.statistics_bytes == of_bounds + sum(key + len(encode_long(count)) for count in counts)


@given(drawn_tables())
def test_partitions(drawn: Drawn) -> None:
    found, data = drawn.profile().partitions, drawn.data
    assert found is not None
    groups = defaultdict(list)
    for f in data:
        groups[f.spec_id, f.partition].append(f)
    sizes = [sum(f.file_size_in_bytes for f in own) for own in groups.values()]
    assert found.partitions == len(groups)
    _approx(found.sizes, _nearest_rank(sizes))
    _approx(found.files, _nearest_rank([len(own) for own in groups.values()]))
    assert math.isclose(found.skew, max(sizes) * len(sizes) / sum(sizes) if sizes else 1)
    assert found.small_partitions == sum(size < TARGET * 0.75 for size in sizes)
    named = {
        "/".join(
            f"{f.name}={value if isinstance(value, str | int) else 'null'}"
            for f, value in zip(SPECS[spec_id].fields, partition, strict=True)
        ): own
        for (spec_id, partition), own in groups.items()
    }
    assert [each.size_bytes for each in found.largest] == sorted(sizes, reverse=True)[:5]
    for each in found.largest:
        own = named[each.path]
        assert (each.files, each.records) == (len(own), sum(f.record_count for f in own))


@given(drawn_tables())
def test_manifests_that_a_partition_filter_opens(drawn: Drawn) -> None:
    found = drawn.profile().manifests
    assert found.live_entries == len(drawn.data) + len(drawn.deletes)
    assert found.deleted_entries == len(drawn.entries) - found.live_entries
    assert found.size_bytes == sum(m.manifest_length for m in drawn.builder.manifests)
    clustering = {each.name: each for each in found.clustering}
    for name, source in (("part", 5), ("kind", 6)):
        values = {
            value
            for file in drawn.data
            for field, value in zip(SPECS[file.spec_id].fields, file.partition, strict=True)
            if field.source_id == source and value is not None
        }
        if not values:
            assert name not in clustering
            continue
        opened = []
        for value in values:
            text = f"{name} = {value!r}"
            scan = table_scan(drawn.table, drawn.builder.store, filter=text, runner=LocalRunner(1))
            kept = scan.planner(Counters()).select(drawn.builder.manifests)
            opened.append(sum(m.content == ManifestContent.DATA for m in kept))
        assert clustering[name].values == len(values)
        assert math.isclose(clustering[name].opened, sum(opened) / len(opened))
        assert 1 <= clustering[name].holding <= clustering[name].opened


def test_a_table_without_snapshots() -> None:
    builder = TableBuilder(SCHEMA)
    builder.store.write("memory://t/metadata/v7.metadata.json", b"{}")
    table = replace(builder.metadata(), snapshots=(), refs={}, current_snapshot_id=None)
    profile = Drawn(table, builder, [], {}).profile()
    assert profile.snapshot_id is None
    assert profile.files.files == profile.manifests.live_entries == profile.history.snapshots == 0
    assert profile.partitions is None
    assert [each.key for each in profile.reasons] == ["forgotten-metadata"]
    assert profile.to_dict()["files"]["histogram"] == {"lower": (), "files": (), "size_bytes": ()}
