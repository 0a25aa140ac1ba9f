import io
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.metadata_columns import DELETE_FILE_PATH_ID, DELETE_POS_ID
from icebench.engine.spec.transforms import Identity
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.write.delete_files import DeletedRows, write_equality_deletes, write_position_deletes
from icebench.errors import Invalid
from tests.unit.engine.write.metadata_for_writes import LOCATION, metadata_of

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("x", pa.decimal128(7, 2))])
METADATA = metadata_of(SCHEMA, [("p", Identity())])


def deleted(path: str, *positions: int, partition: str | None = "a", spec_id: int = 1) -> DeletedRows:
    own = (partition,) if spec_id else ()
    return DeletedRows(file_path=path, positions=np.array(positions, np.int64), spec_id=spec_id, partition=own)


def rows_of(store: MemoryStore, file: DataFile) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in pq.read_table(io.BytesIO(store.read(file.file_path))).to_pylist()]


def test_one_file_for_each_data_file_says_which() -> None:
    store = MemoryStore()
    files = write_position_deletes(
        [deleted("f2", 5, 1, 5), deleted("f1", 7), deleted("f3"), deleted("f2", 0)], metadata=METADATA, store=store
    )
    assert [rows_of(store, f) for f in files] == [[("f1", 7)], [("f2", 0), ("f2", 1), ("f2", 5)]]
    assert [f.referenced_data_file for f in files] == ["f1", "f2"]
    for file in files:
        assert file.content is FileContent.POSITION_DELETES
        assert (file.spec_id, file.partition) == (1, ("a",))
        assert file.file_path.startswith(f"{LOCATION}/data/p=a/")
        assert file.file_path.endswith("-deletes.parquet")
        assert file.lower_bounds[DELETE_FILE_PATH_ID] == file.upper_bounds[DELETE_FILE_PATH_ID]
        assert file.lower_bounds[DELETE_FILE_PATH_ID].decode() == file.referenced_data_file
    assert files[1].lower_bounds[DELETE_POS_ID] == (0).to_bytes(8, "little")
    assert files[1].upper_bounds[DELETE_POS_ID] == (5).to_bytes(8, "little")


def test_one_file_for_each_partition_is_sorted_by_path_and_position() -> None:
    store = MemoryStore()
    metadata = replace(METADATA, properties={"write.delete.granularity": "partition"})
    files = write_position_deletes(
        [
            deleted("f2", 5, 1),
            deleted("f9", 3, partition=None),
            deleted("f1", 7),
            deleted("f0", 1, spec_id=0),
        ],
        metadata=metadata,
        store=store,
    )
    assert [(f.spec_id, f.partition, rows_of(store, f)) for f in files] == [
        (0, (), [("f0", 1)]),
        (1, ("a",), [("f1", 7), ("f2", 1), ("f2", 5)]),
        (1, (None,), [("f9", 3)]),
    ]
    assert [f.referenced_data_file for f in files] == ["f0", None, "f9"]


def test_partitions_of_two_specs_are_two_even_with_equal_values() -> None:
    store = MemoryStore()
    specs = (*METADATA.partition_specs, replace(METADATA.spec_by_id[1], spec_id=2))
    metadata = replace(METADATA, partition_specs=specs, properties={"write.delete.granularity": "partition"})
    rows = [deleted("f1", 7), deleted("f2", 3, spec_id=2)]
    files = write_position_deletes(rows, metadata=metadata, store=store)
    assert [(f.spec_id, rows_of(store, f)) for f in files] == [(1, [("f1", 7)]), (2, [("f2", 3)])]


def test_delete_files_are_written_by_their_own_properties_first() -> None:
    store = MemoryStore()
    properties = {"write.parquet.compression-codec": "gzip", "write.delete.parquet.compression-codec": "snappy"}
    for own, codec in ((properties, "SNAPPY"), ({"write.parquet.compression-codec": "gzip"}, "GZIP")):
        (file,) = write_position_deletes([deleted("f1", 7)], metadata=replace(METADATA, properties=own), store=store)
        footer = pq.read_metadata(io.BytesIO(store.read(file.file_path)))
        assert footer.row_group(0).column(0).compression == codec


