from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from engine.errors import FileNotFound, StorageFailed
from engine.storage.arrow import ArrowStore
from engine.storage.retrying import Retries, is_transient

TEXT = "AWS Error INTERNAL_FAILURE during GetObject operation: Failed to flush response stream (eof: 0, bad: 1)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT, True),
        (
            "When reading: AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 7, Could not connect",
            True,
        ),
        ("AWS Error UNKNOWN (HTTP status 503) during HeadObject operation: No response body.", True),
        ("AWS Error SLOW_DOWN during PutObject operation: Please reduce your request rate.", True),
        ("AWS Error ACCESS_DENIED during HeadObject operation: No response body.", False),
        ("AWS Error UNKNOWN (HTTP status 400) during HeadObject operation: No response body.", False),
        ("AWS Error NO_SUCH_BUCKET during PutObject operation: The bucket is not there", False),
    ],
)
def test_failures_for_the_moment(text: str, *, expected: bool) -> None:
    assert is_transient(OSError(text)) is expected
    assert not is_transient(OSError(5, text))
    assert not is_transient(ValueError(text))


def test_waits_grow_to_a_deadline() -> None:
    waits: list[float] = []
    retries = Retries(100, sleep=waits.append, monotonic=lambda: sum(waits), chance=lambda: 0.0)
    assert list(retries.attempts()) == list(range(1, len(waits) + 2))
    assert waits[:7] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]
    assert 55 < sum(waits) <= 60
    waits.clear()
    assert list(Retries(2, sleep=waits.append, chance=lambda: 1.0).attempts()) == [1, 2, 3]
    assert waits == [0.05, 0.1]


class Failing:
    """A file system whose next calls fail with this text, before or after they are carried out."""

    def __init__(self, root: Path) -> None:
        self._inner = fs.SubTreeFileSystem(str(root), fs.LocalFileSystem())
        self.times, self.is_after, self.text, self.calls = 0, False, TEXT, 0

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.times:
                self.times -= 1
                if self.is_after:
                    attribute(*arguments, **named)
                raise OSError(self.text)
            return attribute(*arguments, **named)

        return call


@pytest.mark.parametrize("is_after", [False, True])
def test_each_request_is_sent_again(tmp_path: Path, *, is_after: bool) -> None:
    inner = Failing(tmp_path)
    store = ArrowStore(inner, {"test://": ""}, Retries(2, sleep=lambda _: None))
    place = "test://a/file"
    store.write(place, b"0123", overwrite=True)

    def failing(times: int) -> None:
        inner.times, inner.is_after = times, is_after

    for use, expected in (
        (lambda: store.read(place, 1), b"123"),
        (lambda: store.size(place), 4),
        (lambda: store.exists(place), True),
        (lambda: [info.location for info in store.list("test://a")], [place]),
        (lambda: store.open_input(place).read(), b"0123"),
    ):
        failing(2)
        assert use() == expected
        failing(3)
        with pytest.raises(StorageFailed, match="flush"):
            use()
        failing(0)
    inner.text = "AWS Error ACCESS_DENIED"
    inner.calls = 0
    failing(1)
    with pytest.raises(StorageFailed, match="DENIED"):
        store.read(place)
    assert inner.calls == 1


@pytest.mark.parametrize("is_after", [False, True])
def test_a_delete_whose_answer_is_lost_is_done(tmp_path: Path, *, is_after: bool) -> None:
    inner = Failing(tmp_path)
    store = ArrowStore(inner, {"test://": ""}, Retries(1, sleep=lambda _: None))
    store.write("test://a/file", b"0123", overwrite=True)
    info = inner._inner.get_file_info

    class Informed(Failing):
        def get_file_info(self, path: Any) -> Any:
            return info(path)

    inner.__class__ = Informed
    inner.times, inner.is_after = 1, is_after
    store.delete("test://a/file")
    assert not store.exists("test://a/file")
    with pytest.raises(FileNotFound):
        store.delete("test://a/file")


def test_a_body_that_breaks_off_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "half").write_bytes(b"01234")
    lengths: list[int] = []

    class Cut(Failing):
        def open_input_file(self, path: str) -> Any:
            real = self._inner.open_input_file(path)
            short = not lengths

            class File:
                def __enter__(self) -> Any:
                    return self

                def __exit__(self, *_: object) -> None:
                    real.close()

                def size(self) -> int:
                    return int(real.size())

                def read_at(self, wanted: int, offset: int) -> Any:
                    lengths.append(wanted)
                    return real.read_at(wanted // 2 if short else wanted, offset)

            return File()

    store = ArrowStore(Cut(tmp_path), {"test://": ""}, Retries(1, sleep=lambda _: None))
    assert store.read("test://file") == b"0123456789"
    assert lengths == [10, 10]
