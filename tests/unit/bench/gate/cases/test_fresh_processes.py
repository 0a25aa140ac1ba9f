from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.bench.gate.cases import fresh_processes
from icebench.bench.gate.cases.fresh_processes import SCRIPTS, FreshProcessFailed, count_fresh


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    catalog = icebench.load_catalog(str(tmp_path))
    for name in {table for _, table in SCRIPTS.values() if table}:
        table = catalog.create_table(("db", name), pa.schema([("id", pa.int64())]))
        for number in range(3):
            table.append(pa.table({"id": [number]}))
    return str(tmp_path)


def test_a_process_loads_more_the_more_it_does(warehouse: str) -> None:
    found = count_fresh(warehouse, "db", lambda name: name in {"fresh/import", "fresh/first-plan", "fresh/first-rows"})
    imported, planned, read = (
        found[f"fresh/{name}"]["modules_imported"] for name in ("import", "first-plan", "first-rows")
    )
    assert 0 < imported < planned < read


def test_what_is_held_and_not_used_is_peak_memory(warehouse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script, table = SCRIPTS["fresh/plans"]
    leaking = script.replace(".plan()", ".plan(); kept.append(b'x' * (4 << 20))").replace(
        "import json", "kept = []\nimport json", 1
    )
    monkeypatch.setattr(fresh_processes, "SCRIPTS", {"sound": (script, table), "leaking": (leaking, table)})
    found = count_fresh(warehouse, "db")
    assert found["leaking"]["resident_bytes_peak"] - found["sound"]["resident_bytes_peak"] > 150 << 20


@pytest.mark.parametrize("runner", ["", "runner=icebench.engine.runtime.local.LocalRunner(1)"])
def test_threads_that_ask_for_nothing_are_idle(warehouse: str, monkeypatch: pytest.MonkeyPatch, runner: str) -> None:
    script, table = SCRIPTS["fresh/threads"]
    script = script.replace("counters=Noted()", f"counters=Noted(), {runner}").replace(
        "processors = ", "processors = 2 or "
    )
    imported = script.replace("import icebench\n", "import icebench\nimport icebench.engine.runtime.local\n")
    slow = imported.replace("two.wait(10)", "two.wait(2)")
    monkeypatch.setattr(fresh_processes, "SCRIPTS", {"threads": (slow, table)})
    assert count_fresh(warehouse, "db") == {"threads": {"threads_idle": 1 if runner else 0}}


def test_a_process_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(FreshProcessFailed, match=r"^fresh/plans: .*partitioned"):
        count_fresh(str(tmp_path), "db", lambda name: name == "fresh/plans")
