"""A layout as text that is ready to run: Spark SQL for Iceberg Java, and this project's own commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

import icebench
from icebench.bench.advise.candidates import term_text
from icebench.bench.engines.sql_text import spark_name
from icebench.bench.layouts.layout import TARGET_SIZE, Layout, Term


def spark_statements(layout: Layout, today: Layout, table: str, *, procedures: str = "system") -> list[str]:
    """The statements that give a table the layout, and rewrite its files.

    Iceberg Java has no Hilbert curve: there it is a Z-order.

    Args:
        layout: Which.
        today: The table's own.
        table: Its name, perhaps with the catalog's.
        procedures: Where Spark has the procedures, for a name without the catalog's.
    """
    altered = f"ALTER TABLE {spark_name(table)}"
    found = [f"{altered} DROP PARTITION FIELD {_spark_term(term)}" for term in _gone(layout, today)]
    found += [f"{altered} ADD PARTITION FIELD {_spark_term(term)}" for term in new(layout, today)]
    by = [spark_name(term.column) for term in layout.sort]
    if by and layout.partition:
        found.append(f"{altered} WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY {', '.join(by)}")
    elif by:
        found.append(f"{altered} WRITE ORDERED BY {', '.join(by)}")
    elif today.sort:
        found.append(f"{altered} WRITE {'DISTRIBUTED BY PARTITION ' if layout.partition else ''}UNORDERED")
    if layout.properties:
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in layout.properties.items())
        found.append(f"{altered} SET TBLPROPERTIES ({listed})")
    catalog, _, name = table.partition(".") if table.count(".") > 1 else ("", "", table)
    parts = [f"table => '{spark_name(name)}'"]
    if layout.curve:
        parts += ["strategy => 'sort'", f"sort_order => 'zorder({', '.join(map(spark_name, layout.curve))})'"]
    elif layout.sort:
        order = ", ".join(f"{column} ASC NULLS FIRST" for column in by)
        parts += ["strategy => 'sort'", f"sort_order => '{order}'"]
    parts.append("options => map('rewrite-all', 'true')")
    found.append(
        f"CALL {f'{spark_name(catalog)}.system' if catalog else procedures}.rewrite_data_files({', '.join(parts)})"
    )
    return found


def _spark_term(term: Term) -> str:
    return term_text(replace(term, column=spark_name(term.column)))


def icebench_commands(layout: Layout, today: Layout, table: icebench.Table, opened: tuple[str, ...]) -> list[str]:
    """The same with this project: Python for what the table declares, then the command that rewrites.

    Args:
        layout: Which.
        today: The table's own.
        table: The table.
        opened: Arguments of ``icebench maintain``: catalog, table, and the warehouse's option.
    """
    found = list(_python(layout, today, table))
    words = ["icebench", "maintain", "rewrite-data-files", *opened, "--rewrite-all"]
    words += [word for term in layout.sort for word in ("--sort-by", term.column)]
    words += [word for column in layout.zorder for word in ("--zorder-by", column)]
    words += [word for column in layout.hilbert for word in ("--hilbert-by", column)]
    if TARGET_SIZE in layout.properties:
        words += ["--target-file-size-bytes", layout.properties[TARGET_SIZE]]
    return [*found, shlex.join(words)]


def _python(layout: Layout, today: Layout, table: icebench.Table) -> Iterator[str]:
    for name in gone_fields(layout, today, table):
        yield f"table.update_spec(lambda spec: spec.drop_field({name!r}))"
    for term in new(layout, today):
        yield f"table.update_spec(lambda spec: spec.add_field({term.column!r}, {term.transform!r}))"
    if layout.properties:
        yield f"table.set_properties({dict(layout.properties)!r})"


def gone_fields(layout: Layout, today: Layout, table: icebench.Table) -> list[str]:
    """Names of the table's partition fields that the layout lacks."""
    ids = table.schema().id_of
    wanted = {(ids[term.column], term.transform) for term in _gone(layout, today)}
    return [field.name for field in table.spec.fields if (field.source_id, str(field.transform)) in wanted]


def _gone(layout: Layout, today: Layout) -> tuple[Term, ...]:
    return tuple(term for term in today.partition if term not in layout.partition)


def new(layout: Layout, today: Layout) -> tuple[Term, ...]:
    """Partition fields that today's layout lacks."""
    return tuple(term for term in layout.partition if term not in today.partition)
