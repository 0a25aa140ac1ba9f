"""A table kept twice: as files of the engine, and as plain Python rows that say what a reader must give.

The model knows nothing of files: a delete is applied by comparing rows, evolution by looking up values, a filter by
evaluating it row by row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from icebench.engine.columnar.scalars import to_arrow_array
from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.deletes.files import DeleteFile, FileRead
from icebench.engine.expressions.bound import BOUND_TRUE, BoundPredicate
from icebench.engine.plan.delete_index import DeletesOfFiles
from icebench.engine.plan.files_table import DELETE_FILE, files_schema, with_deletes
from icebench.engine.plan.scan import ScanPlan
from icebench.engine.read.reader import read_files
from icebench.engine.read.request import ReadRequest
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionSpec, common_partition_type, partition_key, partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import DATE, DOUBLE, FLOAT, INT, LONG, STRING, DecimalType, NestedField, StructType
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.storage.store import Store
from icebench.engine.write.data_files import write_data_files
from icebench.engine.write.delete_files import DeletedRows, write_equality_deletes, write_position_deletes
from icebench.engine.write.vectors import write_deletion_vectors
from tests.property.evaluate import evaluate

Row = dict[int, Any]
"""Primitive field id -> internal value; struct id -> True where the struct is not null."""

K, S, F, D, ADDED, STRUCT, A, B, C, GONE = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10

OLD = Schema(
    (
        NestedField(field_id=K, name="k", type=INT),
        NestedField(field_id=GONE, name="gone", type=DATE),
        NestedField(field_id=S, name="s", type=STRING),
        NestedField(field_id=F, name="f", type=FLOAT),
        NestedField(field_id=D, name="d", type=DecimalType(5, 2)),
        NestedField(
            field_id=STRUCT,
            name="st",
            type=StructType(
                (NestedField(field_id=A, name="a", type=INT), NestedField(field_id=B, name="b", type=STRING))
            ),
        ),
    ),
    schema_id=0,
)
"""Before: narrow types, a column that is dropped later."""

NEW = Schema(
    (
        NestedField(field_id=D, name="d", type=DecimalType(19, 2)),
        NestedField(field_id=S, name="k", type=STRING),
        NestedField(
            field_id=STRUCT,
            name="st",
            type=StructType(
                (NestedField(field_id=C, name="c", type=LONG), NestedField(field_id=A, name="renamed", type=LONG))
            ),
        ),
        NestedField(field_id=K, name="long_k", type=LONG),
        NestedField(field_id=F, name="f", type=DOUBLE),
        NestedField(field_id=ADDED, name="added", type=LONG, initial_default=7),
    ),
    schema_id=1,
)
"""After: promoted, reordered, one name that now means another column, one added with a default."""

BY_TEXT = PartitionSpec(partition_spec(OLD, [("s", Identity())]).fields, spec_id=1)
SPECS = (PartitionSpec(), BY_TEXT)

VALUES: dict[int, st.SearchStrategy[Any]] = {
    K: st.sampled_from([None, 0, 1, 2, 2**31 - 1, -(2**31)]),
    S: st.sampled_from([None, "", "a", "b", "\U0001f9ca"]),
    F: st.sampled_from([None, math.nan, 0.0, -0.0, 1.5, 0.10000000149011612]),
    D: st.sampled_from([None, Decimal("0.00"), Decimal("1.25"), Decimal("-999.99")]),
    ADDED: st.sampled_from([None, 7, 8]),
    STRUCT: st.sampled_from([None, True]),
    A: st.sampled_from([None, 0, 5]),
    B: st.sampled_from([None, "x"]),
    C: st.sampled_from([None, 9]),
    GONE: st.sampled_from([None, 0, 19000]),
}


@dataclass(frozen=True)
class Written:
    """A data file of the model: its manifest entry and its rows, by position."""

    file: DataFile
    sequence_number: int
    rows: tuple[Row, ...]


@dataclass
class ModelTable:
    """The table. Sequence numbers grow by one with every operation. Version 3 deletes positions by deletion vectors."""

    format_version: int = 2
    store: Store = field(default_factory=MemoryStore)
    location: str = "memory://bucket/table"
    sequence_number: int = 0
    data: list[Written] = field(default_factory=list)
    deletes: list[tuple[DataFile, int]] = field(default_factory=list)
    keys: dict[str, tuple[DataFile, Sequence[Row]]] = field(default_factory=dict)
    live: dict[str, list[bool]] = field(default_factory=dict)
    in_vectors: dict[str, set[int]] = field(default_factory=dict)

    def metadata(self, schema: Schema, spec: PartitionSpec, **properties: str) -> TableMetadata:
        """Metadata with that schema and spec as the current ones."""
        return TableMetadata(
            format_version=self.format_version,
            table_uuid="c7a5c0b2-0000-4000-8000-000000000000",
            location=self.location,
            last_updated_ms=0,
            last_column_id=GONE,
            schemas=(OLD, NEW),
            current_schema_id=schema.schema_id,
            partition_specs=SPECS,
            default_spec_id=spec.spec_id,
            last_partition_id=1000,
            properties=properties,
        )

    def append(self, schema: Schema, spec: PartitionSpec, rows: Sequence[Row], row_group_bytes: int) -> None:
        """Write rows with a schema and a spec that were current once."""
        self.sequence_number += 1
        ordered = rows if spec.is_unpartitioned else sorted(rows, key=lambda row: (row[S] is None, row[S] or ""))
        metadata = self.metadata(schema, spec, **{"write.parquet.row-group-size-bytes": str(row_group_bytes)})
        files = write_data_files(table_of(schema, ordered), metadata=metadata, store=self.store, mode="clustered")
        left = list(ordered)
        for file in files:
            own, left = left[: file.record_count], left[file.record_count :]
            self.data.append(Written(file, self.sequence_number, tuple(own)))
            self.live[file.file_path] = [True] * len(own)
        assert not left

    def delete_positions(self, chosen: Mapping[int, Sequence[int]], granularity: str) -> None:
        """Delete rows by place in `data` and position."""
        self.sequence_number += 1
        deleted = []
        for place, chosen_positions in chosen.items():
            written = self.data[place]
            positions = set(chosen_positions)
            if self.format_version >= 3:
                positions |= self.in_vectors.setdefault(written.file.file_path, set())
                self.in_vectors[written.file.file_path] |= positions
            deleted.append(
                DeletedRows(
                    file_path=written.file.file_path,
                    positions=np.array(list(positions), np.int64),
                    spec_id=written.file.spec_id,
                    partition=written.file.partition,
                )
            )
            for position in positions:
                self.live[written.file.file_path][position] = False
        metadata = self.metadata(NEW, SPECS[0], **{"write.delete.granularity": granularity})
        if self.format_version >= 3:
            files = write_deletion_vectors(deleted, metadata=metadata, store=self.store)
            replaced = {file.referenced_data_file for file in files}
            self.deletes = [(f, n) for f, n in self.deletes if f.referenced_data_file not in replaced]
        else:
            files = write_position_deletes(deleted, metadata=metadata, store=self.store)
        self.deletes.extend((file, self.sequence_number) for file in files)

    def delete_equal(self, schema: Schema, ids: Sequence[int], keys: Sequence[Row], scope: DataFile | None) -> None:
        """Delete rows of older files that equal a key, everywhere or in the partition of `scope`."""
        self.sequence_number += 1
        files = write_equality_deletes(
            table_of(Schema(tuple(schema.by_id[i] for i in ids)), keys),
            columns=[schema.name_of[i] for i in ids],
            metadata=self.metadata(schema, SPECS[0]),
            store=self.store,
            spec=SPECS[scope.spec_id] if scope is not None else None,
            partition=scope.partition if scope is not None else (),
        )
        for file in files:
            self.keys[file.file_path] = file, keys
            self._apply_keys(file)

    def add_again(self, path: str) -> None:
        """List an equality-delete file once more, as a commit does that is repeated: it deletes newer rows, too."""
        self.sequence_number += 1
        self._apply_keys(self.keys[path][0])

    def _apply_keys(self, file: DataFile) -> None:
        self.deletes.append((file, self.sequence_number))
        keys, ids = self.keys[file.file_path][1], file.equality_ids or ()
        for written in self.data:
            same_partition = file.spec_id == 0 or _partition(written.file) == _partition(file)
            if written.sequence_number < self.sequence_number and same_partition:
                for position, row in enumerate(written.rows):
                    if any(all(identical(row.get(i, default(i)), key[i]) for i in ids) for key in keys):
                        self.live[written.file.file_path][position] = False

    def reads(self, residual: BoundPredicate | None) -> list[FileRead]:
        """The files as a plan without any pruning gives them."""
        return [
            FileRead(
                file_path=written.file.file_path,
                record_count=written.file.record_count,
                file_size_in_bytes=written.file.file_size_in_bytes,
                spec_id=written.file.spec_id,
                partition=written.file.partition,
                data_sequence_number=written.sequence_number,
                deletes=tuple(
                    planned_delete(file, number) for file, number in self.deletes if _applies(file, number, written)
                ),
                residual=residual,
            )
            for written in self.data
        ]

    def plan(self, projection: Schema, residual: BoundPredicate | None) -> ScanPlan:
        """The same as a scan plan."""
        partition = common_partition_type(SPECS, NEW)
        rows = []
        reads = self.reads(residual)
        deletes = [delete for read in reads for delete in read.deletes]
        counts = [len(read.deletes) for read in reads]
        for read, written in zip(reads, self.data, strict=True):
            of_spec = dict(zip([f.name for f in SPECS[read.spec_id].fields], written.file.partition, strict=True))
            rows.append(
                {
                    "file_path": read.file_path,
                    "file_format": read.file_format,
                    "record_count": written.file.record_count,
                    "file_size_in_bytes": written.file.file_size_in_bytes,
                    "spec_id": read.spec_id,
                    "partition": of_spec,
                    "data_sequence_number": read.data_sequence_number,
                    "file_sequence_number": read.data_sequence_number,
                    "split_offsets": written.file.split_offsets,
                }
            )
        return ScanPlan(
            files=with_deletes(
                pa.Table.from_pylist(rows, schema=pa.schema(list(files_schema(partition))[:-1])),
                pa.array([{f.name: getattr(d, f.name) for f in DELETE_FILE} for d in deletes], DELETE_FILE),
                DeletesOfFiles(np.cumsum([0, *counts]), np.arange(len(deletes), dtype=np.int32)),
            ),
            counters={},
            snapshot=None,
            schema=NEW,
            projection=projection,
            predicate=BOUND_TRUE if residual is None else residual,
            metadata=self.metadata(NEW, SPECS[0]),
            residuals=(BOUND_TRUE if residual is None else residual,),
            residual_codes=np.zeros(len(rows), np.int64),
        )

    def read(
        self, projection: Schema, residual: BoundPredicate | None, *, batch_rows: int = 1 << 16, threads: int = 1
    ) -> tuple[list[pa.RecordBatch], Counters]:
        """What the engine reads."""
        counters = Counters()
        request = ReadRequest(
            store=self.store,
            projection=projection,
            schemas=(NEW, OLD),
            specs={spec.spec_id: spec for spec in SPECS},
            batch_rows=batch_rows,
            needed_by="table model",
        )
        runner = LocalRunner(threads)
        return list(read_files(self.reads(residual), request, runner=runner, counters=counters)), counters

    def expected(self, residual: BoundPredicate | None) -> list[Row]:
        """What a reader must give, in file and row order."""
        found = []
        for written in self.data:
            for row, live in zip(written.rows, self.live[written.file.file_path], strict=True):
                seen = {i: row.get(i, default(i)) for i in NEW.by_id}
                if row.get(STRUCT) is None:
                    seen |= {STRUCT: None, A: None, C: None}
                if live and (residual is None or evaluate(residual, seen) is True):
                    found.append(seen)
        return found


def default(field_id: int) -> Any:
    """What a column reads as in files that lack it."""
    return NEW.by_id[field_id].initial_default if field_id in NEW.by_id else None


def identical(left: Any, right: Any) -> bool:
    """Equality as equality deletes mean it: null equals null, NaN equals NaN, zeros differ by sign."""
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or (
            left == right and math.copysign(1, left) == math.copysign(1, right)
        )
    return bool(left == right)


def _partition(file: DataFile) -> tuple[object, ...]:
    return partition_key(file.spec_id, file.partition)


def _applies(delete: DataFile, number: int, written: Written) -> bool:
    """The specification's rule for which data files a delete file concerns."""
    if delete.content is FileContent.EQUALITY_DELETES:
        is_global = SPECS[delete.spec_id].is_unpartitioned
        return written.sequence_number < number and (is_global or _partition(delete) == _partition(written.file))
    if delete.referenced_data_file is not None and delete.referenced_data_file != written.file.file_path:
        return False
    return written.sequence_number <= number and _partition(delete) == _partition(written.file)


