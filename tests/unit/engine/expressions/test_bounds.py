from __future__ import annotations

import cProfile
from collections.abc import Sequence

import numpy as np
import pytest

from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bounds import ColumnBounds, Evaluator, Evidence, Presence
from icebench.engine.expressions.literal_intervals import FALSE, NULL, TRUE
from icebench.engine.expressions.parse import parse
from icebench.engine.expressions.vectors import NumberVector, vector_of
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import DOUBLE, INT, STRING, TIME, NestedField, PrimitiveType
from icebench.engine.spec.values import Value

SCHEMA = Schema(
    (
        NestedField(field_id=1, name="i", type=INT),
        NestedField(field_id=2, name="s", type=STRING),
        NestedField(field_id=3, name="d", type=DOUBLE),
        NestedField(field_id=4, name="r", type=INT, required=True),
        NestedField(field_id=5, name="t", type=TIME),
    )
)
T, F, N = TRUE, FALSE, NULL


class Known:
    """One row of statistics."""

    count = 1

    def __init__(self, **columns: Evidence | Sequence[Evidence]) -> None:
        self._columns = {
            SCHEMA.find(name).field_id: tuple(given) if isinstance(given, Sequence) else (given,)
            for name, given in columns.items()
        }

    def evidence(self, field_id: int) -> Sequence[Evidence]:
        return self._columns.get(field_id, ())


def between(
    type_: PrimitiveType,
    low: Value | None,
    high: Value | None,
    *,
    null: bool = False,
    nan: bool = False,
    value: bool = True,
) -> ColumnBounds:
    return ColumnBounds(1, vector_of(type_, [low]), vector_of(type_, [high]), Presence(null, nan, value))


def outcomes(text: str, **columns: Evidence | Sequence[Evidence]) -> int:
    return int(Evaluator(bind(parse(text), SCHEMA)).outcomes(Known(**columns))[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("i not in (1, 20)", N), ("i in (1, 20)", N), ("i != 1", N), ("not (i in (1, 20))", N), ("i is null", T)],
)
def test_nulls_alone_are_neither_in_a_list_nor_outside_it(text: str, expected: int) -> None:
    assert outcomes(text, i=between(INT, None, None, null=True, value=False)) == expected


@pytest.mark.parametrize("hidden", [-100, 0, 100])
@pytest.mark.parametrize(("text", "expected"), [("i < -5", T | F), ("i > 5", T | F), ("i in (-50, 50)", T | F)])
def test_what_stands_in_place_of_an_unknown_bound_does_not_matter(text: str, expected: int, hidden: int) -> None:
    unknown = NumberVector(np.array([hidden]), np.array([False]))
    for bounds in (
        ColumnBounds(1, unknown, unknown, Presence(False, False)),
        ColumnBounds(1, unknown, NumberVector(np.array([60])), Presence(False, False)),
        ColumnBounds(1, NumberVector(np.array([-60])), unknown, Presence(False, False)),
    ):
        assert outcomes(text, i=bounds) == expected


FIVE_TO_NINE = between(INT, 5, 9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i < 5", F), ("i < 6", T | F), ("i <= 9", T), ("i > 9", F), ("i >= 5", T), ("i = 7", T | F), ("i = 4", F),
        ("i != 4", T), ("i != 7", T | F), ("i in (1, 2)", F), ("i in (1, 20)", F), ("i in (1, 7)", T | F),
        ("i in (5, 6, 7, 8, 9)", T), ("i not in (1, 20)", T), ("i is null", F), ("i is not null", T),
        ("i between 5 and 9", T), ("i < 5 or i > 9", F), ("not (i < 5)", T),
    ],
)  # fmt: skip
def test_a_range_of_numbers(text: str, expected: int) -> None:
    assert outcomes(text, i=FIVE_TO_NINE) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s < 'b'", F),
        ("s = 'bcd'", T | F),
        ("starts_with(s, 'b')", T),
        ("starts_with(s, 'c')", F),
        ("s like 'bc%'", T | F),
        ("s not like 'a%'", T),
        ("s not like 'bd%'", T | F),
        ("s >= 'bc'", T),
    ],
)
def test_a_range_of_text(text: str, expected: int) -> None:
    assert outcomes(text, s=between(STRING, "bc", "bz~")) == expected


