import io
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.columnar.schemas import from_arrow_schema, to_arrow_schema
from icebench.engine.formats.parquet.parquet_writer import ParquetFileWriter, ParquetOptions
from icebench.engine.runtime.counters import FILES_WRITTEN, Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.sorting import SortField, SortOrder
from icebench.engine.spec.transforms import Bucket, Identity, Truncate
from icebench.engine.storage.memory import MemoryOutputFile, MemoryStore
from icebench.engine.write.data_files import write_data_files
from icebench.engine.write.locations import FileNames
from icebench.errors import Invalid, StorageFailed, Unsupported
from tests.unit.engine.write.metadata_for_writes import LOCATION, metadata_of

NAMES = FileNames(operation_id=uuid.UUID(int=7), partition_id=3, task_id=12)


def rows_of(store: MemoryStore, files: list[DataFile]) -> list[list[dict[str, object]]]:
    return [pq.read_table(io.BytesIO(store.read(f.file_path))).to_pylist() for f in files]


def numbers(count: int) -> pa.Table:
    return pa.table(
        {"id": pa.array(range(count), pa.int64()), "p": pa.array([f"p{i % 3}" for i in range(count)], pa.string())}
    )


def test_an_unpartitioned_table_gets_one_file_with_all_rows() -> None:
    store, counters = MemoryStore(), Counters()
    files = write_data_files(
        numbers(10), metadata=metadata_of(numbers(0).schema), store=store, names=NAMES, counters=counters
    )
    (file,) = files
    assert file.file_path == f"{LOCATION}/data/00003-12-00000000-0000-0000-0000-000000000007-00001.parquet"
    assert (file.record_count, file.spec_id, file.partition, file.sort_order_id) == (10, 0, (), None)
    assert file.file_size_in_bytes == store.size(file.file_path)
    assert rows_of(store, files) == [numbers(10).to_pylist()]
    assert counters.as_dict() == {FILES_WRITTEN: 1}


@pytest.mark.parametrize("size", ["1", "7", "64"])
def test_pages_of_any_size_are_read_back(size: str) -> None:
    rows = pa.table(
        {"a": pa.array([[1, 2]], pa.list_(pa.int64())), "b": pa.array([[]], pa.map_(pa.int32(), pa.int32()))}
    )
    store, properties = MemoryStore(), {"write.parquet.page-size-bytes": size}
    files = write_data_files(rows, metadata=metadata_of(rows.schema, properties=properties), store=store)
    assert rows_of(store, files) == [rows.to_pylist()]


def test_a_bloom_filter_of_booleans_is_refused_by_name() -> None:
    rows = pa.table({"b": [True, False]})
    metadata = metadata_of(rows.schema, properties={"write.parquet.bloom-filter-enabled.column.b": "true"})
    with pytest.raises(Unsupported, match=r"bloom-filter-enabled.column.b"):
        write_data_files(rows, metadata=metadata, store=MemoryStore())


def test_rows_are_partitioned_by_a_field_of_a_struct() -> None:
    rows = pa.table({"s": pa.array([{"a": 5}, None, {"a": 6}, {"a": 5}], pa.struct([("a", pa.int64())]))})
    metadata = metadata_of(rows.schema, [("s.a", Identity())])
    files = write_data_files(rows, metadata=metadata, store=MemoryStore())
    assert [(file.partition, file.record_count) for file in files] == [((5,), 2), ((None,), 1), ((6,), 1)]


def test_no_rows_give_no_file() -> None:
    store = MemoryStore()
    assert write_data_files(numbers(0), metadata=metadata_of(numbers(0).schema), store=store) == []
    assert list(store.list(LOCATION)) == []


