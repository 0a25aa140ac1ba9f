from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from icebench.engine.expressions.bound import BOUND_TRUE
from icebench.engine.expressions.predicate import equal, less
from icebench.engine.plan.cache import ManifestCache
from icebench.engine.plan.files_table import files_schema
from icebench.engine.plan.incremental import incremental_append_scan
from icebench.engine.plan.scan import TableScan, table_scan
from icebench.engine.runtime.counters import STORAGE_REQUESTS_READ, Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.manifest import EntryStatus, ManifestEntry
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import UNPARTITIONED, common_partition_type, partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import INT, STRING, NestedField, StructType
from icebench.engine.spec.values import encode_value
from icebench.engine.storage.counting import CountingStore
from icebench.errors import CorruptTable, FileNotFound, Invalid, NotFound
from tests.property.table_builder import SNAPSHOT_ID, TableBuilder, added, data_file

SCHEMA = Schema(
    (
        NestedField(field_id=1, name="a", type=INT),
        NestedField(field_id=2, name="p", type=STRING),
        NestedField(field_id=3, name="s", type=StructType((NestedField(field_id=4, name="x", type=INT),))),
    )
)
BY_P = partition_spec(SCHEMA, [("p", Identity())], spec_id=1)


def bounds(low: int, high: int) -> dict[str, Any]:
    return {
        "lower_bounds": {1: encode_value(INT, low)},
        "upper_bounds": {1: encode_value(INT, high)},
        "null_value_counts": {1: 0},
        "value_counts": {1: 10},
    }


@pytest.fixture
def builder() -> TableBuilder:
    """Two partitions in a manifest each, and an old unpartitioned file."""
    made = TableBuilder(SCHEMA, (UNPARTITIONED, BY_P))
    made.add_manifest([added(data_file("memory://t/old", **bounds(0, 99)))], sequence_number=1)
    for p in ("x", "y"):
        files = [data_file(f"memory://t/{p}{n}", spec_id=1, partition=(p,), **bounds(n, n + 9)) for n in (0, 10, 20)]
        made.add_manifest([added(f) for f in files], spec_id=1, sequence_number=2)
    return made


def scan(builder: TableBuilder, filter: str | None = None) -> TableScan:
    return table_scan(builder.metadata(), builder.store, filter=filter, runner=LocalRunner(1))


def paths(found: TableScan) -> list[str]:
    return [p.removeprefix("memory://t/") for p in found.plan().files["file_path"].to_pylist()]


@pytest.mark.parametrize(
    ("filter", "files", "residuals"),
    [
        (None, ["old", "x0", "x10", "x20", "y0", "y10", "y20"], [None] * 7),
        ("p = 'x'", ["old", "x0", "x10", "x20"], ["p = 'x'", None, None, None]),
        ("a < 15", ["old", "x0", "x10", "y0", "y10"], ["a < 15", None, "a < 15", None, "a < 15"]),
        ("a >= 20 and p = 'y'", ["old", "y20"], ["a >= 20 and p = 'y'", None]),
        ("a = 5 or p = 'z'", ["old", "x0", "y0"], ["a = 5 or p = 'z'", "a = 5", "a = 5"]),
        ("a is null", [], []),
        ("a > 2.5e9", [], []),
        ("false", [], []),
    ],
)
def test_files_and_residuals(
    builder: TableBuilder, filter: str | None, files: list[str], residuals: list[str | None]
) -> None:
    plan = scan(builder, filter).plan()
    assert [p.removeprefix("memory://t/") for p in plan.files["file_path"].to_pylist()] == files
    assert plan.files["residual"].to_pylist() == residuals
    assert [
        None if (r := plan.residuals[plan.residual_codes[i]]) == BOUND_TRUE else str(r) for i in range(len(files))
    ] == residuals
    plan.files.validate(full=True)
    assert plan.files.schema == files_schema(common_partition_type((UNPARTITIONED, BY_P), SCHEMA))


def test_counters_are_exact(builder: TableBuilder) -> None:
    assert scan(builder, "p = 'x' and a > 12").plan().counters == {
        "delete_files_planned": 0,
        "delete_files_unused": 0,
        "entries_decoded": 4,
        "entries_skipped_by_index": 0,
        "entries_skipped_by_metrics": 1,
        "entries_skipped_by_partition": 0,
        "entries_skipped_by_schema_id": 0,
        "files_planned": 3,
        "manifest_bytes_decoded": sum(m.manifest_length for m in builder.manifests[:2]),
        "manifests_decoded": 2,
        "manifests_in_list": 3,
        "manifests_skipped_by_summary": 1,
    }


