"""The tables of a namespace as temporary views of a Spark session, each with the native scan of `Scan.to_spark`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icebench.engine.errors import Invalid
from icebench.engine.spark.types import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icebench.engine.opening.catalog import Catalog, Name


def register_views(spark: SparkSession, catalog: Catalog, namespace: Name, tables: Sequence[str] | None) -> list[str]:
    """See `icebench.spark.register_views`."""
    found = {name.rpartition(".")[2]: name for name in catalog.list_tables(namespace)}
    chosen = list(found) if tables is None else list(tables)
    if missing := [name for name in chosen if name not in found]:
        raise Invalid(f"the namespace has no table {missing[0]!r}; it has: {', '.join(sorted(found))}")
    alike = {name.lower(): name for name in chosen}
    for name in chosen:
        if alike[name.lower()] != name:
            raise Invalid(f"{name!r} and {alike[name.lower()]!r} are one name for Spark: give one of them as `tables`")
    # All scans first: a table that cannot be read leaves the session's views as they were.
    frames = {name: catalog.load_table(found[name]).scan().to_spark(spark) for name in chosen}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(quoted(name))
    return chosen
