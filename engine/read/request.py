"""What a reader is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from engine.columnar.scalars import repeat
from engine.columnar.schemas import to_arrow_field, to_arrow_schema
from engine.deletes.equality import Scope
from engine.deletes.files import DeleteFile
from engine.deletes.loaded_deletes import PlannedFile
from engine.errors import CorruptTable, Unsupported
from engine.expressions.bound import BoundPredicate
from engine.spec.metadata_columns import DELETED_ID, PARTITION_ID
from engine.spec.name_mapping import NameMapping
from engine.spec.partitioning import UNPARTITIONED, Partition, PartitionSpec, partition_key
from engine.spec.schema import FIRST_METADATA_COLUMN_ID, Schema
from engine.spec.transforms import Identity
from engine.spec.types import PrimitiveType, StructType
from engine.spec.values import Value
from engine.storage.store import Store

BATCH_ROWS = 1 << 17
"""Rows of a batch, by default: enough to make Python's share small, few enough to stay in a processor's cache."""


@dataclass(frozen=True, kw_only=True)
class FileRead:
    """One data file to read, or a part of it.

    Args:
        file_path: Its location.
        file_format: ``"parquet"``, ``"orc"`` or ``"avro"``; others are refused.
        record_count: Its rows, by its manifest entry.
        file_size_in_bytes: Its size, by its manifest entry; None where it has none.
        spec_id: Its partition spec.
        partition: Its partition tuple, one internal value a field of the spec; None where it can not be told.
        data_sequence_number: For equality deletes and row lineage.
        first_row_id: For row lineage; None where the table has none.
        deletes: The delete files that apply to it.
        residual: What is left of the filter; None for nothing.
        byte_range: (start, length): only row groups that begin there; None for all.
    """

    file_path: str
    record_count: int
    file_format: str = "parquet"
    file_size_in_bytes: int | None = None
    spec_id: int = 0
    partition: Partition | None = ()
    data_sequence_number: int = 0
    first_row_id: int | None = None
    deletes: tuple[DeleteFile, ...] = ()
    residual: BoundPredicate | None = None
    byte_range: tuple[int, int] | None = None

    @property
    def scope(self) -> Scope | None:
        """The partition as the scope of equality deletes."""
        return None if self.partition is None else partition_key(self.spec_id, self.partition)

    @property
    def planned(self) -> PlannedFile:
        """The file as `engine.deletes` wants it."""
        return PlannedFile(self.file_path, self.scope, self.deletes, self.record_count)


@dataclass(frozen=True, kw_only=True)
class ReadRequest:
    """What to read of each file.

    Args:
        store: Where the files are.
        projection: The columns to return, in order; may include those of `engine.spec.metadata_columns`.
        schemas: The table's schemas: the one that the filter is bound to first, then the newest first.
        specs: The table's partition specs by id.
        name_mapping: For files without field ids.
        batch_rows: The most rows of a batch.
        needed_by: What the files belong to, for errors, e.g. ``"table db.t, snapshot 17"``.
        narrow_decimals: Give decimals of up to 9 digits as decimal32, of up to 18 as decimal64, and not as decimal128.
    """

    store: Store
    projection: Schema
    schemas: Sequence[Schema]
    specs: Mapping[int, PartitionSpec] = field(default_factory=dict)
    name_mapping: NameMapping | None = None
    batch_rows: int = BATCH_ROWS
    needed_by: str | None = None
    narrow_decimals: bool = False

    @property
    def schema(self) -> Schema:
        """The table's schema."""
        return self.schemas[0]

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the batches."""
        return to_arrow_schema(self.projection, narrow=self.narrow_decimals)

    @cached_property
    def stored(self) -> Schema:
        """The columns of the projection that files may hold."""
        return Schema(tuple(f for f in self.projection.fields if f.field_id < FIRST_METADATA_COLUMN_ID))

    @property
    def keeps_deleted(self) -> bool:
        """Whether deleted rows are given too, marked."""
        return DELETED_ID in self.projection.by_id

    @contextmanager
    def naming(self, location: str | None = None) -> Iterator[None]:
        """Errors of the block about files tell which table and snapshot need them; those about no certain file are
        about `location`."""
        try:
            yield
        except CorruptTable as error:
            if error.needed_by is not None:
                raise
            raise CorruptTable(
                error.reason, location=error.location or location, path=error.path, needed_by=self.needed_by
            ) from error

    def partition_array(self, file: FileRead, length: int) -> pa.Array:
        """`_partition` of a file's rows: the fields of its own spec where the column has them, the others null.

        Raises:
            Unsupported: The file's partition can not be told.
        """
        if file.partition is None:
            raise Unsupported(f"{file.file_path}: a column of its partition spec was dropped, so _partition is unknown")
        spec = self.specs.get(file.spec_id, UNPARTITIONED)
        values = dict(zip((f.name for f in spec.fields), file.partition, strict=True))
        column = self.projection.by_id[PARTITION_ID].type
        assert isinstance(column, StructType)
        if not column.fields:
            return pa.Array.from_buffers(pa.struct([]), length, [None])
        primitives = [(f, f.type) for f in column.fields if isinstance(f.type, PrimitiveType)]
        arrays = [repeat(type_, values.get(f.name), length) for f, type_ in primitives]
        return pa.StructArray.from_arrays(arrays, fields=[to_arrow_field(f) for f in column.fields])

    def constants(self, file: FileRead) -> dict[int, Value | None]:
        """Column id -> value, for columns that are identity-partitioned in the file's spec."""
        spec = self.specs.get(file.spec_id)
        if spec is None or file.partition is None:
            return {}
        return {
            f.source_id: value
            for f, value in zip(spec.fields, file.partition, strict=True)
            if isinstance(f.transform, Identity)
        }
