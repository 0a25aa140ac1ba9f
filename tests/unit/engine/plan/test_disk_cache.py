from __future__ import annotations

import dataclasses
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import icebench
from icebench.engine.codec.array_views import ManifestColumns, bytes_array, number_array
from icebench.engine.plan.cache import MEMORY_CACHE_HITS, MEMORY_CACHE_MISSES, ManifestCache
from icebench.engine.plan.disk_cache import (
    DISK_CACHE_DAMAGED,
    DISK_CACHE_FAILURES,
    DISK_CACHE_HITS,
    DISK_CACHE_MISSES,
    DiskCache,
    Metrics,
)
from icebench.engine.runtime.counters import STORAGE_REQUESTS_READ, Counters
from icebench.engine.storage.directory_cache import DirectoryCache
from icebench.errors import StorageFailed
from tests.property.manifest_batches import manifest_columns, number_lists

KEY = ("/t/m.avro", 123)


def columns(ids: Metrics, entries: int = 3) -> ManifestColumns:
    """Columns of all kinds, with metrics of these ids."""
    valid = np.array([True, False, True])[:entries]
    numbers = number_array(np.arange(entries), valid)
    text = bytes_array(np.arange(entries + 1), np.arange(entries, dtype=np.uint8))
    bound = bytes_array(np.arange(entries + 1), np.full(entries, 7, np.uint8), valid)
    floats = number_array(np.array([0.5, np.nan, -0.0])[:entries])
    made = {"snapshot_id": numbers, "file_path": text, "record_count": numbers, "partition/1000": floats}
    made |= {"split_offsets": number_lists([[i, i + 1] for i in range(entries)]), "partition/1001": text}
    for key in [1, 2, 3] if ids is None else sorted(ids):
        made |= {f"null_value_counts/{key}": numbers, f"lower_bounds/{key}": bound}
    return manifest_columns(entries, made)


class Decoder:
    def __init__(self) -> None:
        self.asked: list[Metrics] = []

    def __call__(self, metrics: Metrics) -> ManifestColumns:
        self.asked.append(metrics)
        return columns(metrics)


def opened(place: Path, limit_bytes: int = 1 << 20) -> tuple[DiskCache, Counters]:
    counters = Counters()
    return DiskCache(DirectoryCache(str(place), limit_bytes=limit_bytes), counters), counters


def same(left: ManifestColumns, right: ManifestColumns) -> bool:
    """Whether columns have the same values, NaN and the sign of zero included."""
    assert left.batch.schema == right.batch.schema
    pairs = list(zip(left.batch, right.batch, strict=True))
    return all(repr(a.to_pylist()) == repr(b.to_pylist()) and a.null_count == b.null_count for a, b in pairs)


def test_what_was_decoded_is_opened_the_next_time(tmp_path: Path) -> None:
    decode = Decoder()
    cache, _ = opened(tmp_path)
    first = cache.columns(KEY, frozenset({1, 2}), decode)
    assert same(first, columns(frozenset({1, 2})))
    again, counters = opened(tmp_path)
    assert same(again.columns(KEY, frozenset({1, 2}), decode), first)
    assert same(again.columns(KEY, frozenset({2}), decode), columns(frozenset({2})))
    assert same(again.columns(KEY, frozenset(), decode), columns(frozenset()))
    assert decode.asked == [frozenset({1, 2})]
    assert counters.as_dict() == {
        DISK_CACHE_DAMAGED: 0,
        DISK_CACHE_FAILURES: 0,
        DISK_CACHE_HITS: 3,
        DISK_CACHE_MISSES: 0,
    }


def test_metrics_are_added_to_those_that_are_there(tmp_path: Path) -> None:
    cache, counters = opened(tmp_path)
    decode = Decoder()
    for wanted in (frozenset({1}), frozenset({2}), frozenset({1, 2}), None, frozenset({9})):
        cache.columns(KEY, wanted, decode)
    assert decode.asked == [frozenset({1}), frozenset({1, 2}), None]
    assert (counters[DISK_CACHE_HITS], counters[DISK_CACHE_MISSES]) == (2, 3)


def test_another_length_or_place_is_another_manifest(tmp_path: Path) -> None:
    cache, _ = opened(tmp_path)
    decode = Decoder()
    for key in (KEY, (KEY[0], 124), ("/t/n.avro", 123), ("memory://t/m.avro", 123), ("memory://t/m.avro", 123)):
        cache.columns(key, frozenset(), decode)
    assert len(decode.asked) == 5
    assert len(list(tmp_path.iterdir())) == 3  # nothing of the tables in memory


@pytest.mark.parametrize("share_kept", [0.0, 0.001, 0.1, 0.5, 0.999])
def test_a_file_that_was_cut_is_written_anew(tmp_path: Path, share_kept: float) -> None:
    cache, counters = opened(tmp_path)
    expected = cache.columns(KEY, None, Decoder())
    (file,) = tmp_path.glob("*.cache")
    data = file.read_bytes()
    replace(file, data[: int(len(data) * share_kept)])
    decode = Decoder()
    assert same(cache.columns(KEY, None, decode), expected)
    assert (len(decode.asked), counters[DISK_CACHE_MISSES]) == (1, 2)
    assert same(cache.columns(KEY, None, decode), expected)
    assert len(decode.asked) == 1


