"""Delete files that two parts of a plan share are loaded once, and mean the same."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icebench.engine.deletes.cache import DeleteCache
from icebench.engine.read.plans import planned_files, request_for
from icebench.engine.read.reader import read_files
from icebench.engine.runtime.counters import DELETE_FILES_LOADED, Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.table import Table
from tests.spark.deleted_tables import with_every_delete


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return with_every_delete(tmp_path_factory.mktemp("table"))


def read_by_file(table: Table, cache: DeleteCache | None) -> tuple[list[int], int]:
    """Each data file read by itself, twice."""
    plan = table.scan().plan()
    request = request_for(plan, table.store)
    counters = Counters()
    ids: list[int] = []
    for _ in range(2):
        ids = []
        for file in planned_files(plan):
            batches = read_files([file], request, runner=LocalRunner(1), counters=counters, delete_cache=cache)
            ids += [row for batch in batches for row in batch.column("id").to_pylist()]
    return sorted(ids), counters.as_dict()[DELETE_FILES_LOADED]


def test_what_was_loaded_is_not_loaded_again(table: Table) -> None:
    expected = sorted(table.scan().to_arrow().column("id").to_pylist())
    plan = table.scan().plan()
    used = {d.file_path + str(d.content_offset) for file in planned_files(plan) for d in file.deletes}
    plain, loaded = read_by_file(table, None)
    cached, loaded_once = read_by_file(table, DeleteCache())
    assert plain == cached == expected
    assert loaded_once <= len(used)
    assert loaded >= 2 * loaded_once
    # A cache without room changes nothing.
    assert read_by_file(table, DeleteCache(0)) == (expected, loaded)


def test_the_least_recently_used_goes_first() -> None:
    cache = DeleteCache(10)
    for name in "abc":
        cache.keep(name, name.upper(), 4)
    assert [cache.find(name) for name in "abc"] == [None, "B", "C"]
    assert cache.size_bytes == 8
    cache.find("b")
    assert cache.of("d", lambda: "D", lambda _: 4) == "D"
    assert [cache.find(name) for name in "bcd"] == ["B", None, "D"]
    assert cache.keep("d", "D", 4) == "D"  # as two threads may that missed at once
    assert cache.size_bytes == 8
    assert cache.keep("huge", "H", 11) == "H"
    assert cache.find("huge") is None
    assert cache.of("b", lambda: pa.nulls(0), lambda _: 0) == "B"
