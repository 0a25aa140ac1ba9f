from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from rich.console import Console

import icebench
from icebench.bench.cli import run as command
from icebench.bench.cli.context import Context
from icebench.bench.cli.run import arguments, confirm, of_queries, of_tables, own_name
from icebench.bench.cli.terminal import Terminal
from icebench.bench.errors import ConfigError, EngineFailed
from icebench.bench.execution.interruption import Interruption
from icebench.bench.execution.run_file import RunWriter, read_run
from icebench.bench.execution.run_lock import run_lock
from icebench.bench.experiment import Experiment
from icebench.bench.records.record import Skipped
from icebench.bench.report.build import build_report
from icebench.bench.runs import run as runs
from icebench.bench.runs.estimate import Estimate
from icebench.bench.runs.further_process import launch
from icebench.bench.runs.run import Finished, Surroundings
from icebench.bench.workloads.definitions import TablesWorkload
from icebench.bench.workloads.workload import TableWorkload
from tests.unit.bench.cli.test_main import exit_code, write_run
from tests.unit.bench.execution.scripted import small_table
from tests.unit.bench.report.sample_run import sample_run


def finished(path: Path) -> Finished:
    return Finished(path=path, run=read_run(path))


def test_a_table_of_the_only_catalog_of_a_database(tmp_path: Path) -> None:
    """It needs no name; the run is called as the table is."""
    database = f"sqlite:///{tmp_path}/c.db"
    catalog = icebench.load_catalog(database, warehouse=str(tmp_path / "wh"), name="mine")
    rows = pa.table({"id": [1, 2, 3]})
    catalog.create_table("shop.orders", rows.schema).append(rows)
    command = ["--results", tmp_path, "run", "--catalog", database, "--table", "shop.orders", "--only", "icebench"]
    assert exit_code(*command, "--only", "planning", "--filter", "id = 1", "--repetitions", 1) == 0
    (run,) = (tmp_path / "runs").glob("*-shop.orders.jsonl")
    assert read_run(run).experiment == "shop.orders"
    assert exit_code(*command, "--catalog-name", "other", "--dry-run") != 0


def test_the_command_line_says_which_tables() -> None:
    found = of_tables([{"path": "t"}, {"path": "u/v"}], ["a < 1"], ["s3://old=/new"])
    assert found.workloads == tuple(TableWorkload(path=path, relocate={"s3://old": "/new"}) for path in ("t", "u/v"))
    assert found.filters == {"a < 1": "a < 1"}
    assert found.name == "t"
    with pytest.raises(ConfigError, match="--relocate: 'nonsense' is not OLD=NEW"):
        of_tables([{"path": "t"}], [], ["nonsense"])


def test_the_command_line_says_which_tables_queries_join(tmp_path: Path) -> None:
    file = tmp_path / "my.sql"
    file.write_text("select * from events join people using (id)")
    found = of_queries({"events": {"path": "wh/db/events"}, "people": {"path": "t"}}, str(file), ["s3://old=/new"])
    assert found.workloads == (
        TablesWorkload(
            tables={
                "events": TableWorkload(path="wh/db/events", relocate={"s3://old": "/new"}),
                "people": TableWorkload(path="t", relocate={"s3://old": "/new"}),
            }
        ),
    )
    assert (found.name, found.measurements) == ("my", ("queries",))
    assert list(found.options["queries"].texts) == ["query 1"]


def test_a_table_is_called_by_the_last_part_of_its_name() -> None:
    places = (
        "wh/db/events/",
        "/wh/db/events/metadata/v3.metadata.json",
        "db.events",
        "s3://bucket/db.events",
        "wh/v1.2/events/metadata/v3.metadata.json.gz",
    )
    assert [own_name(place) for place in places] == ["events"] * 5
    with pytest.raises(ConfigError, match="names no table"):
        own_name("/")


