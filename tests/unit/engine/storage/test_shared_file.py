"""Files that threads share: what one thread reads does not depend on where another one is."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor

import pytest

from icebench.engine.formats.source import native_file
from icebench.engine.storage.memory import MemoryInputFile
from icebench.engine.storage.shared_file import SharedInputFile

DATA = bytes(range(100))


@pytest.fixture
def file() -> SharedInputFile:
    return SharedInputFile(MemoryInputFile(DATA))


def elsewhere(file: SharedInputFile) -> None:
    """Another thread asks for the size as pyarrow does, and reads."""

    def ask() -> None:
        assert file.tell() == 0
        assert file.seek(0, io.SEEK_END) == len(DATA)
        file.seek(0)
        assert file.read(3) == DATA[:3]

    with ThreadPoolExecutor(1) as other:
        other.submit(ask).result()


def test_another_thread_does_not_move_the_position(file: SharedInputFile) -> None:
    file.seek(10)
    elsewhere(file)
    assert file.tell() == 10
    assert file.read(5) == DATA[10:15]
    elsewhere(file)
    assert file.read(5) == DATA[15:20]


@pytest.mark.parametrize(
    ("position", "whence", "rest"), [(90, io.SEEK_SET, 10), (-4, io.SEEK_END, 4), (7, io.SEEK_CUR, 90)]
)
def test_seeks_are_those_of_files(file: SharedInputFile, position: int, whence: int, rest: int) -> None:
    file.read(3)
    assert file.seek(position, whence) == file.tell() == len(DATA) - rest
    assert file.read() == DATA[-rest:]
    assert file.read(1) == b""
    assert file.size() == len(DATA)


def test_a_close_closes(file: SharedInputFile) -> None:
    file.close()
    assert file.closed


def test_pyarrow_gets_a_shared_file() -> None:
    with native_file(MemoryInputFile(DATA)) as file:
        assert file.read_at(5, 90) == DATA[90:95]
        assert file.size() == len(DATA)
