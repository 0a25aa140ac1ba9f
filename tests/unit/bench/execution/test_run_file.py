import json
import lzma
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.errors import CorruptRecords, Disagreement
from icebench.bench.execution.recorder import Recorder
from icebench.bench.execution.run_file import Run, RunWriter, read_environment, read_run
from icebench.bench.records.case import Case, Cost, Evidence, Measured, Sample
from icebench.bench.records.record import Failure, Skipped

ENVIRONMENT = {"id": "e", "hardware": {"cores": 2}}
CASE = Case(workload="w", layout="monthly", cache="cold", engine="icebench", measurement="planning")
EVIDENCE = Evidence(
    counters={"files_planned": 3}, checksum="abc", detail={"filter": ""}, base=replace(CASE, layout="b")
)
SAMPLES = tuple(
    Sample(process=0, round=r, cost=Cost(wall=0.25 * r, cpu=0.5, memory=9, more={"x": 1.0})) for r in (0, 1)
)
MEASURED = Measured(case=CASE, engine_version="1", evidence=EVIDENCE, samples=SAMPLES)
OTHER = replace(MEASURED, case=replace(CASE, filter="some"), evidence=Evidence(figures={"recall": 1.0}), samples=())
SKIPPED = Skipped(engine="duckdb", measurement="planning", reason="no")
FAILURE = Failure(kind="Disagreement", message="rows differ", engine="duckdb")


def write(path: Path, *, close: bool = True) -> Path:
    with RunWriter(path, run_id="r", environment=ENVIRONMENT) as writer:
        writer.case(MEASURED)
        writer.sample(CASE, SAMPLES[0])
        writer.add(SKIPPED)
        writer.add(FAILURE)
        writer.case(OTHER)
        writer.sample(CASE, SAMPLES[1])
        writer.round("w", 0, 1, {"load": 0.5})
        if close:
            writer.close(failed=True)
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    run = read_run(write(tmp_path / "deep" / "run.jsonl"))
    assert (run.run_id, run.environment, run.complete) == ("r", ENVIRONMENT, True)
    assert run.measured == (MEASURED, OTHER)
    assert run.order == (MEASURED.case, OTHER.case)
    assert (run.skipped, run.failures) == ((SKIPPED,), (FAILURE,))
    assert run.rounds == ({"workload": "w", "process": 0, "round": 1, "load": 0.5},)


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.xz"])
def test_the_environment_is_read_by_its_line_alone(tmp_path: Path, name: str) -> None:
    path, (first, *_) = tmp_path / name, write(tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    path.write_bytes(lzma.compress(first + b"{") if path.suffix == ".xz" else first + b"{")
    assert read_environment(path) == {"line": "environment", "format": 2, "run_id": "r", **ENVIRONMENT}
    path.write_bytes(b"no run")
    with pytest.raises(CorruptRecords):
        read_environment(path)


def test_what_was_written_before_workloads_were_recorded_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl")
    text = path.read_text(encoding="utf-8")
    assert text.count(',"workload":"*"') == 2
    path.write_text(text.replace(',"workload":"*"', ""), encoding="utf-8")
    run = read_run(path)
    assert (run.skipped, run.failures) == ((SKIPPED,), (FAILURE,))


@given(
    st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9), st.none() | st.integers(0, 1 << 60)), max_size=5),
    st.text(max_size=5),
)
def test_any_sample_comes_back(
    tmp_path_factory: pytest.TempPathFactory, costs: list[tuple[float, float, int | None]], name: str
) -> None:
    case = replace(CASE, layout=name)
    path = tmp_path_factory.mktemp("run") / "run.jsonl"
    samples = tuple(
        Sample(process=1, round=r, cost=Cost(wall=wall, cpu=cpu, memory=memory))
        for r, (wall, cpu, memory) in enumerate(costs)
    )
    with RunWriter(path, run_id="r", environment=ENVIRONMENT) as writer:
        writer.case(replace(MEASURED, case=case))
        for sample in samples:
            writer.sample(case, sample)
    assert read_run(path).measured == (replace(MEASURED, case=case, samples=samples),)


def test_a_sample_is_compared_with_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, asked = tmp_path / "run.jsonl", Mock(side_effect=lambda own: (own.process, own.round))
    samples = [replace(SAMPLES[0], round=number) for number in range(50)]
    with RunWriter(path, run_id="r", environment=ENVIRONMENT) as writer:
        writer.case(MEASURED)
        for each in samples:
            writer.sample(CASE, each)
    monkeypatch.setattr(Sample, "place", property(asked))
    assert read_run(path).measured[0].samples == tuple(samples)
    assert asked.call_count <= 2 * len(samples)


