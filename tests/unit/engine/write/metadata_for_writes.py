"""Table metadata for tests of writers."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from icebench.engine.columnar.schemas import from_arrow_schema
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionSpec, partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.spec.transforms import Transform

LOCATION = "memory://bucket/table"


def metadata_of(
    schema: Schema | pa.Schema,
    partitioned_by: Sequence[tuple[str, Transform]] = (),
    *,
    format_version: int = 2,
    sort_order: SortOrder | None = None,
    properties: Mapping[str, str] | None = None,
) -> TableMetadata:
    """A table with that schema; spec 0 is unpartitioned, spec 1 the given one, which is the default."""
    own = schema if isinstance(schema, Schema) else from_arrow_schema(schema)
    specs: tuple[PartitionSpec, ...] = (PartitionSpec(),)
    if partitioned_by:
        specs = (*specs, PartitionSpec(partition_spec(own, partitioned_by).fields, 1))
    orders = (SortOrder(),) if sort_order is None else (SortOrder(), sort_order)
    return TableMetadata(
        format_version=format_version,
        table_uuid="c7a5c0b2-0000-4000-8000-000000000000",
        location=LOCATION,
        last_updated_ms=0,
        last_column_id=own.highest_field_id,
        schemas=(own,),
        current_schema_id=own.schema_id,
        partition_specs=specs,
        default_spec_id=specs[-1].spec_id,
        last_partition_id=1000,
        sort_orders=orders,
        default_sort_order_id=orders[-1].order_id,
        properties=properties or {},
    )