@given(
    rows=st.lists(st.tuples(st.integers(0, 99), st.sampled_from(["a", "b/c", "d=e", None])), max_size=30),
    chunk=st.integers(1, 7),
    max_open=st.sampled_from([1, 2, 100]),
    memory=st.sampled_from([None, 1, 100]),
)
def test_fanout_puts_every_row_in_its_partition(
    rows: list[tuple[int, str | None]], chunk: int, max_open: int, memory: int | None
) -> None:
    table = pa.table(
        {"id": pa.array([r[0] for r in rows], pa.int64()), "p": pa.array([r[1] for r in rows], pa.string())}
    )
    metadata = metadata_of(table.schema, [("p", Identity()), ("id", Bucket(2))])
    store = MemoryStore()
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=chunk))
    files = write_data_files(stream, metadata=metadata, store=store, max_open_files=max_open, memory_bytes=memory)
    found = []
    for file, own in zip(files, rows_of(store, files), strict=True):
        assert file.spec_id == 1
        for row in own:
            number = row["id"]
            assert isinstance(number, int)
            bucket = Bucket(2).apply(metadata.schema.primitive(1), number)
            assert file.partition == (row["p"], bucket)
            found.append((number, row["p"]))
    assert sorted(found, key=str) == sorted(rows, key=str)
    if max_open == 100:
        assert len({f.partition for f in files}) == len(files)


def test_partition_paths_are_encoded() -> None:
    table = pa.table({"p": ["b/c d", None]})
    store = MemoryStore()
    files = write_data_files(table, metadata=metadata_of(table.schema, [("p", Identity())]), store=store, names=NAMES)
    name = "00003-12-00000000-0000-0000-0000-000000000007-0000"
    assert sorted(f.file_path for f in files) == [
        f"{LOCATION}/data/p=b%2Fc+d/{name}1.parquet",
        f"{LOCATION}/data/p=null/{name}2.parquet",
    ]


def test_object_storage_paths_are_spread_by_hash() -> None:
    table = pa.table({"p": ["x"]})
    properties = {"write.object-storage.enabled": "true", "write.data.path": "memory://other/root/"}
    metadata = metadata_of(table.schema, [("p", Identity())], properties=properties)
    (file,) = write_data_files(table, metadata=metadata, store=MemoryStore(), names=NAMES)
    assert file.file_path.startswith("memory://other/root/")
    hashed = file.file_path.removeprefix("memory://other/root/").split("/")
    assert [len(part) for part in hashed[:4]] == [4, 4, 4, 8]
    assert set("".join(hashed[:4])) <= {"0", "1"}
    assert hashed[4] == "p=x"


def test_files_roll_at_the_target_size_and_row_groups_at_theirs() -> None:
    table = pa.table(
        {"id": pa.array(range(400_000)), "x": pa.array([float(i * 7919 % 104729) for i in range(400_000)])}
    )
    properties = {"write.target-file-size-bytes": "400000", "write.parquet.row-group-size-bytes": "200000"}
    store = MemoryStore()
    files = write_data_files(table, metadata=metadata_of(table.schema, properties=properties), store=store)
    assert len(files) >= 3
    assert all(300_000 < f.file_size_in_bytes < 500_000 for f in files[:-1])
    assert [row for own in rows_of(store, files) for row in own] == table.to_pylist()
    for file in files:
        footer = pq.read_metadata(io.BytesIO(store.read(file.file_path)))
        assert footer.num_row_groups == len(file.split_offsets or ())
        assert all(footer.row_group(i).total_byte_size < 260_000 for i in range(footer.num_row_groups))


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip"])
def test_a_file_expects_the_compression_that_the_one_before_had(codec: str) -> None:
    """Each partition by its own: rows of one repeat, so that they compress well, and those of the other do not."""
    noise = np.random.default_rng(1).integers(0, 1 << 40, 150_000)
    table = pa.table({"p": ["even", "odd"] * 75_000, "x": np.where(np.arange(150_000) % 2, noise, noise % 200)})
    target = 20_000
    metadata = metadata_of(
        table.schema,
        [("p", Identity())],
        properties={"write.target-file-size-bytes": str(target), "write.parquet.compression-codec": codec},
    )
    for mode in ("fanout", "clustered"):
        rows = table if mode == "fanout" else table.sort_by("p")
        stream = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=1000))
        store = MemoryStore()
        files = write_data_files(stream, metadata=metadata, store=store, mode=mode)
        assert sum(file.record_count for file in files) == table.num_rows
        for partition in ("even", "odd"):
            sizes = [(f.file_size_in_bytes, len(f.split_offsets or ())) for f in files if f.partition == (partition,)]
            assert len(sizes) > 2
            assert all(0.85 * target < size < 1.15 * target for size, _ in sizes[:-1])
            assert all(groups == 1 for _, groups in sizes[2:-1])


