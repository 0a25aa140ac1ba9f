from __future__ import annotations

import errno
import os
import socket
import stat
from pathlib import Path

import pytest

from icebench.engine.storage.local import LocalOutputFile, LocalStore, local_path
from icebench.engine.storage.store import WriteUncertain
from icebench.errors import AlreadyExists, FileNotFound, Invalid, StorageFailed


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("/a/b%20c d", "/a/b%20c d"),
    ],
)
def test_spellings_of_a_path(location: str, path: str) -> None:
    assert local_path(location) == Path(path)


@pytest.mark.parametrize("location", ["a/b", "", "file:a/b", "file://host/a/b", "s3://bucket/key"])
def test_what_is_no_local_path(location: str) -> None:
    with pytest.raises(Invalid):
        local_path(location)


def failing(monkeypatch: pytest.MonkeyPatch, function: str, code: int) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, function, refuse)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.ENOSPC, "the disk is full; free some space"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "permission denied"),
        (errno.EIO, "input/output error"),
        (errno.ENXIO, os.strerror(errno.ENXIO)),
    ],
)
@pytest.mark.parametrize("function", ["fsync", "link"])
def test_a_refused_write_says_why_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, function: str, code: int, advice: str
) -> None:
    failing(monkeypatch, function, code)
    with pytest.raises(StorageFailed, match=advice) as raised:
        LocalStore().write(f"{tmp_path}/d/file", b"data")
    assert f"cannot write {tmp_path}/d/file" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert list((tmp_path / "d").iterdir()) == []


