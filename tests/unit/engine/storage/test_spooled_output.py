"""Memory of files that are uploaded when they are complete; the rest is in `tests/contract/test_store.py`."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from icebench.engine.storage import spooled_output
from icebench.engine.storage.arrow import ArrowStore

FILE_BYTES = 1 << 20


@pytest.fixture
def traced_from() -> Iterator[int]:
    """What Python has allocated at the beginning of the test."""
    tracemalloc.start()
    yield tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()


@pytest.mark.parametrize("is_closed", [False, True])
def test_open_files_share_their_memory(
    tmp_path: Path, traced_from: int, monkeypatch: pytest.MonkeyPatch, is_closed: bool
) -> None:
    monkeypatch.setattr(spooled_output, "_PROCESS_BYTES", 4 * FILE_BYTES)
    store = ArrowStore(fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), {"test://": ""})
    names = [f"test://a/{number}" for number in range(16)]
    # Memory is free again after the first files are closed, or discarded.
    for _ in range(2):
        outputs = [store.open_output(name) for name in names]
        for _ in range(8):
            for number, output in enumerate(outputs):
                output.write(bytes([number]) * (FILE_BYTES // 8))
        held = tracemalloc.get_traced_memory()[0] - traced_from
        assert 3 * FILE_BYTES < held < 6 * FILE_BYTES
        for number, output in enumerate(outputs):
            assert output.tell() == FILE_BYTES
            if not is_closed:
                output.abort()
                continue
            output.close()
            assert store.read(names[number]) == bytes([number]) * FILE_BYTES
            store.delete(names[number])
    assert list(store.list("test://a")) == []
