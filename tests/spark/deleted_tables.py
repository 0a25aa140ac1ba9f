"""A table with every kind of delete there is, over two partition specs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import icebench
from icebench.engine.spec.transforms import Identity
from icebench.engine.table import Table

FIELDS = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string()), pa.field("day", pa.int32())])


def rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    return pa.table({"id": numbers, "name": [f"n{n}" for n in numbers], "day": [n % 3 for n in numbers]}, schema=FIELDS)


def open_catalog(directory: Path) -> icebench.Catalog:
    return icebench.load_catalog(f"sqlite:///{directory}/catalog.db", warehouse=str(directory))


def place_of(directory: Path) -> dict[str, str]:
    """The same catalog as options of the data source."""
    return {"catalog": f"sqlite:///{directory}/catalog.db", "warehouse": str(directory)}


def with_every_delete(directory: Path) -> Table:
    """Position-delete files, equality deletes and deletion vectors, unpartitioned and by day."""
    table = open_catalog(directory).create_table(
        "db.t", FIELDS, properties={"format-version": "2", "write.parquet.row-group-size-bytes": "6000"}
    )
    table.append(rows(0, 1000))
    table.delete("id between 30 and 60 or id = 150", "merge-on-read")
    stream = table.keyed_stream(["id"])
    stream.delete(pa.table({"id": [1, 200, 201]}))
    stream.update(rows(300, 310).set_column(1, "name", pa.array(["new"] * 10)))
    stream.commit()
    table.update_spec(lambda spec: spec.add_field("day", Identity()))
    table.append(rows(1000, 2000))
    table.delete("id = 1001", "merge-on-read")
    table.upgrade_format(3)
    table.delete("id between 1100 and 1200 or id = 999", "merge-on-read")
    return table