def test_a_disk_that_fills_up_in_the_middle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    output = LocalStore().open_output(f"{tmp_path}/file")
    output.write(b"fits")

    class Full:
        closed = False

        def write(self, data: bytes) -> int:
            raise OSError(errno.ENOSPC, "no space")

        def close(self) -> None:
            self.closed = True

    output._file.close()
    monkeypatch.setattr(output, "_file", Full())
    with pytest.raises(StorageFailed, match="disk is full"):
        output.write(b"does not")
    assert output.closed
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_replacement_keeps_the_old_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = LocalStore()
    store.write(f"{tmp_path}/file", b"old")
    failing(monkeypatch, "fsync", errno.EIO)
    with pytest.raises(StorageFailed):
        store.write(f"{tmp_path}/file", b"new", overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert store.read(f"{tmp_path}/file") == b"old"


def test_a_file_where_a_directory_is_needed(tmp_path: Path) -> None:
    store = LocalStore()
    store.write(f"{tmp_path}/file", b"")
    with pytest.raises(StorageFailed, match="a file, not a directory"):
        store.write(f"{tmp_path}/file/below", b"")
    with pytest.raises(StorageFailed, match="is a directory"):
        store.read(str(tmp_path))


def test_a_small_write_may_be_partial(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    output = LocalStore().open_output(f"{tmp_path}/file")
    file = output._file

    class OneByteAtATime:
        closed = False

        def write(self, data: memoryview) -> int:
            return file.write(data[:1])

        def fileno(self) -> int:
            return file.fileno()

        def close(self) -> None:
            file.close()
            self.closed = True

    monkeypatch.setattr(output, "_file", OneByteAtATime())
    assert output.write(b"0123456789") == 10
    output.close()
    assert LocalStore().read(f"{tmp_path}/file") == b"0123456789"


def test_a_read_may_be_partial(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    location = f"{tmp_path}/file"
    LocalStore().write(location, b"0123456789")
    read = os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, _, offset: read(descriptor, 3, offset))
    assert LocalStore().read(location) == b"0123456789"
    assert LocalStore().read(location, 2) == b"23456789"


def test_long_names(tmp_path: Path) -> None:
    store = LocalStore()
    store.write(f"{tmp_path}/{'n' * 255}", b"x")
    assert store.read(f"{tmp_path}/{'n' * 255}") == b"x"
    with pytest.raises(StorageFailed, match="longer than the file system allows"):
        store.write(f"{tmp_path}/{'n' * 256}", b"x")


def test_a_long_name_of_wide_characters(tmp_path: Path) -> None:
    name = "\u8a9e" * 85  # 255 bytes
    LocalStore().write(f"{tmp_path}/{name}", b"x")
    assert (tmp_path / name).read_bytes() == b"x"


def test_every_directory_that_is_made_outlasts_a_power_cut(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    flush, flushed = os.fsync, set[str]()

    def note(descriptor: int) -> None:
        flushed.add(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    LocalStore().write(f"{tmp_path}/a/b/c/file", b"x")
    assert {str(tmp_path / place) for place in ("", "a", "a/b", "a/b/c")} <= flushed


def directories_not_flushed(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    flush = os.fsync

    def refuse_directories(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_directories)


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_cannot_flush_directories(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int
) -> None:
    directories_not_flushed(monkeypatch, code)
    store = LocalStore()
    store.write(f"{tmp_path}/a/b/file", b"x")
    store.write(f"{tmp_path}/a/b/file", b"y", overwrite=True)
    assert store.read(f"{tmp_path}/a/b/file") == b"y"


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_visible_file_whose_directory_is_not_flushed_is_uncertain(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, overwrite: bool
) -> None:
    directories_not_flushed(monkeypatch, errno.EIO)
    with pytest.raises(WriteUncertain, match=f"cannot flush the directory of {tmp_path}/file: .*input/output error"):
        LocalStore().write(f"{tmp_path}/file", b"x", overwrite=overwrite)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"x"}


def test_a_link_that_nfs_asked_for_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    link = os.link

    def twice(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", twice)
    LocalStore().write(f"{tmp_path}/file", b"x")
    with pytest.raises(AlreadyExists):
        LocalStore().write(f"{tmp_path}/file", b"y")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"x"}


def test_leftovers_of_a_killed_writer_are_listed_but_are_no_file(tmp_path: Path) -> None:
    store = LocalStore()
    output = store.open_output(f"{tmp_path}/file")
    assert isinstance(output, LocalOutputFile)
    output.write(b"half")
    listed = [info.location for info in store.list(str(tmp_path))]
    assert len(listed) == 1
    assert listed[0].endswith(".tmp")
    assert not store.exists(f"{tmp_path}/file")
    output.abort()
    assert list(store.list(str(tmp_path))) == []


def test_symbolic_links_are_not_followed_in_listings(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_bytes(b"x")
    (tmp_path / "t" / "loop").symlink_to(tmp_path / "t")
    (tmp_path / "t" / "out").symlink_to(tmp_path / "elsewhere")
    assert list(LocalStore().list(f"{tmp_path}/t")) == []
    assert LocalStore().read(f"{tmp_path}/t/out/file") == b"x"


def test_the_mode_of_files_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        LocalStore().write(f"{tmp_path}/file", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_a_quick_store_does_not_wait_for_the_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    failing(monkeypatch, "fsync", errno.EIO)
    LocalStore(durable=False).write(f"{tmp_path}/file", b"x")
    with pytest.raises(AlreadyExists):
        LocalStore(durable=False).write(f"{tmp_path}/file", b"y")


def test_a_file_that_vanishes_while_listed_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = LocalStore()
    for name in ("a", "b"):
        store.write(f"{tmp_path}/{name}", b"")
    scan = os.scandir

    def scan_then_delete(path: str) -> object:
        entries = list(scan(path))
        (tmp_path / "a").unlink(missing_ok=True)
        return entries

    monkeypatch.setattr(os, "scandir", scan_then_delete)
    assert [info.location for info in store.list(str(tmp_path))] == [f"{tmp_path}/b"]


def test_missing_files_name_their_location(tmp_path: Path) -> None:
    with pytest.raises(FileNotFound) as raised:
        LocalStore().open_input(f"file://{tmp_path}/x")
    assert raised.value.location == f"file://{tmp_path}/x"


@pytest.mark.parametrize("kind", ["pipe", "socket", "directory", "device", "link to a pipe"])
def test_what_is_no_file_is_not_read(tmp_path: Path, kind: str) -> None:
    """A pipe would wait for a writer, a device may never end."""
    path = tmp_path / "x"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "link to a pipe":
            os.mkfifo(tmp_path / "pipe")
            path.symlink_to(tmp_path / "pipe")
        case "socket":
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(str(path))
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            path.mkdir()
    store = LocalStore()
    assert not store.exists(str(path))
    for read in (store.read, store.size, store.open_input):
        with pytest.raises(StorageFailed, match=r"cannot read .*: .*not a file|cannot read .*No such device"):
            read(str(path))


@pytest.mark.parametrize("location", ["/a/\x00b", "/a/\ud800b"])
def test_a_path_that_cannot_be_one(location: str) -> None:
    store = LocalStore()
    for use in (store.read, store.size, store.exists, store.open_input, store.delete, store.open_output):
        with pytest.raises(StorageFailed, match="cannot "):
            use(location)
    with pytest.raises(StorageFailed, match="cannot list"):
        list(store.list(location))
