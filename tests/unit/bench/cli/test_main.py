from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

import icebench
from icebench.bench.cli.main import COMMANDS, app, main
from icebench.bench.execution.run_file import RunWriter
from icebench.bench.experiment import known_experiments, load_experiment
from tests.unit.bench.report.sample_run import ENVIRONMENT, FAILED, sample_run


def exit_code(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(a) for a in arguments])
    return int(caught.value.code or 0)


def write_run(results: Path, *, failed: bool = False) -> Path:
    run = sample_run()
    path = results / "runs" / f"{run.run_id}.jsonl"
    with RunWriter(path, run_id=run.run_id, environment=ENVIRONMENT) as writer:
        for measured in run.measured:
            writer.case(measured)
            for sample in measured.samples:
                writer.sample(measured.case, sample)
        if failed:
            writer.add(FAILED)
        writer.close(failed=failed)
    return path


def test_help_lists_every_command_without_importing_what_is_heavy() -> None:
    program = (
        "import sys; from icebench.bench.cli.main import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'pyspark', 'numba', 'matplotlib', 'pyarrow', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[-1] == "[]"
    for name, entry in COMMANDS.items():
        assert any(line.split() == [name, *entry.help.split()] for line in lines)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_where_the_table_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(name, "--help") == 0
    assert f"Usage: icebench {name}" in capsys.readouterr().out


def test_the_version_is_the_distributions(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--version") == 0
    assert capsys.readouterr().out.startswith("icebench, version ")


def test_an_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("nope") == 2
    assert "No such command 'nope'" in capsys.readouterr().err


@pytest.mark.parametrize(("value", "shows"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_tracebacks_of_all_errors_by_a_variable(
    value: str, shows: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ICEBENCH_DEBUG", value)
    assert exit_code("report", "none") == 2
    assert ("Traceback" in capsys.readouterr().err) == shows


@pytest.mark.parametrize("form", [[], ["--format", "csv"]], ids=["console", "text"])
@pytest.mark.parametrize("rows", [1, 20_000])
def test_a_closed_pipe_is_silent(form: list[str], rows: int) -> None:
    code, said = ended_without_reader("sql", f"from range({rows})", *form)
    assert (code, [line for line in said.splitlines() if "no table was read" not in line]) == (141, [])


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--version"], ["run", "--help"]], ids=" ".join)
def test_help_for_a_closed_pipe_is_no_regression(words: list[str]) -> None:
    assert ended_without_reader(*words) == (141, "")


def ended_without_reader(*words: str) -> tuple[int, str]:
    """The exit code and standard error of a command whose output nobody reads."""
    command = [sys.executable, "-m", "icebench", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.close()
        assert started.stderr is not None
        said = started.stderr.read().decode()
    return started.returncode, said


def test_report_writes_the_page_of_the_latest_run_and_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path)
    assert exit_code("--results", tmp_path, "report", "--print") == 0
    page = tmp_path / "reports" / f"{run.stem}.html"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    out = capsys.readouterr().out
    assert out.rstrip().endswith(str(page))
    assert "Cold planning: fastest are among icebench and icebench-spark" in out


def test_report_takes_a_run_by_path_or_id_and_a_name_for_the_page(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    for number, given in enumerate((run, run.stem, run.name)):
        page = tmp_path / f"{number}.html"
        assert exit_code("--results", tmp_path, "report", given, "-o", page) == 0
        assert page.is_file()


def test_charts_are_files_that_stand_by_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path)
    charts = tmp_path / "charts"
    assert exit_code("--results", tmp_path, "report", "--charts", charts) == 0
    drawn = sorted(charts.iterdir())
    assert {path.stem.partition("-")[0] for path in drawn} == {"planning", "pruning", "decimals", "deletes"}
    assert sorted(capsys.readouterr().out.splitlines()[1:]) == [str(path) for path in drawn]
    for path in drawn:
        root = ET.fromstring(path.read_text())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        text = path.read_text()
        assert set(re.findall(r"var\((--[a-z0-9-]+)\)", text)) <= set(re.findall(r"(--[a-z0-9-]+):", text))


def test_what_cannot_be_reported_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--results", tmp_path, "report") == 2
    assert capsys.readouterr().err.endswith("runs: no run yet: 'icebench run' makes one\n")
    run = write_run(tmp_path)
    assert exit_code("--results", tmp_path, "report", "other") == 2
    assert capsys.readouterr().err == "icebench: other: no such run; 'icebench list' shows the runs there are\n"
    assert exit_code("--results", tmp_path, "report", "-o", tmp_path) == 2
    assert "is a directory" in capsys.readouterr().err
    run.write_bytes(run.read_bytes()[:-5])
    assert exit_code("--results", tmp_path, "report") == 2
    err = capsys.readouterr().err
    assert err.startswith(f"icebench: {run}:")
    assert err.count("\n") == 1


def test_a_page_that_cannot_be_written_is_one_line_with_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path)
    (tmp_path / "reports").touch()
    assert exit_code("--results", tmp_path, "report") == 2
    err = capsys.readouterr().err
    assert err.startswith("icebench: ")
    assert err.count("\n") == 1


def test_a_definition_that_cannot_be_read_is_listed_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {"broken": b"name = ", "latin": "description = 'é'".encode("latin-1"), "number": b"description = 1"}
    for name, text in texts.items():
        (tmp_path / f"{name}.toml").write_bytes(text)
    found = {name: tmp_path / f"{name}.toml" for name in (*texts, "gone")} | known_experiments()
    monkeypatch.setattr("icebench.bench.cli.listing.known_experiments", lambda: found)
    assert exit_code("--results", tmp_path, "list") == 0
    out = " ".join(capsys.readouterr().out.split())
    for name, reason in {
        "broken": "not TOML",
        "latin": "cannot be read",
        "number": "description",
        "gone": "cannot be read",
    }.items():
        assert re.search(rf"{name} cannot be used: \S*{name}\.toml: {reason}", out), out
    assert load_experiment("default").description in out


def test_list_shows_runs_and_their_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--results", tmp_path, "list") == 0
    out = capsys.readouterr().out
    assert "none yet" in out
    for word in ("quick", "unpartitioned", "pyiceberg", "pruning", load_experiment("default").description):
        assert word in " ".join(out.split())
    run = write_run(tmp_path, failed=True)
    (tmp_path / "runs" / "damaged.jsonl").write_text("{", encoding="utf-8")
    assert exit_code("--results", tmp_path, "list") == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert f"{run.stem} quick: {len(sample_run().measured)} cases, 1 failed" in lines
    assert any(line.startswith("damaged damaged: ") for line in lines)


def test_names_in_brackets_are_no_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("[error]", "[/x]")
    schema = pa.schema([(name, pa.int64()) for name in names])
    table = icebench.load_catalog(str(tmp_path / "wh")).create_table("db.t", schema)
    for number in range(2):
        table.append(pa.table({name: [number, number + 2] for name in names}, schema))
    queries = tmp_path / "queries.sql"
    queries.write_text('select "[error]" from t where "[/x]" = 1;')
    run = write_run(tmp_path)
    text = run.read_text(encoding="utf-8").replace('"quick"', '"[/x]"').replace("one_item", "s like '[error][/x]%'")
    run.rename(run.with_stem("[error]")).write_text(text, encoding="utf-8")
    for arguments in (
        (table.location,),
        ("profile", table.location),
        ("sql", 'select 1 as "[error]", 2 as "[/x]"'),
        ("maintain", "columns", table.location, "--queries", queries),
        ("--results", tmp_path, "list"),
        ("--results", tmp_path, "compare", "--long"),
        ("--results", tmp_path, "report", "--print"),
    ):
        code = exit_code(*arguments)
        out, err = capsys.readouterr()
        assert code == 0, (arguments, err)
        assert all(name in out for name in names), (arguments, out)


def test_the_group_is_a_click_application() -> None:
    assert app.name == "app"