def test_the_second_plan_of_a_cached_table_reads_nothing(builder: TableBuilder) -> None:
    counters = Counters()
    store = CountingStore(builder.store, counters)
    cached = table_scan(builder.metadata(), store, filter="a < 15", runner=LocalRunner(2), cache=ManifestCache())
    first = cached.plan()
    assert counters[STORAGE_REQUESTS_READ] == 4
    second = cached.plan()
    assert counters[STORAGE_REQUESTS_READ] == 4
    assert (first.files, first.counters) == (second.files, second.counters)


def test_scans_are_refined(builder: TableBuilder) -> None:
    start = scan(builder)
    assert paths(start.filtered("p = 'x'").filtered(less("a", 9))) == ["old", "x0"]
    assert start.predicate != start.filtered("a = 1").predicate


def test_columns(builder: TableBuilder) -> None:
    metadata, store = builder.metadata(), builder.store
    nested = table_scan(metadata, store, columns=["s.x", "a"]).projection
    assert sorted(nested.by_id) == [1, 3, 4]
    assert sorted(table_scan(metadata, store, columns=["A"], case_sensitive=False).projection.by_id) == [1]
    with pytest.raises(Invalid, match="no column"):
        table_scan(metadata, store, columns=["A"]).plan()
    with pytest.raises(Invalid, match="did you mean"):
        table_scan(metadata, store, filter="aa = 1").plan()
    assert table_scan(metadata, store, filter=equal("A", 1), case_sensitive=False).plan().files.num_rows == 3


def test_a_table_without_a_snapshot(builder: TableBuilder) -> None:
    empty = replace(builder.metadata(), current_snapshot_id=None, snapshots=(), refs={})
    plan = table_scan(empty, builder.store, filter="a = 1").plan()
    assert plan.files.num_rows == 0
    assert plan.files.schema == files_schema(common_partition_type((UNPARTITIONED, BY_P), SCHEMA))
    assert plan.tasks() == []
    assert plan.snapshot is None


def test_tasks(builder: TableBuilder) -> None:
    tasks = scan(builder, "p = 'x'").plan().tasks(split_bytes=8 << 20)
    assert [t.file_index.tolist() for t in tasks] == [[0, 1], [2, 3]]
    plan = scan(builder, "p = 'x'").plan()
    own = replace(plan.metadata, properties={"read.split.target-size": "8388608"})
    assert len(replace(plan, metadata=own).tasks()) == 2
    assert len(replace(plan, metadata=replace(own, properties={"read.split.open-file-cost": "134217728"})).tasks()) == 4


def test_a_count_of_no_rows_alone_excludes_no_file(builder: TableBuilder) -> None:
    # Iceberg Java skips it under filters alone. Opened in both cases, a file with rows after all is noticed.
    builder.add_manifest([added(data_file("memory://t/empty", records=0))], sequence_number=3)
    assert "empty" in paths(scan(builder))
    assert "empty" in paths(scan(builder, "a is null or a is not null"))


def test_manifests_of_deleted_files_only_are_not_read(builder: TableBuilder) -> None:
    gone = ManifestEntry(
        status=EntryStatus.DELETED,
        snapshot_id=1,
        sequence_number=1,
        file_sequence_number=1,
        data_file=data_file("memory://t/gone"),
    )
    manifest = builder.add_manifest([gone], sequence_number=3)
    builder.store.delete(manifest.manifest_path)
    assert "gone" not in paths(scan(builder))


def test_manifests_whose_files_nobody_counted_are_read(builder: TableBuilder) -> None:
    entries = scan(builder).planner(Counters())
    unknown = [replace(m, added_files_count=None, existing_files_count=None) for m in builder.manifests]
    assert entries.select(unknown) == unknown


def test_a_missing_manifest_is_named(builder: TableBuilder) -> None:
    builder.store.delete(builder.manifests[1].manifest_path)
    with pytest.raises(FileNotFound, match=rf"m1\.avro \(needed by table .*, snapshot {SNAPSHOT_ID}"):
        scan(builder).plan()
    assert paths(scan(builder, "p = 'y'")) == ["old", "y0", "y10", "y20"]


def test_broken_manifests_are_named(builder: TableBuilder) -> None:
    builder.store.write(builder.manifests[0].manifest_path, b"not Avro", overwrite=True)
    with pytest.raises(CorruptTable, match=r"m0\.avro"):
        scan(builder).plan()


