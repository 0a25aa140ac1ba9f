from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from icebench.engine.codec.array_views import ManifestColumns, number_array
from icebench.engine.codec.manifests import reader
from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.plan.cache import ManifestCache
from icebench.engine.plan.manifests import ManifestSource, live_entries, spec_of
from icebench.engine.runtime.counters import STORAGE_REQUESTS_READ, Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.spec.types import INT, NestedField
from icebench.engine.spec.values import encode_value
from icebench.engine.storage.contradictions import CollectingStore
from icebench.engine.storage.counting import CountingStore
from icebench.errors import CorruptTable, FileNotFound, Unsupported
from tests.property.manifest_batches import with_column
from tests.property.table_builder import SNAPSHOT_ID, TableBuilder, added, data_file

SCHEMA = Schema((NestedField(field_id=1, name="a", type=INT),))
NO_METRICS: frozenset[int] = frozenset()


def source(builder: TableBuilder, cache: ManifestCache | None = None) -> ManifestSource:
    return ManifestSource(store=builder.store, runner=LocalRunner(1), cache=cache, needed_by="table t")


def columns_of(builder: TableBuilder, manifest: ManifestFile) -> ManifestColumns:
    return source(builder).columns(manifest, NO_METRICS)


def entry(
    status: EntryStatus, path: str, number: int | None, records: int = 10, row_id: int | None = None
) -> ManifestEntry:
    return ManifestEntry(
        status=status,
        snapshot_id=None if status == EntryStatus.ADDED else 5,
        sequence_number=number,
        file_sequence_number=number,
        data_file=data_file(path, records=records, first_row_id=row_id),
    )


def test_ids_and_numbers_are_inherited() -> None:
    builder = TableBuilder(SCHEMA)
    manifest = builder.add_manifest(
        [
            entry(EntryStatus.ADDED, "memory://t/a", None),
            entry(EntryStatus.DELETED, "memory://t/b", 1),
            entry(EntryStatus.EXISTING, "memory://t/c", 2),
            entry(EntryStatus.ADDED, "memory://t/d", 3),
        ],
        sequence_number=7,
    )
    found = live_entries(manifest, columns_of(builder, manifest))
    assert found.rows.tolist() == [0, 2, 3]
    assert found.snapshot_id.tolist() == [SNAPSHOT_ID, 5, SNAPSHOT_ID]
    assert found.sequence_number.tolist() == [7, 2, 3]
    assert found.file_sequence_number.tolist() == [7, 2, 3]
    assert found.first_row_id.to_pylist() == [None, None, None]
    taken = found.take(np.array([1]))
    assert (taken.rows.tolist(), taken.sequence_number.tolist(), len(taken)) == ([2], [2], 1)


def test_first_row_ids_continue_over_live_files_without_one() -> None:
    builder = TableBuilder(SCHEMA, format_version=3)
    manifest = builder.add_manifest(
        [
            entry(EntryStatus.EXISTING, "memory://t/a", 1, records=5, row_id=100),
            entry(EntryStatus.ADDED, "memory://t/b", None, records=7),
            entry(EntryStatus.DELETED, "memory://t/c", 1, records=1000, row_id=0),
            entry(EntryStatus.EXISTING, "memory://t/d", 1, records=11),
            entry(EntryStatus.ADDED, "memory://t/e", None, records=13),
        ],
        sequence_number=2,
        first_row_id=1000,
    )
    columns = columns_of(builder, manifest)
    assert live_entries(manifest, columns).first_row_id.to_pylist() == [100, 1000, 1007, 1018]
    assert live_entries(replace(manifest, first_row_id=None), columns).first_row_id.to_pylist() == [None] * 4
    with pytest.raises(CorruptTable, match="exceed a long"):
        live_entries(replace(manifest, first_row_id=2**63 - 10), columns)


def test_v1_files_have_number_zero() -> None:
    builder = TableBuilder(SCHEMA, format_version=1)
    made = replace(added(data_file("memory://t/a")), snapshot_id=3)
    manifest = builder.add_manifest([made])
    found = live_entries(manifest, columns_of(builder, manifest))
    assert (found.sequence_number.tolist(), found.snapshot_id.tolist()) == ([0], [3])


def test_an_existing_file_needs_its_own_number() -> None:
    builder = TableBuilder(SCHEMA)
    manifest = builder.add_manifest([entry(EntryStatus.EXISTING, "memory://t/a", 1)], sequence_number=7)
    columns = columns_of(builder, manifest)
    nothing = with_column(columns, "sequence_number", pa.nulls(1, pa.int64()))
    with pytest.raises(CorruptTable, match="no sequence number"):
        live_entries(manifest, nothing)
    assert live_entries(replace(manifest, sequence_number=0), nothing).sequence_number.tolist() == [0]


