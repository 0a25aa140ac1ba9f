"""Designs estimate the effects that made the figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations, pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.statistics.designs import DESIGNS, combinations_of, terms_of

TWO = {"a": ("1", "2"), "b": ("x", "y"), "c": ("p", "q")}
LEVELS = st.dictionaries(st.sampled_from("abcd"), st.integers(2, 3), min_size=1, max_size=4)


def estimated(
    axes: Mapping[str, tuple[str, ...]], design: str, logs: Mapping[tuple[str, str], float]
) -> dict[str, float]:
    """What the terms of a design estimate where each value of an axis has its effect on the logarithm."""
    values = [sum(logs.get(item, 0.0) for item in tried.items()) for tried in combinations_of(axes, design)]
    return {t.name: sum(w * v for w, v in zip(t.weights, values, strict=True)) for t in terms_of(axes, design)}


@given(LEVELS, st.sampled_from(["one-at-a-time", "full"]), st.data())
def test_main_effects_are_estimated_whatever_the_others_do(
    levels: dict[str, int], design: str, data: st.DataObject
) -> None:
    axes = {name: tuple(f"{name}{i}" for i in range(count)) for name, count in levels.items()}
    logs = {(name, value): data.draw(st.floats(-3, 3)) for name, values in axes.items() for value in values}
    found = estimated(axes, design, logs)
    for name, (first, *others) in axes.items():
        for value in others:
            assert found[f"{name}={value}"] == pytest.approx(logs[name, value] - logs[name, first], abs=1e-9)
    assert all(abs(effect) < 1e-9 for name, effect in found.items() if " x " in name)


@pytest.mark.parametrize("design", DESIGNS)
def test_the_usual_values_are_tried_first_and_nothing_twice(design: str) -> None:
    tried = combinations_of(TWO, design)
    assert tried[0] == {"a": "1", "b": "x", "c": "p"}
    assert all(one != other for one, other in combinations(tried, 2))
    assert len(tried) == {"one-at-a-time": 4, "full": 8, "fractional": 4}[design]
    for term in terms_of(TWO, design):
        assert sum(term.weights) == pytest.approx(0)


@pytest.mark.parametrize(("axes", "tried"), [(3, 4), (4, 8), (5, 16), (6, 16), (7, 16)])
def test_a_fraction_estimates_every_main_effect(axes: int, tried: int) -> None:
    named = {f"k{i}": ("low", "high") for i in range(axes)}
    assert len(combinations_of(named, "fractional")) == tried
    assert combinations_of(named, "fractional")[0] == dict.fromkeys(named, "low")
    logs = {(f"k{i}", "high"): math.log(2 + i) for i in range(axes)}
    found = estimated(named, "fractional", logs)
    for i in range(axes):
        assert found[f"k{i}=high"] == pytest.approx(math.log(2 + i))
    # From four axes on no interaction of two can be taken for a main effect.
    assert any(t.aliases for t in terms_of(named, "fractional") if not t.is_interaction) == (axes == 3)


def test_an_interaction_is_estimated_and_aliased_terms_are_named() -> None:
    full = terms_of(TWO, "full")
    assert [t.name for t in full] == [
        "a=2",
        "b=y",
        "c=q",
        "a=2 x b=y",
        "a=2 x c=q",
        "b=y x c=q",
    ]
    assert [t.against for t in full[:3]] == ["a=1", "b=x", "c=p"]
    assert [t.is_interaction for t in full] == [False] * 3 + [True] * 3
    values = [math.log(3) if (c["a"], c["b"]) == ("2", "y") else 0.0 for c in combinations_of(TWO, "full")]
    effects = {t.name: sum(w * v for w, v in zip(t.weights, values, strict=True)) for t in full}
    assert effects["a=2 x b=y"] == pytest.approx(math.log(3))
    assert effects["a=2"] == pytest.approx(math.log(3) / 2)
    assert effects["a=2 x c=q"] == pytest.approx(0)
    assert {t.label for t in terms_of(TWO, "fractional")} == {
        "a=2 (or b=y x c=q, to the power of -2)",
        "b=y (or a=2 x c=q, to the power of -2)",
        "c=q (or a=2 x b=y, to the power of -2)",
    }


@pytest.mark.parametrize("count", [3, 4, 5, 6, 7])
def test_an_alias_is_the_power_of_the_estimate_that_its_own_effect_gives(count: int) -> None:
    """Of figures that an interaction alone makes, the term that it is taken for estimates its root, or its inverse."""
    axes = {f"k{i}": ("low", "high") for i in range(count)}
    tried = combinations_of(axes, "fractional")
    terms = terms_of(axes, "fractional")
    aliases = [(term, name, power) for term in terms for name, power in term.aliases]
    interactions = sum(term.is_interaction for term in terms) + len(aliases)
    assert interactions == count * (count - 1) // 2
    for term, name, power in aliases:
        both = [part.partition("=")[0] for part in name.split(" x ")]
        values = [math.log(3) if all(c[axis] == "high" for axis in both) else 0.0 for c in tried]
        estimate = sum(w * v for w, v in zip(term.weights, values, strict=True))
        assert power * estimate == pytest.approx(math.log(3))


def test_a_full_design_has_every_combination() -> None:
    axes = {"a": ("1", "2", "3"), "b": ("x", "y")}
    assert [tuple(c.values()) for c in combinations_of(axes, "full")] == list(product(*axes.values()))
    one = combinations_of(axes, "one-at-a-time")
    assert all(sum(a[k] != b[k] for k in axes) <= 2 for a, b in pairwise(one))


@pytest.mark.parametrize("axes", [{"a": ("1", "2"), "b": ("x", "y")}, {**TWO, "c": ("1", "2", "3")}])
def test_a_fraction_needs_three_axes_of_two_values(axes: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(ValueError, match="needs three axes or more, of two values each"):
        combinations_of(axes, "fractional")
    with pytest.raises(ValueError, match="no design 'half'"):
        combinations_of(axes, "half")