def planned_delete(file: DataFile, sequence_number: int) -> DeleteFile:
    """A delete file as a plan describes it."""
    return DeleteFile(
        content=file.content,
        file_path=file.file_path,
        file_format=file.file_format,
        record_count=file.record_count,
        file_size_in_bytes=file.file_size_in_bytes,
        sequence_number=sequence_number,
        equality_ids=file.equality_ids or (),
        referenced_data_file=file.referenced_data_file,
        content_offset=file.content_offset,
        content_size_in_bytes=file.content_size_in_bytes,
    )


def table_of(schema: Schema, rows: Sequence[Row]) -> pa.Table:
    """Rows as an Arrow table of a schema."""

    def array(fields: Sequence[NestedField], of: Callable[[Row, int], Any]) -> list[pa.Array]:
        made = []
        for f in fields:
            if isinstance(f.type, StructType):
                mask = pa.array([row.get(f.field_id) is None for row in rows], pa.bool_())
                inner = array(f.type.fields, of)
                made.append(pa.StructArray.from_arrays(inner, [g.name for g in f.type.fields], mask=mask))
            else:
                made.append(to_arrow_array(schema.primitive(f.field_id), [of(row, f.field_id) for row in rows]))
        return made

    arrays = array(schema.fields, lambda row, i: row.get(i))
    return pa.Table.from_arrays(arrays, names=[f.name for f in schema.fields])