def test_data_and_deletes_do_not_mix() -> None:
    builder = TableBuilder(SCHEMA)
    deletes = added(data_file("memory://t/x", content=FileContent.POSITION_DELETES))
    manifest = builder.add_manifest([deletes], sequence_number=1)
    columns = columns_of(builder, manifest)
    assert len(live_entries(manifest, columns)) == 1
    with pytest.raises(CorruptTable, match="DATA"):
        live_entries(replace(manifest, content=ManifestContent.DATA), columns)
    two = builder.add_manifest([deletes, deletes], sequence_number=1)
    mixed = with_column(columns_of(builder, two), "content", number_array(np.array([1, 0])))
    with pytest.raises(CorruptTable, match="DELETES"):
        live_entries(two, mixed)


def test_manifests_listed_inside_the_metadata() -> None:
    builder = TableBuilder(SCHEMA, format_version=1)
    made = replace(added(data_file("memory://t/a")), snapshot_id=3)
    written = builder.add_manifest([made])
    snapshot = Snapshot(
        snapshot_id=3, timestamp_ms=1, manifest_list=None, manifests=(written.manifest_path,), operation="append"
    )
    (found,) = source(builder).manifests_of(snapshot)
    assert (found.manifest_path, found.manifest_length) == (written.manifest_path, written.manifest_length)
    assert (found.partition_spec_id, found.content, found.added_snapshot_id) == (0, ManifestContent.DATA, 3)
    assert found.added_files_count is None


def test_missing_files_are_reported_with_what_needs_them() -> None:
    builder = TableBuilder(SCHEMA)
    manifest = builder.add_manifest([added(data_file("memory://t/a"))], sequence_number=1)
    builder.store.delete(manifest.manifest_path)
    with pytest.raises(FileNotFound, match="needed by table t"):
        columns_of(builder, manifest)


def test_encrypted_manifests_and_unknown_specs() -> None:
    builder = TableBuilder(SCHEMA)
    manifest = builder.add_manifest([added(data_file("memory://t/a"))], sequence_number=1)
    with pytest.raises(Unsupported, match="encrypted"):
        columns_of(builder, replace(manifest, key_metadata=b"key"))
    with pytest.raises(CorruptTable, match="partition spec 9"):
        spec_of(replace(manifest, partition_spec_id=9), builder.metadata())


def test_a_cached_manifest_is_read_once() -> None:
    builder = TableBuilder(SCHEMA)
    manifest = builder.add_manifest([added(data_file("memory://t/a"))], sequence_number=1)
    counters = Counters()
    counting = ManifestSource(
        store=CountingStore(builder.store, counters), runner=LocalRunner(1), cache=ManifestCache()
    )
    assert counting.columns(manifest, NO_METRICS) is counting.columns(manifest, NO_METRICS)
    assert counters[STORAGE_REQUESTS_READ] == 1


BOUNDS = frozenset({1, 2})
TWO = Schema(
    (NestedField(field_id=1, name="a", type=INT), NestedField(field_id=2, name="b", type=INT)),
)


def with_bounds(path: str, *columns: int) -> ManifestEntry:
    bounds = {column: encode_value(INT, column) for column in columns}
    return added(data_file(path, lower_bounds=bounds, upper_bounds=bounds))


@pytest.fixture
def small() -> TableBuilder:
    """Manifests of two format versions, one without entries that have bounds."""
    builder = TableBuilder(TWO)
    builder.add_manifest([with_bounds("memory://t/a", 1, 2), entry(EntryStatus.DELETED, "memory://t/b", 1)])
    builder.add_manifest([with_bounds("memory://t/c"), entry(EntryStatus.EXISTING, "memory://t/d", 2)])
    builder.format_version = 1
    builder.add_manifest([replace(with_bounds("memory://t/longer/path/e", 2), snapshot_id=SNAPSHOT_ID)])
    builder.format_version = 2
    builder.add_manifest([with_bounds(f"memory://t/f{i}", 1) for i in range(200)])
    return builder


