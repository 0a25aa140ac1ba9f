"""All deletes of a plan, and those of each data file: what is found, and how much is done for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import icebench
from icebench.engine.deletes import equality
from icebench.engine.deletes.equality import compared_columns
from icebench.engine.deletes.files import DeleteFile, PerList, distinct_deletes
from icebench.engine.read.plans import planned_files, request_for
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.table import Table
from tests.unit.engine.deletes.test_equality import delete_file

FILES = 24


def table_of_pairs(directory: Path) -> Table:
    """Each data file has a row that each delete file deletes."""
    made = icebench.load_catalog(str(directory)).create_table(
        "db.t", pa.schema([("id", pa.int64())]), properties={"format-version": "2"}
    )
    for _ in range(FILES):
        made.append(pa.table({"id": [1, 2, 3]}))
    for _ in range(FILES):
        stream = made.keyed_stream(["id"])
        stream.delete(pa.table({"id": [2]}))
        stream.commit()
    return made


def test_work_grows_with_files_and_not_with_their_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of_pairs(tmp_path)
    plan = table.scan().plan()
    calls: Counter[str] = Counter()
    hash_of = DeleteFile.__hash__

    def counted_hash(file: DeleteFile) -> int:
        calls["hash"] += 1
        return hash_of(file)

    def counted_columns(file: DeleteFile) -> tuple[int, ...]:
        calls["columns"] += 1
        return compared_columns(file)

    monkeypatch.setattr(DeleteFile, "__hash__", counted_hash)
    monkeypatch.setattr(equality, "compared_columns", counted_columns)
    files = list(planned_files(plan))
    assert len(files) == FILES
    assert {len(file.deletes) for file in files} == {FILES}
    assert len({id(file.deletes) for file in files}) == 1
    loaded = request_for(plan, table.store).load_deletes(files, runner=LocalRunner(1), counters=Counters())
    groups = [loaded.of(file).equality for file in files]
    assert [len(each) for each in groups] == [1] * FILES
    assert calls["columns"] <= 2 * FILES
    assert calls["hash"] <= 10 * FILES
    assert table.scan().to_arrow()["id"].to_pylist() == [1, 3] * FILES


def test_vectors_in_one_file_have_different_hashes() -> None:
    one = delete_file("d.puffin")
    assert len({hash(replace(one, content_offset=offset)) for offset in range(100)}) > 90


def test_lists_are_told_apart_by_identity_and_kept() -> None:
    asked: list[int] = []

    def length(deletes: tuple[DeleteFile, ...]) -> int:
        asked.append(len(deletes))
        return len(deletes)

    known = PerList(length)
    for size in range(1, 40):
        # Nothing but `known` keeps a list, whose id would otherwise be that of the next one.
        deletes = tuple(delete_file(f"d{i}") for i in range(size))
        assert [known.of(deletes), known.of(deletes)] == [size, size]
        del deletes
    assert len(asked) < 2 * 39


def test_delete_files_come_once_in_order() -> None:
    a, b, c = (delete_file(name) for name in "abc")
    again = delete_file("a", sequence_number=6)
    assert list(distinct_deletes([(b, a), (a, delete_file("b"), c), (again,)])) == [b, a, c, again]


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_file_has_its_positions_and_its_keys(tmp_path: Path, version: str) -> None:
    made = icebench.load_catalog(str(tmp_path)).create_table(
        "db.t", pa.schema([("id", pa.int64())]), properties={"format-version": version}
    )
    made.append(pa.table({"id": range(20)}))
    made.delete("id = 7", "merge-on-read")
    stream = made.keyed_stream(["id"])
    stream.delete(pa.table({"id": [9]}))
    stream.commit()
    plan = made.scan().plan()
    (file,) = planned_files(plan)
    loaded = request_for(plan, made.store).load_deletes([file], runner=LocalRunner(1), counters=Counters())
    found = loaded.of(file)
    assert np.array_equal(found.positions if found.positions is not None else [], [7])
    assert [group.keys[0].to_pylist() for group in found.equality] == [[9]]
