"""Manifests as any legal writer might write them: random partition structs, fields left out, unknown fields added,
random metric maps, any codec and any way to cut blocks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.property.avro_writing import Style, container

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
COLUMN_IDS = st.one_of(st.integers(0, 8), st.integers(100, 300), st.just((1 << 31) - 1))
CODECS = ("null", "deflate", "snappy", "zstandard")

COUNT_MAPS = {"column_sizes": 108, "value_counts": 109, "null_value_counts": 110, "nan_value_counts": 137}
BOUND_MAPS = {"lower_bounds": 125, "upper_bounds": 128}
OPTIONAL_FIELDS: dict[str, tuple[int, Any]] = {
    "content": (134, "int"),
    "key_metadata": (131, ["null", "bytes"]),
    "split_offsets": (132, ["null", {"type": "array", "items": "long", "element-id": 133}]),
    "equality_ids": (135, ["null", {"type": "array", "items": "int", "element-id": 136}]),
    "sort_order_id": (140, ["null", "int"]),
    "first_row_id": (142, ["null", "long"]),
    "referenced_data_file": (143, ["null", "string"]),
    "content_offset": (144, ["null", "long"]),
    "content_size_in_bytes": (145, ["null", "long"]),
}
REQUIRED_FIELDS: dict[str, tuple[int, Any]] = {
    "file_path": (100, "string"),
    "file_format": (101, "string"),
    "record_count": (103, "long"),
    "file_size_in_bytes": (104, "long"),
}
ENTRY_FIELDS: dict[str, tuple[int, Any]] = {
    "snapshot_id": (1, ["null", "long"]),
    "sequence_number": (3, ["null", "long"]),
    "file_sequence_number": (4, ["null", "long"]),
}


@dataclass(frozen=True)
class WrittenManifest:
    """A manifest's bytes and what was written: entries as Avro records, unions as (branch, value)."""

    data: bytes
    schema: Any
    entries: list[dict[str, Any]]


def values_of(schema: Any) -> st.SearchStrategy[Any]:
    """Values of an Avro schema, as `avro_writing` takes them."""
    if isinstance(schema, list):
        branches = [st.tuples(st.just(i), values_of(branch)) for i, branch in enumerate(schema)]
        return st.one_of(branches)
    kind = schema if isinstance(schema, str) else schema["type"]
    match kind:
        case "record":
            return st.fixed_dictionaries({f["name"]: values_of(f["type"]) for f in schema["fields"]})
        case "array":
            if schema.get("logicalType") == "map":
                pair = values_of(schema["items"])
                return st.lists(pair, max_size=5, unique_by=lambda p: str(p["key"]))
            return st.lists(values_of(schema["items"]), max_size=4)
        case "map":
            return st.dictionaries(st.text(max_size=3), values_of(schema["values"]), max_size=3)
        case "fixed":
            return st.binary(min_size=schema["size"], max_size=schema["size"])
        case "enum":
            return st.integers(0, len(schema["symbols"]) - 1)
    return {
        "null": st.none(),
        "boolean": st.booleans(),
        "int": INT32,
        "long": INT64,
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "string": st.text(max_size=6),
        "bytes": st.binary(max_size=6),
    }[kind]


_LEAVES = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "string", "bytes"])


def _named(kind: str, **members: Any) -> dict[str, Any]:
    return {"type": kind, "name": "?", **members}


# Schemas of fields that no version of the specification knows; the names are given by `_with_names`.
UNKNOWN_SCHEMAS = st.recursive(
    st.one_of(
        _LEAVES,
        st.builds(lambda size: _named("fixed", size=size), st.integers(0, 5)),
        st.just(_named("enum", symbols=["A", "B", "C"])),
    ),
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda values: {"type": "map", "values": values}, inner),
        st.builds(
            lambda types: _named("record", fields=[{"name": f"f{i}", "type": t} for i, t in enumerate(types)]),
            st.lists(inner, max_size=3),
        ),
        # A union may not hold unions, nor two unnamed types alike: null and one other is enough here.
        inner.filter(lambda t: not isinstance(t, list) and t != "null").map(lambda t: [t, "null"]),
    ),
    max_leaves=5,
)


def _with_names(schema: Any, prefix: str) -> Any:
    """The schema with a name of its own for each named type."""
    if isinstance(schema, list):
        return [_with_names(branch, f"{prefix}_{i}") for i, branch in enumerate(schema)]
    if isinstance(schema, str):
        return schema
    made = dict(schema)
    if "name" in made:
        made["name"] = prefix
    for key in ("items", "values"):
        if key in made:
            made[key] = _with_names(made[key], f"{prefix}_{key}")
    if "fields" in made:
        made["fields"] = [{**f, "type": _with_names(f["type"], f"{prefix}_{i}")} for i, f in enumerate(made["fields"])]
    return made


PARTITION_TYPES = st.one_of(
    st.sampled_from(["int", "long", "boolean", "float", "double", "string", "bytes", "null"]),
    st.builds(lambda size: _named("fixed", size=size), st.integers(1, 16)),
)