def test_queries_are_given_with_tables_of_different_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my.sql"
    file.write_text("select 1")
    assert exit_code("run", "--queries", file) == 2
    assert "--queries needs --table" in capsys.readouterr().err
    assert exit_code("run", "--table", "t", "--queries", file, "--filter", "id = 1") == 2
    assert "give one of them" in capsys.readouterr().err
    assert exit_code("run", "--table", "a/events", "--table", "b/EVENTS", "--queries", file) == 2
    assert "two tables are 'events': name one with NAME=PATH" in capsys.readouterr().err
    assert exit_code("run", "--table", "t", "--queries", tmp_path / "none.sql") == 2
    assert "none.sql cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("failed", [False, True])
def test_a_run_prints_the_comparison_and_where_its_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], failed: bool
) -> None:
    asked: list[Experiment] = []
    commands: list[tuple[str, ...]] = []

    def measured(experiment: Experiment, *, where: Surroundings) -> Finished:
        asked.append(experiment)
        where.progress("planning", "monthly: all", 0, 3)
        assert where.results == tmp_path / "runs"
        assert where.cache.is_absolute()
        commands.append(where.command)
        return finished(write_run(tmp_path, failed=failed))

    monkeypatch.setattr(runs, "run_experiment", measured)
    assert exit_code("--results", tmp_path, "run", "quick", "--scale", 0.01) == int(failed)
    assert asked[0].scale == 0.01
    assert commands == [("run", "quick", "--scale", "0.01")]
    streams = capsys.readouterr()
    said, needed, step = streams.err.splitlines()
    assert said == f"quick: {asked[0].description}; this time at scale 0.01"
    assert re.fullmatch(r"60 cases, about \d+ s, at most \d+ MB of tables .*", needed)
    assert step == "planning: monthly: all (0/3)"
    run = tmp_path / "runs" / f"{sample_run().run_id}.jsonl"
    page = tmp_path / "reports" / f"{run.stem}.html"
    *_, results, report, answer = streams.out.splitlines()
    assert (results, report) == (f"results: {run}", f"report:  {page}")
    assert answer == build_report(read_run(run), results_file=str(run)).answer
    assert len(streams.out.splitlines()) <= 25
    assert "Share of the table's bytes planned" in streams.out
    assert "- Cold planning: fastest are among icebench and icebench-spark" in streams.out
    assert ("error: " in streams.out) == failed
    assert page.is_file()


@pytest.mark.parametrize("is_built", [False, True])
def test_a_run_that_measures_nothing_fails_with_the_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_built: bool
) -> None:
    def measured(experiment: Experiment, *, where: Surroundings) -> Finished:
        path = where.results / "empty.jsonl"
        run = sample_run()
        built = replace(run.measured[0], case=replace(run.measured[0].case, measurement="build"), samples=())
        with RunWriter(path, run_id=run.run_id, environment=run.environment) as writer:
            if is_built:
                writer.case(built)
            writer.add(Skipped(engine="polars", measurement="*", reason="polars is not installed"))
            writer.close(failed=False)
        return finished(path)

    monkeypatch.setattr(runs, "run_experiment", measured)
    assert exit_code("--results", tmp_path, "run", "quick") == 1
    assert "polars was not measured at all: polars is not installed" in capsys.readouterr().out


def test_tables_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Experiment] = []

    def measured(experiment: Experiment, *, where: Surroundings) -> Finished:
        asked.append(experiment)
        return finished(write_run(where.results.parent))

    monkeypatch.setattr(runs, "run_experiment", measured)
    monkeypatch.setattr(command, "check_filters", lambda _: None)
    given = ("--table", "x/y", "--table", "z", "--filter", "a = 1", "--filter", "b = 2", "--only", "pyiceberg")
    assert exit_code("--results", tmp_path, "run", *given) == 0
    assert [each.path for each in asked[0].workloads if isinstance(each, TableWorkload)] == ["x/y", "z"]
    assert (list(asked[0].filters), asked[0].engines) == (["a = 1", "b = 2"], ("pyiceberg",))
    streams = capsys.readouterr()
    assert "report:  " in streams.out
    assert "filter chosen" not in streams.err
    assert exit_code("--results", tmp_path / "other", "run", "--table", "x/y") == 0
    assert "filter chosen: one_item: ss_item_sk = 77\n" in capsys.readouterr().err


