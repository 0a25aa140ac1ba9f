"""Which combinations of several axes are tried, and which of them estimate each effect.

A *term* is a main effect (an axis at one of its other values, against its first) or an interaction of two axes. It is
estimated by a contrast: a weight for each combination, so that the weighted sum of the logarithms of their times is
the logarithm of a ratio. Montgomery, "Design and Analysis of Experiments", chapters 6 and 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

DESIGNS = ("one-at-a-time", "full", "fractional")
_LARGEST_HALF = 5
"""Axes up to which half of all combinations are tried; of more, the fewest that keep main effects clear of
interactions."""

Combination = Mapping[str, str]
"""Axis -> value."""


@dataclass(frozen=True, kw_only=True)
class Term:
    """An effect, and how it is estimated.

    Args:
        name: ``files=7`` or ``codec=zstd x files=7``.
        against: What the main effect is against; empty for an interaction.
        weights: One for each combination.
        aliases: Other terms that the same combinations estimate, by name: to which power of this ratio theirs is, if
            the effect is theirs.
    """

    name: str
    against: str
    weights: tuple[float, ...]
    aliases: tuple[tuple[str, float], ...] = ()

    @property
    def label(self) -> str:
        """``files=7 (or codec=zstd x rows=9, to the power of -2)``."""
        powers = ((name, "" if power == 1 else f", to the power of {power:g}") for name, power in self.aliases)
        return f"{self.name}{''.join(f' (or {name}{power})' for name, power in powers)}"

    @property
    def is_interaction(self) -> bool:
        """Whether it is how much more two axes do together than each does."""
        return not self.against


def combinations_of(axes: Mapping[str, Sequence[str]], design: str) -> list[dict[str, str]]:
    """The combinations of a design, the first values of all axes among them or nearest to the front.

    Args:
        axes: Name -> at least two values, of which the first is the usual.
        design: One of `DESIGNS`.

    Raises:
        ValueError: A fractional design of fewer than three axes, or of axes that do not have two values each.
    """
    base = {name: values[0] for name, values in axes.items()}
    match design:
        case "one-at-a-time":
            changed = [{**base, name: value} for name, values in axes.items() for value in values[1:]]
            return [base, *changed]
        case "full":
            return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
        case "fractional":
            if len(axes) < 3 or any(len(values) != 2 for values in axes.values()):
                raise ValueError("a fractional design needs three axes or more, of two values each")
            signs = _fraction(len(axes))
            # The half with the usual values in it: mirrored, a fraction estimates the same, up to signs of aliases.
            signs = signs * signs[0] * -1
            return [{name: axes[name][int(sign > 0)] for name, sign in zip(axes, row, strict=True)} for row in signs]
    raise ValueError(f"no design {design!r}")


def terms_of(axes: Mapping[str, Sequence[str]], design: str) -> list[Term]:
    """Every main effect and interaction that the design estimates; one for all that are aliased."""
    tried = combinations_of(axes, design)
    found = [*_main_effects(axes, tried, design)]
    if design != "one-at-a-time":
        found += _interactions(axes, tried)
    return _without_aliases(found)


def _fraction(count: int) -> NDArray[np.float64]:
    from pydoe import fracfact, fracfact_by_res  # local import: takes a second, few need it

    letters = "abcdefghijklmnopqrstuvwxyz"[: count - 1]
    if count <= _LARGEST_HALF:
        return np.asarray(fracfact(f"{' '.join(letters)} {letters}"), np.float64)
    return np.asarray(fracfact_by_res(count, 4), np.float64)


def _main_effects(axes: Mapping[str, Sequence[str]], tried: Sequence[Combination], design: str) -> list[Term]:
    found = []
    for name, (first, *others) in axes.items():
        for value in others:
            weights = _mean(tried, {name: value}) - _mean(tried, tried[0])
            if design != "one-at-a-time":
                weights = _mean(tried, {name: value}) - _mean(tried, {name: first})
            found.append(Term(name=f"{name}={value}", against=f"{name}={first}", weights=tuple(weights)))
    return found


def _interactions(axes: Mapping[str, Sequence[str]], tried: Sequence[Combination]) -> list[Term]:
    """How many times the effect of one axis is, where the other has its other value, what it is at its first."""
    found = []
    for one, other in combinations(axes, 2):
        for high, wide in product(axes[one][1:], axes[other][1:]):
            low, narrow = axes[one][0], axes[other][0]
            cells = [(high, wide, 1), (low, wide, -1), (high, narrow, -1), (low, narrow, 1)]
            weights = sum(sign * _mean(tried, {one: first, other: second}) for first, second, sign in cells)
            found.append(Term(name=f"{one}={high} x {other}={wide}", against="", weights=tuple(np.atleast_1d(weights))))
    return found


def _mean(tried: Sequence[Combination], wanted: Combination) -> NDArray[np.float64]:
    """The weights of the mean over the combinations that have these values."""
    has = np.array([all(c[name] == value for name, value in wanted.items()) for c in tried], np.float64)
    return has / has.sum()


def _without_aliases(terms: Sequence[Term]) -> list[Term]:
    """An interaction that is aliased with a term before it is an alias of that."""
    found: list[Term] = []
    for term in terms:
        for place, kept in enumerate(found):
            if power := _power(kept, term):
                found[place] = replace(kept, aliases=(*kept.aliases, (term.name, power)))
                break
        else:
            found.append(term)
    return found


def _power(one: Term, other: Term) -> float:
    """How many times the weights of one term those of the other are, negative where its ratio is then the inverse of a
    power; 0 where they are no multiples."""
    first, second = np.array(one.weights), np.array(other.weights)
    factor = float(first @ second / (first @ first))
    return round(factor, 9) if np.allclose(factor * first, second) else 0.0
