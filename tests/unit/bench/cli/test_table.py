from __future__ import annotations

import csv
import io
import json
import os
import pty
import sys
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import icebench
from icebench.bench.cli.context import Context
from icebench.bench.cli.metadata_tables import SHORT
from icebench.bench.cli.table import table as command
from icebench.bench.cli.terminal import Terminal
from tests.unit.bench.cli.test_main import exit_code

SCHEMA = pa.schema([("name", pa.string()), ("id", pa.int64()), ("ts", pa.timestamp("us"))])
MONTH = 30 * 24 * 3600 * 1_000_000


@pytest.fixture
def made(tmp_path: Path) -> icebench.Table:
    """Partitions of months and buckets, files of several sizes, and one position-delete file."""
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    found = catalog.create_table(
        "db.t",
        SCHEMA,
        partition_spec=[("ts", "month"), ("name", "bucket[2]")],
        sort_order=["id"],
        properties={"format-version": "2", "write.delete.mode": "merge-on-read"},
    )
    for size in (40, 4):
        ids = list(range(size))
        columns = {"name": [f"n{i}" for i in ids], "id": ids, "ts": [(i % 4) * MONTH for i in ids]}
        found.append(pa.table({f.name: pa.array(columns[f.name]).cast(f.type) for f in SCHEMA}))
    found.delete("id = 39")
    return found


def shown(made: icebench.Table, name: str, *options: str, width: int = 80) -> list[str]:
    """What a terminal of that width shows."""
    file = io.StringIO()
    out = Console(file=file, width=width, height=1000, force_terminal=True, highlight=False, color_system=None)
    context = Context(terminal=Terminal(out=out, err=Console(file=io.StringIO())))
    assert command.main([name, made.location, *options], standalone_mode=False, obj=context) == 0
    return file.getvalue().splitlines()


@pytest.mark.parametrize("name", SHORT)
def test_the_short_form_fits_80_columns_and_has_a_line_for_each_row(made: icebench.Table, name: str) -> None:
    lines = shown(made, name)
    assert max(map(len, lines)) <= 80
    assert len(lines) == 1 + getattr(made.inspect, name)().num_rows
    assert len({len(line.split()) for line in lines[1:]}) <= 3


def test_every_metadata_table_has_a_short_form(made: icebench.Table) -> None:
    inspector = made.inspect
    assert set(SHORT) == {n for n in dir(inspector) if not n.startswith("_") and callable(getattr(inspector, n))}


def test_files_say_what_is_asked_first(made: icebench.Table) -> None:
    heading, *lines = shown(made, "data_files", "--sort", "partition.ts_month,partition.name_bucket,-rows", width=120)
    assert heading.split() == ["file", "rows", "size", "partition", "deletes", "sorted", "lower", "upper"]
    files = {
        each["file_path"].rpartition("/")[2].removesuffix(".parquet"): each for each in made.inspect.files().to_pylist()
    }
    deleted = {
        each.rpartition("/")[2].removesuffix(".parquet")
        for each in made.inspect.position_deletes()["file_path"].to_pylist()
    }
    months = []
    for line in lines:
        name, rows, _, _, partition, deletes, order, lower, upper = line.split()
        file = files[name]
        bounds = file["readable_metrics"]["id"]
        assert [int(rows), int(lower), int(upper)] == [
            file["record_count"],
            bounds["lower_bound"],
            bounds["upper_bound"],
        ]
        assert (deletes, order) == ("1" if name in deleted else "0", "id")
        month, bucket = partition.split("/")
        assert month == f"1970-{file['partition']['ts_month'] + 1:02d}"
        assert int(bucket) == file["partition"]["name_bucket"]
        months.append((month, bucket, -int(rows)))
    assert months == sorted(months)
    assert len(deleted) == 1


def test_delete_files_are_named_where_there_are_any(made: icebench.Table) -> None:
    kinds = [line.split()[1] for line in shown(made, "files")[1:]]
    assert kinds.count("position") == 1
    assert "kind" not in shown(made, "files", "--snapshot", str(made.snapshots[0].snapshot_id))[0]


