from __future__ import annotations

from typing import Any

import pytest

from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bound import BOUND_FALSE, BOUND_TRUE, BoundIn, leaves
from icebench.engine.expressions.parse import parse
from icebench.engine.expressions.predicate import starts_with
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    NestedField,
    StructType,
    Type,
    list_type,
)
from icebench.errors import Invalid, Unsupported

TYPES: dict[str, Type] = {
    "i": INT, "l": LONG, "f": FLOAT, "d": DOUBLE, "dec": DecimalType(4, 2), "b": BOOLEAN, "day": DATE, "clock": TIME,
    "ts": TIMESTAMP, "tz": TIMESTAMPTZ, "ns": TIMESTAMP_NS, "s": STRING, "u": UUID, "fix": FixedType(2), "bin": BINARY,
    "nothing": UNKNOWN, "v": VARIANT, "list": list_type(90, INT),
}  # fmt: skip
SCHEMA = Schema(
    (
        *(NestedField(field_id=i + 1, name=name, type=type_) for i, (name, type_) in enumerate(TYPES.items())),
        NestedField(field_id=50, name="required", type=INT, required=True),
        NestedField(
            field_id=60,
            name="struct",
            type=StructType((NestedField(field_id=61, name="x", type=INT, required=True),)),
        ),
        NestedField(field_id=70, name="Case", type=INT),
        NestedField(field_id=71, name="case", type=STRING),
    )
)
UUID_TEXT = "f79c3e09-677c-4bbd-a479-3f349cb785e7"


