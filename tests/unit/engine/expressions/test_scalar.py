from __future__ import annotations

import math
from decimal import Decimal

import pytest

from icebench.engine.expressions.scalar import LiteralNode, LiteralValue

KINDS: list[LiteralValue | None] = [
    None, True, False, 1, 0, 1.0, 0.0, -0.0, Decimal(1), Decimal("1.0"), Decimal("1.00"), Decimal("-0"), "1", b"1",
]  # fmt: skip


@pytest.mark.parametrize("one", KINDS, ids=repr)
def test_literals_that_compute_differently_are_not_equal(one: LiteralValue | None) -> None:
    assert [repr(other) for other in KINDS if LiteralNode(other) == LiteralNode(one)] == [repr(one)]


def test_equal_literals_have_one_hash() -> None:
    assert len({LiteralNode(value) for value in (1.5, 3 / 2, Decimal("1.5"), Decimal("1.5"))}) == 2
    assert LiteralNode(math.nan) == LiteralNode(float("nan"))
    assert LiteralNode(1) != 1
