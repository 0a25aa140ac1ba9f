"""Writer schemas compiled into programs: what is refused, and that work is bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from icebench.engine.codec.avro.reading.program import Op, Selection, compile_schema
from icebench.engine.spec.types import MAX_DEPTH
from icebench.errors import CorruptTable, Unsupported

EVERYTHING = Selection(frozenset(), frozenset({()}))
NOTHING = Selection(frozenset())


def compiled(schema: Any, selection: Selection = NOTHING) -> Any:
    return compile_schema(json.dumps(schema).encode(), selection)


def record(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": list(fields)}


def named(i: int, type_: Any, field_id: Any = None) -> dict[str, Any]:
    return {"name": f"f{i}", "type": type_} | ({} if field_id is None else {"field-id": field_id})


def ops(program: Any) -> list[str]:
    return [Op(instruction[0]).name for instruction in program.code]


def test_neighbouring_skips_are_one():
    program = compiled(record(*(named(i, "long") for i in range(5)), named(9, "double"), named(10, "float")))
    assert ops(program) == ["SKIP_VARINTS", "SKIP_FIXED", "END"]
    assert [a for _, a, _, _ in program.code] == [5, 12, 0]


def test_skips_are_not_joined_across_a_union():
    program = compiled(record(named(0, "long"), named(1, ["null", "long"]), named(2, "long")))
    assert ops(program) == ["SKIP_VARINTS", "UNION", "JUMP", "JUMP", "JUMP", "SKIP_VARINTS", "SKIP_VARINTS", "END"]


def test_the_smallest_object():
    schema = record(named(0, "double"), named(1, ["null", "double"]), named(2, {"type": "array", "items": "int"}))
    assert compiled(schema).smallest == 8 + 1 + 1


def test_fields_without_an_id_cannot_be_wanted():
    program = compiled(record(named(0, "long", 7), named(1, "long"), named(2, "long", "8")), EVERYTHING)
    assert [layout.path for layout in program.columns] == [(7,)]


def test_named_types_may_be_referred_to():
    fixed = {"type": "fixed", "name": "x.y.F", "size": 3}
    program = compiled(record(named(0, fixed), named(1, "x.y.F"), named(2, {"type": "F"})))
    assert program.code[0] == (Op.SKIP_FIXED, 9, 0, 0)


@pytest.mark.parametrize(
    "schema",
    [
        5,
        None,
        "nonsense",
        {"type": "nonsense"},
        {"type": 5},
        {"type": "fixed", "name": "f", "size": -1},
        {"type": "fixed", "name": "f"},
        {"type": "record", "name": "r"},
        {"type": "array"},
        [],
        record({"name": "x"}),
        record(named(0, {"type": "array", "items": "nonsense"})),
    ],
)
def test_what_is_no_schema(schema: Any):
    with pytest.raises(CorruptTable):
        compiled(schema)


def test_an_id_is_given_once():
    with pytest.raises(CorruptTable, match="two fields"):
        compiled(record(named(0, "long", 7), named(1, "long", 7)), EVERYTHING)


def test_a_wanted_field_has_one_type():
    with pytest.raises(CorruptTable, match="several types"):
        compiled(record(named(0, ["int", "string"], 7)), EVERYTHING)
    assert compiled(record(named(0, ["int", "string"], 7))).columns == ()


def recursive() -> Any:
    return record(named(0, ["null", "r"]))


def deep() -> Any:
    schema: Any = "long"
    for _ in range(MAX_DEPTH + 2):
        schema = {"type": "array", "items": schema}
    return schema


def exploding(leaf: list[Any]) -> Any:
    """Each record has ten fields of the record before."""
    made: Any = {"type": "record", "name": "r0", "fields": leaf}
    for level in range(1, 12):
        fields = [{"name": "a", "type": made}, *({"name": f"b{i}", "type": f"r{level - 1}"} for i in range(9))]
        made = {"type": "record", "name": f"r{level}", "fields": fields}
    return made


@pytest.mark.parametrize(
    "schema",
    [recursive(), deep(), exploding([]), exploding([named(0, "long")])],
    ids=["recursive", "deep", "exploding without bytes", "exploding"],
)
def test_schemas_that_would_take_for_ever(schema: Any):
    with pytest.raises(Unsupported, match="recursive, nested too deeply, or too large"):
        compiled(schema)