def test_nulls_are_neither_true_nor_false() -> None:
    assert outcomes("i < 100", i=between(INT, 5, 9, null=True)) == T | N
    assert outcomes("i < 100", i=between(INT, None, None, null=True, value=False)) == N
    assert outcomes("i is null", i=between(INT, None, None, null=True, value=False)) == T
    assert outcomes("i is null or i < 100", i=between(INT, 5, 9, null=True)) == T | N  # leaves are seen one by one


def test_a_required_column_may_have_been_optional() -> None:
    assert outcomes("r < 100", r=between(INT, 5, 9, null=True)) == T | N
    assert outcomes("r < 100", r=between(INT, 5, 9)) == T


def test_nan_is_above_every_number() -> None:
    nans = between(DOUBLE, 1.0, 2.0, nan=True)
    assert outcomes("d > 5", d=nans) == T | F
    assert outcomes("d <= 5", d=nans) == T | F
    assert outcomes("d > 5", d=between(DOUBLE, 1.0, 2.0)) == F
    assert outcomes("d > 5", d=between(DOUBLE, None, None, nan=True, value=False)) == T
    assert outcomes("d is nan", d=between(DOUBLE, 1.0, 2.0)) == F
    assert outcomes("d is not nan", d=between(DOUBLE, 1.0, 2.0, null=True)) == T
    assert outcomes("d is nan", d=nans) == T | F


def test_a_column_of_nothing_but_nan_or_null() -> None:
    nans = between(DOUBLE, None, None, nan=True, value=False)
    nulls = between(DOUBLE, None, None, null=True, value=False)
    assert outcomes("d is not null", d=nans) == outcomes("d is nan", d=nans) == T
    assert outcomes("d is not nan", d=nulls) == outcomes("d is null", d=nulls) == T


def test_what_several_sources_allow_is_what_all_of_them_allow() -> None:
    assert outcomes("i > 7", i=(between(INT, 5, 9), between(INT, 0, 6))) == F
    assert outcomes("i > 7", i=(between(INT, 5, 9), between(INT, 8, 20))) == T


def test_there_is_room_between_values_two_apart_and_none_between_neighbours() -> None:
    assert outcomes("i in (1, 3)", i=between(INT, 2, 2)) == F
    assert outcomes("i in (1, 2)", i=between(INT, 1, 2)) == T


def test_a_time_past_midnight_is_past_all_others() -> None:
    late = between(TIME, 86_400_000_000, 86_400_000_001)  # no time of day, but what a file may hold
    assert outcomes("t <= '23:59:59.999999'", t=late) == F


def test_zeros_are_equal() -> None:
    assert outcomes("d = 0", d=between(DOUBLE, -0.0, -0.0)) == T
    assert outcomes("d < 0", d=between(DOUBLE, -0.0, 0.0)) == F


def test_one_bound_is_enough() -> None:
    assert outcomes("i < 5", i=between(INT, 5, None)) == F
    assert outcomes("i > 9", i=between(INT, None, 9)) == F
    assert outcomes("i > 9", i=between(INT, 5, None)) == T | F


def test_nothing_known_allows_everything() -> None:
    assert outcomes("i = 1") == T | F | N
    assert outcomes("i is null") == T | F
    assert outcomes("d is nan") == T | F
    assert outcomes("r = 1") == T | F | N


def test_constants() -> None:
    assert outcomes("true") == T
    assert outcomes("false") == F


KLEENE = {T: True, F: False, N: None}


@pytest.mark.parametrize("a", range(1, 8))
@pytest.mark.parametrize("b", range(1, 8))
def test_combinations_are_those_of_all_pairs(a: int, b: int) -> None:
    def kleene_and(x: bool | None, y: bool | None) -> bool | None:
        return False if x is False or y is False else None if x is None or y is None else True

    def kleene_or(x: bool | None, y: bool | None) -> bool | None:
        return True if x is True or y is True else None if x is None or y is None else False

    bit = {value: key for key, value in KLEENE.items()}
    for text, combine in (("i = 1 and s = 'x'", kleene_and), ("i = 1 or s = 'x'", kleene_or)):
        evaluator = Evaluator(bind(parse(text), SCHEMA))
        found = evaluator.combine([np.array([a], np.uint8), np.array([b], np.uint8)], 1)
        expected = 0
        for x in (v for k, v in KLEENE.items() if a & k):
            for y in (v for k, v in KLEENE.items() if b & k):
                expected |= bit[combine(x, y)]
        assert found.tolist() == [expected]


