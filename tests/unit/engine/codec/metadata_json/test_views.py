"""View metadata files."""

from __future__ import annotations

import json

import pytest

from icebench.engine.codec.metadata_json.views import decode_view, encode_view
from icebench.errors import CorruptTable, Unsupported

# The view spec's own example, appendix A.
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1573518431292,
    "schema-id": 1,
    "default-catalog": "prod",
    "default-namespace": ["default"],
    "summary": {"engine-name": "Spark", "engine-version": "3.3.2"},
    "representations": [{"type": "sql", "sql": "SELECT COUNT(1) FROM events", "dialect": "spark"}],
}
EXAMPLE = {
    "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
    "format-version": 1,
    "location": "s3://bucket/warehouse/default.db/event_agg",
    "current-version-id": 1,
    "properties": {"comment": "Daily event counts"},
    "versions": [VERSION],
    "schemas": [
        {
            "schema-id": 1,
            "type": "struct",
            "fields": [{"id": 1, "name": "event_count", "required": False, "type": "int", "doc": "Count of events"}],
        }
    ],
    "version-log": [{"timestamp-ms": 1573518431292, "version-id": 1}],
}


def test_the_example_of_the_spec_is_read_and_written():
    view = decode_view(json.dumps(EXAMPLE).encode())
    assert view.current_version.sql_for("spark") == "SELECT COUNT(1) FROM events"
    assert view.current_version.default_namespace == ("default",)
    assert json.loads(encode_view(view)) == EXAMPLE
    assert decode_view(encode_view(view)) == view


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"current-version-id": 9}, "current-version-id"),
        ({"schemas": []}, "versions\\[0\\].schema-id"),
        ({"versions": [{**VERSION, "representations": 3}]}, "versions\\[0\\].representations"),
        ({"view-uuid": None}, "view-uuid"),
    ],
)
def test_what_contradicts_the_spec_is_named(change, path):
    with pytest.raises(CorruptTable, match=path):
        decode_view(json.dumps({**EXAMPLE, **change}).encode(), location="v1.metadata.json")


def test_a_newer_format_is_unsupported():
    with pytest.raises(Unsupported, match="version 2"):
        decode_view(json.dumps({**EXAMPLE, "format-version": 2}).encode())
