"""Deletes by position mean the same rows whichever way they are written, merged and loaded."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.deletes.files import DeleteFile, FileRead
from icebench.engine.deletes.loaded_deletes import load_deletes
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.write.delete_files import DeletedRows, write_position_deletes
from icebench.engine.write.vectors import write_deletion_vectors
from icebench.errors import CorruptTable
from tests.property.table_model import planned_delete
from tests.unit.engine.write.metadata_for_writes import metadata_of

SCHEMA = pa.schema([("id", pa.int64())])
# Positions on both sides of the borders of bitmap containers (2**16) and of 32-bit keys.
POSITIONS = st.integers(0, 20) | st.sampled_from([2**16 - 1, 2**16, 2**32 - 1, 2**32, 2**40])
FILES = ("memory://b/f0", "memory://b/f1", "memory://b/f2")
DELETED = st.dictionaries(st.sampled_from(FILES), st.lists(POSITIONS, min_size=1, max_size=12), max_size=3)


def rows(deleted: dict[str, list[int]]) -> list[DeletedRows]:
    return [DeletedRows(file_path=path, positions=np.array(own, np.int64)) for path, own in deleted.items()]


def file_with(path: str, deletes: tuple[DeleteFile, ...], record_count: int = 1 << 62) -> FileRead:
    return FileRead(file_path=path, record_count=record_count, deletes=deletes)


@given(
    batches=st.lists(DELETED, max_size=4),
    granularity=st.sampled_from(["file", "partition"]),
    threads=st.sampled_from([1, 2]),
)
def test_position_files_and_vectors_delete_the_same_rows(
    batches: list[dict[str, list[int]]], granularity: str, threads: int
) -> None:
    store = MemoryStore()
    expected: dict[str, set[int]] = {path: set() for path in FILES}
    files = []
    for batch in batches:
        metadata = metadata_of(SCHEMA, properties={"write.delete.granularity": granularity})
        files += write_position_deletes(rows(batch), metadata=metadata, store=store)
        for path, own in batch.items():
            expected[path] |= set(own)
    merged = rows({path: list(own) for path, own in expected.items() if own})
    vectors = write_deletion_vectors(merged, metadata=metadata_of(SCHEMA, format_version=3), store=store)

    by_position = tuple(planned_delete(file, 1) for file in files)
    by_vector = {file.referenced_data_file: planned_delete(file, 1) for file in vectors}
    for with_vectors in (False, True):
        planned = [
            file_with(path, ((by_vector[path],) if path in by_vector else ()) if with_vectors else by_position)
            for path in FILES
        ]
        loaded = load_deletes(planned, (), store=store, runner=LocalRunner(threads), counters=Counters())
        for file in planned:
            positions = loaded.of(file).positions
            assert ([] if positions is None else positions.tolist()) == sorted(expected[file.file_path])


@given(older=DELETED, newer=DELETED)
def test_a_vector_replaces_position_files(older: dict[str, list[int]], newer: dict[str, list[int]]) -> None:
    store, counters = MemoryStore(), Counters()
    files = write_position_deletes(rows(older), metadata=metadata_of(SCHEMA), store=store)
    vectors = write_deletion_vectors(rows(newer), metadata=metadata_of(SCHEMA, format_version=3), store=store)
    deletes = [planned_delete(file, 1) for file in [*files, *vectors]]
    planned = [file_with(path, tuple(d for d in deletes if d.referenced_data_file == path)) for path in FILES]
    loaded = load_deletes(planned, (), store=store, runner=LocalRunner(1), counters=counters)
    for file in planned:
        positions = loaded.of(file).positions
        expected = newer.get(file.file_path, older.get(file.file_path, []))
        assert ([] if positions is None else positions.tolist()) == sorted(set(expected))
    # What a vector replaces is not even read.
    assert counters["delete_files_loaded"] == len(vectors) + len(set(older) - set(newer))


@given(deleted=DELETED.filter(bool), missing=st.integers(0, 3))
def test_a_vector_deletes_rows_that_its_file_has(deleted: dict[str, list[int]], missing: int) -> None:
    store = MemoryStore()
    written = write_deletion_vectors(rows(deleted), metadata=metadata_of(SCHEMA, format_version=3), store=store)
    for file in written:
        path = file.referenced_data_file
        assert path is not None
        count = max(deleted[path]) + 1 - missing
        planned = [file_with(path, (planned_delete(file, 1),), max(count, 0))]
        loading = partial(load_deletes, planned, (), store=store, runner=LocalRunner(1), counters=Counters())
        if missing:
            with pytest.raises(CorruptTable, match="and its data file has"):
                loading()
        else:
            assert loading().vectors