def test_a_table_is_sorted_inside_its_files() -> None:
    order = SortOrder(
        (
            SortField(source_ids=(1,), transform=Truncate(10), direction="desc", null_order="nulls-last"),
            SortField(source_ids=(2,), transform=Identity()),
        ),
        order_id=5,
    )
    table = pa.table({"id": [11, 3, None, 25, 14, 7], "p": ["b", "a", "c", None, "a", None]})
    store = MemoryStore()
    metadata = metadata_of(table.schema, sort_order=order)
    files = write_data_files(table, metadata=metadata, store=store)
    assert [(r["id"], r["p"]) for r in rows_of(store, files)[0]] == [
        (25, None),
        (14, "a"),
        (11, "b"),
        (7, None),
        (3, "a"),
        (None, "c"),
    ]
    assert files[0].sort_order_id == 5
    # A stream is not sorted, so its files do not claim to be.
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    assert write_data_files(stream, metadata=metadata, store=store)[0].sort_order_id is None
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    assert write_data_files(stream, metadata=metadata, store=store, sorted_by=order)[0].sort_order_id == 5


def test_plain_sort_keys_are_written_to_parquet() -> None:
    order = SortOrder((SortField(source_ids=(2,), transform=Identity(), direction="desc"),), order_id=1)
    store = MemoryStore()
    (file,) = write_data_files(numbers(5), metadata=metadata_of(numbers(0).schema, sort_order=order), store=store)
    (column,) = pq.read_metadata(io.BytesIO(store.read(file.file_path))).row_group(0).sorting_columns
    assert (column.column_index, column.descending, column.nulls_first) == (1, True, True)


def test_parquet_has_ids_integers_for_decimals_zstd_and_a_page_index() -> None:
    table = pa.table(
        {
            "a": pa.array([1], pa.int32()).cast(pa.decimal128(12, 2)).cast(pa.decimal128(9, 2)),
            "b": pa.array([1], pa.int32()).cast(pa.decimal128(18, 2)),
            "c": pa.array([1], pa.int32()).cast(pa.decimal128(20, 2)),
            "n": pa.nulls(1),
        }
    )
    store = MemoryStore()
    properties = {"write.parquet.bloom-filter-enabled.column.a": "true"}
    (file,) = write_data_files(table, metadata=metadata_of(table.schema, properties=properties), store=store)
    footer = pq.read_metadata(io.BytesIO(store.read(file.file_path)))
    columns = [footer.row_group(0).column(i) for i in range(footer.num_columns)]
    assert [c.path_in_schema for c in columns] == ["a", "b", "c"]
    assert [c.physical_type for c in columns] == ["INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"]
    assert {c.compression for c in columns} == {"ZSTD"}
    assert all(c.has_column_index and c.has_offset_index for c in columns)
    arrow = footer.schema.to_arrow_schema()
    assert [f.metadata[b"PARQUET:field_id"] for f in arrow] == [b"1", b"2", b"3"]
    assert set(file.value_counts) == {1, 2, 3}


@pytest.mark.parametrize("rows", [1, 200_000])
def test_statistics_are_left_out_of_columns_by_name(rows: int) -> None:
    """As Iceberg Java 1.12 does: bounds in manifests are taken from them."""
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("t", pa.int64())])), ("l", pa.list_(pa.int64()))])
    data = pa.table([range(rows), [{"t": i} for i in range(rows)], [[i] for i in range(rows)]], schema=schema)
    stats = "write.parquet.stats-enabled.column"
    without = {f"{stats}.s.t": "false", f"{stats}.l.element": "FALSE", f"{stats}.id": "true", f"{stats}.gone": "false"}
    store = MemoryStore()
    (file,) = write_data_files(data, metadata=metadata_of(schema, properties=without), store=store)
    group = pq.read_metadata(io.BytesIO(store.read(file.file_path))).row_group(0)
    assert [group.column(i).is_stats_set for i in range(3)] == [True, False, False]
    assert (set(file.value_counts), set(file.null_value_counts)) == ({1, 4}, {1})
    assert set(file.lower_bounds) == set(file.upper_bounds) == {1}
    assert sum(map(len, rows_of(store, [file]))) == rows