def test_residuals() -> None:
    evaluator = Evaluator(bind(parse("i = 1 and (s = 'x' or d > 5)"), SCHEMA))
    sets = [np.array(each, np.uint8) for each in ([T, T | F, T], [T, F | N, F], [F, T | N, T | N])]
    codes, residuals = evaluator.residuals(sets, 3)
    assert [str(residuals[c]) for c in codes] == ["true", "i = 1 and d > 5.0", "d > 5.0"]
    codes, residuals = evaluator.residuals([s[:0] for s in sets], 0)
    assert len(codes) == 0


def test_many_leaves_do_not_overflow_the_codes() -> None:
    text = " or ".join(f"i = {n}" for n in range(0, 200, 2))
    evaluator = Evaluator(bind(parse(text), SCHEMA))
    sets = [np.array([F, T | F], np.uint8) for _ in evaluator.leaves]
    codes, residuals = evaluator.residuals(sets, 2)
    assert [str(residuals[c]) for c in codes] == ["false", text]


def test_of_a_column_that_many_leaves_test_evidence_is_asked_for_once() -> None:
    """Of a Parquet file it is decoded from the footer, row group by row group."""
    asked: list[int] = []

    class Asked(Known):
        def evidence(self, field_id: int) -> Sequence[Evidence]:
            asked.append(field_id)
            return super().evidence(field_id)

    text = " or ".join(f"i = {n} and d = {n} and s = '{n}'" for n in range(50))
    evaluator = Evaluator(bind(parse(text), SCHEMA))
    found = evaluator.leaf_outcomes(Asked(i=FIVE_TO_NINE))
    assert sorted(asked) == [1, 2, 3]
    alone = [Evaluator(test.leaf).outcomes(Known(i=FIVE_TO_NINE)) for test in evaluator.leaves]
    assert [each.tolist() for each in found] == [each.tolist() for each in alone]


def calls_of_residuals(files: int) -> int:
    """Function calls to make the residuals of 200 keys, of which each file may hold one."""
    keys = 200
    evaluator = Evaluator(bind(parse(" or ".join(f"i = {n} and r = {n}" for n in range(keys))), SCHEMA))
    may = np.array([T | F], np.uint8).repeat(files)
    sets = [np.where(np.arange(files) == n // 2, may, F) if n % 2 == 0 else may for n in range(2 * keys)]
    profile = cProfile.Profile()
    codes, residuals = profile.runcall(evaluator.residuals, sets, files)
    assert [str(residuals[code]) for code in codes] == [f"i = {n} and r = {n}" for n in range(files)]
    return sum(each.callcount for each in profile.getstats())


def test_decided_keys_cost_nothing_per_file() -> None:
    """Of the keys of an upsert each file has a few others, so that all residuals differ."""
    assert calls_of_residuals(100) < 2 * calls_of_residuals(1)


MANY_KEYS = " or ".join(f"(i = {n} and d = {n}.0)" for n in range(0, 400, 2))


def test_files_that_decide_less_than_half_of_many_keys_share_the_whole_filter() -> None:
    """A filter of its own for each would be prepared again for each when it is read."""
    files, keys = 50, 200
    evaluator = Evaluator(bind(parse(MANY_KEYS), SCHEMA))
    sets = []
    for leaf in range(2 * keys):
        own = np.full(files, T | F, np.uint8)
        own[leaf // 2 % files] = F  # each file decides a few others
        sets.append(own)
    sets[0][:] = T
    codes, residuals = evaluator.residuals(sets, files)
    assert [str(each) for each in residuals] == [MANY_KEYS]
    assert codes.tolist() == [0] * files


def test_files_that_decide_more_than_half_of_many_keys_have_filters_of_their_own() -> None:
    evaluator = Evaluator(bind(parse(MANY_KEYS), SCHEMA))
    sets = [np.array([T, F, T | F if n % 2 else F, T | F if n < 6 else N], np.uint8) for n in range(400)]
    codes, residuals = evaluator.residuals(sets, 4)
    three = "(i = 0 and d = 0.0) or (i = 2 and d = 2.0) or (i = 4 and d = 4.0)"
    assert [str(residuals[code]) for code in codes] == ["true", "false", "false", three]


def test_decided_alike_by_different_leaves_is_one_residual() -> None:
    evaluator = Evaluator(bind(parse("i = 1 or s = 'x'"), SCHEMA))
    codes, residuals = evaluator.residuals([np.array(each, np.uint8) for each in ([T, T | F, F, F], [F, T, F, T])], 4)
    assert [str(residuals[code]) for code in codes] == ["true", "true", "false", "true"]
    assert len(residuals) == 2
