"""What is particular to storage behind pyarrow's file systems; the rest is in `tests/contract/test_store.py`."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any, Self

import pytest
from pyarrow import fs

from icebench.engine.storage.arrow import ArrowStore
from icebench.engine.storage.failures import translate_errors
from icebench.errors import StorageFailed


class Breaking:
    """A file system whose uploads break off after their first bytes."""

    def __init__(self, directory: Path) -> None:
        self._inner = fs.SubTreeFileSystem(str(directory), fs.LocalFileSystem())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def open_output_stream(self, path: str) -> Any:
        stream = self._inner.open_output_stream(path)

        class Stream:
            def write(self, data: bytes) -> None:
                stream.write(data[:1])
                raise OSError("the connection is gone")

            def __enter__(self) -> Self:
                return self

            def __exit__(self, *_: object) -> None:
                stream.close()

        return Stream()


def test_what_a_broken_upload_left_goes(tmp_path: Path) -> None:
    store = ArrowStore(Breaking(tmp_path), {"test://": ""})
    with pytest.raises(StorageFailed, match="the connection is gone"):
        store.write("test://a/file", b"0123")
    assert not store.exists("test://a/file")
    assert not (tmp_path / "a" / "file").exists()


def test_the_cause_of_a_failure_is_printed_unless_it_has_a_secret() -> None:
    for said, is_shown in (("at https://a/b?sv=1&sig=zq8f", False), ("at https://a/b?sv=1", True)):
        with pytest.raises(StorageFailed) as caught, translate_errors("read", "abfss://c@a/b"):
            raise OSError(said)
        printed = "".join(traceback.format_exception(caught.value))
        assert "zq8f" not in printed
        assert ("OSError" in printed) is is_shown