@pytest.mark.parametrize("rows", [1, 3_000])
def test_another_engine_finds_what_bloom_filters_say(tmp_path: Path, rows: int) -> None:
    """No value that is there is ruled out, and of those that are not about as many as the property says remain."""
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("t", pa.string())])), ("other", pa.int64())])
    data = pa.table([range(rows), [{"t": f"v{i}"} for i in range(rows)], range(rows)], schema=schema)
    properties = {
        "write.parquet.bloom-filter-enabled.column.id": "true",
        "write.parquet.bloom-filter-enabled.column.s.t": "true",
        "write.parquet.bloom-filter-enabled.column.gone": "true",
        "write.parquet.bloom-filter-fpp.column.id": "0.02",
        "write.parquet.bloom-filter-max-bytes": "8192",
    }
    store = MemoryStore()
    (file,) = write_data_files(data, metadata=metadata_of(schema), store=store, names=NAMES, properties=properties)
    path = tmp_path / "data.parquet"
    path.write_bytes(store.read(file.file_path))
    group = pq.read_metadata(path).row_group(0)
    lengths = [group.column(i).bloom_filter_length for i in range(3)]
    assert lengths[2] is None
    # A filter has room for its rows, up to the property: 3,000 values at 2 % take more than 2 KiB.
    assert all(length < (200 if rows == 1 else 8_300) for length in lengths[:2])
    with duckdb.connect() as connection:

        def excluded(column: str, value: object) -> bool:
            query = "select bool_and(bloom_filter_excludes) from parquet_bloom_probe(?, ?, ?)"
            found = connection.execute(query, [str(path), column, value]).fetchone()
            assert found is not None
            return bool(found[0])

        assert not any(excluded("id", n) for n in range(0, rows, 100))
        remaining = sum(not excluded("id", n) for n in range(10**9, 10**9 + 200))
        assert remaining < 20
        assert excluded("other", 10**9) is False


def test_bloom_filters_of_columns_in_lists_and_maps() -> None:
    schema = pa.schema(
        [
            ("l", pa.list_(pa.int64())),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("s", pa.list_(pa.struct([("deep", pa.int64())]))),
        ]
    )
    data = pa.table([[[1, 2]], [[("a", 1)]], [[{"deep": 3}]]], schema=schema)
    names = ("l.element", "m.key", "m.value", "s.element.deep")
    properties = {f"write.parquet.bloom-filter-enabled.column.{name}": "true" for name in names}
    store = MemoryStore()
    (file,) = write_data_files(data, metadata=metadata_of(schema), store=store, names=NAMES, properties=properties)
    group = pq.read_metadata(io.BytesIO(store.read(file.file_path))).row_group(0)
    assert all(group.column(i).bloom_filter_length for i in range(4))


def test_a_bloom_filter_has_room_for_a_row_group_that_is_not_the_first() -> None:
    """Where memory is short the first one of a file may be small."""
    schema = from_arrow_schema(pa.schema([("id", pa.int64())]))
    options = ParquetOptions.of({"write.parquet.bloom-filter-enabled.column.id": "true"})
    store, arrow = MemoryStore(), to_arrow_schema(schema)
    writer = ParquetFileWriter(store.open_output("memory://b/f"), arrow, schema, modes={}, options=options)
    for rows in (10, 4_000):
        writer.add(pa.record_batch([pa.array(range(rows), pa.int64())], schema=arrow))
        writer.flush()
    writer.close()
    footer = pq.read_metadata(io.BytesIO(store.read("memory://b/f")))
    lengths = [footer.row_group(n).column(0).bloom_filter_length for n in range(2)]
    # Ten bits for each value, by one in a hundred.
    assert lengths[0] < 100
    assert 4_000 < lengths[1] < 20_000


def test_clustered_rows_keep_one_file_open() -> None:
    rows = pa.table({"id": range(6), "p": ["a", "a", "b", "b", "c", "c"]})
    store = MemoryStore()
    metadata = metadata_of(rows.schema, [("p", Identity())])
    stream = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=3))
    files = write_data_files(stream, metadata=metadata, store=store, mode="clustered")
    assert [(f.partition, f.record_count) for f in files] == [(("a",), 2), (("b",), 2), (("c",), 2)]