@pytest.mark.parametrize("metrics", [NO_METRICS, BOUNDS, None])
def test_small_manifests_are_decoded_together_as_each_alone(
    small: TableBuilder, metrics: frozenset[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(reader, "decode_listed")  # which is how each would be decoded alone
    together = source(small).columns_of_small(small.manifests, metrics)
    for manifest, found in zip(small.manifests, together, strict=True):
        expected = source(small).columns(manifest, metrics)
        assert found.count == expected.count
        for name in expected.batch.schema.names:
            assert found[name].equals(expected[name]), name
        assert all(
            found[name].null_count == found.count
            for name in set(found.batch.schema.names) - set(expected.batch.schema.names)
        )
    assert together[0].size_bytes < together[3].size_bytes / 10  # each has memory of its own


def test_small_manifests_are_read_once_and_cached_each(small: TableBuilder) -> None:
    counters = Counters()
    store = CountingStore(small.store, counters)
    counting = ManifestSource(store=store, runner=LocalRunner(2), cache=ManifestCache())
    counting.columns(small.manifests[1], frozenset({1}))
    found = counting.columns_of_small(small.manifests, frozenset({1}))
    assert counters[STORAGE_REQUESTS_READ] == len(small.manifests)
    again = counting.columns_of_small(small.manifests, NO_METRICS)
    assert all(one is other for one, other in zip(found, again, strict=True))
    assert counting.columns(small.manifests[3], frozenset({1})) is found[3]
    assert counters[STORAGE_REQUESTS_READ] == len(small.manifests)
    # What a cached manifest has already is kept when more is wanted of it.
    more = counting.columns_of_small(small.manifests, frozenset({2}))
    assert {of: more[0].keys_of(of) for of in ("lower_bounds", "upper_bounds")} == {
        "lower_bounds": [1, 2],
        "upper_bounds": [1, 2],
    }


@pytest.mark.parametrize("damaged", [0, 2, 3])
def test_the_damaged_one_of_small_manifests_is_named(small: TableBuilder, damaged: int) -> None:
    manifest = small.manifests[damaged]
    data = bytearray(small.store.read(manifest.manifest_path))
    data[-10] ^= 0xFF  # of the sync marker: a damaged block may happen to inflate
    small.store.write(manifest.manifest_path, bytes(data), overwrite=True)
    with pytest.raises(CorruptTable) as alone:
        source(small).columns(manifest, BOUNDS)
    with pytest.raises(CorruptTable) as together:
        source(small).columns_of_small(small.manifests, BOUNDS)
    assert str(together.value) == str(alone.value)
    assert together.value.location == manifest.manifest_path


def test_small_manifests_are_what_their_list_says(small: TableBuilder) -> None:
    store = CollectingStore(small.store)
    lists_mistake = replace(small.manifests[3], added_files_count=199)
    manifests = [*small.manifests[:3], lists_mistake]
    found = ManifestSource(store=store, runner=LocalRunner(1)).columns_of_small(manifests, BOUNDS)
    assert [each.location for each in store.found] == [lists_mistake.manifest_path]
    assert [len(columns.contradictions) for columns in found] == [0, 0, 0, 1]
    lost = replace(small.manifests[0], manifest_length=7, added_files_count=2)
    with pytest.raises(CorruptTable, match="bytes, and its manifest list says 7") as raised:
        source(small).columns_of_small([small.manifests[1], lost], BOUNDS)
    assert raised.value.location == lost.manifest_path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"manifest_length": 7, "added_files_count": 3}, "bytes, and its manifest list says 7"),
        ({"added_files_count": 2, "deleted_files_count": 0}, "has 1 added files, and its manifest list says 2"),
        ({"existing_rows_count": 0}, "has 10 existing rows, and its manifest list says 0"),
    ],
)
def test_a_manifest_is_what_its_list_says(change: dict[str, int], message: str) -> None:
    builder = TableBuilder(SCHEMA)
    manifest = builder.add_manifest(
        [
            entry(EntryStatus.ADDED, "memory://t/a", None),
            entry(EntryStatus.DELETED, "memory://t/b", 1),
            entry(EntryStatus.EXISTING, "memory://t/c", 2),
        ]
    )
    assert columns_of(builder, manifest).count == 3
    without_counts = dict.fromkeys(("added_files_count", "existing_rows_count", "deleted_files_count"))
    assert columns_of(builder, replace(manifest, **without_counts)).count == 3  # type: ignore[arg-type]
    wrong = replace(manifest, **change)  # type: ignore[arg-type]
    with pytest.raises(CorruptTable, match=message) as raised:
        columns_of(builder, wrong)
    assert raised.value.location == manifest.manifest_path
    with pytest.raises(CorruptTable, match=message):
        decode_entries(builder.store.read(manifest.manifest_path), listed=wrong)
