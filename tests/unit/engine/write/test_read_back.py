"""New files are read back: a wrong encoder is noticed before anything refers to its file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icebench
from icebench.engine.formats.avro import avro_writer
from icebench.engine.formats.orc import orc_writer
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.write.data_files import write_data_files
from icebench.errors import WriteMismatch
from tests.unit.engine.write.metadata_for_writes import LOCATION, metadata_of

INNER = pa.struct([("m", pa.int64())])
LOST: list[dict[str, Any]] = [{"x": 1, "in": None}, {"x": 1, "in": None}, {"x": 1, "in": {"m": 7}}]
ROWS = pa.table(
    {
        "id": [1, 2, 3, 4],
        "p": ["a", "b", "b", "c"],
        "s": pa.array([*LOST, LOST[0]], pa.struct([("x", pa.int64()), ("in", INNER)])),
    }
)


def unchanged(array: pa.Array) -> pa.Array:
    return array


def shortened(write: Callable[..., None]) -> Callable[..., None]:
    return lambda self, table: write(self, table.slice(1))


@pytest.fixture
def wrong_orc(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyarrow's ORC writer as it is."""
    monkeypatch.setattr(orc_writer, "spread_nulls", unchanged)


def write(file_format: str, rows: pa.Table = ROWS, **options: Any) -> MemoryStore:
    store, read_back = MemoryStore(), options.pop("read_back", None)
    properties = {"write.format.default": file_format}
    if read_back is not None:
        properties["icebench.write.read-back"] = read_back
    try:
        write_data_files(rows, metadata=metadata_of(rows.schema, properties=properties), store=store, **options)
    except WriteMismatch:
        assert list(store.list(LOCATION)) == []
        raise
    return store


@pytest.mark.usefixtures("wrong_orc")
@pytest.mark.parametrize("mode", ["fanout", "clustered"])
def test_a_wrong_value_names_file_and_column_and_leaves_nothing(mode: str) -> None:
    with pytest.raises(WriteMismatch, match=rf"{LOCATION}/data/.*\.orc: column 's' reads back with other values"):
        write("orc", mode=mode)


@pytest.mark.usefixtures("wrong_orc")
def test_reading_back_is_left_out_where_the_property_says_so() -> None:
    assert len(list(write("orc", read_back="none").list(LOCATION))) == 1


def test_a_wrong_value_in_avro_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_writer, "_optional", lambda convert: lambda value: 0 if value is None else convert(value))
    with pytest.raises(WriteMismatch, match=r"\.avro: column 'l' reads"):
        write("avro", pa.table({"l": [[1, None]]}))


@pytest.mark.parametrize(
    ("file_format", "writer"), [("orc", orc_writer.OrcFileWriter), ("avro", avro_writer.AvroFileWriter)]
)
def test_a_missing_row_is_noticed(file_format: str, writer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_write", shortened(writer._write))
    rows = pa.table({"l": [[1], [1], [1]]})
    with pytest.raises(WriteMismatch, match="2 rows were written of 3"):
        write(file_format, rows)
    flat = pa.table({"i": [1, 1, 1]})
    write(file_format, flat)
    with pytest.raises(WriteMismatch, match="2 rows were written of 3"):
        write(file_format, flat, read_back="all")


def test_damage_on_the_way_to_storage_is_noticed() -> None:
    class Damaging(MemoryStore):
        def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
            return super().read(location, offset, length)[:-20]

    rows = pa.table({"l": [[1], [2]]})
    store = Damaging()
    with pytest.raises(WriteMismatch, match="a new file cannot be read back"):
        write_data_files(
            rows, metadata=metadata_of(rows.schema, properties={"write.format.default": "avro"}), store=store
        )
    assert list(store.list(LOCATION)) == []


@pytest.mark.usefixtures("wrong_orc")
@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.append(ROWS),
        lambda table: table.maintenance.rewrite_data_files(rewrite_all=True),
        lambda table: table.update("id = 1", {"p": "z"}, mode="copy-on-write"),
        lambda table: table.delete("id = 4", mode="copy-on-write"),
    ],
)
def test_nothing_is_committed(change: Callable[[icebench.Table], object], tmp_path: Path) -> None:
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    # Values read from Avro hold zeros below null structs.
    table = catalog.create_table("db.t", ROWS.schema, properties={"write.format.default": "avro"})
    table.append(ROWS)
    table.set_properties({"write.format.default": "orc"})
    before = table.metadata_location
    with pytest.raises(WriteMismatch, match="column 's'"):
        change(table)
    now = catalog.load_table("db.t")
    assert now.metadata_location == before
    assert now.scan().to_arrow().to_pylist() == ROWS.to_pylist()
    assert not list(tmp_path.rglob("*.orc"))
