"""Avro files with nested columns, whose values are read one by one."""

from __future__ import annotations

import zlib
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from icebench.engine.codec.avro.file import encode_container
from icebench.engine.codec.budget import VARIABLE
from icebench.engine.columnar.schemas import from_arrow_schema
from icebench.engine.formats.opening import open_source
from icebench.engine.spec.name_mapping import mapping_of
from icebench.engine.storage.memory import MemoryStore
from icebench.errors import TooLarge

COLUMNS = from_arrow_schema(pa.schema([("a", pa.list_(pa.int64()))]))
ITEMS = {"type": "array", "items": ["null", "long"], "element-id": 2}
SCHEMA = {"type": "record", "name": "table", "fields": [{"name": "a", "type": ITEMS, "field-id": 1}]}


def file_of(rows: int, blocks: int) -> bytes:
    """Rows of empty lists."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(rows)) + packer.flush()
    return encode_container(SCHEMA, {}, "deflate", [(rows, block)] * blocks)


def read(data: bytes) -> list[Any]:
    store = MemoryStore()
    store.write("memory://f", data)
    with open_source(store, "memory://f", file_format="avro", name_mapping=mapping_of(COLUMNS)) as source:
        return [row for group in source.row_groups for row in source.read(group.index, COLUMNS)["a"].to_pylist()]


def test_values_that_inflate_within_the_budget_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1000000")
    assert read(file_of(5_000, 3)) == [[]] * 15_000


def test_too_many_values_are_refused_before_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1000000")
    data = file_of(5_000, 300)
    with patch("fastavro.schemaless_reader", side_effect=AssertionError("a value was read")), pytest.raises(TooLarge):
        read(data)
