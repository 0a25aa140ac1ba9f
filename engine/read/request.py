"""The request of a reader: columns to return, and properties of the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.columnar.scalars import repeat
from icebench.engine.columnar.schemas import to_arrow_field, to_arrow_schema
from icebench.engine.deletes.cache import DeleteCache
from icebench.engine.deletes.files import FileRead
from icebench.engine.deletes.loaded_deletes import LoadedDeletes, load_deletes
from icebench.engine.errors import CorruptTable, Unsupported
from icebench.engine.expressions.bound import BoundPredicate
from icebench.engine.expressions.bounds import Evaluator
from icebench.engine.formats.name_mapping import FilesWithoutIds
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.metadata_columns import DELETED_ID, PARTITION_ID
from icebench.engine.spec.name_mapping import NameMapping
from icebench.engine.spec.partitioning import UNPARTITIONED, PartitionSpec, common_field_ids
from icebench.engine.spec.schema import FIRST_METADATA_COLUMN_ID, Schema
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import PrimitiveType, StructType
from icebench.engine.spec.values import Value
from icebench.engine.storage.store import Store

BATCH_ROWS = 1 << 17
"""Default rows of a batch: enough to keep Python's share small, few enough to fit into the processor's cache."""


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A filter on the rows of files, its columns, and its evaluator on statistics."""

    bound: BoundPredicate
    columns: Schema
    evaluator: Evaluator


@dataclass(frozen=True, kw_only=True)
class ReadRequest:
    """What to read of each file.

    Args:
        store: Where the files are.
        projection: The columns to return, in order; may include those of `icebench.engine.spec.metadata_columns`.
        schemas: The table's schemas: the one that the filter is bound to first, then the newest first.
        specs: The table's partition specs by id.
        name_mapping: For files without field ids.
        without_ids: For those of a table without a name mapping; None refuses them.
        batch_rows: The most rows of a batch.
        needed_by: What refers to the files, for errors, e.g. ``"table db.t, snapshot 17"``.
        narrow_decimals: Return decimals of up to 9 digits as decimal32, of up to 18 as decimal64, instead of
            decimal128.
        limit: How many rows the consumer takes at most, for which little is decoded ahead; None for all.
    """

    store: Store
    projection: Schema
    schemas: Sequence[Schema]
    specs: Mapping[int, PartitionSpec] = field(default_factory=dict)
    name_mapping: NameMapping | None = None
    without_ids: FilesWithoutIds | None = None
    batch_rows: int = BATCH_ROWS
    needed_by: str | None = None
    narrow_decimals: bool = False
    limit: int | None = None

    @property
    def schema(self) -> Schema:
        """The table's schema."""
        return self.schemas[0]

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the batches."""
        return to_arrow_schema(self.projection, narrow=self.narrow_decimals)

    @cached_property
    def row_bits(self) -> tuple[int, bool]:
        """The bits of the columns of fixed width in a row, and whether there are others."""
        types = self.arrow_schema.types
        fixed = [each.bit_width for each in types if pat.is_primitive(each) or pat.is_decimal(each)]
        return sum(fixed), len(fixed) < len(types)

    @cached_property
    def stored(self) -> Schema:
        """The columns of the projection that files may store."""
        return Schema(tuple(f for f in self.projection.fields if f.field_id < FIRST_METADATA_COLUMN_ID))

    @cached_property
    def _filters(self) -> dict[int, RowFilter]:
        return {}

    def filter_of(self, residual: BoundPredicate) -> RowFilter:
        """A residual, prepared. The files of a plan share a few residuals, so that each is prepared once."""
        known = self._filters.get(id(residual))
        if known is None or known.bound is not residual:
            known = RowFilter(residual, self.schema.select(residual.field_ids), Evaluator(residual))
            self._filters[id(residual)] = known
        return known

    @property
    def keeps_deleted(self) -> bool:
        """Whether deleted rows are returned, too, and marked."""
        return DELETED_ID in self.projection.by_id

    def load_deletes(
        self, files: Iterable[FileRead], *, runner: Runner, counters: Counters, cache: DeleteCache | None = None
    ) -> LoadedDeletes:
        """The deletes of these files; see `icebench.engine.deletes.loaded_deletes.load_deletes`."""
        return load_deletes(
            files,
            self.schemas,
            store=self.store,
            runner=runner,
            counters=counters,
            needed_by=self.needed_by,
            name_mapping=self.name_mapping,
            cache=cache,
        )

    @contextmanager
    def naming(self, location: str | None = None) -> Iterator[None]:
        """Context whose errors name the table and snapshot; errors without a file are about `location`."""
        try:
            yield
        except CorruptTable as error:
            if error.needed_by is not None:
                raise
            raise CorruptTable(
                error.reason, location=error.location or location, path=error.path, needed_by=self.needed_by
            ) from error

    def partition_array(self, file: FileRead, length: int) -> pa.Array:
        """`_partition` of a file's rows: the fields of its own spec, null for all others.

        Raises:
            Unsupported: The file's partition is unknown.
        """
        if file.partition is None:
            raise Unsupported(f"{file.file_path}: a column of its partition spec was dropped, so _partition is unknown")
        spec = self.specs.get(file.spec_id, UNPARTITIONED)
        values = dict(zip((f.field_id for f in spec.fields), file.partition, strict=True))
        column = self.projection.by_id[PARTITION_ID].type
        assert isinstance(column, StructType)
        if not column.fields:
            return pa.Array.from_buffers(pa.struct([]), length, [None])
        fields = zip(common_field_ids(self.specs.values()), column.fields, strict=True)
        typed = [(field_id, f.type) for field_id, f in fields if isinstance(f.type, PrimitiveType)]
        arrays = [repeat(type_, values.get(field_id), length) for field_id, type_ in typed]
        return pa.StructArray.from_arrays(arrays, fields=[to_arrow_field(f) for f in column.fields])

    def constants(self, file: FileRead) -> dict[int, Value | None]:
        """Column id -> value of the columns that are identity-partitioned in the file's spec."""
        spec = self.specs.get(file.spec_id)
        if spec is None or file.partition is None:
            return {}
        return {
            f.source_id: value
            for f, value in zip(spec.fields, file.partition, strict=True)
            if isinstance(f.transform, Identity)
        }
