"""A table in a few lines, from its metadata alone."""

from __future__ import annotations

from collections.abc import Sequence

from icebench.engine.display import count_text, html_fold, html_table, printable
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import MAIN, instant_text
from icebench.engine.spec.sorting import SortField, SortOrder


def table_text(name: str, metadata: TableMetadata, location: str) -> str:
    """Name, size, columns, partitioning, order and head of a table whose metadata file is at `location`."""
    head = metadata.current_snapshot
    size = ["no snapshot"] if head is None else head.totals()
    lines = [f"Table({printable(name)}, {', '.join([f'format {metadata.format_version}', *size])})"]
    return "\n".join([*lines, *(f"  {what}: {text}" for what, text in _facts(metadata, location) if text)])


def table_html(name: str, metadata: TableMetadata, location: str) -> str:
    """The same as `table_text`, with the schema and the last snapshots folded below."""
    size = [] if metadata.current_snapshot is None else metadata.current_snapshot.totals()
    title = ", ".join([f"Table {printable(name)}", f"format {metadata.format_version}", *size])
    latest = [
        (str(s.snapshot_id), instant_text(s.timestamp_ms), s.operation, ", ".join(s.totals()))
        for s in reversed(metadata.snapshots[-20:])
    ]
    parts = [html_table(("", ""), [fact for fact in _facts(metadata, location) if fact[1]])]
    parts += [_schema(metadata)._repr_html_()]
    snapshots = html_table(("snapshot", "time", "operation", "table then"), latest)
    parts += [html_fold(count_text(len(metadata.snapshots), "snapshot"), [snapshots])]
    return html_fold(title, parts, is_open=True)


def _facts(metadata: TableMetadata, location: str) -> list[tuple[str, str]]:
    schema, head = _schema(metadata), metadata.current_snapshot
    columns = ", ".join(f"{printable(f.name, 40)} {f.type}" for f in schema.fields[:50])
    order = next((o for o in metadata.sort_orders if o.order_id == metadata.default_sort_order_id), SortOrder())
    spec = metadata.spec_by_id.get(metadata.default_spec_id, PartitionSpec())
    at = "" if head is None else f"{head.snapshot_id}, {head.operation}, {instant_text(head.timestamp_ms)}"
    names = [f"{ref.type} {name}" for name, ref in metadata.refs.items() if name != MAIN]
    return [
        (count_text(len(schema.fields), "column"), printable(columns)),
        ("partitioned by", printable(spec_text(spec, schema))),
        ("sorted by", printable(order_text(order, schema))),
        ("snapshot", f"{at} ({len(metadata.snapshots):,} in all)" if at else ""),
        ("refs", printable(", ".join(names))),
        ("metadata", printable(location, 200)),
    ]


def _schema(metadata: TableMetadata) -> Schema:
    return metadata.schema_by_id.get(metadata.current_schema_id, Schema(()))


def spec_text(spec: PartitionSpec, schema: Schema) -> str:
    """Partition fields as ``day(ts), bucket[16](id)``; empty for an unpartitioned spec."""
    return ", ".join(_keys(spec.fields, schema))


def order_text(order: SortOrder, schema: Schema) -> str:
    """Sort keys as ``day(ts) asc nulls-first, id desc nulls-last``; empty for an unsorted order."""
    keys = _keys(order.fields, schema)
    return ", ".join(f"{key} {f.direction} {f.null_order}" for key, f in zip(keys, order.fields, strict=True))


def _keys(fields: Sequence[PartitionField | SortField], schema: Schema) -> list[str]:
    found = []
    for f in fields:
        columns = ", ".join(schema.name_of.get(i, f"column {i}") for i in f.source_ids)
        found.append(columns if str(f.transform) == "identity" else f"{f.transform}({columns})")
    return found
