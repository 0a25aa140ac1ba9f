"""Popularity by Zipf's law: few things come often, most seldom, and a thing's number does not reveal its rank."""

from __future__ import annotations

import functools

import numpy as np

from icebench.bench.workloads.draws import Int64s, Words, shuffled

CIRCLE = 1 << 32


def zipf_arcs(count: int, skew: float, longest: int = CIRCLE) -> Int64s:
    """Arc lengths by rank, adding up to 2**32: proportional to 1/rank**skew, none longer than `longest`.

    What is cut from the first ranks goes to the others in proportion.

    Args:
        count: How many things, at least 2**32 / `longest`.
        skew: Zipf exponent, 0 or more.
        longest: A power of two.
    """
    weight = np.arange(1, count + 1, dtype=np.float64) ** -skew
    cut = 0
    while cut < CIRCLE // longest:
        left = CIRCLE - cut * longest
        if weight[cut] / weight[cut:].sum() * left <= longest:
            break
        cut += 1
    arcs = np.full(count, longest, np.int64)
    rest = CIRCLE - cut * longest
    arcs[cut:] = np.floor(weight[cut:] / weight[cut:].sum() * rest)
    # Rounding down leaves less than one unit a thing, which goes to those that the limit leaves room for.
    missing = CIRCLE - int(arcs.sum())
    room = np.flatnonzero(arcs < longest)[:missing]
    arcs[room] += 1
    return arcs


@functools.lru_cache(maxsize=8)
def _ends(seed: int, stream: str, count: int, skew: float) -> Int64s:
    return np.cumsum(zipf_arcs(count, skew)[shuffled(seed, stream, count)])


def popular(word: Words, seed: int, stream: str, count: int, skew: float) -> Int64s:
    """One of `count` things for each word, from 0, each by its share of popularity; the high half of a word decides.

    Args:
        word: Uniform 64-bit words.
        seed: Together with `stream` decides which things are popular.
        stream: Name of the order of ranks.
        count: How many things; their sort is kept for the process.
        skew: Zipf exponent; 0 makes all equally likely.
    """
    place = (word >> np.uint64(32)).astype(np.int64)
    return np.searchsorted(_ends(seed, stream, count, skew), place, side="right")
