from __future__ import annotations

from pathlib import Path

import pytest

from bench.cli import run as command
from bench.cli.run import adjusted, arguments, sort_names, table_request
from bench.errors import ConfigError
from bench.experiment import Experiment, load_experiment
from bench.measure.run import RunResult, Surroundings
from bench.measure.tables import TableRequest, TableRun
from tests.unit.bench.cli.test_main import exit_code, write_run
from tests.unit.bench.report.sample_run import FAILED, sample_run


def result(path: Path, *, failed: bool = False) -> RunResult:
    run = sample_run()
    return RunResult(
        run_id=run.run_id, path=path, records=run.records, skipped=(), failures=(FAILED,) if failed else ()
    )


def test_names_are_sorted_by_what_they_name() -> None:
    assert sort_names(["planning", "icebench", "sorted", "deletes"]) == {
        "measurement": ["planning", "deletes"],
        "engine": ["icebench"],
        "layout": ["sorted"],
    }
    assert sort_names([]) == {}
    with pytest.raises(ConfigError, match="--only: unknown name 'nope'; known: planning"):
        sort_names(["nope"])


def test_the_command_line_adjusts_an_experiment() -> None:
    quick = load_experiment("quick")
    changed = adjusted(quick, scale=0.5, repetitions=9, only=["pruning", "monthly"])
    assert changed.workload.scale == 0.5
    assert {often.repetitions for often in changed.repetitions.values()} == {9}
    assert (changed.measurements, changed.layouts, changed.engines) == (("pruning",), ("monthly",), quick.engines)
    assert adjusted(quick, scale=None, repetitions=None, only=[]) == quick


def test_the_command_line_says_what_to_measure_of_a_table() -> None:
    request = table_request("t", ["a < 1"], ["s3://old=/new"], repetitions=3, only=["planning", "pyiceberg"])
    assert request.path == "t"
    assert (request.filters, request.engines) == (("a < 1",), ("pyiceberg",))
    assert tuple(request.measurements) == ("planning",)
    assert request.relocate == {"s3://old": "/new"}
    assert request.repetitions.repetitions == 3


@pytest.mark.parametrize(
    ("relocate", "only", "message"),
    [(["nonsense"], [], "--relocate: 'nonsense' is not OLD=NEW"), ([], ["sorted"], "--only: 'sorted' is a layout")],
)
def test_what_a_table_cannot_take_is_refused(relocate: list[str], only: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        table_request("t", [], relocate, repetitions=None, only=only)


@pytest.mark.parametrize("failed", [False, True])
def test_a_run_prints_the_comparison_and_where_its_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], failed: bool
) -> None:
    asked: list[Experiment] = []
    commands: list[tuple[str, ...]] = []

    def measured(experiment: Experiment, *, where: Surroundings) -> RunResult:
        asked.append(experiment)
        where.progress("planning", "monthly: all", 0, 3)
        assert where.results == tmp_path / "runs"
        assert where.cache.is_absolute()
        commands.append(where.command)
        return result(write_run(tmp_path, failed=failed), failed=failed)

    monkeypatch.setattr(command, "run_experiment", measured)
    assert exit_code("--results", tmp_path, "run", "quick", "--scale", 0.01) == int(failed)
    assert asked[0].workload.scale == 0.01
    assert commands == [("run", "quick", "--scale", "0.01")]
    streams = capsys.readouterr()
    assert streams.err == "planning: monthly: all (0/3)\n"
    run = tmp_path / "runs" / f"{sample_run().run_id}.jsonl"
    page = tmp_path / "reports" / f"{run.stem}.html"
    assert streams.out.splitlines()[-2:] == [f"results: {run}", f"report:  {page}"]
    assert "Planning time, cold" in streams.out
    assert page.is_file()


def test_a_table_is_measured_and_the_chosen_filters_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[TableRequest] = []

    def measured(request: TableRequest, *, where: Surroundings) -> TableRun:
        asked.append(request)
        return TableRun(run=result(write_run(tmp_path)), chosen=())

    monkeypatch.setattr(command, "run_table", measured)
    assert exit_code("--results", tmp_path, "run", "--table", "x/y", "--filter", "a = 1", "--filter", "b = 2") == 0
    assert (asked[0].path, asked[0].filters) == ("x/y", ("a = 1", "b = 2"))
    assert "report:  " in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [("--filter", "a = 1"), ("quick", "--table", "t"), ("--table", "t", "--scale", "1")]
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
        "run", "--table", "t", "--filter", "a < 1", "--filter", "b = 2", "--repetitions", "3",
    )  # fmt: skip
    assert arguments("quick", {"--scale": 0.05}) == ("run", "quick", "--scale", "0.05")
