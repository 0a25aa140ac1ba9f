"""A table of UUIDs at every depth, of which all engines must deliver the same checksum."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pyarrow as pa

import icebench
from icebench.bench.engines.checksum import checksum_of
from icebench.bench.engines.engine import AnyEngine

COLUMNS = ["id", "top", "inside", "listed", "name"]
_KEYS = pa.array([UUID(int=2**127 + 5).bytes, UUID(int=0).bytes, None, UUID(int=2**128 - 1).bytes], pa.uuid())
_ROWS = pa.table(
    {
        "id": pa.array(range(4)),
        "top": _KEYS,
        "inside": pa.StructArray.from_arrays(
            [_KEYS, pa.array(range(4))], ["u", "n"], mask=pa.array([False, False, False, True])
        ),
        "listed": pa.ListArray.from_arrays(pa.array([0, 3, None, 3, 4], pa.int32()), _KEYS),
        "name": ["00000000-0000-0000-0000-000000000000", "", "A", None],
    }
)


def table_of_uuids(folder: Path) -> str:
    """The metadata file of a new table."""
    catalog = icebench.load_catalog(str(folder))
    table = catalog.create_table("db.uuids", _ROWS.schema)
    table.append(_ROWS)
    catalog.close()
    return table.metadata_location


WRONG = {"clickhouse": "column inside: 0 nulls against 1"}
"""What engines get wrong: ClickHouse takes a null struct for a struct of nulls."""


def check_uuids(engine: AnyEngine, location: str) -> None:
    """Compare what the engine delivers with the rows, with and without a filter."""
    handle = engine.open(location)
    for filter, rows in ((None, _ROWS), ("id >= 2", _ROWS.slice(2))):
        found = engine.checksum(handle, COLUMNS, engine.compile(handle, filter))
        difference = found.difference(checksum_of(rows.to_batches(), COLUMNS))
        assert difference == WRONG.get(engine.name), f"{engine.name}: {difference}"