def test_deletes_that_cannot_touch_matching_rows_are_left_out(builder: TableBuilder) -> None:
    def keys(path: str, low: int, high: int, **more: Any) -> ManifestEntry:
        return added(
            data_file(path, content=FileContent.EQUALITY_DELETES, equality_ids=(1,), **bounds(low, high), **more)
        )

    builder.add_manifest([keys("memory://t/low", 0, 5), keys("memory://t/high", 25, 99)], sequence_number=3)
    builder.add_manifest([keys("memory://t/y", 0, 99, spec_id=1, partition=("y",))], spec_id=1, sequence_number=3)
    plan = scan(builder, "a < 9 and p = 'x'").plan()
    found = {
        path: [d["file_path"] for d in deletes]
        for path, deletes in zip(plan.files["file_path"].to_pylist(), plan.files["deletes"].to_pylist(), strict=True)
    }
    assert found == {"memory://t/old": ["memory://t/low"], "memory://t/x0": ["memory://t/low"]}
    assert plan.counters["delete_files_planned"] == 1
    assert plan.counters["entries_skipped_by_metrics"] == 2 + 1  # data files x10 and x20, and the high keys
    assert plan.counters["manifests_skipped_by_summary"] == 2
    # What is left of the filter says nothing of the keys; their ranges and those of the files still do.
    plan = scan(builder, "p = 'x'").plan()
    assert [[d["file_path"] for d in deletes] for deletes in plan.files["deletes"].to_pylist()] == [
        ["memory://t/low", "memory://t/high"],
        ["memory://t/low"],
        [],
        ["memory://t/high"],
    ]


def test_deletes_that_no_file_needs_are_counted_apart(builder: TableBuilder) -> None:
    deletes = [
        added(data_file(f"memory://t/d{p}", content=FileContent.POSITION_DELETES, spec_id=1, partition=(p,)))
        for p in ("x", "nowhere")
    ]
    builder.add_manifest(deletes, spec_id=1, sequence_number=3)
    counters = scan(builder).plan().counters
    assert (counters["delete_files_planned"], counters["delete_files_unused"]) == (1, 1)


def appended(builder: TableBuilder) -> TableMetadata:
    """Four snapshots in a line: append, append, overwrite, append of a merged manifest."""
    made = []
    for i, operation in enumerate(("append", "append", "overwrite", "append"), start=1):
        builder.manifests.clear()
        entry = added(data_file(f"memory://t/f{i}", **bounds(i, i)))
        entries = [entry]
        if i == 4:
            old = data_file("memory://t/f1")
            entries.append(
                ManifestEntry(
                    status=EntryStatus.EXISTING, snapshot_id=1, sequence_number=1, file_sequence_number=1, data_file=old
                )
            )
        manifest = builder.add_manifest(entries, sequence_number=i, snapshot_id=i)
        path = f"memory://t/metadata/increment{i}.avro"
        builder.store.write(f"memory://t/metadata/m{i}-{i}.avro", builder.store.read(manifest.manifest_path))
        builder.manifests[0] = replace(manifest, manifest_path=f"memory://t/metadata/m{i}-{i}.avro")
        builder.store.delete(manifest.manifest_path)
        builder.metadata()
        builder.store.write(path, builder.store.read("memory://t/metadata/snap.avro"))
        made.append(
            Snapshot(
                snapshot_id=i,
                parent_snapshot_id=i - 1 or None,
                sequence_number=i,
                timestamp_ms=i,
                manifest_list=path,
                operation=operation,  # type: ignore[arg-type]
            )
        )
    return replace(builder.metadata(), snapshots=tuple(made), current_snapshot_id=4, refs={})


def test_increments() -> None:
    builder = TableBuilder(SCHEMA)
    metadata = appended(builder)

    def increment(
        after: int | None, until: int | None = None, filter: str | None = None, *, inclusive: bool = False
    ) -> list[str]:
        made = table_scan(metadata, builder.store, filter=filter, runner=LocalRunner(1))
        scan = incremental_append_scan(made, from_snapshot_id=after, from_inclusive=inclusive, to_snapshot_id=until)
        paths: list[str] = scan.plan().files["file_path"].to_pylist()
        return paths

    assert increment(None) == ["memory://t/f1", "memory://t/f2", "memory://t/f4"]
    assert increment(1) == ["memory://t/f2", "memory://t/f4"]
    assert increment(1, until=3) == ["memory://t/f2"]
    assert increment(4) == []
    assert increment(None, filter="a = 2") == ["memory://t/f2"]
    assert increment(2, inclusive=True) == ["memory://t/f2", "memory://t/f4"]
    assert increment(3, until=3, inclusive=True) == []
    with pytest.raises(Invalid, match="not an ancestor"):
        increment(4, until=2)
    with pytest.raises(NotFound):
        increment(9)
    expired = table_scan(replace(metadata, snapshots=metadata.snapshots[2:]), builder.store)
    for after in (1, None):
        with pytest.raises(NotFound, match="was expired; the oldest that is left of this line is 3"):
            incremental_append_scan(expired, from_snapshot_id=after)
    # An exclusive start need not be there any more.
    since = incremental_append_scan(expired, from_snapshot_id=2).plan()
    assert since.files["file_path"].to_pylist() == ["memory://t/f4"]
