"""Brings a table into a layout, by the calls that `statements.icebench_commands` prints."""

from __future__ import annotations

import icebench
from icebench.bench.advise.statements import gone_fields, new
from icebench.bench.layouts.layout import TARGET_SIZE, Layout


def rewrite(table: icebench.Table, layout: Layout, today: Layout) -> None:
    """Declare the layout, and rewrite all data files.

    Args:
        table: Is changed.
        layout: Which.
        today: The table's own.

    Raises:
        EngineError: The engine could not read or write.
    """
    for name in gone_fields(layout, today, table):
        table.update_spec(lambda spec, name=name: spec.drop_field(name))  # type: ignore[misc]
    for term in new(layout, today):
        table.update_spec(lambda spec, term=term: spec.add_field(term.column, term.transform))  # type: ignore[misc]
    if layout.properties:
        table.set_properties(dict(layout.properties))
    how = layout.curve_arguments
    if layout.sort:
        how = {"strategy": "sort", "sort_order": [term.column for term in layout.sort]}
    if TARGET_SIZE in layout.properties:
        how["target_file_size_bytes"] = int(layout.properties[TARGET_SIZE])
    table.maintenance.rewrite_data_files(**how, rewrite_all=True)
