from __future__ import annotations

from decimal import Decimal
from typing import Any

from icebench.engine.codec.array_views import bytes_array_of
from icebench.engine.plan.grouping import partition_codes
from icebench.engine.plan.manifests import ManifestSource, live_entries
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.partitioning import partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import INT, STRING, DecimalType, NestedField
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


def test_specs_that_share_field_ids_have_partitions_of_their_own() -> None:
    """As in format version 1: values of two types, in manifests of either spec in turns."""
    schema = Schema((NestedField(field_id=1, name="n", type=INT), NestedField(field_id=2, name="s", type=STRING)))
    specs = [partition_spec(schema, [(name, Identity())], spec_id=spec_id) for spec_id, name in enumerate("ns")]
    builder = TableBuilder(schema, tuple(specs))
    given: list[tuple[int, list[Any]]] = [(0, [1, 2]), (1, ["a", "b", "a"]), (0, [2]), (1, ["b", None]), (0, [None, 1])]
    for number, (spec_id, values) in enumerate(given):
        files = [
            added(data_file(f"memory://t/{number}-{n}", spec_id=spec_id, partition=(value,)))
            for n, value in enumerate(values)
        ]
        builder.add_manifest(files, spec_id=spec_id, sequence_number=1)
    source = ManifestSource(store=builder.store, runner=LocalRunner(1))
    entries = [live_entries(m, source.columns(m, frozenset())) for m in builder.manifests]
    found = partition_codes(entries, builder.metadata()).tolist()
    wanted = [(spec_id, value) for spec_id, values in given for value in values]
    assert len(set(found)) == len(set(wanted)) == len(set(zip(found, wanted, strict=True)))
