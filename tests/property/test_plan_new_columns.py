"""Columns added after files were written: files that cannot have them are skipped, and never one that could match."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.parse import parse
from icebench.engine.plan.scan import table_scan
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.manifest import EntryStatus, ManifestEntry
from icebench.engine.spec.partitioning import UNPARTITIONED
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.spec.types import DOUBLE, INT, STRING, NestedField, StructType
from icebench.engine.spec.values import Value
from tests.property.evaluate import evaluate
from tests.property.remote_planning import assert_same_elsewhere
from tests.property.table_builder import SNAPSHOT_ID, TableBuilder, data_file
from tests.property.test_plan_files import metrics_of

Draw = Callable[[st.SearchStrategy[Any]], Any]
Row = dict[int, Value | None]
DEFAULTS: dict[int, Value] = {3: 7, 5: float("nan")}
FILTERS = (
    "c = 1", "c is null", "c is not null and a > 0", "c != 1", "a = 1 or c in (1, 2)", "d = 7", "d < 7", "d is null",
    "s.e = 'x'", "s.e is null", "f > 1", "f is nan", "f is not nan and f < 2", "s is null", "not (c = 1 or d = 7)",
)  # fmt: skip
COLUMNS = {
    1: NestedField(field_id=1, name="a", type=INT),
    2: NestedField(field_id=2, name="c", type=INT),
    3: NestedField(field_id=3, name="d", type=INT, initial_default=7),
    4: NestedField(field_id=4, name="e", type=STRING),
    5: NestedField(field_id=5, name="f", type=DOUBLE, initial_default=float("nan")),
}
ORDER = ([1], [1, 2], [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5])


def _schema(schema_id: int, ids: list[int]) -> Schema:
    fields = [COLUMNS[i] for i in ids if i != 4]
    if 4 in ids:
        fields.append(NestedField(field_id=10, name="s", type=StructType((COLUMNS[4],))))
    return Schema(tuple(fields), schema_id)


SCHEMAS = tuple(_schema(i, ids) for i, ids in enumerate(ORDER))


def _row(draw: Draw, ids: list[int]) -> Row:
    """A row as it reads with the newest schema: what the file lacks is null or the default."""
    own = {
        1: st.sampled_from([None, 0, 1]),
        2: st.sampled_from([None, 1, 2]),
        3: st.sampled_from([None, 7, 8]),
        4: st.sampled_from([None, "x"]),
        5: st.sampled_from([None, 1.5, float("nan")]),
    }
    row = {i: draw(own[i]) if i in ids else DEFAULTS.get(i) for i in COLUMNS}
    return row | {10: "struct" if row[4] is not None else draw(st.sampled_from([None, "struct"])) if 4 in ids else None}


@given(data=st.data())
def test_files_older_than_a_column_are_skipped_only_if_they_cannot_match(data: st.DataObject) -> None:
    draw = data.draw
    builder = TableBuilder(SCHEMAS[-1], (UNPARTITIONED,), format_version=3, schemas=SCHEMAS)
    # A writer may record an older schema than the table's, of snapshots or in manifests.
    stale = draw(st.sampled_from(["snapshots", "manifests", None]))
    snapshots = [
        Snapshot(
            snapshot_id=100 + i,
            sequence_number=i,
            timestamp_ms=i,
            manifest_list="memory://t/none.avro",
            operation="append",
            schema_id=draw(st.integers(-1, i) if stale == "snapshots" else st.sampled_from([i, i, None])),
        )
        for i in range(len(SCHEMAS))
    ]
    files: dict[str, list[Row]] = {}
    for number in range(draw(st.integers(1, 4))):
        entries = []
        added_by = draw(st.integers(0, len(SCHEMAS) - 1))
        for i in range(draw(st.integers(1, 3))):
            age = draw(st.sampled_from([added_by, added_by, draw(st.integers(0, added_by))]))
            # A writer may have started with an older schema than the table's at its commit.
            ids = ORDER[draw(st.integers(0, age))]
            rows = [_row(draw, ids) for _ in range(draw(st.integers(1, 3)))]
            path = f"memory://t/{number}-{i}"
            files[path] = rows
            columns = {COLUMNS[c].name: COLUMNS[c] for c in ids}
            file = data_file(path, records=len(rows), **metrics_of(draw, SCHEMAS[-1], rows, columns))
            status = EntryStatus.ADDED if age == added_by else EntryStatus.EXISTING
            entries.append(
                ManifestEntry(
                    status=status, snapshot_id=100 + age, sequence_number=1, file_sequence_number=1, data_file=file
                )
            )
        stated = draw(st.integers(0, added_by)) if stale == "manifests" else added_by
        builder.add_manifest(entries, sequence_number=1, snapshot_id=100 + added_by, schema=SCHEMAS[stated])
    metadata = builder.metadata()
    metadata = replace(metadata, snapshots=(*snapshots, *metadata.snapshots))
    text = draw(st.sampled_from(FILTERS))
    bound = bind(parse(text), SCHEMAS[-1])
    scan = table_scan(metadata, builder.store, filter=text, snapshot_id=SNAPSHOT_ID, runner=LocalRunner(1))
    plan = scan.plan()
    assert_same_elsewhere(scan, plan)
    at = {path: i for i, path in enumerate(plan.files["file_path"].to_pylist())}
    for path, rows in files.items():
        if path not in at:
            assert not any(evaluate(bound, row) for row in rows), (text, rows)
            continue
        residual = plan.residuals[plan.residual_codes[at[path]]]
        for row in rows:
            assert (evaluate(residual, row) is True) == (evaluate(bound, row) is True), (text, str(residual), row)
    counters = plan.counters
    assert counters["manifests_decoded"] + counters["manifests_skipped_by_summary"] == counters["manifests_in_list"]


def test_a_filter_on_a_new_column_reads_no_old_file() -> None:
    builder = TableBuilder(SCHEMAS[1], (UNPARTITIONED,), schemas=SCHEMAS[:2])
    old, new = (
        Snapshot(snapshot_id=i, timestamp_ms=i, manifest_list="memory://t/x", operation="append", schema_id=i)
        for i in (0, 1)
    )
    for snapshot in (old, new):
        file = data_file(f"memory://t/{snapshot.snapshot_id}")
        entry = ManifestEntry(status=EntryStatus.ADDED, snapshot_id=snapshot.snapshot_id, data_file=file)
        schema = SCHEMAS[snapshot.snapshot_id]
        builder.add_manifest([entry], sequence_number=1, snapshot_id=snapshot.snapshot_id, schema=schema)
    mixed = [
        ManifestEntry(
            status=EntryStatus.EXISTING,
            snapshot_id=i,
            sequence_number=1,
            file_sequence_number=1,
            data_file=data_file(f"memory://t/mixed-{i}"),
        )
        for i in (0, 1)
    ]
    builder.add_manifest(mixed, sequence_number=2, schema=SCHEMAS[0])
    metadata = builder.metadata()
    metadata = replace(metadata, snapshots=(old, new, *metadata.snapshots))
    plan = table_scan(metadata, builder.store, filter="c = 1", runner=LocalRunner(1)).plan()
    assert plan.files["file_path"].to_pylist() == ["memory://t/1", "memory://t/mixed-1"]
    assert plan.counters["entries_skipped_by_schema_id"] == 2
    mapped = replace(metadata, properties={"schema.name-mapping.default": "[]"})
    assert table_scan(mapped, builder.store, filter="c = 1", runner=LocalRunner(1)).plan().files.num_rows == 4
