"""Single behaviours of the reader; that all of them together give the right rows is held by tests/property."""

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icebench.engine.deletes.files import DeleteFile, FileRead
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.parse import parse
from icebench.engine.read.reader import read_files
from icebench.engine.read.request import ReadRequest
from icebench.engine.runtime.counters import (
    DELETE_FILES_LOADED,
    DELETE_POSITIONS_APPLIED,
    ROW_GROUPS_READ,
    ROW_GROUPS_SKIPPED,
    ROWS_DECODED,
    ROWS_DELETED,
    ROWS_RETURNED,
    STORAGE_BYTES_READ,
    Counters,
)
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.metadata_columns import FILE, LAST_UPDATED, POS, ROW_ID, SPEC_ID
from icebench.engine.spec.partitioning import PartitionSpec, partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Bucket, Identity
from icebench.engine.spec.types import LONG, STRING, NestedField
from icebench.engine.storage.counting import CountingStore
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.storage.store import Store
from icebench.engine.write.data_files import write_data_files
from icebench.engine.write.delete_files import DeletedRows, write_position_deletes
from icebench.errors import CorruptTable, FileNotFound, Unsupported
from tests.property.table_model import planned_delete
from tests.unit.engine.write.metadata_for_writes import metadata_of

ID = NestedField(field_id=1, name="id", type=LONG)
TEXT = NestedField(field_id=2, name="text", type=STRING)
SCHEMA = Schema((ID, TEXT))
ROWS = pa.table({"id": range(100), "text": [f"{i:050d}" for i in range(100)]})
GROUPS_OF_TEN = {"write.parquet.row-group-size-bytes": "640"}


def metadata(**properties: str) -> TableMetadata:
    return metadata_of(SCHEMA, properties={**GROUPS_OF_TEN, **properties})


def written(store: Store, rows: pa.Table = ROWS) -> DataFile:
    (file,) = write_data_files(rows, metadata=metadata(), store=store)
    return file


def deletes_of(store: Store, file: DataFile, positions: Sequence[int]) -> tuple[DeleteFile, ...]:
    rows = DeletedRows(file_path=file.file_path, positions=np.array(positions, np.int64))
    return tuple(planned_delete(f, 9) for f in write_position_deletes([rows], metadata=metadata(), store=store))


def read(
    store: Store,
    file: FileRead,
    *,
    projection: Schema = SCHEMA,
    schema: Schema = SCHEMA,
    batch_rows: int = 1000,
    spec: PartitionSpec | None = None,
) -> tuple[pa.Table, Counters]:
    counters = Counters()
    request = ReadRequest(
        store=store,
        projection=projection,
        schemas=(schema,),
        specs={} if spec is None else {spec.spec_id: spec},
        batch_rows=batch_rows,
        needed_by="table db.t, snapshot 17",
    )
    batches = list(read_files([file], request, runner=LocalRunner(1), counters=counters))
    return pa.Table.from_batches(batches, request.arrow_schema), counters


def reading(file: DataFile, **more: Any) -> FileRead:
    return FileRead(file_path=file.file_path, record_count=file.record_count, **more)


def test_row_groups_that_the_filter_excludes_are_not_read_and_positions_stay_physical() -> None:
    store = MemoryStore()
    file = written(store)
    groups = pq.read_metadata(io.BytesIO(store.read(file.file_path))).num_row_groups
    assert groups == 10
    deletes = deletes_of(store, file, [3, 54, 55, 99])
    residual = bind(parse("id >= 52 and id < 58"), SCHEMA)
    table, counters = read(
        store,
        reading(file, deletes=deletes, residual=residual),
        projection=Schema((ID, POS)),
    )
    assert table.to_pydict() == {"id": [52, 53, 56, 57], "_pos": [52, 53, 56, 57]}
    assert counters.as_dict() == {
        DELETE_FILES_LOADED: 1,
        "delete_keys_applied": 0,
        DELETE_POSITIONS_APPLIED: 2,
        ROW_GROUPS_READ: 1,
        ROW_GROUPS_SKIPPED: 9,
        ROWS_DECODED: 10,
        ROWS_DELETED: 2,
        ROWS_RETURNED: 4,
    }


def test_row_groups_of_a_file_that_is_fetched_whole_are_skipped_too() -> None:
    store = MemoryStore()
    file = written(store)
    residual = bind(parse("id >= 52 and id < 58"), SCHEMA)
    whole = reading(file, residual=residual, file_size_in_bytes=file.file_size_in_bytes)
    rows, counters = read(store, whole)
    assert rows["id"].to_pylist() == list(range(52, 58))
    assert counters[ROW_GROUPS_SKIPPED] == 9


