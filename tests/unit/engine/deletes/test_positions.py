import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.deletes.cache import DeleteCache
from icebench.engine.deletes.files import DeleteFile
from icebench.engine.deletes.positions import DataFilePlaces, load_positions
from icebench.engine.runtime.counters import DELETE_FILES_LOADED, Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.locations import same_place
from icebench.engine.spec.metadata_columns import DELETE_FILE_PATH_ID, DELETE_POS_ID
from icebench.engine.storage.memory import MemoryStore
from icebench.errors import CorruptTable, FileNotFound

RUN = LocalRunner(1)


def delete_file(path: str, file_format: str = "parquet", record_count: int = 1, size_bytes: int = 1) -> DeleteFile:
    return DeleteFile(
        content=FileContent.POSITION_DELETES,
        file_path=path,
        file_format=file_format,
        record_count=record_count,
        file_size_in_bytes=size_bytes,
        sequence_number=1,
    )


def stored(store: MemoryStore, name: str, rows: list[tuple[str | None, int | None]], **options: object) -> DeleteFile:
    """A position-delete file as another writer may write it: without ids, in any order."""
    table = pa.table(
        {
            "file_path": pa.array([r[0] for r in rows], pa.string()),
            "pos": pa.array([r[1] for r in rows], pa.int64()),
            "row": pa.nulls(len(rows), pa.struct([("id", pa.int64())])),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    store.write(f"memory://b/{name}", sink.getvalue())
    return delete_file(f"memory://b/{name}", record_count=len(rows), size_bytes=len(sink.getvalue()))


@given(
    rows=st.lists(
        st.lists(st.tuples(st.sampled_from(["f1", "f2", "f3"]), st.integers(0, 9)), max_size=12), min_size=1, max_size=3
    ),
    wanted=st.sets(st.sampled_from(["f1", "f2", "f3"])),
    group=st.sampled_from([1, 3, 100]),
)
def test_positions_of_a_data_file_are_ascending_and_come_once(
    rows: list[list[tuple[str, int]]], wanted: set[str], group: int
) -> None:
    store, counters = MemoryStore(), Counters()
    files = [stored(store, f"d{i}", own, row_group_size=group) for i, own in enumerate(rows)]  # type: ignore[arg-type]
    found = load_positions(files, wanted, store=store, runner=RUN, counters=counters)
    for path in ("f1", "f2", "f3"):
        expected = sorted({pos for own in rows for p, pos in own if p == path}) if path in wanted else []
        positions = found.of(path, files)
        assert ([] if positions is None else positions.tolist()) == expected
        first = found.of(path, files[:1])
        expected = sorted({pos for p, pos in rows[0] if p == path}) if path in wanted else []
        assert ([] if first is None else first.tolist()) == expected
    assert counters[DELETE_FILES_LOADED] == len(files)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("/a/b", "file:/a/b", True),
        ("file:///a/b", "file:/a/b", True),
        ("file://localhost/a/b", "/a/b", True),
        ("s3a://bucket/k", "s3://bucket/k", True),
        ("hdfs://host/a", "/a", True),
        ("hdfs:/a", "hdfs://host/a", True),
        ("s3://one/k", "s3://two/k", False),
        ("s3://one/k", "gs://one/k", False),
        ("/a/b", "/a/c", False),
        ("relative", "relative", True),
    ],
)
def test_spellings_of_one_place(left: str, right: str, same: bool) -> None:
    assert same_place(left, right) is same
    assert same_place(right, left) is same


def test_another_spelling_of_a_data_file_is_that_data_file() -> None:
    places = DataFilePlaces(["s3://bucket/t/f1", "s3://bucket/t/f2"])
    assert places.find("s3://bucket/t/f1", "d") == "s3://bucket/t/f1"
    assert places.find("s3a://bucket/t/f2", "d") == "s3://bucket/t/f2"
    assert places.find("s3://bucket/t/f3", "d") is None


def test_a_path_with_another_authority_is_not_guessed_about() -> None:
    with pytest.raises(CorruptTable, match=r"d: it deletes rows of s3://other/t/f1.*s3://bucket/t/f1"):
        DataFilePlaces(["s3://bucket/t/f1"]).find("s3://other/t/f1", "d")


def test_deletes_with_another_spelling_are_applied() -> None:
    store = MemoryStore()
    file = stored(store, "d", [("file:/data/f1", 3), ("file:/data/f2", 4)])
    found = load_positions([file], ["/data/f1"], store=store, runner=RUN, counters=Counters())
    assert found.of("/data/f1", [file]) == np.array([3])


def test_columns_are_found_by_their_ids_whatever_their_names() -> None:
    store = MemoryStore()
    ids = {"path": DELETE_FILE_PATH_ID, "position": DELETE_POS_ID}
    types = {"path": pa.string(), "position": pa.int64()}
    fields = [pa.field(name, types[name], metadata={"PARQUET:field_id": str(ids[name])}) for name in ids]
    sink = io.BytesIO()
    pq.write_table(pa.table({"path": ["f1", "f1"], "position": [3, 5]}, schema=pa.schema(fields)), sink)
    store.write("memory://b/d", sink.getvalue())
    file = delete_file("memory://b/d", record_count=2, size_bytes=len(sink.getvalue()))
    found = load_positions([file], ["f1"], store=store, runner=RUN, counters=Counters())
    positions = found.of("f1", [file])
    assert positions is not None
    assert positions.tolist() == [3, 5]


def test_what_is_wrong_is_named() -> None:
    store = MemoryStore()

    def load(file: DeleteFile) -> None:
        load_positions([file], ["f1"], store=store, runner=RUN, counters=Counters(), needed_by="table db.t, snapshot 1")

    with pytest.raises(FileNotFound, match=r"memory://b/gone \(needed by table db\.t, snapshot 1\)"):
        load(delete_file("memory://b/gone"))
    with pytest.raises(CorruptTable, match="null"):
        load(stored(store, "nulls", [("f1", None)]))
    sink = io.BytesIO()
    pq.write_table(pa.table({"file_path": ["f1"]}), sink)
    store.write("memory://b/narrow", sink.getvalue())
    with pytest.raises(CorruptTable, match="file_path and pos"):
        load(delete_file("memory://b/narrow", size_bytes=len(sink.getvalue())))


def test_what_is_kept_of_a_file_serves_other_data_files_in_their_own_spelling() -> None:
    store, cache = MemoryStore(), DeleteCache()
    file = stored(store, "p.parquet", [("s3a://b/x", 1), ("s3://b/x", 4), ("/y", 2)])

    def positions(data_file: str) -> list[int] | None:
        loaded = load_positions([file], [data_file], store=store, runner=RUN, counters=Counters(), cache=cache)
        found = loaded.of(data_file, [file])
        return None if found is None else found.tolist()

    assert positions("file:/y") == [2]
    assert positions("s3://b/x") == [1, 4]
    assert positions("/z") is None
