from dataclasses import replace

import pyarrow as pa
import pytest

from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.deletes.cache import DeleteCache
from icebench.engine.deletes.equality import GLOBAL, EqualityGroup, compared_columns, key_schema, load_equality, scopes
from icebench.engine.deletes.files import DeleteFile
from icebench.engine.runtime.counters import DELETE_FILES_LOADED, DELETE_KEYS_APPLIED, Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import INT, LONG, STRING, NestedField, StructType
from icebench.engine.storage.counting import CountingStore
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.write.delete_files import write_equality_deletes
from icebench.errors import CorruptTable, FileNotFound
from tests.unit.engine.write.metadata_for_writes import metadata_of

OLD = Schema((NestedField(field_id=1, name="id", type=INT), NestedField(field_id=2, name="gone", type=STRING)))
NEW = Schema((NestedField(field_id=1, name="id", type=LONG), NestedField(field_id=3, name="new", type=STRING)), 1)


def delete_file(
    name: str, ids: tuple[int, ...] = (1,), sequence_number: int = 5, record_count: int = 1, size_bytes: int = 1
) -> DeleteFile:
    return DeleteFile(
        content=FileContent.EQUALITY_DELETES,
        file_path=name,
        file_format="parquet",
        record_count=record_count,
        file_size_in_bytes=size_bytes,
        sequence_number=sequence_number,
        equality_ids=ids,
    )


def written(store: MemoryStore, schema: Schema, keys: dict[str, list[object]], sequence_number: int) -> DeleteFile:
    (file,) = write_equality_deletes(pa.table(keys), columns=list(keys), metadata=metadata_of(schema), store=store)
    ids = file.equality_ids or ()
    return delete_file(file.file_path, ids, sequence_number, file.record_count, file.file_size_in_bytes)


def test_a_scope_is_the_one_partition_that_a_file_came_with() -> None:
    a, b, c, d, e = (delete_file(name) for name in "abcde")
    found = scopes([((0, "x"), (a, b)), ((0, "y"), (b, c)), ((0, "x"), (e,)), ((0, "x"), (a,)), (None, (d, c))])
    assert found[a] == found[e] == (0, "x")
    assert found[b] == GLOBAL
    assert found[c] not in {GLOBAL, (0, "y")}
    assert found[d] not in {GLOBAL, found[c]}


def test_each_key_column_has_the_type_of_the_newest_schema_that_has_it() -> None:
    found = key_schema((1, 2), (NEW, OLD), "d")
    assert {f.field_id: f.type for f in found.fields} == {1: LONG, 2: STRING}
    with pytest.raises(CorruptTable, match="column 9"):
        key_schema((1, 9), (NEW, OLD), "d")


def test_fields_of_a_struct_come_from_several_schemas() -> None:
    def struct(*fields: NestedField) -> Schema:
        return Schema((NestedField(field_id=1, name="s", type=StructType(fields)),))

    a, b, c = (NestedField(field_id=i, name="x", type=INT) for i in (2, 3, 4))
    found = key_schema((2, 3), (struct(a, c), struct(b)), "d")
    assert found == struct(a, b)


def test_many_files_make_one_group_in_which_the_highest_number_counts() -> None:
    store, counters = MemoryStore(), Counters()
    files = (
        written(store, OLD, {"id": [1, 2]}, 3),
        written(store, NEW, {"id": [2, 3]}, 5),
        written(store, OLD, {"gone": ["x", None]}, 4),
    )
    found = load_equality(
        dict.fromkeys(files, GLOBAL), (NEW, OLD), store=store, runner=LocalRunner(2), counters=counters
    )
    by_id, by_gone = found.of(files)
    assert (by_id.field_ids, by_gone.field_ids) == ((1,), (2,))
    rows = pa.table({"id": [1, 2, 3, 4, None]}).cast(to_arrow_schema(by_id.schema))
    assert by_id.deleted(rows, 2).tolist() == [True, True, True, False, False]
    assert by_id.deleted(rows, 3).tolist() == [False, True, True, False, False]
    assert by_id.deleted(rows, 5).tolist() == [False] * 5
    texts = pa.table({"gone": ["x", "y", None]}).cast(to_arrow_schema(by_gone.schema))
    assert by_gone.deleted(texts, 3).tolist() == [True, False, True]
    assert found.of((files[2],)) == [by_gone]
    assert counters.as_dict() == {DELETE_FILES_LOADED: 3, DELETE_KEYS_APPLIED: 6}


def test_every_file_is_read_once() -> None:
    inner, counters = MemoryStore(), Counters()
    files = [written(inner, NEW, {"id": [i]}, i) for i in range(4)]
    store = CountingStore(inner, counters)
    load_equality(dict.fromkeys(files, GLOBAL), (NEW,), store=store, runner=LocalRunner(1), counters=Counters())
    sizes = sum(inner.size(f.file_path) for f in files)
    assert counters["storage_bytes_read"] <= 2 * sizes


def test_what_is_wrong_is_named() -> None:
    store = MemoryStore()
    with pytest.raises(CorruptTable, match="without equality ids"):
        compared_columns(delete_file("d", ()))

    def load(file: DeleteFile) -> None:
        load_equality(
            {file: GLOBAL}, (NEW,), store=store, runner=LocalRunner(1), counters=Counters(), needed_by="table db.t"
        )

    with pytest.raises(FileNotFound, match=r"needed by table db\.t"):
        load(delete_file("memory://b/gone"))
    without_key = written(store, NEW, {"new": ["x"]}, 1)
    with pytest.raises(CorruptTable, match="without its column 'id'"):
        load(replace(without_key, equality_ids=(1,)))
    texts = Schema((NestedField(field_id=1, name="id", type=STRING),))
    of_another_type = written(store, texts, {"id": ["x"]}, 1)
    with pytest.raises(CorruptTable, match="stored as string and can not be read as int64") as raised:
        load(of_another_type)
    assert raised.value.location == of_another_type.file_path


def test_a_group_is_kept_for_the_types_of_its_columns() -> None:
    store, cache = MemoryStore(), DeleteCache()
    file = written(store, OLD, {"id": [7]}, 3)

    def group(schema: Schema) -> EqualityGroup:
        loaded = load_equality(
            {file: GLOBAL}, [schema], store=store, runner=LocalRunner(1), counters=Counters(), cache=cache
        )
        (found,) = loaded.of((file,))
        return found

    assert group(OLD) is group(OLD)
    promoted = group(NEW)
    assert promoted.keys[0].type == pa.int64()
    assert promoted.deleted(pa.table({"id": [7, 8]}, to_arrow_schema(NEW.select([1]))), 1).tolist() == [True, False]
