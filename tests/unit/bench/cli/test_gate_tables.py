from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

import icebench
from icebench.bench.cli import gate_tables
from icebench.bench.cli.context import Context
from icebench.bench.cli.failures import run_guarded
from icebench.bench.cli.gate import gate as command
from icebench.bench.cli.gate_tables import RowChecks, count_plans
from icebench.bench.cli.terminal import Terminal
from icebench.bench.errors import ConfigError
from icebench.bench.gate.cases import planned_work
from icebench.bench.trials.planning import TableFiles
from tests.unit.bench.cli.test_main import exit_code

ROOT = Path(__file__).parents[4]
DEFINITION = """
name = "mine"
engines = ["icebench"]
measurements = ["planning"]

[[workload]]
kind = "table"
path = "warehouse/db/sales"

[filters]
early = "day < 10"
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> icebench.Table:
    """A table of four files of ten days each, its definition beside it, and the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(DEFINITION)
    table = icebench.load_catalog(str(tmp_path / "warehouse")).create_table(
        "db.sales", pa.schema([("day", pa.int32()), ("item", pa.int64())])
    )
    for start in range(0, 40, 10):
        days = pa.array(range(start, start + 10), pa.int32())
        table.append(pa.table({"day": days, "item": pa.array(range(10), pa.int64())}))
    return table


def gate(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    console = Console(file=out, width=300)
    context = Context(terminal=Terminal(out=console, err=console))
    options = ["--tables", "mine.toml", *arguments]
    code = run_guarded(
        lambda: int(command.main(options, prog_name="gate", standalone_mode=False, obj=context)),
        debug=lambda: False,
        err=out,
    )
    return code, out.getvalue()


def test_a_table_that_got_worse_fails_until_that_is_accepted_by_name(table: icebench.Table) -> None:
    code, text = gate()
    assert code == 4
    assert "mine.baseline.json: no baseline; 'icebench gate --tables mine.toml --accept' makes the first one" in text
    assert gate("--accept")[0] == 0
    baseline = json.loads(Path("mine.baseline.json").read_text())
    early = baseline["cases"]["sales/early"]["counters"]
    assert (early["files_planned"], baseline["cases"]["sales/no-filter"]["counters"]["files_planned"]) == (1, 4)
    files = table.inspect.files().select(["file_size_in_bytes"]).to_pydict()["file_size_in_bytes"]
    assert baseline["cases"]["sales/no-filter"]["counters"]["bytes_planned"] == sum(files)
    assert baseline["environment"] == {}
    assert gate()[0] == 0
    table.append(pa.table({"day": pa.array([5, 35], pa.int32()), "item": pa.array([1, 1], pa.int64())}))
    code, text = gate()
    assert code == 1
    assert "sales/early: files_planned increased 1 -> 2 (+100.0%)" in text
    code, text = gate("--accept")
    assert code == 1
    flags = text.partition("icebench gate --tables mine.toml --accept ")[2].split()
    assert gate("--accept", *flags)[0] == 0
    assert gate()[0] == 0


@pytest.mark.parametrize("definition", ["", ".", "..", "nowhere.toml"])
def test_a_definition_is_a_file(definition: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("gate", "--tables", definition) == 4
    assert "no such file; it is a definition" in capsys.readouterr().err


def test_what_cannot_be_counted_is_a_fault_of_the_configuration(table: icebench.Table) -> None:
    Path("mine.toml").write_text(DEFINITION.partition("[filters]")[0])
    with pytest.raises(ConfigError, match="filters: name some"):
        count_plans(Path("mine.toml"), RowChecks(before=None))
    Path("mine.toml").write_text(DEFINITION.replace("db/sales", "db/gone"))
    code, text = gate("--accept")
    assert code == 4
    assert text.count("\n") == 1
    assert "db/gone: no such table" in text


def test_tables_of_several_workloads_are_cases_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They share the names of layouts and filters."""
    monkeypatch.chdir(tmp_path)
    workloads = "".join(f'[[workload]]\nkind = "wide"\nrows = 100\ncolumns = {columns}\n' for columns in (30, 60))
    Path("mine.toml").write_text(
        'name = "mine"\nengines = ["icebench"]\nmeasurements = ["planning"]\nlayouts = ["unpartitioned"]\n'
        f'{workloads}[spark]\nmaster = "local[2]"\n'
    )
    code, text = gate("--accept")
    assert code == 0, text
    cases = json.loads(Path("mine.baseline.json").read_text())["cases"]
    whole = {name: case["counters"]["bytes_planned"] for name, case in cases.items() if name.endswith("/no-filter")}
    assert sorted(whole) == [f"wide, {columns} columns/unpartitioned/no-filter" for columns in (30, 60)]
    assert len(set(whole.values())) == 2


def lose(files: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans from now on lack the last files."""
    plan = icebench.Scan.plan

    def lossy(self: icebench.Scan, *arguments: Any, **options: Any) -> Any:
        found = plan(self, *arguments, **options)
        return replace(found, files=found.files.slice(0, max(found.files.num_rows - files, 0)))

    monkeypatch.setattr(icebench.Scan, "plan", lossy)
    count = planned_work.planned_work

    def counting(scan: icebench.Scan) -> planned_work.PlannedWork:
        found = count(scan)
        return replace(found, counters={**found.counters, "files_planned": found.plan.files.num_rows})

    monkeypatch.setattr(gate_tables, "planned_work", counting)


ITEMS = DEFINITION.replace("day < 10", "item = 7")


def test_a_plan_that_loses_files_with_matching_rows_fails_and_cannot_be_accepted(
    table: icebench.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("mine.toml").write_text(ITEMS)
    assert gate("--accept")[0] == 0
    accepted = Path("mine.baseline.json").read_text()
    lose(1, monkeypatch)
    code, text = gate()
    assert code == 1
    assert "sales/early: does not plan 1 file" in text
    assert "with 1 matching rows: its scans lose rows" in text
    assert "sales/no-filter: without a filter, does not plan 1 file" in text
    allowed = [f"--allow=sales/{case}:checksum" for case in ("early", "no-filter")]
    assert gate("--accept", *allowed)[0] == 1
    assert Path("mine.baseline.json").read_text() == accepted


def test_lost_rows_are_found_in_another_snapshot_too(table: icebench.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mine.toml").write_text(ITEMS)
    assert gate("--accept")[0] == 0
    table.maintenance.rewrite_data_files(rewrite_all=True)
    code, text = gate()
    assert code == 0, text
    assert "sales/early: files_planned decreased 4 -> 1" in text
    lose(1, monkeypatch)
    code, text = gate()
    assert code == 1
    assert "with 4 matching rows: its scans lose rows" in text


def test_other_planned_files_of_the_same_snapshot_are_accepted_by_name(table: icebench.Table) -> None:
    """Here the accepted plan had all files, and the filter leaves one of them."""
    Path("mine.toml").write_text(DEFINITION.replace("day < 10", "item < 99"))
    assert gate("--accept")[0] == 0
    Path("mine.toml").write_text(DEFINITION)
    code, text = gate()
    assert code == 1
    assert "sales/early: the answer changed, checksum" in text
    assert gate("--accept")[0] == 1
    assert gate("--accept", "--allow", "sales/early:checksum")[0] == 0
    assert gate()[0] == 0


def test_a_plan_that_cannot_be_checked_is_named(table: icebench.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gate("--accept")[0] == 0
    monkeypatch.setattr(TableFiles, "doubt", lambda *_: "no DuckDB")
    code, text = gate("--accept")
    assert code == 0
    assert "sales/early: not checked against rows: no DuckDB" in text
