"""What every store promises, checked for each of them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.credentials import Credentials
from pyarrow import fs

from icebench.engine.runtime.counters import Counters
from icebench.engine.storage.arrow import ArrowStore
from icebench.engine.storage.counting import CountingStore
from icebench.engine.storage.local import LocalStore
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.storage.object_stores import signed_s3_store
from icebench.engine.storage.resolve import store_for
from icebench.engine.storage.signed_s3 import SignedS3Store
from icebench.engine.storage.store import Store
from icebench.errors import AlreadyExists, EngineError, FileNotFound
from tests.services.faulty_store import FaultyStore
from tests.services.s3_signer import sign

Place = tuple[Store, str]
"""A store, and the prefix of its locations for one test."""

_KINDS: dict[str, Callable[[Path], Place]] = {
    "local": lambda root: (LocalStore(), str(root)),
    "local-quick": lambda root: (LocalStore(durable=False), str(root)),
    "local-uri": lambda root: (LocalStore(), f"file://{root}"),
    "local-hadoop-uri": lambda root: (LocalStore(), f"file:{root}"),
    "memory": lambda root: (MemoryStore(), "memory://test"),
    "arrow": lambda root: (
        ArrowStore(fs.SubTreeFileSystem(str(root), fs.LocalFileSystem()), {"s3://": ""}),
        "s3://bucket",
    ),
    "faulty": lambda root: (FaultyStore(LocalStore()), str(root)),
    "counting": lambda root: (CountingStore(LocalStore(), Counters()), str(root)),
}


_S3 = ("s3", "s3-catalog", "s3-signed")
_ATOMIC = [kind for kind in _KINDS if kind != "arrow"]
"""All but those that look before they write, and say so."""


@pytest.fixture(params=[*_KINDS, "s3", "s3-signed"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param not in _S3:
        return _KINDS[request.param](tmp_path)
    root = f"s3://{request.getfixturevalue('bucket')}/files"
    properties = request.getfixturevalue("s3_server").properties
    if request.param == "s3-signed":
        keys = Credentials(properties.pop("s3.access-key-id"), properties.pop("s3.secret-access-key"))
        return signed_s3_store(properties, lambda asked: sign(keys, asked)), root
    return store_for(root, properties, is_catalog=request.param == "s3-catalog"), root


def test_reads_back_what_was_written(place: Place) -> None:
    store, root = place
    store.write(f"{root}/a/b/file", b"0123456789")
    assert store.read(f"{root}/a/b/file") == b"0123456789"
    assert store.size(f"{root}/a/b/file") == 10
    assert store.exists(f"{root}/a/b/file")


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, None, b"0123456789"),
        (3, None, b"3456789"),
        (3, 4, b"3456"),
        (0, 0, b""),
        (8, 10, b"89"),
        (10, 5, b""),
        (99, None, b""),
    ],
)
def test_reads_ranges(place: Place, offset: int, length: int | None, expected: bytes) -> None:
    store, root = place
    store.write(f"{root}/file", b"0123456789")
    assert store.read(f"{root}/file", offset, length) == expected


def test_an_empty_file_is_a_file(place: Place) -> None:
    store, root = place
    store.write(f"{root}/empty", b"")
    assert store.exists(f"{root}/empty")
    assert store.read(f"{root}/empty") == b""


@pytest.mark.parametrize("name", ["with space", "per%20cent", "a+b=c", "ünï-ço∂é", "key=value"])
def test_names_are_taken_literally(place: Place, name: str) -> None:
    store, root = place
    store.write(f"{root}/{name}/{name}", b"x")
    assert store.read(f"{root}/{name}/{name}") == b"x"
    assert [f.location for f in store.list(root)] == [f"{root}/{name}/{name}"]


@pytest.mark.parametrize("operation", ["read", "size", "delete", "open_input"])
def test_a_missing_file_is_not_found(place: Place, operation: str) -> None:
    store, root = place
    with pytest.raises(FileNotFound, match="nowhere"):
        getattr(store, operation)(f"{root}/nowhere/file")
    assert not store.exists(f"{root}/nowhere/file")


def test_a_file_is_not_a_directory(place: Place) -> None:
    store, root = place
    store.write(f"{root}/d/file", b"x")
    assert not store.exists(f"{root}/d")
    assert not store.exists(f"{root}/d/file/below")


def test_an_existing_file_is_not_replaced(place: Place) -> None:
    store, root = place
    store.write(f"{root}/file", b"first")
    with pytest.raises(AlreadyExists):
        store.write(f"{root}/file", b"second")
    assert store.read(f"{root}/file") == b"first"
    assert len(list(store.list(root))) == 1


def test_an_existing_file_is_replaced_when_asked(place: Place) -> None:
    store, root = place
    store.write(f"{root}/file", b"first, and longer")
    store.write(f"{root}/file", b"second", overwrite=True)
    assert store.read(f"{root}/file") == b"second"
    assert len(list(store.list(root))) == 1


def test_deleted_is_gone(place: Place) -> None:
    store, root = place
    store.write(f"{root}/file", b"x")
    store.delete(f"{root}/file")
    assert not store.exists(f"{root}/file")


def test_lists_every_depth_in_order_and_only_below(place: Place) -> None:
    store, root = place
    for name in ("t/b", "t/a/2", "t/a/1", "t2/x", "t/a-"):
        store.write(f"{root}/{name}", name.encode())
    listed = list(store.list(f"{root}/t"))
    assert [f.location for f in listed] == [f"{root}/{n}" for n in ("t/a-", "t/a/1", "t/a/2", "t/b")]
    assert [f.size_bytes for f in listed] == [4, 5, 5, 3]
    assert all(f.modified_ms > 1_600_000_000_000 for f in listed)
    assert list(store.list(f"{root}/t/")) == listed
    assert list(store.list(f"{root}/missing")) == []


def test_output_is_invisible_until_closed(place: Place) -> None:
    store, root = place
    output = store.open_output(f"{root}/d/file")
    output.write(b"half")
    assert not store.exists(f"{root}/d/file")
    output.write(b" and half")
    assert output.tell() == 13
    output.close()
    assert output.closed
    output.close()
    assert store.read(f"{root}/d/file") == b"half and half"


def test_an_exception_leaves_nothing(place: Place) -> None:
    store, root = place

    def fail() -> None:
        with store.open_output(f"{root}/d/file") as output:
            output.write(b"half")
            raise KeyError("stop")

    with pytest.raises(KeyError):
        fail()
    assert list(store.list(root)) == []


def test_abort_after_close_keeps_the_file(place: Place) -> None:
    store, root = place
    output = store.open_output(f"{root}/file")
    output.write(b"x")
    output.close()
    output.abort()
    assert store.read(f"{root}/file") == b"x"


def test_stores_say_whether_they_create_atomically(place: Place) -> None:
    store, _ = place
    assert store.creates_atomically is not isinstance(store, ArrowStore | SignedS3Store)


@pytest.mark.parametrize("place", _ATOMIC, indirect=True)
def test_a_second_writer_does_not_replace_the_first(place: Place) -> None:
    store, root = place
    first, second = store.open_output(f"{root}/file"), store.open_output(f"{root}/file")
    first.write(b"first")
    second.write(b"second")
    first.close()
    with pytest.raises(AlreadyExists):
        second.close()
    assert store.read(f"{root}/file") == b"first"
    assert [f.location for f in store.list(root)] == [f"{root}/file"]


@pytest.mark.parametrize("place", [*_ATOMIC, "s3-catalog"], indirect=True)
def test_of_many_writers_one_wins(place: Place) -> None:
    store, root = place

    def attempt(n: int) -> int | None:
        try:
            store.write(f"{root}/file", b"%d" % n * 1000)
        except AlreadyExists:
            return None
        return n

    with ThreadPoolExecutor(8) as pool:
        winners = [n for n in pool.map(attempt, range(8)) if n is not None]
    assert len(winners) == 1
    assert store.read(f"{root}/file") == b"%d" % winners[0] * 1000


def test_parquet_goes_through_open_files(place: Place) -> None:
    store, root = place
    table = pa.table({"a": range(1000), "b": [str(i) for i in range(1000)]})
    with store.open_output(f"{root}/f.parquet") as output:
        pq.write_table(table, output, row_group_size=100)
    source = store.open_input(f"{root}/f.parquet")
    assert source.size() == store.size(f"{root}/f.parquet")
    with pq.ParquetFile(source) as file:
        assert file.read_row_groups([3, 7], columns=["a"])["a"].to_pylist() == [*range(300, 400), *range(700, 800)]
        assert file.read() == table
    source.close()
    assert source.closed


def test_input_files_seek(place: Place) -> None:
    store, root = place
    store.write(f"{root}/file", b"0123456789")
    source = store.open_input(f"{root}/file")
    assert source.seekable()
    assert source.readable()
    assert not source.closed
    source.seek(4)
    assert source.read(2) == b"45"
    assert source.tell() == 6
    source.seek(-3, 2)
    assert source.read() == b"789"
    source.close()


def test_errors_name_the_location_in_one_line(place: Place) -> None:
    store, root = place
    with pytest.raises(EngineError) as raised:
        store.read(f"{root}/missing")
    assert f"{root}/missing" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_physical_is_the_location_itself(place: Place) -> None:
    store, root = place
    assert store.physical(f"{root}/file") == f"{root}/file"
