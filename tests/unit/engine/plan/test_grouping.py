from __future__ import annotations

from decimal import Decimal

from icebench.engine.codec.array_views import bytes_array_of
from icebench.engine.plan.grouping import partition_codes
from icebench.engine.plan.manifests import ManifestSource, live_entries
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.partitioning import partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import DecimalType, NestedField
from tests.property.manifest_batches import with_column
from tests.property.table_builder import TableBuilder, added, data_file


def test_a_decimal_is_one_partition_however_wide_it_was_written() -> None:
    schema = Schema((NestedField(field_id=1, name="d", type=DecimalType(9, 2)),))
    spec = partition_spec(schema, [("d", Identity())])
    builder = TableBuilder(schema, (spec,))
    files = [added(data_file(f"memory://t/{i}", partition=(Decimal(i),))) for i in range(4)]
    manifest = builder.add_manifest(files, sequence_number=1)
    columns = ManifestSource(store=builder.store, runner=LocalRunner(1)).columns(manifest, frozenset())
    # 7 in one byte and in two, -7 in one and in three.
    written = bytes_array_of([b"\x07", b"\x00\x07", b"\xf9", b"\xff\xff\xf9"])
    (field_id,) = columns.keys_of("partition")
    entries = live_entries(manifest, with_column(columns, f"partition/{field_id}", written))
    assert partition_codes([entries], builder.metadata()).tolist() == [0, 0, 1, 1]