def test_position_deletes_have_the_columns_and_ids_of_the_specification() -> None:
    store = MemoryStore()
    (file,) = write_position_deletes([deleted("f1", 7)], metadata=METADATA, store=store)
    schema = pq.read_schema(io.BytesIO(store.read(file.file_path)))
    assert [(f.name, f.type, f.nullable, f.metadata[b"PARQUET:field_id"]) for f in schema] == [
        ("file_path", pa.string(), False, b"2147483546"),
        ("pos", pa.int64(), False, b"2147483545"),
    ]
    assert schema.metadata[b"delete-type"] == b"position"


def test_long_paths_keep_whole_bounds() -> None:
    path = LOCATION + "/" + "x" * 900
    (file,) = write_position_deletes([deleted(path, 7)], metadata=METADATA, store=MemoryStore())
    assert file.referenced_data_file == path


@pytest.mark.parametrize(("version", "hint"), [(1, "upgrade"), (3, "deletion vectors")])
def test_other_format_versions_take_no_position_deletes(version: int, hint: str) -> None:
    with pytest.raises(Invalid, match=hint):
        write_position_deletes(
            [deleted("f1", 7)], metadata=replace(METADATA, format_version=version), store=MemoryStore()
        )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([deleted("f1", 7), deleted("f1", 8, partition="b")], "different partitions"),
        ([deleted("f1", -1)], "no row -1"),
    ],
)
def test_refuses_nonsense_and_leaves_nothing(rows: list[DeletedRows], message: str) -> None:
    store = MemoryStore()
    with pytest.raises(Invalid, match=message):
        write_position_deletes(rows, metadata=METADATA, store=store)
    assert list(store.list(LOCATION)) == []


def test_equality_deletes_hold_their_columns_and_are_global_by_default() -> None:
    store = MemoryStore()
    keys = pa.table({"x": [1, None], "id": [5, 6]})
    (file,) = write_equality_deletes(keys, columns=["x", "id"], metadata=METADATA, store=store)
    assert file.content is FileContent.EQUALITY_DELETES
    assert (file.equality_ids, file.spec_id, file.partition, file.record_count) == ((3, 1), 0, (), 2)
    schema = pq.read_schema(io.BytesIO(store.read(file.file_path)))
    assert [(f.name, f.metadata[b"PARQUET:field_id"]) for f in schema] == [("x", b"3"), ("id", b"1")]
    assert file.null_value_counts == {3: 1, 1: 0}
    assert set(file.lower_bounds) == {1, 3}


def test_equality_deletes_may_be_limited_to_a_partition() -> None:
    (file,) = write_equality_deletes(
        pa.table({"id": [5]}),
        columns=["id"],
        metadata=METADATA,
        store=MemoryStore(),
        spec=METADATA.spec,
        partition=("b",),
    )
    assert (file.spec_id, file.partition) == (1, ("b",))
    assert "/p=b/" in file.file_path


def test_equality_deletes_are_checked() -> None:
    keys, store = pa.table({"id": [5]}), MemoryStore()
    with pytest.raises(Invalid, match="version 1"):
        write_equality_deletes(keys, columns=["id"], metadata=replace(METADATA, format_version=1), store=store)
    with pytest.raises(Invalid, match="no column 'idd'"):
        write_equality_deletes(keys, columns=["idd"], metadata=METADATA, store=store)
    with pytest.raises(Invalid, match="'id' is not in the table"):
        write_equality_deletes(keys, columns=["p"], metadata=METADATA, store=store)
    with pytest.raises(Invalid, match="partition has 2 values"):
        write_equality_deletes(
            keys, columns=["id"], metadata=METADATA, store=store, spec=METADATA.spec, partition=("a", "b")
        )
    only_partitioned = replace(METADATA, partition_specs=(METADATA.spec,))
    with pytest.raises(Invalid, match="unpartitioned spec"):
        write_equality_deletes(keys, columns=["id"], metadata=only_partitioned, store=store)
    assert list(store.list(LOCATION)) == []


@pytest.mark.parametrize(("column", "key"), [("at.x", "x"), ("tags.element", "element")])
def test_equality_deletes_of_nested_columns_are_refused(column: str, key: str) -> None:
    nested = pa.schema([("id", pa.int64()), ("at", pa.struct([("x", pa.int64())])), ("tags", pa.list_(pa.int64()))])
    store = MemoryStore()
    with pytest.raises(Invalid, match=f"'{column}' is nested; keys are top-level columns"):
        write_equality_deletes(pa.table({key: [5]}), columns=[column], metadata=metadata_of(nested), store=store)
    assert list(store.list(LOCATION)) == []
