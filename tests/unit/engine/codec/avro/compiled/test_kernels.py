"""Avro objects that contradict their schema, one byte at a time."""

from __future__ import annotations

from typing import Any

import pytest

from icebench.engine.codec.avro.file import encode_container, read_header
from icebench.engine.codec.avro.reading.block_columns import decode_objects
from icebench.engine.codec.avro.reading.program import Selection
from icebench.errors import CorruptTable

OPTIONAL = {"name": "a", "type": ["null", "int"], "field-id": 1}
BYTES = {"name": "a", "type": "bytes", "field-id": 1}
NUMBERS = {"name": "a", "type": {"type": "array", "items": "int", "element-id": 2}, "field-id": 1}


def decoded(field: dict[str, Any], block: bytes, count: int = 1) -> dict[Any, Any]:
    schema = {"type": "record", "name": "r", "fields": [field]}
    data = encode_container(schema, {}, "null", [(count, block)])
    found = decode_objects(data, read_header(data, location="f"), Selection(frozenset({(1,), (1, "element")})))
    return {path: column.to_pylist() for path, column in found.columns.items()}


def test_values_in_either_branch() -> None:
    assert decoded(OPTIONAL, b"\x02\x0a\x00\x02\x09", 3) == {(1,): [5, None, -5]}
    turned = {**OPTIONAL, "type": ["int", "null"]}
    assert decoded(turned, b"\x00\x0a\x02\x00\x09", 3) == {(1,): [5, None, -5]}


def test_lists_one_after_the_other() -> None:
    block = b"\x04\x02\x04\x00" + b"\x00" + b"\x02\x06\x02\x08\x00"  # [1, 2], [], [3] and [4] in blocks of their own
    assert decoded(NUMBERS, block, 3)[1, "element"] == [1, 2, 3, 4]


def test_a_flag_is_no_field_id() -> None:
    assert decoded({**BYTES, "field-id": True}, b"\x00") == {}


@pytest.mark.parametrize(
    ("field", "block", "reason"),
    [
        (OPTIONAL, b"\x04\x02", "a union has no such branch"),
        (OPTIONAL, b"\x01\x02", "a union has no such branch"),
        (OPTIONAL, b"\x02", "cut off"),
        (OPTIONAL, b"\x02\x02\x00", "bytes are left after the last entry"),
        (OPTIONAL, b"\x02" + b"\xff" * 9 + b"\x02", "more than 64 bits"),
        (BYTES, b"\x01", "a length is negative"),
        (BYTES, b"\x04a", "cut off"),
        (NUMBERS, b"\x08\x02\x02\x00", "more items than there are bytes"),
        (NUMBERS, b"\x01\x04\x02\x00", "not as long as it says"),
    ],
)
def test_what_contradicts_the_schema_is_named(field: dict[str, Any], block: bytes, reason: str) -> None:
    with pytest.raises(CorruptTable, match=reason):
        decoded(field, block)
