"""What a process loads before its first plan."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import icebench

PLAN = """
import sys
import icebench
from icebench.engine.expressions.predicate import Compare
filters = {"none": None, "text": "id < 5 and name > 'b'", "predicate": Compare("id", "<", 5)}
plan = icebench.load_table(sys.argv[1]).scan(filter=filters[sys.argv[2]]).plan()
print(plan.files.num_rows, *sorted(name for name in sys.modules if "." not in name or name.startswith("pyarrow.")))
"""

HEAVY = {
    "numba",
    "pandas",
    "pyarrow.acero",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pyspark",
    "scipy",
    "sqlalchemy",
    "urllib3",
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> icebench.Table:
    catalog = icebench.load_catalog(str(tmp_path_factory.mktemp("warehouse")))
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32())])
    table = catalog.create_table("db.events", schema, partition_spec=[("day", "month"), ("name", "truncate[2]")])
    for start in (0, 10):
        rows = {"id": [start, start + 1], "name": ["abc", "xyz"], "day": [20_000 + start, 20_001]}
        table.append(pa.table(rows, schema))
    return table


@pytest.mark.parametrize("filter", ["none", "text", "predicate"])
def test_first_plan_of_a_small_table_loads_little(table: icebench.Table, filter: str) -> None:
    command = [sys.executable, "-c", PLAN, str(Path(table.location)), filter]
    files, *loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert int(files) == {"none": 4, "text": 1, "predicate": 2}[filter]
    assert not HEAVY & set(loaded)
    assert ("sqlglot" in loaded) == (filter == "text")


READ = """
import sys
import icebench
table = icebench.load_table(sys.argv[1])
print(len(table.scan(filter=sys.argv[2] or None).to_arrow().columns[0]), *sys.modules)
"""

UNREAD = {
    "icebench.engine.codec.puffin.file",
    "icebench.engine.formats.avro.source",
    "icebench.engine.formats.orc.source",
    "icebench.engine.plan.incremental",
    "icebench.engine.spec.creation",
    "icebench.engine.spec.requirements",
    "icebench.engine.spec.schema_evolution",
    "icebench.engine.spec.updates",
    "icebench.engine.spec.views",
    "icebench.engine.storage.signed_s3",
    "numba",
    "pandas",
    "pyarrow.acero",
    "pyarrow.dataset",
    "pyspark",
    "scipy",
    "sqlalchemy",
    "urllib3",
}
"""What changes tables, reads other formats and opens other stores; and pandas, which `pa.array` and `to_numpy` load."""


@pytest.mark.parametrize("format_version", ["2", "3"])
def test_first_rows_of_a_table_with_deletes_load_little(tmp_path: Path, format_version: str) -> None:
    types = {"id": pa.int64(), "name": pa.string(), "price": pa.decimal128(7, 2), "day": pa.date32()}
    schema = pa.schema(types.items())
    table = icebench.load_catalog(str(tmp_path)).create_table(
        "db.sales", schema, partition_spec=[("day", "month")], properties={"format-version": format_version}
    )
    prices = [None if n % 5 == 0 else Decimal(n) for n in range(20)]
    rows = [{"id": n, "name": f"n{n}", "price": prices[n], "day": dt.date(2026, 1 + n % 2, 1)} for n in range(20)]
    table.append(pa.Table.from_pylist(rows, schema))
    table.delete("id in (3, 4)", mode="merge-on-read")
    filters = {"": 18, "id >= 4 and name < 'n5' and price <> 11 and day > date '2026-01-05'": 3}
    for filter, expected in filters.items():
        command = [sys.executable, "-c", READ, str(Path(table.location)), filter]
        count, *loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert int(count) == expected
        assert not UNREAD & set(loaded)