def given(projection: Schema, batches: Sequence[pa.RecordBatch]) -> list[Row]:
    """Batches as rows of the model."""
    rows: list[Row] = []
    for batch in batches:
        for values in batch.to_pylist():
            row: Row = {}
            for f in projection.fields:
                value = values[f.name]
                if isinstance(f.type, StructType):
                    row[f.field_id] = None if value is None else True
                    row |= {g.field_id: None if value is None else value[g.name] for g in f.type.fields}
                else:
                    row[f.field_id] = value
            rows.append(row)
    return rows


def narrowed(rows: Sequence[Row], projection: Schema) -> list[Row]:
    """Only what a projection shows."""
    return [{i: row[i] for i in projection.by_id} for row in rows]


def same_rows(left: Sequence[Row], right: Sequence[Row]) -> bool:
    """Equal in order and in every value."""
    return len(left) == len(right) and all(
        a.keys() == b.keys() and all(identical(a[i], b[i]) for i in a) for a, b in zip(left, right, strict=True)
    )


@st.composite
def rows_of(draw: st.DrawFn, schema: Schema, max_size: int = 8) -> list[Row]:
    """Rows with every field of a schema."""
    count = draw(st.integers(0, max_size))
    rows = [{i: draw(VALUES[i]) for i in sorted(schema.by_id)} for _ in range(count)]
    for row in rows:
        if row[STRUCT] is None:
            row |= {i: None for i in (A, B, C) if i in row}
    return rows


