"""What is checked before scans of fresh processes are timed."""

import pyarrow as pa

from icebench.bench.execution.run_file import RunWriter
from icebench.bench.records.case import Case
from icebench.bench.trials.fresh_scans import FreshScans
from tests.unit.bench.execution.scripted import Clock, ScriptedEngine, recorded


def test_who_delivers_as_many_other_rows_is_not_timed(writer: RunWriter) -> None:
    clock = Clock()
    right, wrong = (pa.RecordBatch.from_pydict({"x": [1, last]}) for last in (2, 3))
    engines = [ScriptedEngine(name, clock, rows={"m": rows}) for name, rows in (("icebench", right), ("duckdb", wrong))]
    made = recorded(writer, clock, *engines, truth={"m": right})
    case = Case(workload="w", layout="large", measurement="reading")
    scans = FreshScans(case=case, location="m", rows=2, engines=("icebench", "duckdb"), columns=("x",))
    assert [trial.case.engine for trial in scans.trials(made.bench)] == ["icebench"]
    assert [(f.engine, f.message) for f in made.failures] == [
        ("duckdb", "delivers wrong rows: column x: sum 4 against 3")
    ]
