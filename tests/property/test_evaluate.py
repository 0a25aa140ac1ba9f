from __future__ import annotations

import math

import pytest

from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.parse import parse
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import DOUBLE, STRING, NestedField
from icebench.engine.spec.values import Value
from tests.property.evaluate import evaluate, is_nan, ordering

SCHEMA = Schema(
    (NestedField(field_id=1, name="d", type=DOUBLE), NestedField(field_id=2, name="s", type=STRING)),
)


@pytest.mark.parametrize(
    ("text", "d", "s", "expected"),
    [
        ("d > 5", math.nan, None, True),
        ("d <= 5", math.nan, None, False),
        ("d != 5", math.nan, None, True),
        ("d = 0", -0.0, None, True),
        ("d > 5", None, None, None),
        ("d in (1, 2)", None, None, None),
        ("d not in (1, 2)", math.nan, None, True),
        ("d is nan", None, None, False),
        ("d is not nan", None, None, True),
        ("d > 5 and s = 'x'", None, "y", False),
        ("d > 5 and s = 'x'", None, "x", None),
        ("d > 5 or s = 'x'", None, "x", True),
        ("d > 5 or s = 'x'", None, "y", None),
        ("starts_with(s, 'ab')", None, "abc", True),
        ("not starts_with(s, 'ab')", None, None, None),
        ("s > 'z'", None, "\u00e9", True),
        ("s is null", 1.0, None, True),
        ("true", None, None, True),
    ],
)
def test_truth(text: str, d: Value | None, s: Value | None, expected: bool | None) -> None:
    assert evaluate(bind(parse(text), SCHEMA), {1: d, 2: s}) is expected


def test_order() -> None:
    assert ordering(math.nan, math.nan) == 0
    assert ordering(math.nan, math.inf) == 1
    assert ordering(-math.inf, math.nan) == -1
    assert ordering("\uffff", "\U0001f600") == -1
    assert is_nan(math.nan)
    assert not is_nan(None)