@st.composite
def tables(
    draw: st.DrawFn, *, equality: bool = True, positions: bool = True, new: Callable[[], ModelTable] = ModelTable
) -> ModelTable:
    """Tables after a few appends and deletes, in any order."""
    table = new()
    table.format_version = draw(st.sampled_from([2, 3]))
    kinds = ["append"] + ["positions"] * positions + ["equal", "again"] * equality
    for kind in ["append", *draw(st.lists(st.sampled_from(kinds), max_size=6))]:
        if kind == "append":
            schema, spec = draw(st.sampled_from((OLD, NEW))), draw(st.sampled_from(SPECS))
            table.append(schema, spec, draw(rows_of(schema)), draw(st.sampled_from([1, 60, 1 << 20])))
        elif kind == "equal":
            schema = draw(st.sampled_from((OLD, NEW)))
            candidates = [i for i in (K, S, F, D, ADDED, GONE) if i in schema.by_id]
            ids = draw(st.lists(st.sampled_from(candidates), min_size=1, max_size=3, unique=True))
            keys = [{i: draw(VALUES[i]) for i in ids} for _ in range(draw(st.integers(1, 3)))]
            scope = draw(st.none() | st.sampled_from([w.file for w in table.data])) if table.data else None
            table.delete_equal(schema, ids, keys, scope)
        elif kind == "again":
            if table.keys:
                table.add_again(draw(st.sampled_from(list(table.keys))))
        elif table.data:
            places = draw(st.lists(st.sampled_from(range(len(table.data))), min_size=1, max_size=3, unique=True))
            chosen = {
                place: draw(st.lists(st.integers(0, len(table.data[place].rows) - 1), min_size=1, max_size=8))
                for place in places
            }
            table.delete_positions(chosen, draw(st.sampled_from(["file", "partition"])))
    return table


def with_fields(schema: Schema, fields: Sequence[NestedField]) -> Schema:
    """A projection of these fields."""
    return replace(schema, fields=tuple(fields), identifier_field_ids=frozenset())


def arrow_schema(projection: Schema) -> pa.Schema:
    """The schema that batches must have."""
    return to_arrow_schema(projection)
