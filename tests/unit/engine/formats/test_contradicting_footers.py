"""Footers that contradict themselves or Arrow's view of a file: no row is lost without an error."""

import io
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import icebench
from icebench.engine.columnar.schemas import with_fields
from icebench.engine.formats.orc.tail import fields_of
from icebench.engine.formats.parquet.footer_chunks import FooterChunks
from icebench.engine.formats.parquet.thrift import BINARY, STRUCT, read_field, read_list, skip
from icebench.engine.formats.parquet.thrift_writing import field_head, list_head, signed, varint
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.errors import CorruptTable

NUMBERS = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.int64())])


def table_of(folder: Path, file: Path, schema: pa.Schema = NUMBERS) -> icebench.Table:
    table = icebench.load_catalog(str(folder / "warehouse")).create_table("db.t", schema)
    table.add_files([str(file)])
    return icebench.load_table(table.metadata_location)


def changed_footer(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """A Parquet file with another footer."""
    size = int.from_bytes(data[-8:-4], "little")
    made = change(data[-8 - size : -8])
    return data[: -8 - size] + made + len(made).to_bytes(4, "little") + b"PAR1"


def parquet(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, store_schema=False, **options)
    return sink.getvalue()


def with_ids(table: pa.Table) -> pa.Table:
    """As a new table numbers them: columns first."""
    ids = count(1)

    def identified(field: pa.Field) -> pa.Field:
        return field.with_metadata({"PARQUET:field_id": str(next(ids))})

    fields = [identified(field) for field in table.schema]
    nested = [f.with_type(with_fields(f.type, identified)) for f in fields]
    return table.cast(pa.schema(nested))


def test_columns_after_an_extension_type_of_several_are_their_own(tmp_path: Path) -> None:
    """pandas' intervals, which Arrow shows as one column and Parquet stores as two."""
    frame = pd.DataFrame({"iv": pd.interval_range(0, 6), "a": range(6), "b": range(10, 16)})
    frame.to_parquet(tmp_path / "f.parquet", row_group_size=2)
    table = table_of(tmp_path, tmp_path / "f.parquet")
    assert table.scan().to_arrow().to_pydict() == {"a": list(range(6)), "b": list(range(10, 16))}
    assert table.scan("b >= 14", columns=["b"]).to_arrow().to_pydict() == {"b": [14, 15]}
    assert table.scan(columns=["a"]).to_arrow().to_pydict() == {"a": list(range(6))}


def with_an_empty_group(footer: bytes) -> bytes:
    """The schema begins with a group of no columns."""
    number, kind, at = read_field(footer, 0, 0)
    while number != 2:  # FileMetaData.schema
        number, kind, at = read_field(footer, skip(footer, at, kind), number)
    elements, _, root = read_list(footer, at)
    end = skip(footer, root, STRUCT)
    columns = footer[end - 2] >> 1  # the last of the root's fields is its number of children
    group = field_head(3, 5) + signed(1) + field_head(1, BINARY) + b"\x01g" + field_head(1, 5) + signed(0) + b"\0"
    made = footer[: end - 2] + signed(columns + 1) + b"\0" + group
    return made[:at] + list_head(elements + 1, STRUCT) + made[root:] + footer[end:]


@pytest.mark.parametrize("is_alike", [False, True], ids=["", "as many columns of values as columns"])
def test_columns_after_a_group_of_no_columns_are_their_own(tmp_path: Path, *, is_alike: bool) -> None:
    rows = {"p": [{"x": 5, "y": 6}] * 2, "a": [1, 2]} if is_alike else {"a": [1, 2], "b": [3, 4]}
    changed = changed_footer(parquet(with_ids(pa.table(rows))), with_an_empty_group)
    assert pq.read_table(io.BytesIO(changed)).schema.names == ["g", *rows]
    (tmp_path / "f.parquet").write_bytes(changed)
    table = table_of(tmp_path, tmp_path / "f.parquet", pa.table(rows).schema)
    assert table.scan().to_arrow().to_pydict() == rows
    for name, column in rows.items():
        assert table.scan(columns=[name]).to_arrow().to_pydict() == {name: column}
    assert table.scan("a = 2", columns=["a"]).to_arrow().to_pydict() == {"a": [2]}


def test_a_damaged_position_delete_file_is_an_error(tmp_path: Path) -> None:
    """pyarrow's objects of its column chunks would end the process."""
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", NUMBERS)
    table.append(pa.table({"a": [1, 2, 3], "b": [1, 2, 3]}))
    path = table.scan().plan().files.column("file_path")[0].as_py()
    rows = pa.table({"file_path": [path] * 2, "pos": pa.array([0, 1], pa.int64())})

    def required(footer: bytes) -> bytes:
        at = footer.index(b"file_path") - 3
        assert footer[at] == 2  # zigzag of 1, OPTIONAL
        return footer[:at] + b"\0" + footer[at + 1 :]

    data = changed_footer(parquet(rows), required)
    file = tmp_path / "deletes.parquet"
    file.write_bytes(data)
    deletes = DataFile(
        content=FileContent.POSITION_DELETES,
        file_path=str(file),
        file_format="parquet",
        spec_id=0,
        partition=(),
        record_count=2,
        file_size_in_bytes=len(data),
        referenced_data_file=path,
    )
    table.add_files([deletes])
    with pytest.raises(CorruptTable, match=r"deletes\.parquet"):
        icebench.load_table(table.metadata_location).scan().to_arrow()


@pytest.mark.parametrize("rows", [0, 36, 99])
def test_orc_stripes_that_do_not_add_up_are_an_error(tmp_path: Path, rows: int) -> None:
    sink = io.BytesIO()
    orc.write_table(pa.table({"a": list(range(100)), "b": [0] * 100}), sink, compression="uncompressed")
    data, file = sink.getvalue(), tmp_path / "f.orc"
    file.write_bytes(data)
    table = table_of(tmp_path, file)
    assert table.scan().to_arrow().num_rows == 100
    postscript = data[-1 - data[-1] : -1]
    end = len(data) - 1 - len(postscript)
    length = dict(fields_of(postscript))[1]
    assert isinstance(length, int)
    begin = end - length
    changed = b""
    for key, value in fields_of(data[begin:end]):
        if isinstance(value, int):
            changed += varint(key << 3) + varint(value)
            continue
        stored = value
        if key == 3:  # a stripe, whose field 5 is its number of rows
            numbers = [(k, rows if k == 5 else v) for k, v in fields_of(value) if isinstance(v, int)]
            stored = b"".join(varint(k << 3) + varint(v) for k, v in numbers)
        changed += varint(key << 3 | 2) + varint(len(stored)) + stored
    assert len(changed) == end - begin
    file.write_bytes(data[:begin] + changed + data[end:])
    with pytest.raises(CorruptTable, match=rf"its stripes have {rows} rows, and its footer says 100"):
        table.scan().to_arrow()


def test_a_row_group_before_the_file_has_no_place() -> None:
    """A task that reads a part of the file would leave it to another."""
    data = parquet(pa.table({"a": list(range(300))}), row_group_size=100, use_dictionary=False, compression="none")
    offset = pq.read_metadata(io.BytesIO(data)).row_group(1).column(0).data_page_offset
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    assert footer.count(signed(offset)) == 2  # of the chunk, and of its first page
    damaged = signed(-offset).join(footer.split(signed(offset)))
    found = FooterChunks(damaged, 3, 1)
    assert (found.offset(0), found.offset(1)) == (4, None)
    assert found.offset(2) == FooterChunks(footer, 3, 1).offset(2)


def test_a_number_of_values_that_is_not_that_of_rows_prunes_nothing(tmp_path: Path) -> None:
    data = parquet(with_ids(pa.table({"a": list(range(40)), "b": list(range(40))})), row_group_size=20)

    def without_values(footer: bytes) -> bytes:
        at = footer.index(b"\x16" + signed(20)) + 1  # ColumnMetaData.num_values, after the codec
        return footer[:at] + signed(0) + footer[at + 1 :]

    file = tmp_path / "f.parquet"
    file.write_bytes(data)
    table = table_of(tmp_path, file)
    file.write_bytes(changed_footer(data, without_values))
    for columns in (["b"], ["a"]):
        with pytest.raises(CorruptTable, match="row group 0"):
            table.scan("a >= 0", columns=columns).to_arrow()
