from __future__ import annotations

import json

import pytest

from icebench.engine.spec.name_mapping import evolve_mapping, mapping_of, name_mapping_text, parse_name_mapping
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import LONG, STRING, NestedField, StructType, list_type
from icebench.errors import Invalid

# The example of the specification's appendix, shortened.
TEXT = json.dumps(
    [
        {"field-id": 1, "names": ["id", "record_id"]},
        {"field-id": 2, "names": ["data"]},
        {
            "field-id": 3,
            "names": ["location"],
            "fields": [{"field-id": 4, "names": ["latitude", "lat"]}, {"field-id": 5, "names": ["longitude", "long"]}],
        },
        {"names": ["unmapped"], "fields": [{"field-id": 6, "names": ["child"]}]},
    ]
)


def test_fields_are_found_by_any_of_their_names() -> None:
    mapping = parse_name_mapping(TEXT)
    assert mapping.id_of("id") == mapping.id_of("record_id") == 1
    assert mapping.id_of("location", "lat") == 4
    assert mapping.id_of("lat") is None
    assert mapping.id_of("unmapped") is None
    assert mapping.id_of("unmapped", "child") == 6


def test_text_round_trips() -> None:
    mapping = parse_name_mapping(TEXT)
    assert json.loads(name_mapping_text(mapping)) == json.loads(TEXT)


def test_a_schema_maps_to_its_own_names() -> None:
    point = StructType((NestedField(field_id=4, name="x.y", type=LONG),))
    schema = Schema(
        (
            NestedField(field_id=1, name="id", type=LONG),
            NestedField(field_id=2, name="points", type=list_type(3, point)),
            NestedField(field_id=5, name="name", type=STRING),
        )
    )
    mapping = mapping_of(schema)
    assert mapping.id_by_path == {
        ("id",): 1,
        ("points",): 2,
        ("points", "element"): 3,
        ("points", "element", "x.y"): 4,
        ("name",): 5,
    }
    assert parse_name_mapping(name_mapping_text(mapping)) == mapping


def test_after_a_change_of_schema_old_files_keep_their_names() -> None:
    def schema(*columns: tuple[int, str]) -> Schema:
        return Schema(tuple(NestedField(field_id=field_id, name=name, type=LONG) for field_id, name in columns))

    old = schema((1, "a"), (2, "b"), (3, "c"))
    new = schema((1, "z"), (4, "b"), (5, "c2"))  # a renamed, b dropped and added again, c dropped
    found = parse_name_mapping(name_mapping_text(evolve_mapping(mapping_of(old), old, new)))
    assert found.id_of("a") == found.id_of("z") == 1
    assert found.id_of("b") == 4  # the column that has the name now
    assert found.id_of("c") == 3  # nothing else is read from the place of a dropped column
    assert found.id_of("c2") == 5


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{", "not JSON"),
        pytest.param("[" * 100_000, "nested too deeply", id="brackets"),
        pytest.param('[{"names": [], "fields": ' * 20_000 + "[]" + "}]" * 20_000, "nested too deeply", id="fields"),
        ("{}", r"name mapping: a list"),
        ('[{"field-id": 1}]', r"name mapping\[0\]\.names"),
        ('[{"field-id": "1", "names": ["a"]}]', r"name mapping\[0\]\.field-id"),
        ('[{"names": ["a"]}, 7]', r"name mapping\[1\]: an object"),
        ('[{"names": ["a"], "fields": [{"names": [1]}]}]', r"name mapping\[0\]\.fields\[0\]\.names"),
        ('[{"names": ["a"]}, {"names": ["b", "a"]}]', "'a' is used twice"),
    ],
)
def test_wrong_texts_say_where(text: str, place: str) -> None:
    with pytest.raises(Invalid, match=place):
        parse_name_mapping(text)