def test_files_come_in_order_whatever_their_size() -> None:
    store = MemoryStore()
    few, many = ROWS.slice(0, 10), pa.table({"id": range(40_000), "text": ["x"] * 40_000})
    files = [reading(written(store, rows)) for rows in (many, few, many, few)]
    request = ReadRequest(store=store, projection=SCHEMA, schemas=(SCHEMA,))
    batches = list(read_files(files, request, runner=LocalRunner(2), counters=Counters()))
    expected = pa.concat_tables([many, few, many, few])
    assert pa.Table.from_batches(batches).column("id").to_pylist() == expected.column("id").to_pylist()


def test_a_residual_at_the_place_in_memory_of_another_is_prepared_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icebench.engine.read.request.id", lambda _: 1, raising=False)
    request = ReadRequest(store=MemoryStore(), projection=SCHEMA, schemas=(SCHEMA,))
    for text in ("id = 1", "text = 'x'"):
        residual = bind(parse(text), SCHEMA)
        assert request.filter_of(residual).evaluator.bound is residual
        assert request.filter_of(residual) is request.filter_of(residual)


def test_a_row_group_that_is_deleted_whole_is_not_decoded() -> None:
    store = MemoryStore()
    file = written(store)
    deletes = deletes_of(store, file, range(5, 25))
    table, counters = read(store, reading(file, deletes=deletes))
    assert table.column("id").to_pylist() == [*range(5), *range(25, 100)]
    assert (counters[ROW_GROUPS_READ], counters[ROW_GROUPS_SKIPPED]) == (9, 1)
    assert (counters[ROWS_DECODED], counters[ROWS_DELETED], counters[ROWS_RETURNED]) == (90, 20, 80)


def test_columns_that_are_not_filtered_are_decoded_only_where_a_row_matches() -> None:
    inner = MemoryStore()
    shuffled = ROWS.take([(i * 37) % 100 for i in range(100)])
    file = written(inner, shuffled)
    bytes_read = {}
    for text in ("id = 5 or id = 77", "id < 0 or id > 50 and id < 51"):
        counters = Counters()
        store = CountingStore(inner, counters)
        residual = bind(parse(text), SCHEMA)
        table, _ = read(store, reading(file, residual=residual))
        assert table.num_rows == (2 if "77" in text else 0)
        bytes_read[text] = counters[STORAGE_BYTES_READ]
    nothing, some = sorted(bytes_read.values())
    assert nothing < some < file.file_size_in_bytes * 2


def test_batches_are_slices_of_what_was_decoded() -> None:
    store = MemoryStore()
    (file,) = write_data_files(ROWS, metadata=metadata_of(SCHEMA), store=store)
    for deletes, lengths in ((), [20] * 5), (deletes_of(store, file, [42]), [20, 20, 20, 20, 19]):
        table, _ = read(store, reading(file, deletes=deletes), batch_rows=20)
        chunks = table.column("id").chunks
        assert [len(chunk) for chunk in chunks] == lengths
        assert len({chunk.buffers()[1].address for chunk in chunks}) == 1


def test_a_part_of_a_file_has_the_row_groups_that_begin_in_it() -> None:
    store = MemoryStore()
    file = written(store)
    offsets = [*(file.split_offsets or ()), file.file_size_in_bytes]
    found = []
    for start, end in [
        (0, offsets[3]),
        (offsets[3], offsets[4] - 1),
        (offsets[4] - 1, offsets[4]),
        (offsets[4], offsets[10]),
    ]:
        table, _ = read(store, reading(file, byte_range=(start, end - start)))
        found.append(table.num_rows)
    assert found == [30, 10, 0, 60]


def test_identity_partition_values_fill_columns_that_files_lack() -> None:
    store = MemoryStore()
    narrow = Schema((ID,))
    (file,) = write_data_files(ROWS.select(["id"]).slice(0, 3), metadata=metadata_of(narrow), store=store)
    spec = partition_spec(SCHEMA, [("text", Identity()), ("id", Bucket(2))], spec_id=4)
    planned = FileRead(
        file_path=file.file_path,
        record_count=3,
        spec_id=4,
        partition=("x", 1),
        residual=bind(parse("text = 'x'"), SCHEMA),
    )
    table, _ = read(store, planned, spec=spec)
    assert table.to_pydict() == {"id": [0, 1, 2], "text": ["x"] * 3}
    elsewhere = FileRead(
        file_path=file.file_path,
        record_count=file.record_count,
        spec_id=4,
        partition=(None, 1),
        residual=planned.residual,
    )
    table, counters = read(store, elsewhere, spec=spec)
    assert table.num_rows == 0
    assert counters[ROW_GROUPS_SKIPPED] == 1


