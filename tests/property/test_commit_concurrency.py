"""Writers at the same time: every acknowledged row is in the table exactly once, and no refused one is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench.engine import errors
from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.commit.manifests import load_manifests
from icebench.engine.spec.snapshots import MAIN

ROWS = pa.schema([pa.field("writer", pa.int64()), pa.field("n", pa.int64())])
# Many writers on two processors collide often: quick, patient retries.
PROPERTIES = {
    "commit.retry.num-retries": "100",
    "commit.retry.min-wait-ms": "2",
    "commit.retry.max-wait-ms": "40",
}
WRITERS, APPENDS = 8, 10


def rows(writer: int, n: int) -> pa.Table:
    return pa.table({"writer": [writer, writer], "n": [2 * n, 2 * n + 1]}, schema=ROWS)


def contents(table: icebench.Table, branch: str = MAIN) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for manifest in load_manifests(table.metadata.head(branch), table.store):
        for entry in decode_entries(table.store.read(manifest.manifest_path)):
            data = pq.read_table(table.store.open_input(entry.data_file.file_path))
            found.update(zip(data["writer"].to_pylist(), data["n"].to_pylist(), strict=True))
    return found


def sqlite(root: Path) -> Callable[[], icebench.Catalog]:
    return lambda: icebench.load_catalog(f"sqlite:///{root}/catalog.db", warehouse=f"{root}/wh")


def directory(root: Path) -> Callable[[], icebench.Catalog]:
    return lambda: icebench.load_catalog(f"{root}/wh")


@pytest.mark.parametrize("kind", [sqlite, directory])
@pytest.mark.parametrize("shared", [True, False], ids=["one-handle", "own-catalogs"])
def test_every_acknowledged_row_is_there_once(
    tmp_path: Path, kind: Callable[[Path], Callable[[], icebench.Catalog]], *, shared: bool
) -> None:
    opened = kind(tmp_path)
    first = opened()
    table = first.create_table("db.t", ROWS, properties=PROPERTIES)

    def write(writer: int) -> list[tuple[int, int]]:
        catalog = first if shared else opened()
        handle = table if shared else catalog.load_table("db.t")
        acknowledged = []
        for n in range(APPENDS):
            try:
                snapshot = handle.append(rows(writer, n))
            except errors.CommitConflict:
                continue
            assert snapshot.summary["added-records"] == "2"
            assert handle.metadata.snapshot(snapshot.snapshot_id) == snapshot
            acknowledged += [(writer, 2 * n), (writer, 2 * n + 1)]
        if not shared:
            catalog.close()
        return acknowledged

    with ThreadPoolExecutor(WRITERS) as pool:
        acknowledged = [row for made in pool.map(write, range(WRITERS)) for row in made]
    table.refresh()
    assert contents(table) == Counter(acknowledged)
    assert len(acknowledged) == WRITERS * APPENDS * 2
    numbers = [snapshot.sequence_number for snapshot in table.snapshots]
    assert numbers == list(range(1, WRITERS * APPENDS + 1))
    times = [snapshot.timestamp_ms for snapshot in table.snapshots]
    assert times == sorted(times)
    head = table.current_snapshot
    assert head is not None
    assert head.summary["total-records"] == str(len(acknowledged))
    first.close()


def test_branches_share_one_row_of_sequence_numbers(tmp_path: Path) -> None:
    catalog = sqlite(tmp_path)()
    table = catalog.create_table("db.t", ROWS, properties=PROPERTIES)
    table.append(rows(99, 0))

    def write(writer: int) -> None:
        for n in range(5):
            table.append(rows(writer, n), branch=f"b{writer % 2}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    table.refresh()
    assert sorted(s.sequence_number for s in table.snapshots) == list(range(1, 22))
    for branch in (0, 1):
        expected = {(99, 0), (99, 1)} | {(w, n) for w in range(4) if w % 2 == branch for n in range(10)}
        assert contents(table, f"b{branch}") == Counter(expected)
    assert contents(table) == Counter({(99, 0): 1, (99, 1): 1})
    catalog.close()
