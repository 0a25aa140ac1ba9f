from __future__ import annotations

import pytest

from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import INT, LONG, STRING, NestedField, StructType, Type, list_type, map_type
from icebench.errors import Invalid


def column(field_id: int, name: str, type_: Type = LONG, *, required: bool = False) -> NestedField:
    return NestedField(field_id=field_id, name=name, type=type_, required=required)


POINT = StructType((column(11, "x", INT), column(12, "y", INT)))
SCHEMA = Schema(
    (
        column(1, "id", required=True),
        column(2, "points", list_type(10, POINT)),
        column(3, "by_name", map_type(20, STRING, 21, StructType((column(22, "size", INT),)))),
        column(4, "tags", list_type(30, STRING)),
        column(5, "home", StructType((column(40, "street", STRING),))),
    ),
    schema_id=3,
    identifier_field_ids=frozenset({1}),
)


def test_walk_visits_parents_before_children_in_order() -> None:
    assert [f.field_id for f in SCHEMA.walk()] == [1, 2, 10, 11, 12, 3, 20, 21, 22, 4, 30, 5, 40]
    assert SCHEMA.highest_field_id == 40
    assert Schema(()).highest_field_id == 0


def test_full_names_and_short_ones_find_columns() -> None:
    assert SCHEMA.name_of[11] == "points.element.x"
    assert SCHEMA.name_of[20] == "by_name.key"
    assert SCHEMA.find("points.element.x").field_id == 11
    assert SCHEMA.find("points.x").field_id == 11
    assert SCHEMA.find("by_name.value.size").field_id == SCHEMA.find("by_name.size").field_id == 22
    assert SCHEMA.find("tags.element").field_id == 30
    assert SCHEMA.find("home.street").field_id == 40


def test_an_id_is_used_once() -> None:
    with pytest.raises(Invalid, match="field id 11"):
        Schema((column(11, "a"), column(2, "points", list_type(10, POINT))))


def test_an_unknown_column_comes_with_suggestions() -> None:
    with pytest.raises(Invalid, match="did you mean 'home'"):
        SCHEMA.find("hom")
    with pytest.raises(Invalid, match="the columns are id, points"):
        SCHEMA.find("zzzzzz")


def test_a_name_of_two_columns_finds_neither() -> None:
    inner = StructType((column(3, "b"), column(4, "c")))
    schema = Schema((column(1, "a.b"), column(2, "a", inner), column(5, "a", list_type(6, inner_twin(7)))))
    assert schema.shared_names == {"a", "a.b"}
    for name in ("a", "a.b"):
        with pytest.raises(Invalid, match=f"several columns are called '{name}'"):
            schema.find(name)
        assert name not in schema.id_of
    assert schema.find("a.c").field_id == 4
    assert schema.path_of(1) == ("a.b",)
    assert schema.path_of(3) == ("a", "b")


def inner_twin(field_id: int) -> StructType:
    """A struct whose field has, in a list, the short name ``a.b``."""
    return StructType((column(field_id, "b"),))


def test_case_matters_only_when_asked() -> None:
    with pytest.raises(Invalid):
        SCHEMA.find("ID")
    assert SCHEMA.find("ID", case_sensitive=False).field_id == 1
    twins = Schema((column(1, "a"), column(2, "A")))
    assert twins.find("A", case_sensitive=False).field_id == 2
    with pytest.raises(Invalid, match="ambiguous"):
        Schema((column(1, "aB"), column(2, "Ab"))).find("ab", case_sensitive=False)


def test_select_keeps_ancestors_and_whole_subtrees() -> None:
    assert SCHEMA.select([12]).fields == (column(2, "points", list_type(10, StructType((column(12, "y", INT),)))),)
    assert SCHEMA.select([2]).fields == (SCHEMA.fields[1],)
    kept = SCHEMA.select([22])
    assert kept.fields[0].type == SCHEMA.fields[2].type
    assert kept.schema_id == 3
    assert SCHEMA.select([]).fields == ()
    assert SCHEMA.select([1]).identifier_field_ids == {1}
    assert SCHEMA.select([5]).identifier_field_ids == set()


def test_primitive_refuses_nested_and_unknown_columns() -> None:
    assert SCHEMA.primitive(40) == STRING
    for field_id in (2, 99):
        with pytest.raises(Invalid, match=str(field_id)):
            SCHEMA.primitive(field_id)


def test_parents() -> None:
    assert SCHEMA.parent_of == {10: 2, 11: 10, 12: 10, 20: 3, 21: 3, 22: 21, 30: 4, 40: 5}