def test_row_groups_of_files_that_lack_a_column_are_kept_or_excluded_by_its_default() -> None:
    store = MemoryStore()
    file = written(store)
    added = NestedField(field_id=3, name="added", type=LONG, initial_default=7)
    wider = Schema((ID, added))
    for text, rows in (("added = 7", 100), ("added is null", 0)):
        table, counters = read(store, reading(file, residual=bind(parse(text), wider)), projection=wider, schema=wider)
        assert table.to_pydict() == {"id": list(range(rows)), "added": [7] * rows}
        assert counters[ROW_GROUPS_SKIPPED] == (0 if rows else 10)


def test_metadata_columns_and_row_lineage() -> None:
    store = MemoryStore()
    file = written(store, ROWS.slice(0, 3))
    projection = Schema((SPEC_ID, ROW_ID, ID, LAST_UPDATED, POS, FILE))
    planned = FileRead(
        file_path=file.file_path, record_count=file.record_count, spec_id=0, first_row_id=1000, data_sequence_number=8
    )
    table, _ = read(store, planned, projection=projection)
    assert table.to_pylist()[2] == {
        "_spec_id": 0,
        "_row_id": 1002,
        "id": 2,
        "_last_updated_sequence_number": 8,
        "_pos": 2,
        "_file": file.file_path,
    }
    table, _ = read(store, reading(file), projection=projection)
    assert table.column("_row_id").null_count == table.column("_last_updated_sequence_number").null_count == 3


def test_row_lineage_that_a_file_stores_comes_first() -> None:
    store = MemoryStore()
    carried = Schema((ID, ROW_ID, LAST_UPDATED))
    rows = pa.table({"id": [1, 2], "_row_id": [77, None], "_last_updated_sequence_number": [None, 3]})
    (file,) = write_data_files(rows, metadata=metadata_of(carried), store=store)
    planned = FileRead(
        file_path=file.file_path, record_count=file.record_count, first_row_id=1000, data_sequence_number=8
    )
    table, _ = read(store, planned, projection=Schema((ROW_ID, LAST_UPDATED)))
    assert table.to_pydict() == {"_row_id": [77, 1001], "_last_updated_sequence_number": [8, 3]}


def test_row_ids_are_longs() -> None:
    store = MemoryStore()
    file = written(store, ROWS.slice(0, 3))
    planned = FileRead(file_path=file.file_path, record_count=3, first_row_id=2**63 - 3, data_sequence_number=8)
    table, _ = read(store, planned, projection=Schema((ROW_ID,)))
    assert table.column("_row_id").to_pylist() == [2**63 - 3, 2**63 - 2, 2**63 - 1]
    with pytest.raises(CorruptTable, match=rf"{file.file_path}.*exceed a long"):
        read(store, replace(planned, first_row_id=2**63 - 2), projection=Schema((ROW_ID,)))


def test_missing_files_are_named_with_table_and_snapshot() -> None:
    store = MemoryStore()
    with pytest.raises(FileNotFound, match=r"memory://b/gone \(needed by table db\.t, snapshot 17\)"):
        read(store, FileRead(file_path="memory://b/gone", record_count=1))
    file = written(store)
    deletes = deletes_of(store, file, [1])
    store.delete(deletes[0].file_path)
    with pytest.raises(FileNotFound, match=r"-deletes\.parquet \(needed by table db\.t, snapshot 17\)"):
        read(store, reading(file, deletes=deletes))


def test_other_formats_are_refused_before_anything_is_read() -> None:
    with pytest.raises(Unsupported, match="reading txt files"):
        read(MemoryStore(), FileRead(file_path="memory://b/f.txt", record_count=1, file_format="txt"))


def test_two_deletion_vectors_for_one_file_are_an_error() -> None:
    store = MemoryStore()
    file = written(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "icebench.engine.deletes.loaded_deletes.load_vectors", lambda vectors, **_: dict.fromkeys(vectors)
        )
        vectors = tuple(
            DeleteFile(
                content=deletes_of(store, file, [1])[0].content,
                file_path=f"memory://b/{i}.puffin",
                file_format="puffin",
                record_count=1,
                file_size_in_bytes=1,
                sequence_number=1,
                referenced_data_file=file.file_path,
                content_offset=4,
                content_size_in_bytes=1,
            )
            for i in range(2)
        )
        with pytest.raises(CorruptTable, match="2 deletion vectors"):
            read(store, reading(file, deletes=vectors))


def test_reading_stops_when_the_consumer_does() -> None:
    store = MemoryStore()
    file = written(store)
    counters = Counters()
    request = ReadRequest(store=store, projection=SCHEMA, schemas=(SCHEMA,))
    batches = read_files(
        [reading(file)],
        request,
        runner=LocalRunner(1),
        counters=counters,
    )
    assert next(batches).num_rows == 10
    batches.close()  # type: ignore[attr-defined]
    assert counters[ROW_GROUPS_READ] == 1
