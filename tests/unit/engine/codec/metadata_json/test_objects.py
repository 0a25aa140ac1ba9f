"""Typed access to JSON."""

from __future__ import annotations

from typing import Any

import pytest

from icebench.engine.codec.metadata_json.objects import JsonObject, parse_json, write_json
from icebench.errors import CorruptTable

NODE = JsonObject(
    {
        "text": "a",
        "flag": True,
        "int": 7,
        "long": 1 << 40,
        "list": [1, 2],
        "objects": [{"a": 1}, {}],
        "null": None,
        "texts": ["x"],
        "map": {"k": "v"},
    },
    path="top",
    location="file.json",
)


def test_members_of_each_type():
    assert (NODE.text("text"), NODE.flag("flag"), NODE.int32("int"), NODE.int64("long")) == ("a", True, 7, 1 << 40)
    assert (NODE.int32s("list"), NODE.texts("texts"), NODE.text_map("map")) == ((1, 2), ("x",), {"k": "v"})
    assert [child.path for child in NODE.children("objects")] == ["top.objects[0]", "top.objects[1]"]


def test_null_is_absent():
    assert not NODE.has("null")
    assert (NODE.text_or_none("null"), NODE.int32_or_none("gone"), NODE.int64_or_none("gone")) == (None, None, None)
    assert list(NODE.children_or_empty("null")) == []
    assert NODE.text_map("null") == {}
    assert not NODE.child_or_empty("null").members


@pytest.mark.parametrize(
    ("getter", "key", "path"),
    [
        ("text", "int", "top.int"),
        ("text", "null", "top.null"),
        ("text", "gone", "top.gone"),
        ("flag", "int", "top.int"),
        ("int32", "flag", "top.flag"),
        ("int32", "long", "top.long"),
        ("int64", "text", "top.text"),
        ("value", "null", "top.null"),
        ("child", "list", "top.list"),
        ("int32s", "objects", "top.objects[0]"),
        ("texts", "list", "top.list[0]"),
        ("text_map", "text", "top.text"),
    ],
)
def test_errors_name_location_and_path(getter: str, key: str, path: str):
    with pytest.raises(CorruptTable) as caught:
        getattr(NODE, getter)(key)
    assert (caught.value.location, caught.value.path) == ("file.json", path)
    assert str(caught.value).startswith(f"file.json at {path}: ")


def test_errors_reach_into_children():
    with pytest.raises(CorruptTable, match=r"top\.objects\[1\]\.a: is required and missing"):
        list(NODE.children("objects"))[1].int32("a")


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[NaN]", b"[Infinity]", b"{" * 50_000, b'"\\ud800"'])
def test_what_is_no_json(data: bytes):
    with pytest.raises(CorruptTable, match="not valid JSON"):
        parse_json(data, location="x")


@pytest.mark.parametrize("value", [{"a": [1, 2.5, None, True, "é\U0001f9ca"]}, [], "x"])
def test_json_both_ways(value: Any):
    assert parse_json(write_json(value)) == value