@pytest.mark.parametrize("chunk", [2, 10])
def test_rows_that_are_not_clustered_are_refused_and_leave_nothing(chunk: int) -> None:
    rows = pa.table({"p": ["a", "a", "b", "b", "a", "a"]})
    store = MemoryStore()
    stream = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=chunk))
    metadata = metadata_of(rows.schema, [("p", Identity())])
    with pytest.raises(Invalid, match="fanout"):
        write_data_files(stream, metadata=metadata, store=store, mode="clustered")
    assert list(store.list(LOCATION)) == []


def test_rows_that_do_not_fit_leave_nothing() -> None:
    schema = pa.schema([pa.field("id", pa.int32()), pa.field("p", pa.string(), nullable=False)])

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"id": pa.array([1]), "p": ["a"]})
        yield pa.RecordBatch.from_pydict({"id": pa.array([2**40]), "p": ["b"]})

    store = MemoryStore()
    given_schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    stream = pa.RecordBatchReader.from_batches(given_schema, batches())
    properties = {"write.target-file-size-bytes": "1"}
    with pytest.raises(Invalid, match="'id'"):
        write_data_files(stream, metadata=metadata_of(schema, [("p", Identity())], properties=properties), store=store)
    assert list(store.list(LOCATION)) == []


class FullDisk(MemoryStore):
    """Refuses to close the n-th file, or to write to it."""

    def __init__(self, *, nth: int, when: str) -> None:
        super().__init__()
        self.opened = 0
        self.nth = nth
        self.when = when

    def open_output(self, location: str, *, overwrite: bool = False) -> MemoryOutputFile:
        output = super().open_output(location, overwrite=overwrite)
        self.opened += 1
        if self.opened == self.nth:

            def fail(*_: object) -> int:
                raise StorageFailed("the disk is full")

            setattr(output, self.when, fail)
        return output


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("when", ["close", "write"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_full_disk_is_reported_and_leaves_nothing(nth: int, when: str, threads: int) -> None:
    store, metadata = FullDisk(nth=nth, when=when), metadata_of(numbers(0).schema, [("p", Identity())])
    with pytest.raises(StorageFailed, match="full"):
        write_data_files(numbers(9), metadata=metadata, store=store, runner=LocalRunner(threads))
    assert list(store.list(LOCATION)) == []


def test_files_of_partitions_that_are_completed_together_keep_their_order() -> None:
    class Meeting(MemoryStore):
        """Completes no file before two are to be."""

        def __init__(self) -> None:
            super().__init__()
            self.both = Barrier(2)

        def open_output(self, location: str, *, overwrite: bool = False) -> MemoryOutputFile:
            output = super().open_output(location, overwrite=overwrite)
            close = output.close

            def meet() -> None:
                self.both.wait(60)
                close()

            output.close = meet  # type: ignore[method-assign]
            return output

    rows, metadata = numbers(10).slice(0, 8), metadata_of(numbers(0).schema, [("id", Bucket(4))])
    alone, together = MemoryStore(), Meeting()
    expected = write_data_files(rows, metadata=metadata, store=alone, names=NAMES)
    files = write_data_files(rows, metadata=metadata, store=together, names=NAMES, runner=LocalRunner(2))
    assert len(files) == 4
    assert files == expected
    assert rows_of(together, files) == rows_of(alone, files)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("write.parquet.compression-codec", "lzo"),
        ("write.parquet.row-group-size-bytes", "0"),
        ("write.parquet.page-row-limit", "many"),
        ("write.parquet.page-version", "v3"),
        ("write.target-file-size-bytes", "-5"),
        ("write.metadata.metrics.default", "most"),
        ("write.parquet.bloom-filter-max-bytes", "0"),
        ("write.parquet.bloom-filter-enabled.column.id", "yes"),
        ("write.parquet.compression-level", "high"),
        ("write.object-storage.enabled", "yes"),
        ("write.metadata.metrics.max-inferred-column-defaults", "-1"),
    ],
)
def test_a_wrong_property_is_named(name: str, text: str) -> None:
    with pytest.raises(Invalid, match=name):
        write_data_files(
            numbers(1), metadata=metadata_of(numbers(0).schema, properties={name: text}), store=MemoryStore()
        )


