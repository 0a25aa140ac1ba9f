"""Plans against brute force: no file with a matching row is lost, and residuals finish the filter's work."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.expressions.binding import bind
from icebench.engine.plan.scan import ScanPlan, table_scan
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.manifest import EntryStatus, ManifestEntry
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec, common_partition_type
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Bucket, Day, Hour, Identity, Month, Transform, Truncate, Void, Year
from icebench.engine.spec.types import DecimalType, NestedField, PrimitiveType
from icebench.engine.spec.values import Value, encode_value, unscaled
from tests.property.evaluate import evaluate, ordering
from tests.property.filter_strategies import columns_of, predicates, rows, schemas
from tests.property.remote_planning import assert_same_elsewhere
from tests.property.table_builder import SNAPSHOT_ID, TableBuilder, data_file

Draw = Callable[[st.SearchStrategy[Any]], Any]
Row = dict[int, Value | None]
TRANSFORMS: tuple[Transform, ...] = (
    Identity(),
    Year(),
    Month(),
    Day(),
    Hour(),
    Void(),
    Truncate(1),
    Truncate(5),
    Bucket(1),
    Bucket(7),
)


_BITS = {"int": 31, "date": 31, "long": 63}


@dataclass
class Planted:
    """A file of the table with what is in it."""

    entry: ManifestEntry
    rows: list[Row]
    sequence_number: int

    @property
    def live(self) -> bool:
        return self.entry.status != EntryStatus.DELETED


@st.composite
def specs(draw: st.DrawFn, schema: Schema) -> tuple[PartitionSpec, ...]:
    """One to three specs over the schema's columns; a field that two specs share has one id."""
    made = []
    ids: dict[tuple[int, str], int] = {}
    for spec_id in range(draw(st.integers(1, 3))):
        fields: list[PartitionField] = []
        for _ in range(draw(st.integers(0, 2))):
            column = draw(st.sampled_from(list(columns_of(schema).values())))
            transform = draw(st.sampled_from(TRANSFORMS))
            key = (column.field_id, str(transform))
            if not transform.accepts(schema.primitive(column.field_id)) or key in [
                (f.source_id, str(f.transform)) for f in fields
            ]:
                continue
            field_id = ids.setdefault(key, 1000 + len(ids))
            fields.append(
                PartitionField(
                    source_ids=(column.field_id,), field_id=field_id, name=f"p{field_id}", transform=transform
                )
            )
        made.append(PartitionSpec(tuple(fields), spec_id))
    return tuple(made)


def _tuple_of(spec: PartitionSpec, schema: Schema, row: Row) -> tuple[Value | None, ...]:
    return tuple(f.transform.apply(schema.primitive(f.source_id), row[f.source_id]) for f in spec.fields)


def _is_writable(spec: PartitionSpec, schema: Schema, values: tuple[Value | None, ...]) -> bool:
    """Hours of the farthest timestamps, and truncation below the least number, fit no partition column."""
    for field, value in zip(spec.fields, values, strict=True):
        type_ = field.transform.result_type(schema.primitive(field.source_id))
        if isinstance(type_, DecimalType) and isinstance(value, Decimal):
            if abs(unscaled(value, type_.scale)) >= 10**type_.precision:
                return False
        elif isinstance(value, int) and not -(1 << _BITS.get(type_.name, 64)) <= value < 1 << _BITS.get(type_.name, 64):
            return False
    return True


def metrics_of(draw: Draw, schema: Schema, file_rows: Sequence[Row], columns: dict[str, NestedField]) -> dict[str, Any]:
    """Metric maps as a careful, a lazy or an old writer leaves them."""
    found: dict[str, Any] = {
        name: {} for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    }
    for column in columns.values():
        assert isinstance(column.type, PrimitiveType)
        i = column.field_id
        values = [row[i] for row in file_rows]
        present = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
        if draw(st.integers(0, 4)) == 0:
            continue
        if draw(st.integers(0, 4)):
            found["value_counts"][i] = len(values)
        if draw(st.integers(0, 4)):
            found["null_value_counts"][i] = values.count(None)
        if column.type.name in ("float", "double") and draw(st.integers(0, 4)):
            found["nan_value_counts"][i] = sum(isinstance(v, float) and math.isnan(v) for v in values)
        least = greatest = present[0] if present else None
        for value in present:
            assert least is not None
            assert greatest is not None
            least = value if ordering(value, least) < 0 else least
            greatest = value if ordering(value, greatest) > 0 else greatest
        if least is not None and greatest is not None and draw(st.integers(0, 4)):
            found["lower_bounds"][i] = encode_value(column.type, least)
            found["upper_bounds"][i] = encode_value(column.type, greatest)
    return found