def test_a_narrow_terminal_cuts_texts_in_their_middle_and_no_number(made: icebench.Table) -> None:
    _, line, *_ = shown(made, "data_files", width=60)
    assert len(line) <= 60
    assert "…" in line
    full = shown(made, "data_files", width=200)[1]
    assert line.split()[0][:3] == full.split()[0][:3]
    assert line.split()[0][-3:] == full.split()[0][-3:]
    assert line.split()[1] == full.split()[1]


def test_snapshots_and_refs(made: icebench.Table) -> None:
    _, first, _, last = shown(made, "snapshots")
    assert first.split()[2:] == [str(made.snapshots[0].snapshot_id), "append", "40", "6", "40"]
    assert last.split()[3] == "delete"
    assert shown(made, "refs")[1].split() == ["main", "BRANCH", str(made.snapshots[-1].snapshot_id)]


def rows_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_where_and_sort_take_columns_of_both_forms(made: icebench.Table, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--where", "rows > 2 and kind = 'data' and lower < 7", "--sort", "-file_size_in_bytes")
    columns = "rows,file_size_in_bytes,readable_metrics.id.lower_bound"
    assert exit_code("table", "files", made.location, *options, "--columns", columns, "--format", "json") == 0
    found = rows_of(capsys)
    assert list(found[0]) == columns.split(",")
    sizes = [int(str(row["file_size_in_bytes"])) for row in found]
    assert sizes == sorted(sizes, reverse=True)
    expected = [
        file
        for file in made.inspect.data_files().to_pylist()
        if file["record_count"] > 2 and file["readable_metrics"]["id"]["lower_bound"] < 7
    ]
    assert len(found) == len(expected) > 0


def test_programs_get_all_rows_and_columns(
    made: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = made.inspect.files()
    assert exit_code("table", "files", made.location, "--format", "csv") == 0
    heading, *lines = csv.reader(io.StringIO(capsys.readouterr().out))
    assert heading == files.column_names
    assert [line[1] for line in lines] == files["file_path"].to_pylist()
    page = tmp_path / "files.parquet"
    assert exit_code("table", "files", made.location, "--format", "parquet", "-o", page, "--limit", 3) == 0
    assert pq.read_table(page)["file_path"].to_pylist() == files["file_path"].to_pylist()[:3]
    text = tmp_path / "files.json"
    assert exit_code("table", "files", made.location, "--format", "json", "-o", text) == 0
    assert len(text.read_text().splitlines()) == files.num_rows
    assert capsys.readouterr().out == ""


def test_an_unpartitioned_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = icebench.load_catalog(str(tmp_path / "wh")).create_table("db.t", SCHEMA)
    for name in SHORT:
        assert exit_code("table", name, tmp_path / "wh", "db.t") == 0
    table.append(pa.table({"name": ["a"], "id": [1], "ts": [None]}, SCHEMA))
    for name in SHORT:
        assert exit_code("table", name, table.location) == 0
        file = tmp_path / f"{name}.parquet"
        assert exit_code("table", name, table.location, "--format", "parquet", "-o", file) == 0
        assert pq.read_table(file).num_rows == getattr(table.inspect, name)().num_rows
    assert "partition" not in pq.read_table(tmp_path / "entries.parquet")["data_file"].type.names
    assert "lower, upper: the bounds of name" in capsys.readouterr().err


def test_a_partition_of_a_day_outside_the_years_of_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    days = pa.array([4_000_000, 1], pa.int32()).cast(pa.date32())
    catalog = icebench.load_catalog(str(tmp_path))
    made = catalog.create_table("db.far", pa.schema([("d", pa.date32())]), partition_spec=[("d", "day")])
    made.append(pa.table({"d": days}))
    for name in ("files", "partitions"):
        assert sum("12921-08-18" in line for line in shown(made, name, width=120)) == 1
        assert exit_code("table", name, made.location, "--format", "json") == 0
        partitions = [row["partition"] for row in rows_of(capsys)]
        assert {"d_day": "12921-08-18"} in partitions


def test_a_partition_of_an_hour_outside_the_years_of_python(tmp_path: Path) -> None:
    at = pa.array([2**58, 0]).cast(pa.timestamp("us"))
    catalog = icebench.load_catalog(str(tmp_path))
    made = catalog.create_table("db.far", pa.schema([("at", at.type)]), partition_spec=[("at", "hour")])
    made.append(pa.table({"at": at}))
    lines = shown(made, "partitions", width=120)
    assert sorted(line.split()[0] for line in lines[1:]) == ["11103-08-29-17", "1970-01-01-00"]


def test_bounds_of_partitions_whose_column_is_in_no_schema() -> None:
    column = SHORT["manifests"][-1]
    assert column.shown is not None
    summaries = [("a", "b"), ("", ""), (None, None)]
    assert column.shown([{"lower_bound": low, "upper_bound": high} for low, high in summaries]) == "a to b, , ?"


def test_wide_has_every_column_in_full(made: icebench.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Console, "pager", lambda _: nullcontext())
    lines = shown(made, "files", "--wide")
    assert lines[0].split() == made.inspect.files().column_names
    for path, line in zip(made.inspect.files()["file_path"].to_pylist(), lines[1:], strict=True):
        assert path in line


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--columns", "nope"), "--columns: no column 'nope'; there are: file, kind, rows"),
        (("--columns", "partition.nope"), "partition has no field 'nope'; there are: ts_month, name_bucket"),
        (("--sort", "-nope"), "--sort: no column 'nope'; there are: file,"),
        (("--sort", "partition"), "partition.ts_month, partition.name_bucket"),
        (("--where", "nope = 1"), "no column 'nope'; the columns are file, kind, rows"),
        (("--where", "rows >"), "cannot parse the filter 'rows >'"),
        (("--columns", "rows,rows", "--format", "json"), "--columns: two columns are named 'rows'"),
        (("--format", "parquet"), "needs a file"),
        (("--wide", "--columns", "rows"), "--wide"),
    ],
)
def test_what_is_wrong_is_said_with_what_there_is(
    made: icebench.Table, options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("table", "files", made.location, *options) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_an_unknown_metadata_table(made: icebench.Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("table", "nope", made.location) == 2
    assert "no metadata table 'nope'; there are: " in capsys.readouterr().err
    assert exit_code("table", "refs", made.location, "--snapshot", 1) == 2


@pytest.mark.parametrize(
    ("rows", "option", "less"), [(5, "--limit=20", "FRSX"), (60, "--limit=20", None), (60, "--wide", "RSX")]
)
def test_a_pager_shows_what_is_longer_or_wider_than_the_screen(
    made: icebench.Table, tmp_path: Path, rows: int, option: str, less: str | None
) -> None:
    pager = tmp_path / "pager"
    pager.write_text(f'#!/bin/sh\nprintf %s "$LESS" >{tmp_path / "less"}\ntee {tmp_path / "paged"}\n')
    pager.chmod(0o755)
    child, terminal = pty.fork()
    if child == 0:
        environment = {**os.environ, "PAGER": str(pager), "LINES": str(rows), "COLUMNS": "80", "TERM": "xterm"}
        environment.pop("LESS", None)
        program = "from icebench.bench.cli.main import main; main()"
        arguments = ["table", "files", made.location, option]
        os.execve(sys.executable, [sys.executable, "-c", program, *arguments], environment)
    text = b""
    while True:
        try:
            text += os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
    assert os.waitpid(child, 0)[1] == 0
    assert b"deletes" in text
    assert (tmp_path / "paged").exists() == (less is not None)
    if less is not None:
        assert (tmp_path / "less").read_text() == less
        assert len((tmp_path / "paged").read_text().splitlines()) == 1 + made.inspect.files().num_rows
