"""Deletion vectors in Puffin files, and what they leave of other deletes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.deletes.files import DeleteFile, FileRead
from icebench.engine.deletes.loaded_deletes import load_deletes
from icebench.engine.deletes.vectors import load_vectors, vector_blob
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import LONG, NestedField
from icebench.engine.storage.counting import CountingStore
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.write.delete_files import write_equality_deletes
from icebench.errors import CorruptTable
from tests.unit.engine.write.metadata_for_writes import metadata_of

RUN = LocalRunner(1)
SCHEMA = Schema((NestedField(field_id=1, name="id", type=LONG),))


def vectors(store: MemoryStore, name: str, *positions: list[int], gap: int = 0) -> list[DeleteFile]:
    """Vectors in one file, one after the other, for the data files ``/d0``, ``/d1``, ..."""
    data, found = b"PFA1", []
    for number, own in enumerate(positions):
        blob = vector_blob(np.array(own, np.int64))
        data += b"\0" * gap
        found.append(
            DeleteFile(
                content=FileContent.POSITION_DELETES,
                file_path=name,
                file_format="puffin",
                record_count=len(own),
                file_size_in_bytes=1,
                sequence_number=1,
                referenced_data_file=f"/d{number}",
                content_offset=len(data),
                content_size_in_bytes=len(blob),
            )
        )
        data += blob
    store.write(name, data)
    return found


def requests(store: MemoryStore, chosen: list[DeleteFile]) -> tuple[list[list[int]], int]:
    counters = Counters()
    found = load_vectors(chosen, store=CountingStore(store, counters), runner=RUN, counters=Counters(), rows={})
    return [found[vector].tolist() for vector in chosen], counters["storage_requests_range_read"]


def test_neighbours_in_one_file_are_fetched_together_and_others_by_themselves() -> None:
    store = MemoryStore()
    near = vectors(store, "memory://a", [1, 5], [0], [7, 8, 9])
    other = vectors(store, "memory://b", [2], [3])
    far = vectors(store, "memory://c", [4], [6], gap=2 << 20)
    assert requests(store, near) == ([[1, 5], [0], [7, 8, 9]], 1)
    assert requests(store, [*near, *other]) == ([[1, 5], [0], [7, 8, 9], [2], [3]], 2)
    assert requests(store, far) == ([[4], [6]], 2)


def test_a_request_is_not_longer_than_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    chosen = vectors(store, "memory://a", *([n] for n in range(6)))
    size = chosen[0].content_size_in_bytes or 0
    monkeypatch.setattr("icebench.engine.deletes.vectors._REQUEST_BYTES", 2 * size)
    assert requests(store, chosen) == ([[n] for n in range(6)], 3)


def test_a_vector_has_as_many_positions_as_its_entry_says() -> None:
    store = MemoryStore()
    (vector,) = vectors(store, "memory://a", [1, 5])
    for count in (1, 3):
        with pytest.raises(CorruptTable, match=f"instead of {count}"):
            load_vectors([replace(vector, record_count=count)], store=store, runner=RUN, counters=Counters(), rows={})


def test_a_vector_replaces_position_deletes_unread_and_leaves_equality_deletes() -> None:
    store = MemoryStore()
    (vector,) = vectors(store, "memory://a", [1, 5])
    former = replace(
        vector, file_path="memory://missing", file_format="parquet", content_offset=None, content_size_in_bytes=None
    )
    keys = pa.table({"id": [3]})
    (written,) = write_equality_deletes(keys, columns=["id"], metadata=metadata_of(SCHEMA), store=store)
    by_key = replace(
        former,
        content=FileContent.EQUALITY_DELETES,
        file_path=written.file_path,
        record_count=1,
        file_size_in_bytes=written.file_size_in_bytes,
        referenced_data_file=None,
        equality_ids=(1,),
        sequence_number=2,
    )
    file = FileRead(file_path="/d0", record_count=10, deletes=(vector, former, by_key))
    loaded = load_deletes([file], [SCHEMA], store=store, runner=RUN, counters=Counters()).of(file)
    assert loaded.positions is not None
    assert loaded.positions.tolist() == [1, 5]
    (group,) = loaded.equality
    assert group.deleted(pa.table({"id": [2, 3]}, to_arrow_schema(SCHEMA)), 1).tolist() == [False, True]