def test_every_line_is_there_as_soon_as_it_is_added(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with RunWriter(path, run_id="r", environment=ENVIRONMENT) as writer:
        for lines in range(1, 4):
            assert len(path.read_bytes().splitlines()) == lines
            writer.add(SKIPPED)


def test_a_case_that_failed_has_no_samples_and_may_come_again(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with RunWriter(path, run_id="r", environment=ENVIRONMENT) as writer:
        writer.case(MEASURED)
        writer.sample(CASE, SAMPLES[0])
        writer.drop(CASE)
        writer.case(OTHER)
    run = read_run(path)
    assert run.measured == (OTHER,)
    with RunWriter(path, run_id="r", environment=None, known=run.order) as writer:
        writer.case(MEASURED)
        writer.sample(CASE, SAMPLES[1])
    assert read_run(path).measured == (OTHER, replace(MEASURED, samples=SAMPLES[1:]))


def test_an_interrupted_run_is_not_complete_and_can_go_on(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", close=False)
    path.write_bytes(path.read_bytes() + b'{"line":"sam')
    with pytest.raises(CorruptRecords, match="the last line is cut off"):
        read_run(path)
    run = read_run(path, interrupted=True)
    assert not run.complete
    assert run.measured == (MEASURED, OTHER)
    third = Sample(process=1, round=0, cost=Cost(wall=9, cpu=9))
    with RunWriter(path, run_id="r", environment=None, known=run.order) as writer:
        recorder = Recorder(writer, versions={"icebench": "1"}, before=run)
        recorder.case(CASE, EVIDENCE)
        recorder.sample(CASE, third)
        writer.close(failed=False)
    again = read_run(path)
    assert again.complete
    assert again.measured == (replace(MEASURED, samples=(*SAMPLES, third)), OTHER)


def test_what_counts_otherwise_than_before_is_refused(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run.jsonl", run_id="r", environment=ENVIRONMENT) as writer:
        before = Run(run_id="r", environment=ENVIRONMENT, measured=(MEASURED,))
        recorder = Recorder(writer, versions={"icebench": "1"}, before=before)
        for changed in (replace(EVIDENCE, counters={"files_planned": 4}), replace(EVIDENCE, checksum="abd")):
            with pytest.raises(Disagreement, match="something else than earlier in this run"):
                recorder.case(CASE, changed)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rows\n differ", "rows differ"),
        (
            "calling\n: Aborted\n\tat a.B.c(B.java:1)\nCaused by: Unread\n\tat d.E\nCaused by: No Brotli\n\tat g.H",
            "No Brotli",
        ),
        ("", "OSError('')"),
    ],
)
def test_a_failure_is_reported_by_its_cause_on_one_line(tmp_path: Path, text: str, said: str) -> None:
    with RunWriter(tmp_path / "run.jsonl", run_id="r", environment=ENVIRONMENT) as writer:
        recorder = Recorder(writer, versions={"icebench": "1"})
        recorder.fail(CASE, OSError(text))
    assert [(failure.workload, failure.message) for failure in recorder.failures] == [(CASE.workload, said)]


def test_a_run_is_never_written_over(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl")
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        RunWriter(path, run_id="r", environment=ENVIRONMENT)
    assert path.read_bytes() == before


SAMPLE = {"line": "sample", "case": 0, "process": 0, "round": 5, "wall": 1, "cpu": 1, "memory": None, "more": {}}


def sample(**changes: object) -> dict[int, bytes]:
    return {4: json.dumps({**SAMPLE, **changes}).encode()}


@pytest.mark.parametrize(
    ("damage", "place", "message"),
    [
        ({2: b"{"}, 2, "not JSON"),
        ({2: b"[1]"}, 2, "not a JSON object"),
        ({2: b'{"line":"remark"}'}, 2, "unknown line 'remark'"),
        ({2: b'{"line":"case"}'}, 2, "not a case: 'evidence'"),
        ({2: b'{"line":"case","case":{},"engine_version":"1","evidence":{}}'}, 2, "not a case line"),
        (sample(case=2), 4, "there is no case 2"),
        (sample(case="0"), 4, "there is no case 0"),
        (sample(round=None), 4, "a sample without case, process or round"),
        (sample(wall="1"), 4, "a sample without wall or processor time"),
        (sample(color=1), 4, "not a cost line"),
        (sample(round=0), 4, "a second sample of monthly/planning/all/icebench in one round"),
        ({4: b'{"line":"skipped","engine":"x"}'}, 4, "not a skipped line"),
        ({5: b'{"line":"failure","engine":1}'}, 5, "not a failure line"),
        ({3: b'{"line":"environment","format":2,"run_id":"r","id":"f"}'}, 3, "a second environment: runs are mixed"),
        ({3: b'{"line":"end","status":"ok"}'}, 4, "a line after the end of the run"),
        ({1: b'{"line":"end"}'}, 1, "a run starts with its environment"),
        ({1: b'{"line":"environment","format":1,"run_id":"r","id":"e"}'}, 1, "format 1; this program reads format 2"),
        ({1: b'{"line":"environment","format":2,"run_id":"r"}'}, 1, "an environment without run_id or id"),
    ],
)
def test_damage_is_reported_with_its_place(tmp_path: Path, damage: dict[int, bytes], place: int, message: str) -> None:
    path = write(tmp_path / "run.jsonl")
    lines = path.read_bytes().splitlines()
    for number, line in damage.items():
        lines[number - 1] = line
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(CorruptRecords) as caught:
        read_run(path)
    assert str(caught.value).startswith(f"{path}:{place}: ")
    assert message in str(caught.value)


def test_a_case_is_there_once(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl")
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[:2], lines[1], *lines[2:]]) + b"\n")
    with pytest.raises(CorruptRecords, match="the case monthly/planning/all/icebench is there already"):
        read_run(path)


def test_an_empty_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"")
    with pytest.raises(CorruptRecords, match="the file is empty"):
        read_run(path)