@pytest.mark.parametrize(("flipped", "first", "step"), [(0x41, 0, 29), (0x01, 0, 8), (0x80, 7, 8)])
def test_a_byte_that_changed_never_changes_a_value(tmp_path: Path, flipped: int, first: int, step: int) -> None:
    """Any byte; the lowest of each number, as of one null that becomes none; the highest, so that it is negative."""
    cache, counters = opened(tmp_path)
    expected = cache.columns(KEY, None, Decoder())
    (file,) = tmp_path.glob("*.cache")
    data = file.read_bytes()
    decode = Decoder()
    for place in range(first, len(data), step):
        replace(file, data[:place] + bytes([data[place] ^ flipped]) + data[place + 1 :])
        assert same(cache.columns(KEY, None, decode), expected), place
        replace(file, data)
    # Bytes between the arrays mean nothing; most others do.
    assert counters[DISK_CACHE_DAMAGED] == len(decode.asked) > len(data) // step // 4


def replace(file: Path, data: bytes) -> None:
    """As another process would: the old file stays for those who have it mapped."""
    other = file.with_suffix(".other")
    other.write_bytes(data)
    other.replace(file)


def test_a_file_about_something_else_is_not_taken(tmp_path: Path) -> None:
    cache, counters = opened(tmp_path)
    cache.columns(KEY, None, Decoder())
    (file,) = tmp_path.glob("*.cache")
    other = ("/t/other.avro", 123)
    cache.columns(other, None, Decoder())
    (second,) = set(tmp_path.glob("*.cache")) - {file}
    replace(second, file.read_bytes())
    decode = Decoder()
    cache.columns(other, None, decode)
    assert (len(decode.asked), counters[DISK_CACHE_DAMAGED]) == (1, 1)


def test_a_directory_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageFailed):
        ManifestCache(directory=f"{tmp_path}/file")


def test_a_manifest_that_cannot_be_kept_is_still_planned(tmp_path: Path) -> None:
    cache, counters = opened(tmp_path, limit_bytes=100)
    decode = Decoder()
    cache.columns(KEY, None, decode)
    cache.columns(KEY, None, decode)
    assert (len(decode.asked), counters[DISK_CACHE_FAILURES]) == (2, 2)


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A warehouse with a table of several manifests, appended to and deleted from."""
    catalog = icebench.load_catalog(f"{tmp_path}/wh")
    table = catalog.create_table("db.t", pa.schema([pa.field("id", pa.int64()), pa.field("s", pa.string())]))
    for i in range(4):
        table.append(pa.table({"id": [i, i + 10], "s": [f"s{i}", None]}))
    table.delete("id = 12", "merge-on-read")
    catalog.close()
    return f"{tmp_path}/wh"


def test_tables_are_planned_from_disk(tmp_path: Path, place: str) -> None:
    def plan(filter: str | None) -> tuple[list[str], dict[str, int], int, ManifestCache]:
        cache = ManifestCache(directory=f"{tmp_path}/cache")
        catalog = icebench.load_catalog(place, cache=cache)
        counters = icebench.Counters()
        made = catalog.load_table("db.t").scan(filter, counters=counters).plan()
        catalog.close()
        return made.files["file_path"].to_pylist(), made.counters, counters[STORAGE_REQUESTS_READ], cache

    first, again = plan("id < 12"), plan("id < 12")
    assert first[:2] == again[:2]
    assert (first[2], again[2]) == (6, 0)
    assert again[3].counters.as_dict() == {
        DISK_CACHE_DAMAGED: 0,
        DISK_CACHE_FAILURES: 0,
        DISK_CACHE_HITS: 6,
        DISK_CACHE_MISSES: 0,
        MEMORY_CACHE_HITS: 0,
        MEMORY_CACHE_MISSES: 6,
    }
    assert len(plan(None)[0]) == 4
    assert len(plan("s = 's1'")[0]) == 1


def test_a_table_that_changes_is_never_seen_as_it_was(tmp_path: Path, place: str) -> None:
    cache = ManifestCache(directory=f"{tmp_path}/cache")
    catalog = icebench.load_catalog(place, cache=cache)
    table = catalog.load_table("db.t")
    fresh = icebench.load_catalog(place)
    for i in range(5):
        assert table.scan().to_arrow().equals(fresh.load_table("db.t").scan().to_arrow())
        if i % 2:
            table.delete(f"id = {i}", "copy-on-write")
        else:
            table.append(pa.table({"id": [100 + i], "s": ["new"]}))
    catalog.close()
    fresh.close()


def test_one_thread_decodes_for_all(tmp_path: Path) -> None:
    cache = ManifestCache(directory=str(tmp_path))
    decode = Decoder()
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: cache.get(KEY, None, decode), range(64)))
    assert len(decode.asked) == 1
    assert all(each is found[0] for each in found)
    assert (cache.counters[MEMORY_CACHE_HITS], cache.counters[MEMORY_CACHE_MISSES]) == (63, 1)


def test_processes_share_a_directory(tmp_path: Path, place: str) -> None:
    code = (
        "import icebench, sys\n"
        "for i in range(3):\n"
        "    cache = icebench.ManifestCache(0, directory=sys.argv[2], disk_limit_bytes=int(sys.argv[3]))\n"
        "    table = icebench.load_catalog(sys.argv[1], cache=cache).load_table('db.t')\n"
        "    for _ in range(3):\n"
        "        assert sorted(table.scan().to_arrow()['id'].to_pylist()) == [0, 1, 2, 3, 10, 11, 13]\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, place, f"{tmp_path}/cache", limit])
        for limit in ("1000000", "40000", "1000000")
    ]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    assert not list(Path(tmp_path, "cache").glob("*.tmp"))


@pytest.mark.parametrize("highest", [3, None])
def test_the_highest_field_id_is_kept(tmp_path: Path, highest: int | None) -> None:
    def decode(metrics: Metrics) -> ManifestColumns:
        return dataclasses.replace(columns(metrics), highest_field_id=highest)

    for _ in range(2):
        cache, counters = opened(tmp_path)
        assert cache.columns(KEY, frozenset(), decode).highest_field_id == highest
    assert counters[DISK_CACHE_HITS] == 1