def bound_text(text: str) -> str:
    return str(bind(parse(text), SCHEMA))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Literals beside the column's values.
        ("i < 3e9", "i is not null"),
        ("i > 3e9", "false"),
        ("i >= -3e9", "i is not null"),
        ("i <= 2.5", "i <= 2"),
        ("i < 2.5", "i <= 2"),
        ("i > 2.5", "i > 2"),
        ("i >= -2.5", "i > -3"),
        ("i = 2.5", "false"),
        ("i != 2.5", "i is not null"),
        ("i in (1, 2.5, 3e9)", "i = 1"),
        ("i not in (2.5)", "i is not null"),
        ("i in (3, 1, 2, 1)", "i in (1, 2, 3)"),
        ("i = 1e99999999", "false"),
        ("i < cast('Infinity' as double)", "i is not null"),
        ("l <= 9223372036854775807", "l <= 9223372036854775807"),
        ("l < 9223372036854775807.5", "l is not null"),
        ("dec = 1.5", "dec = 1.50"),
        ("dec > 1.505", "dec > 1.50"),
        ("dec < 100", "dec is not null"),
        ("dec >= -100", "dec is not null"),
        ("f = 0.1", "f = 0.1"),
        ("f < 1e300", "f <= 340282350000000000000000000000000000000.0"),
        ("f > -1e300", "f > cast('-Infinity' as double)"),
        ("d = 9007199254740993", "d = 9007199254740992.0"),
        ("day < timestamp '1970-01-02T12:00:00'", "day <= date '1970-01-02'"),
        ("day = '2024-02-29'", "day = date '2024-02-29'"),
        ("day < '9999999-01-01'", "day is not null"),
        ("ts >= date '1970-01-02'", "ts >= timestamp '1970-01-02T00:00:00'"),
        ("ts > '1970-01-01T00:00:00.0000001'", "ts > timestamp '1970-01-01T00:00:00'"),
        ("ns > '1970-01-01T00:00:00.0000001'", "ns > timestamp '1970-01-01T00:00:00.0000001'"),
        ("tz < '1970-01-01T01:00:00+01:00'", "tz < timestamp '1970-01-01T00:00:00+00:00'"),
        ("clock = '10:00'", "clock = time '10:00:00'"),
        (f"u = '{UUID_TEXT}'", f"u = uuid '{UUID_TEXT}'"),
        ("fix = X'0a'", "false"),
        ("fix < X'0a'", "fix <= X'09ff'"),
        ("fix >= X'0a0b0c'", "fix > X'0a0b'"),
        ("fix < X''", "false"),
        ("fix > X'ffffff'", "false"),
        ("bin < X'0a0b0c'", "bin < X'0a0b0c'"),
        # Presence.
        ("required is null", "required is null"),
        ("required < 3e9", "required is not null"),
        ("struct.x is null", '"struct"."x" is null'),
        ("struct is null", '"struct" is null'),
        ("list is not null", '"list" is not null'),
        ("nothing is null", "true"),
        ("nothing = 1 or nothing is nan", "false"),
        ("nothing is not nan", "true"),
        ("starts_with(s, '')", "s is not null"),
        ("not starts_with(s, '')", "false"),
        # Negation goes to the leaves.
        ("not (i < 1 and s = 'x' or d is nan)", "(i >= 1 or s != 'x') and d is not nan"),
        ("not (i in (1, 2))", "i not in (1, 2)"),
        ("not b", "b != true"),
        ("i = 1 and true and i = 1", "i = 1"),
        ("i = 1 or not (i != 1)", "i = 1"),
        ("i = 2.5 or s = 'x'", "s = 'x'"),
    ],
)
def test_rewriting(text: str, expected: str) -> None:
    assert bound_text(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ii = 1", "did you mean"),
        ("i = 'x'", "int and cannot be compared"),
        ("i = true", "int and cannot be compared"),
        ("s = 1", "string and cannot be compared"),
        ("i", "int and cannot be compared with the bool"),
        ("day = 5", "date and cannot be compared"),
        ("ts < '2024-02-29T00:00:00Z'", "without a zone"),
        ("tz < '2024-02-29T00:00:00'", "give the literal a zone"),
        ("tz < date '2024-02-29'", "give the literal a zone"),
        ("clock < date '2024-02-29'", "cannot be compared"),
        ("day < '12:00'", "cannot be compared"),
        ("day < 'yesterday'", "is not a date"),
        ("u = 'x'", "not a uuid"),
        (f"u = '0x{'1' * 30}'", "not a uuid"),
        ("s is nan", "only float and double"),
        ("starts_with(i, 'x')", "only text and binary"),
        ("starts_with(bin, 'x')", "cannot start with"),
        ("list.element = 1", "inside a list"),
    ],
)
def test_what_does_not_fit(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        bind(parse(text), SCHEMA)


@pytest.mark.parametrize(
    ("column", "prefix"),
    [("bin", None), ("bin", 5), ("bin", bytearray(b"x")), ("s", None), ("s", "\ud800"), ("s", b"x")],
)
def test_prefixes_are_texts_or_bytes(column: str, prefix: Any) -> None:
    with pytest.raises(Invalid, match=r"cannot start with|is not Unicode"):
        bind(starts_with(column, prefix), SCHEMA)


@pytest.mark.parametrize("text", ["struct = 1", "v = 1", "list in (1)"])
def test_columns_without_an_order(text: str) -> None:
    with pytest.raises(Unsupported):
        bind(parse(text), SCHEMA)


def test_names_without_regard_to_case() -> None:
    assert bind(parse("I = 1 and STRUCT.x = 2"), SCHEMA, case_sensitive=False) == bind(
        parse("i = 1 and struct.x = 2"), SCHEMA
    )
    with pytest.raises(Invalid, match="no column"):
        bind(parse("I = 1"), SCHEMA)
    with pytest.raises(Invalid, match="ambiguous"):
        bind(parse('"CASE" = 1'), SCHEMA, case_sensitive=False)


def test_zeros_are_one_value() -> None:
    found = bind(parse("d in (0, -0.0, 1)"), SCHEMA)
    assert isinstance(found, BoundIn)
    assert found.values == (0.0, 1.0)


def test_field_ids_and_leaves() -> None:
    bound = bind(parse("(i = 1 or s = 'x') and i > 0"), SCHEMA)
    assert bound.field_ids == {1, 12}
    assert [str(leaf) for leaf in leaves(bound)] == ["i = 1", "s = 'x'", "i > 0"]
    assert BOUND_TRUE.field_ids == BOUND_FALSE.field_ids == frozenset()