@pytest.mark.parametrize("codec", ["snappy", "uncompressed", "none", "lz4", "brotli", "gzip", "zstd"])
def test_a_compression_level_holds_for_the_codecs_that_have_levels(codec: str) -> None:
    def written(level: str | None) -> tuple[str, int]:
        properties = {
            "write.parquet.compression-codec": codec,
            "write.parquet.dict-encoding-enabled.column.id": "false",
        }
        if level is not None:
            properties["write.parquet.compression-level"] = level
        store = MemoryStore()
        (file,) = write_data_files(
            numbers(20_000), metadata=metadata_of(numbers(0).schema, properties=properties), store=store
        )
        footer = pq.read_metadata(io.BytesIO(store.read(file.file_path)))
        chunk = footer.row_group(0).column(0)
        return chunk.compression, chunk.total_compressed_size

    stored = "UNCOMPRESSED" if codec == "none" else codec.upper()
    (low, low_size), (high, high_size) = written("1"), written("9")
    assert low == high == stored
    assert (low_size == high_size) == (codec in {"snappy", "uncompressed", "none"})


@pytest.mark.parametrize("level", ["-1", "10"])
def test_a_level_that_gzip_lacks_is_named(level: str) -> None:
    properties = {"write.parquet.compression-codec": "gzip", "write.parquet.compression-level": level}
    with pytest.raises(Invalid, match=r"compression-level=.* gzip has levels"):
        write_data_files(
            numbers(1), metadata=metadata_of(numbers(0).schema, properties=properties), store=MemoryStore()
        )


def test_a_write_may_override_properties_and_spec() -> None:
    own = {"write.parquet.compression-codec": "gzip"}
    metadata = metadata_of(numbers(0).schema, [("p", Identity())], properties=own)
    store = MemoryStore()
    overrides = {"write.parquet.compression-codec": "snappy"}
    (file,) = write_data_files(
        numbers(4), metadata=metadata, store=store, spec=metadata.spec_by_id[0], properties=overrides
    )
    assert (file.spec_id, file.partition) == (0, ())
    footer = pq.read_metadata(io.BytesIO(store.read(file.file_path)))
    assert footer.row_group(0).column(0).compression == "SNAPPY"
    assert replace(file, spec_id=0) == file


@pytest.mark.parametrize("mode", ["auto", "clustered"])
def test_row_groups_are_written_early_where_memory_is_short(mode: str) -> None:
    rows = numbers(3 << 20)
    sizes = []
    for memory_bytes in (None, 1 << 20):
        store = MemoryStore()
        metadata = metadata_of(rows.schema)
        files = write_data_files(rows, metadata=metadata, store=store, mode=mode, memory_bytes=memory_bytes)  # type: ignore[arg-type]
        footers = [pq.ParquetFile(io.BytesIO(store.read(file.file_path))).metadata for file in files]
        assert sum(footer.num_rows for footer in footers) == rows.num_rows
        sizes.append([footer.num_row_groups for footer in footers])
    assert sizes == [[1], [3]]


@pytest.mark.parametrize("rare_row", [5, 49_999])
def test_rows_of_a_rare_partition_do_not_keep_whole_batches_in_memory(rare_row: int) -> None:
    schema = pa.schema([("k", pa.int64()), ("number", pa.int64())])
    metadata = metadata_of(schema, [("k", Identity())], properties={"write.parquet.row-group-size-bytes": str(1 << 20)})
    before, allocated = pa.total_allocated_bytes(), []

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, 1_500_000, 50_000):
            partitions = np.zeros(50_000, np.int64)
            partitions[rare_row] = 1
            yield pa.RecordBatch.from_pydict({"k": partitions, "number": np.arange(start, start + 50_000)}, schema)
            allocated.append(pa.total_allocated_bytes() - before)

    stream = pa.RecordBatchReader.from_batches(schema, batches())
    files = write_data_files(stream, metadata=metadata, store=MemoryStore(), memory_bytes=4 << 20)
    assert sorted(f.record_count for f in files) == [30, 1_499_970]
    # Of 24 MB: the buffered rows, the batches since they were copied, and a batch of 0.8 MB as given and as ordered.
    assert max(allocated) < 10 << 20
