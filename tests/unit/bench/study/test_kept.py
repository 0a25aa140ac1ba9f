"""Runs that are kept compressed."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from icebench.bench.errors import CorruptRecords
from icebench.bench.execution.run_file import read_run
from icebench.bench.study.kept import compressed, kept_file, kept_run
from icebench.bench.study.questions import Question
from tests.unit.bench.cli.test_main import write_run
from tests.unit.bench.report.sample_run import sample_run

QUESTION = Question("tiny", "Is a small table small?")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def content(run: Path) -> bytes:
    """What is kept, which takes a tenth of a second to compress."""
    return compressed(run)


def place(results: Path, content: bytes) -> Path:
    """The kept file, with that content."""
    path = kept_file(results, QUESTION)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_run_comes_back_as_it_was(run: Path, content: bytes, tmp_path: Path) -> None:
    path = place(tmp_path, content)
    assert path == tmp_path / "study" / "tiny.jsonl.xz"
    found = kept_run(tmp_path, QUESTION)
    assert found == read_run(run)
    assert found is not None
    assert found.complete
    assert found.records == sample_run().records
    assert len(content) < run.stat().st_size / 5


def test_without_a_kept_run_there_is_none(content: bytes, tmp_path: Path) -> None:
    assert kept_run(tmp_path, QUESTION) is None
    place(tmp_path, content)
    assert kept_run(tmp_path, Question("other", "Is it?")) is None


def test_any_changed_byte_of_a_kept_run_is_noticed(content: bytes, tmp_path: Path) -> None:
    for position in {*range(0, len(content), 41), *range(24), *range(len(content) - 24, len(content))}:
        changed = bytearray(content)
        changed[position] ^= 0x10
        path = place(tmp_path, bytes(changed))
        with pytest.raises(CorruptRecords) as caught:
            kept_run(tmp_path, QUESTION)
        assert str(caught.value).startswith(f"{path}: cut off, damaged or not of xz"), position


def test_a_kept_run_has_a_checksum(content: bytes) -> None:
    reader = lzma.LZMADecompressor()
    reader.decompress(content)
    assert reader.check == lzma.CHECK_CRC64


@pytest.mark.parametrize("length", [0, 1, 12, 13, 0.5, -1])
def test_a_kept_run_that_is_cut_off_is_noticed(content: bytes, tmp_path: Path, length: float) -> None:
    path = place(tmp_path, content[: int(length * len(content)) if 0 < length < 1 else int(length)])
    with pytest.raises(CorruptRecords) as caught:
        kept_run(tmp_path, QUESTION)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_damaged_line_of_a_kept_run_is_named(run: Path, tmp_path: Path) -> None:
    lines = run.read_bytes().splitlines(keepends=True)
    path = place(tmp_path, lzma.compress(b"".join([lines[0], b"{\n", *lines[2:]])))
    with pytest.raises(CorruptRecords) as caught:
        kept_run(tmp_path, QUESTION)
    assert str(caught.value).startswith(f"{path}:2: not JSON")


def test_a_kept_run_whose_last_line_is_cut_off_is_damaged(run: Path, tmp_path: Path) -> None:
    """Unlike one in results/runs, it cannot go on."""
    path = place(tmp_path, lzma.compress(run.read_bytes()[:-9]))
    with pytest.raises(CorruptRecords, match="the last line is cut off") as caught:
        kept_run(tmp_path, QUESTION)
    assert str(caught.value).startswith(f"{path}:")


def test_a_run_that_is_not_compressed_is_no_kept_run(run: Path, tmp_path: Path) -> None:
    path = place(tmp_path, run.read_bytes())
    with pytest.raises(CorruptRecords) as caught:
        kept_run(tmp_path, QUESTION)
    assert str(caught.value).startswith(f"{path}: cut off, damaged or not of xz")