@st.composite
def entry_schemas(draw: st.DrawFn) -> Any:
    """A `manifest_entry` record with any optional fields, in any order, and fields nobody knows."""
    partition = [
        {"name": f"p{i}", "type": _optional(draw, _with_names(t, f"fixed_p{i}")), "field-id": 1000 + i}
        for i, t in enumerate(draw(st.lists(PARTITION_TYPES, max_size=4)))
    ]
    file_fields = [_field(name, *REQUIRED_FIELDS[name]) for name in REQUIRED_FIELDS]
    file_fields.append(_field("partition", 102, {"type": "record", "name": "r102", "fields": partition}))
    file_fields += [_field(n, *OPTIONAL_FIELDS[n]) for n in draw(_some_of(OPTIONAL_FIELDS))]
    for name in draw(_some_of({**COUNT_MAPS, **BOUND_MAPS})):
        field_id = COUNT_MAPS.get(name) or BOUND_MAPS[name]
        value = "long" if name in COUNT_MAPS else "bytes"
        file_fields.append(_field(name, field_id, _metric_map(draw, name, value)))
    file_fields += _unknown_fields(draw, "file")
    entry_fields = [
        _field("status", 0, "int"),
        _field("data_file", 2, {"type": "record", "name": "r2", "fields": draw(st.permutations(file_fields))}),
        *(_field(n, *ENTRY_FIELDS[n]) for n in draw(_some_of(ENTRY_FIELDS))),
        *_unknown_fields(draw, "entry"),
    ]
    return {"type": "record", "name": "manifest_entry", "fields": draw(st.permutations(entry_fields))}


def _some_of(names: Any) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(sorted(names)), unique=True)


def _field(name: str, field_id: int | None, schema: Any) -> dict[str, Any]:
    return {"name": name, "type": schema} | ({} if field_id is None else {"field-id": field_id})


def _optional(draw: st.DrawFn, schema: Any) -> Any:
    if schema == "null":
        return schema
    return draw(st.sampled_from([schema, ["null", schema], [schema, "null"]]))


def _metric_map(draw: st.DrawFn, name: str, value: str) -> Any:
    # A writer may call counts int and values optional; neither keeps a reader from understanding them.
    value_type = draw(st.sampled_from([value, value, value, ["null", value], "int" if value == "long" else value]))
    items = {
        "type": "record",
        "name": f"pair_{name}",
        "fields": [{"name": "key", "type": "int", "field-id": 117}, {"name": "value", "type": value_type}],
    }
    return _optional(draw, {"type": "array", "items": items, "logicalType": "map"})


def _unknown_fields(draw: st.DrawFn, prefix: str) -> list[dict[str, Any]]:
    made = []
    for i, schema in enumerate(draw(st.lists(UNKNOWN_SCHEMAS, max_size=2))):
        field_id = draw(st.sampled_from([None, 900 + i]))
        made.append(_field(f"unknown_{prefix}_{i}", field_id, _with_names(schema, f"u_{prefix}_{i}")))
    return made


def styles(codecs: Sequence[str] = CODECS) -> st.SearchStrategy[Style]:
    """Ways to cut blocks, with one of these codecs."""
    return st.builds(
        Style,
        items_per_block=st.integers(0, 3),
        sized_blocks=st.booleans(),
        objects_per_block=st.integers(1, 5),
        codec=st.sampled_from(codecs),
    )


def _metric_values(schema: Any) -> st.SearchStrategy[Any]:
    """Values whose keys are column ids."""
    if isinstance(schema, list):
        return st.one_of([st.tuples(st.just(i), _metric_values(branch)) for i, branch in enumerate(schema)])
    if schema == "null":
        return st.none()
    value = values_of(schema["items"]["fields"][1]["type"])
    pair = st.fixed_dictionaries({"key": COLUMN_IDS, "value": value})
    return st.lists(pair, max_size=6, unique_by=lambda p: p["key"])


def _entry_values(schema: Any) -> st.SearchStrategy[dict[str, Any]]:
    members: dict[str, st.SearchStrategy[Any]] = {}
    for f in schema["fields"]:
        if f["name"] == "data_file":
            members[f["name"]] = _entry_values(f["type"])
        elif f["name"] in {**COUNT_MAPS, **BOUND_MAPS}:
            members[f["name"]] = _metric_values(f["type"])
        elif f["name"] in ("status", "content"):
            members[f["name"]] = st.integers(0, 2)
        elif f["name"] == "file_format":
            members[f["name"]] = st.sampled_from(["PARQUET", "parquet", "AVRO", "ORC", "PUFFIN"])
        else:
            members[f["name"]] = values_of(f["type"])
    return st.fixed_dictionaries(members)


def partition_field_names(schema: Any) -> list[str]:
    """The names of the partition struct's fields."""
    file_fields = next(f["type"]["fields"] for f in schema["fields"] if f["name"] == "data_file")
    return [f["name"] for f in next(f["type"]["fields"] for f in file_fields if f["name"] == "partition")]


@st.composite
def manifests(draw: st.DrawFn, codecs: Sequence[str] = CODECS) -> WrittenManifest:
    """A manifest and what was written into it."""
    schema = draw(entry_schemas())
    entries = draw(st.lists(_entry_values(schema), max_size=7))
    names = partition_field_names(schema)
    spec = [
        {"name": name, "transform": "identity", "source-id": i + 1, "field-id": 1000 + i}
        for i, name in enumerate(names)
    ]
    metadata = {
        "schema": json.dumps({"type": "struct", "schema-id": 0, "fields": []}),
        "partition-spec": json.dumps(spec),
        "partition-spec-id": "3",
        "format-version": "2",
        "content": "data",
    }
    return WrittenManifest(container(schema, entries, metadata, draw(styles(codecs))), schema, entries)
