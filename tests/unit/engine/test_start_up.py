"""What a process loads before its first plan."""

from __future__ import annotations

import subprocess
import sys
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
