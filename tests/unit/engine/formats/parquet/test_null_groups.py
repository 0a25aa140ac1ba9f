"""Maps as Hive writes them by parquet-mr 1.11: the inner group has the logical type UNKNOWN, which pyarrow refuses."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import engine
from engine.columnar.schemas import to_arrow_schema
from engine.errors import ContradictionWarning
from engine.formats.parquet.annotations import without_null_groups
from engine.formats.parquet.footer_bytes import MARK_BYTES
from engine.spec.data_file import DataFile

_NAME, _CHILDREN = b"\x18\x09key_value", b"\x15\x04"
_MAP_KEY_VALUE, _UNKNOWN = b"\x15\x04", b"\x4c\xbc\x00\x00"
"""`converted_type` 2; `logicalType`, whose member 11 is an empty struct."""
INTS = pa.map_(pa.string(), pa.int32())
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("flat", INTS),
        pa.field("inner", pa.struct([pa.field("m", INTS), pa.field("l", pa.list_(INTS))])),
        pa.field("outer", pa.map_(pa.int64(), pa.struct([pa.field("m", INTS)]))),
    ]
)
ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "flat": [("a", 1), ("b", None)],
        "inner": {"m": [("c", 2)], "l": [[("d", 3)], None, []]},
        "outer": [(7, {"m": [("e", 4)]}), (8, None), (9, {"m": None}), (10, {"m": []})],
    },
    {"id": 2, "flat": [], "inner": {"m": [], "l": []}, "outer": []},
    {"id": 3, "flat": None, "inner": {"m": None, "l": None}, "outer": None},
    {"id": 4, "flat": None, "inner": None, "outer": None},
]


def as_of_hive(data: bytes) -> bytes:
    """The file with Hive's annotations of maps."""
    length = int.from_bytes(data[-MARK_BYTES:-4], "little")
    footer = data[-MARK_BYTES - length : -MARK_BYTES]
    plain = _NAME + _CHILDREN + b"\x00"
    assert plain in footer
    footer = footer.replace(plain, _NAME + _CHILDREN + _MAP_KEY_VALUE + _UNKNOWN + b"\x00")
    return data[: -MARK_BYTES - length] + footer + len(footer).to_bytes(4, "little") + data[-4:]


@pytest.fixture
def table(tmp_path: object) -> Iterator[engine.Table]:
    catalog = engine.load_catalog(f"{tmp_path}/wh")
    yield catalog.create_table("db.t", SCHEMA)
    catalog.close()


def add(table: engine.Table, data: bytes, count: int, size: int | None = None) -> None:
    location = f"{table.location}/data/hive.parquet"
    table.store.write(location, data)
    table.add_files(
        [
            DataFile(
                file_path=location,
                file_format="parquet",
                record_count=count,
                file_size_in_bytes=len(data) if size is None else size,
            )
        ]
    )


def written(data: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(data, sink, store_schema=False)
    return sink.getvalue()


@pytest.mark.parametrize("own_ids", [False, True])
@pytest.mark.parametrize("size", [None, 1, 1 << 30])
def test_their_rows_are_read(table: engine.Table, own_ids: bool, size: int | None) -> None:
    rows = pa.Table.from_pylist(ROWS, SCHEMA)
    data = as_of_hive(written(rows.cast(to_arrow_schema(table.schema())) if own_ids else rows))
    with pytest.raises(OSError, match="Null cannot be applied to group"):
        pq.read_table(io.BytesIO(data))
    add(table, data, len(ROWS), size)
    if size is None:
        assert table.scan().to_arrow().to_pylist() == ROWS
    else:  # whether the footer is read apart depends on the size that is stated
        with pytest.warns(ContradictionWarning):
            assert table.scan().to_arrow().to_pylist() == ROWS


def test_some_columns_of_a_wide_file(table: engine.Table) -> None:
    # The footer is reduced to the wanted columns before.
    more = {f"c{i}": pa.array([i] * len(ROWS)) for i in range(400)}
    rows = pa.Table.from_pylist(ROWS, SCHEMA).cast(to_arrow_schema(table.schema()))
    for number, (name, column) in enumerate(more.items(), 1000):
        rows = rows.append_column(pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)}), column)
    add(table, as_of_hive(written(rows)), len(ROWS))
    found = table.scan("id < 3", columns=["outer"]).to_arrow().to_pylist()
    assert found == [{"outer": row["outer"]} for row in ROWS[:2]]


def test_only_groups_lose_their_logical_type() -> None:
    data = written(pa.table({"nothing": pa.nulls(2), "m": pa.array([[("a", 1)], None], INTS)}))
    footer, of_hive = (
        file[-MARK_BYTES - int.from_bytes(file[-MARK_BYTES:-4], "little") : -MARK_BYTES]
        for file in (data, as_of_hive(data))
    )
    assert without_null_groups(footer) is None
    changed = without_null_groups(of_hive)
    assert changed is not None
    assert changed == of_hive.replace(_MAP_KEY_VALUE + _UNKNOWN, _MAP_KEY_VALUE)
    assert pq.read_metadata(pa.BufferReader(b"PAR1" + changed + len(changed).to_bytes(4, "little") + b"PAR1"))


def test_a_cut_off_footer_is_refused() -> None:
    data = as_of_hive(written(pa.Table.from_pylist(ROWS, SCHEMA)))
    footer = data[-MARK_BYTES - int.from_bytes(data[-MARK_BYTES:-4], "little") : -MARK_BYTES]
    end = footer.rindex(_UNKNOWN)
    for length in range(end):
        with pytest.raises((IndexError, ValueError)):
            without_null_groups(footer[:length])
