"""`icebench case`: one case of a run as a program."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from icebench.bench.cli.case import matching, program_of, run_program
from icebench.bench.cli.main import main
from icebench.bench.errors import ConfigError
from icebench.bench.execution.run_file import RunWriter, read_run
from icebench.bench.records.case import Case, Cost, Evidence, Measured
from tests.unit.bench.execution.scripted import small_table
from tests.unit.bench.report.sample_run import DRIFT, measured, sample_run

QUERY = 'table.scan(filter="id < 30", columns=["id"]).to_batches()'


def exit_code(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A directory with a run of two engines, each cold and warm, and of an unknown one."""
    location = small_table(tmp_path)
    case = Case(workload="w", layout="sorted", measurement="filtered", filter="few", engine="icebench", cache="cold")
    found: list[Measured] = []
    for engine, query in (("icebench", QUERY), ("duckdb", 'select "id" from TABLE where id < 30'), ("theirs", "ask")):
        for cache in ("cold", "warm"):
            made = measured(replace(case, engine=engine, cache=cache), [0.25 * w for w in DRIFT])
            evidence = Evidence(query=query, table=location, detail={"filter": "id < 30"})
            found.append(replace(made, evidence=evidence))
    found.append(measured(replace(case, filter="unrecorded"), [1.0]))
    run = sample_run()
    (tmp_path / "runs").mkdir()
    path = tmp_path / "runs" / "20260101T000000Z-small.jsonl"
    with RunWriter(path, run_id=path.stem, environment=run.environment) as writer:
        for each in found:
            writer.case(each)
            for sample in each.samples:
                writer.sample(each.case, sample)
        writer.close(failed=False)
    return tmp_path


def test_a_case_is_printed_as_a_program_with_what_it_took(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--results", results, "case", "icebench", "cold") == 0
    text = capsys.readouterr().out
    assert text.startswith("# icebench case sorted filtered few icebench cold --of 20260101T000000Z-small\n")
    assert "# scan_time_cold there: 252 ms, the median of 7 rounds" in text
    assert f"    for batch in {QUERY}:\n" in text
    compile(text, "case.py", "exec")


def test_a_case_runs_in_a_process_of_its_own(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for engine in ("icebench", "duckdb"):
        assert exit_code("--results", results, "case", engine, "warm", "--run") == 0
        *seconds, rows = capsys.readouterr().out.splitlines()
        assert rows == "30 rows"
        assert len(seconds) == 5
        assert all(each.endswith(" ms") for each in seconds)


def test_several_cases_are_listed_and_none_is_an_error(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--results", results, "case", "few", "cold") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"sorted filtered few {engine} cold" for engine in ("icebench", "duckdb", "theirs")
    ]
    assert exit_code("--results", results, "case", "unrecorded") != 0
    assert "unrecorded; known: sorted, filtered, few, icebench" in " ".join(capsys.readouterr().err.split())
    assert exit_code("--results", results, "case", "theirs", "cold") != 0
    assert "theirs: no program of filtered is known, only the query: ask" in " ".join(capsys.readouterr().err.split())


def test_a_case_of_one_of_several_workloads_is_named_with_it_and_timed_by_it(results: Path) -> None:
    (path,) = (results / "runs").iterdir()
    run = read_run(path)
    cost = Cost(wall=9.0, cpu=9.0)
    others = tuple(
        replace(each, case=replace(each.case, workload="v"), samples=tuple(replace(s, cost=cost) for s in each.samples))
        for each in run.measured
    )
    both = replace(run, measured=(*run.measured, *others))
    words = ("few", "icebench", "cold")
    assert [each.case.workload for each in matching(both, words)] == ["w", "v"]
    (found,) = matching(both, ("v", *words))
    text = program_of(both, found)
    assert text.startswith("# icebench case v sorted filtered few icebench cold --of 20260101T000000Z-small\n")
    assert "# scan_time_cold there: 9 s, the median of 7 rounds" in text


def test_a_program_that_fails_says_why(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in results.rglob("*.parquet"):
        path.unlink()
    assert exit_code("--results", results, "case", "icebench", "cold", "--run") != 0
    assert "the program failed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "import duckdb; duckdb.sql('select nope from (select 1 as one)')",
            "BinderException: Binder Error: Referenced column",
        ),
        ("raise KeyError('a\\nb')", "KeyError: 'a"),
        ("import sys; sys.exit('no luck\\n ^^^')", "the program failed: no luck"),
        ("import sys; sys.exit(3)", "it says nothing"),
    ],
)
def test_what_a_program_that_failed_says(code: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        run_program(code)


def test_words_are_quoted_for_the_shell(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = read_run(next((results / "runs").iterdir()))
    few = "name = 'it''s' and id < 30"
    path = results / "runs" / "20260102T000000Z-two words.jsonl"
    with RunWriter(path, run_id=path.stem, environment=run.environment) as writer:
        for each in run.measured[:2]:
            writer.case(replace(each, case=replace(each.case, filter=few)))
        writer.close(failed=False)
    assert exit_code("--results", results, "case") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [shlex.split(line) for line in lines] == [
        ["sorted", "filtered", few, "icebench", cache] for cache in ("cold", "warm")
    ]
    assert exit_code("--results", results, "case", few, "cold") == 0
    header = capsys.readouterr().out.splitlines()[0]
    assert shlex.split(header.removeprefix("# ")) == [
        *("icebench", "case", "sorted", "filtered", few, "icebench", "cold", "--of", path.stem)
    ]