def plant(draw: Draw, builder: TableBuilder, every: Sequence[Row]) -> list[Planted]:
    """Write the rows as files of random specs and manifests of random sizes, and some deleted entries."""
    planted: list[Planted] = []
    columns = columns_of(builder.schema)
    for spec in builder.specs:
        groups: dict[str, tuple[tuple[Value | None, ...], list[Row]]] = {}
        for row in every:
            values = _tuple_of(spec, builder.schema, row)
            if draw(st.booleans()) and _is_writable(spec, builder.schema, values):
                groups.setdefault(repr(values), (values, []))[1].append(row)
        waiting = list(groups.values())
        while waiting:
            size = draw(st.integers(1, 3))
            now, waiting = waiting[:size], waiting[size:]
            sequence_number = draw(st.integers(1, 5))
            made: list[Planted] = []
            for values, file_rows in now:
                path = f"memory://t/data/{spec.spec_id}-{len(planted) + len(made)}.parquet"
                status = draw(
                    st.sampled_from([EntryStatus.ADDED, EntryStatus.ADDED, EntryStatus.EXISTING, EntryStatus.DELETED])
                )
                own = sequence_number if status == EntryStatus.ADDED else draw(st.integers(0, sequence_number))
                file = _file(path, spec, values, file_rows, metrics_of(draw, builder.schema, file_rows, columns))
                number = None if status == EntryStatus.ADDED and draw(st.booleans()) else own
                entry = ManifestEntry(
                    status=status,
                    snapshot_id=None if status == EntryStatus.ADDED else SNAPSHOT_ID,
                    sequence_number=number,
                    file_sequence_number=number,
                    data_file=file,
                )
                made.append(Planted(entry, file_rows, own))
            builder.add_manifest(
                [p.entry for p in made],
                spec_id=spec.spec_id,
                sequence_number=sequence_number,
                summaries=draw(st.booleans()),
            )
            planted += made
    return planted


def _file(
    path: str, spec: PartitionSpec, values: tuple[Value | None, ...], file_rows: Sequence[Row], metrics: dict[str, Any]
) -> DataFile:
    return data_file(path, records=len(file_rows), spec_id=spec.spec_id, partition=values, **metrics)


@given(data=st.data())
def test_no_file_with_a_matching_row_is_lost(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    builder = TableBuilder(schema, data.draw(specs(schema)))
    planted = plant(data.draw, builder, data.draw(st.lists(rows(schema), min_size=1, max_size=6)))
    predicate = data.draw(predicates(schema))
    bound = bind(predicate, schema)
    scan = table_scan(builder.metadata(), builder.store, filter=predicate, runner=LocalRunner(1))
    plan = scan.plan()
    plan.files.validate(full=True)
    assert_same_elsewhere(scan, plan, data.draw(st.sampled_from([1, 10_000])))
    at = {path: i for i, path in enumerate(plan.files["file_path"].to_pylist())}
    live = [p for p in planted if p.live]
    assert len(at) == plan.files.num_rows
    assert at.keys() <= {p.entry.data_file.file_path for p in live}
    for file in live:
        row = at.get(file.entry.data_file.file_path)
        if row is None:
            assert not any(evaluate(bound, r) for r in file.rows), str(bound)
            continue
        residual = plan.residuals[plan.residual_codes[row]]
        for r in file.rows:
            assert (evaluate(residual, r) is True) == (evaluate(bound, r) is True), (str(bound), str(residual))
    _check_counters(plan, builder)


def _check_counters(plan: ScanPlan, builder: TableBuilder) -> None:
    counters = plan.counters
    assert counters["manifests_in_list"] == len(builder.manifests)
    assert counters["manifests_decoded"] + counters["manifests_skipped_by_summary"] == len(builder.manifests)
    assert counters["files_planned"] == plan.files.num_rows
    skipped = counters["entries_skipped_by_partition"] + counters["entries_skipped_by_metrics"]
    assert counters["files_planned"] + skipped <= counters["entries_decoded"]


@given(data=st.data())
def test_rows_of_a_plan_say_what_the_manifests_say(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    builder = TableBuilder(schema, data.draw(specs(schema)))
    planted = plant(data.draw, builder, data.draw(st.lists(rows(schema), min_size=1, max_size=4)))
    metadata = builder.metadata()
    plan = table_scan(metadata, builder.store, runner=LocalRunner(2)).plan()
    live = [p for p in planted if p.live]
    files = plan.files
    assert files["file_path"].to_pylist() == [p.entry.data_file.file_path for p in live]
    assert files["file_format"].to_pylist() == ["parquet"] * len(live)
    assert files["record_count"].to_pylist() == [p.entry.data_file.record_count for p in live]
    assert files["spec_id"].to_pylist() == [p.entry.data_file.spec_id for p in live]
    assert files["data_sequence_number"].to_pylist() == [p.sequence_number for p in live]
    assert files["residual"].null_count == len(live)
    common = common_partition_type(metadata.partition_specs, schema)
    assert [f.name for f in files["partition"].type] == [f.name for f in common.fields]
    # Not as Python's values: dates may be beyond those of its calendar.
    chunks = files["partition"].chunks
    nulls = {
        f.name: [is_null for chunk in chunks for is_null in pc.struct_field(chunk, f.name).is_null().to_pylist()]
        for f in common.fields
    }
    for row, file in enumerate(live):
        spec = metadata.spec_by_id[file.entry.data_file.spec_id]
        own = {f.name: value is None for f, value in zip(spec.fields, file.entry.data_file.partition, strict=True)}
        assert {name: column[row] for name, column in nulls.items()} == {
            f.name: own.get(f.name, True) for f in common.fields
        }