def test_a_run_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def resumed(path: Path, *, where: Surroundings) -> Finished:
        asked.append(path)
        return finished(path)

    monkeypatch.setattr(runs, "resume_run", resumed)
    path = write_run(tmp_path)
    assert exit_code("--results", tmp_path, "run", "--resume", path.stem) == 0
    assert asked == [path]


@pytest.mark.parametrize(
    "arguments",
    [("--filter", "a = 1"), ("quick", "--table", "t"), ("--table", "t", "--scale", "1"), ("quick", "--resume", "x")],
)
def test_options_that_do_not_go_together_are_usage_errors(arguments: tuple[str, ...]) -> None:
    assert exit_code("run", *arguments) == 2


def test_an_unknown_experiment_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("run", "nope.toml") == 2
    err = capsys.readouterr().err
    assert err.startswith("icebench: nope.toml: no such file, and no experiment of that name; known: ")
    assert err.count("\n") == 1


def test_what_was_asked_for_can_be_typed_again() -> None:
    options = {"--table": "t", "--filter": ("a < 1", "b = 2"), "--scale": None, "--repetitions": 3, "--only": ()}
    assert arguments(None, options) == (
        "run",
        "--table",
        "t",
        "--filter",
        "a < 1",
        "--filter",
        "b = 2",
        "--repetitions",
        "3",
    )
    assert arguments("quick", {"--scale": 0.05}) == ("run", "quick", "--scale", "0.05")


def test_a_further_process_that_fails_fails_the_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path)
    with run_lock(path) as lock, pytest.raises(EngineFailed, match="process 1 of the run failed"):
        launch(path, 1, lock, cache=tmp_path, interruption=Interruption(say=print))
    assert "this run is complete" in capfd.readouterr().err


def test_what_a_run_will_take_is_said_and_a_dry_run_stops_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runs, "run_experiment", lambda *_, **__: pytest.fail("it ran"))
    assert exit_code("--results", tmp_path, "run", "quick", "--dry-run") == 0
    assert re.fullmatch(
        r"quick: a first look: .*\n60 cases, about \d+ s, at most \d+ MB of tables \(by rule of thumb, .*\)\n",
        capsys.readouterr().err,
    )
    assert exit_code("--results", tmp_path, "run", "--resume", "x", "--dry-run") == 2


class Answering(Terminal):
    is_interactive = True


@pytest.mark.parametrize(
    ("seconds", "size", "yes", "interactive", "asks"),
    [
        (61 * 60, 0, False, True, True),
        (60, 11 * 10**9, False, True, True),
        (60, None, False, True, False),
        (61 * 60, 0, True, True, False),
        (61 * 60, 0, False, False, False),
    ],
)
def test_a_long_run_asks_first_where_somebody_can_answer(
    monkeypatch: pytest.MonkeyPatch, *, seconds: float, size: int | None, yes: bool, interactive: bool, asks: bool
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("click.confirm", lambda text, **_: asked.append(text))
    context = Context(terminal=Answering() if interactive else Terminal())
    confirm(context, Estimate(cases=1, seconds=seconds, size=size, basis="b"), yes=yes)
    assert bool(asked) == asks


def test_nobody_is_asked_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    terminal = Terminal(err=Console(force_terminal=True))
    monkeypatch.delenv("CI", raising=False)
    assert terminal.is_interactive
    monkeypatch.setenv("CI", "1")
    assert not terminal.is_interactive


@pytest.mark.parametrize(
    ("place", "reason"), [("afile/x", "Not a directory"), ("/proc/x", "No such file or directory")]
)
def test_results_that_cannot_be_written_are_refused_before_an_engine_is_made(
    place: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    location = small_table(tmp_path / "wh")
    (tmp_path / "afile").write_text("")
    results = tmp_path / place
    assert exit_code("--results", results, "run", "--table", location, "--only", "icebench", "--only", "planning") == 2
    said = capsys.readouterr().err
    expected = f"icebench: {results}/runs: cannot be written: {reason}; choose another --results directory"
    assert said.splitlines()[-1] == expected
    assert "engines:" not in said
