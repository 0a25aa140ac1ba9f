import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.errors import CorruptRecords
from bench.measure.record import Failure, Skipped
from bench.measure.run_file import RunWriter, read_run
from tests.unit.bench.measure.test_record import RECORD

ENVIRONMENT = {"id": "e", "hardware": {"cores": 2}}
SKIPPED = Skipped(engine="duckdb", measurement="planning", reason="no")
FAILURE = Failure(kind="Disagreement", message="rows differ", engine="duckdb")


def write(path: Path, *, close: bool = True) -> Path:
    with RunWriter(path, run_id="r", environment=ENVIRONMENT) as writer:
        writer.add(RECORD)
        writer.add(SKIPPED)
        writer.add(FAILURE)
        writer.add(replace(RECORD, case="some"))
        if close:
            writer.close(failed=True)
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    run = read_run(write(tmp_path / "deep" / "run.jsonl"))
    assert (run.run_id, run.environment, run.complete) == ("r", ENVIRONMENT, True)
    assert run.records == (RECORD, replace(RECORD, case="some"))
    assert run.skipped == (SKIPPED,)
    assert run.failures == (FAILURE,)


def test_every_line_is_there_as_soon_as_it_is_added(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with RunWriter(path, run_id="r", environment=ENVIRONMENT) as writer:
        for lines in range(1, 4):
            assert len(path.read_bytes().splitlines()) == lines
            writer.add(SKIPPED)


def test_an_interrupted_run_is_not_complete(tmp_path: Path) -> None:
    run = read_run(write(tmp_path / "run.jsonl", close=False))
    assert not run.complete
    assert len(run.records) == 2


def test_a_run_is_never_written_over(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl")
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        RunWriter(path, run_id="r", environment=ENVIRONMENT)
    assert path.read_bytes() == before


def test_records_of_another_run_are_not_taken(tmp_path: Path) -> None:
    with (
        RunWriter(tmp_path / "run.jsonl", run_id="r", environment=ENVIRONMENT) as writer,
        pytest.raises(ValueError, match="a record of run other does not belong into run r"),
    ):
        writer.add(replace(RECORD, run_id="other"))


def changed(line: int, **values: object) -> dict[int, bytes]:
    record = {"line": "record", **json.loads(json.dumps(RECORD.as_json())), **values}
    return {line: json.dumps(record).encode()}


@pytest.mark.parametrize(
    ("damage", "place", "message"),
    [
        ({2: b"{"}, 2, "not JSON"),
        ({2: b"[1]"}, 2, "not a JSON object"),
        ({2: b'{"line":"remark"}'}, 2, "unknown line 'remark'"),
        (changed(2, run_id="other"), 2, "a record of another run, other"),
        (changed(2, environment="f"), 2, "a record of another environment, f"),
        (changed(2, samples=[]), 2, "not a record: field 'samples' is []"),
        (changed(3), 3, "is at {path}:2 already"),
        ({3: b'{"line":"skipped","engine":"x"}'}, 3, "not a skipped line"),
        ({4: b'{"line":"failure","engine":1}'}, 4, "not a failure line"),
        ({3: b'{"line":"environment","format":1,"run_id":"r","id":"f"}'}, 3, "a second environment: runs are mixed"),
        ({3: b'{"line":"end","status":"ok"}'}, 4, "a line after the end of the run"),
        ({1: b'{"line":"end"}'}, 1, "a run starts with its environment"),
        ({1: b'{"line":"environment","format":2,"run_id":"r","id":"e"}'}, 1, "format 2; this program reads format 1"),
        ({1: b'{"line":"environment","format":1,"run_id":"r"}'}, 1, "an environment without run_id or id"),
    ],
)
def test_damage_is_told_with_its_place(tmp_path: Path, damage: dict[int, bytes], place: int, message: str) -> None:
    path = write(tmp_path / "run.jsonl")
    lines = path.read_bytes().splitlines()
    for number, line in damage.items():
        lines[number - 1] = line
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(CorruptRecords) as caught:
        read_run(path)
    assert str(caught.value).startswith(f"{path}:{place}: ")
    assert message.format(path=path) in str(caught.value)


def test_a_line_that_was_cut_off_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl")
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(CorruptRecords, match=r"run\.jsonl:6: the last line is cut off"):
        read_run(path)
    path.write_bytes(b"")
    with pytest.raises(CorruptRecords, match="the file is empty"):
        read_run(path)
