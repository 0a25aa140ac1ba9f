"""Columns that are encoded by several threads make the file that one thread makes, byte for byte."""

from __future__ import annotations

import uuid
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.columnar.schemas import from_arrow_schema, to_arrow_schema
from icebench.engine.formats.parquet import parquet_writer
from icebench.engine.formats.parquet.parallel_writer import MOST_ROWS, ParallelWriter
from icebench.engine.runtime.local import ONE_THREAD, LocalRunner
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortField, SortOrder
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import VARIANT, GeospatialType, NestedField
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.write.data_files import write_data_files
from icebench.engine.write.locations import FileNames
from tests.property.nested_patterns import LEAVES, column, shapes
from tests.unit.engine.write.metadata_for_writes import metadata_of

NAMES = FileNames(operation_id=uuid.UUID(int=7))
NESTINGS = ("", "", "s", "l", "m", "sl", "ls", "mss")
PROPERTIES = {
    "write.parquet.compression-codec": ("zstd", "snappy", "uncompressed"),
    "write.parquet.page-row-limit": ("7", "20000"),
    "write.parquet.page-size-bytes": ("64", "1048576"),
    "write.parquet.row-group-size-bytes": ("2000", "100000"),
    "write.parquet.dict-size-bytes": ("40", "2097152"),
    "parquet.enable.dictionary": ("true", "false"),
    "write.parquet.page-version": ("v1", "v2"),
    "write.parquet.bloom-filter-enabled.column.c0": ("true", "false"),
    "write.parquet.bloom-filter-enabled.column.id": ("true", "false"),
}
ANNOTATED = {"v": VARIANT, "g": GeospatialType("geometry")}


@pytest.fixture
def every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of any size are encoded by several threads."""
    monkeypatch.setattr(parquet_writer, "_PARALLEL_COLUMN_BYTES", 0)


def written(
    rows: pa.Table, schema: Schema, properties: dict[str, str], order: SortOrder | None, runner: Runner
) -> tuple[list[DataFile], list[bytes]]:
    """The files, as manifests describe them and as they are stored."""
    store = MemoryStore()
    metadata = metadata_of(schema, format_version=3, sort_order=order, properties=properties)
    files = write_data_files(rows, metadata=metadata, store=store, names=NAMES, runner=runner)
    return files, [store.read(file.file_path) for file in files]


@pytest.mark.usefixtures("every_size")
@given(
    nestings=st.lists(st.sampled_from(NESTINGS), min_size=1, max_size=12),
    seed=st.integers(0, 1 << 32),
    count=st.sampled_from([1, 5, 300]),
    properties=st.fixed_dictionaries({name: st.sampled_from(texts) for name, texts in PROPERTIES.items()}),
    keys=st.lists(
        st.tuples(st.sampled_from(["asc", "desc"]), st.sampled_from(["nulls-first", "nulls-last"])), max_size=2
    ),
    annotated=st.booleans(),
)
def test_the_file_is_that_of_one_thread(
    *,
    nestings: list[str],
    seed: int,
    count: int,
    properties: dict[str, str],
    keys: list[tuple[str, str]],
    annotated: bool,
) -> None:
    random = Random(seed)
    columns = {"id": pa.array([random.randrange(9) for _ in range(count)], pa.int64())}
    columns["other"] = columns["id"]
    for place, nesting in enumerate(nestings):
        kinds = [n for n, (type_, _) in enumerate(LEAVES) if place or type_ != pa.bool_()]
        columns[f"c{place}"] = column(nesting, random.choices(shapes(nesting), k=count), random.choice(kinds))
    rows = pa.table(columns)
    schema = from_arrow_schema(rows.schema)
    if annotated:
        added = [
            NestedField(field_id=1000 + n, name=name, type=type_) for n, (name, type_) in enumerate(ANNOTATED.items())
        ]
        schema = Schema((*schema.fields, *added), schema.schema_id)
        values = {"v": {"metadata": b"\x01\x00\x00", "value": b"\x00"}, "g": b"\x01\x01\x00\x00\x00" + bytes(16)}
        for field in list(to_arrow_schema(schema))[-2:]:
            rows = rows.append_column(field.name, pa.array([values[field.name]] * count, field.type))
    fields = [
        SortField(
            source_ids=(rows.column_names.index(name) + 1,),
            transform=Identity(),
            direction=direction,  # type: ignore[arg-type]
            null_order=nulls,  # type: ignore[arg-type]
        )
        for name, (direction, nulls) in zip(("id", "other"), keys, strict=False)
    ]
    order = SortOrder(tuple(fields), 1) if fields else None
    if nestings[0]:
        del properties["write.parquet.bloom-filter-enabled.column.c0"]
    assert written(rows, schema, properties, order, LocalRunner(2)) == written(
        rows, schema, properties, order, ONE_THREAD
    )


@pytest.mark.parametrize(
    ("rows", "columns", "is_parallel"), [(70_000, 2, True), (70_000, 1, False), (60_000, 2, False)]
)
def test_large_columns_are_encoded_by_several_threads(
    monkeypatch: pytest.MonkeyPatch, rows: int, columns: int, is_parallel: bool
) -> None:
    encoded = []
    own = ParallelWriter._encode

    def encode(writer: ParallelWriter, table: pa.Table, run: range) -> object:
        encoded.append(run)
        return own(writer, table, run)

    monkeypatch.setattr(ParallelWriter, "_encode", encode)
    table = pa.table({f"c{n}": pa.array(range(rows), pa.int64()) for n in range(columns)})
    schema = from_arrow_schema(table.schema)
    assert written(table, schema, {}, None, LocalRunner(2)) == written(table, schema, {}, None, ONE_THREAD)
    assert len(encoded) == (columns if is_parallel else 0)


def test_more_rows_than_a_row_group_holds() -> None:
    """pyarrow begins another row group after 64 Mi rows; of booleans these are 8 MiB."""
    count = MOST_ROWS + 8
    flags = pa.concat_arrays([pa.repeat(False, count - 1), pa.array([True])])
    rows = pa.table({"a": flags, "b": flags})
    (file,), (data,) = written(rows, from_arrow_schema(rows.schema), {}, None, LocalRunner(2))
    assert file.record_count == count
    read = pq.ParquetFile(pa.BufferReader(data))
    assert [read.metadata.row_group(n).num_rows for n in range(read.num_row_groups)] == [MOST_ROWS, 8]
    assert read.read_row_group(1)["b"].to_pylist() == [False] * 7 + [True]
