"""Random draws that are a function of their place: `word = f(seed, stream, counter)`.

A sequential generator ties a row's value to the rows before it, so the data would depend on how the rows are split
among executors. Here the counter is the row id (or ticket, or dimension key) and each column has a stream of its own,
so any row can be made anywhere, alone. The mixing function is SplitMix64's (Steele, Lea, Flood: "Fast splittable
pseudorandom number generators", OOPSLA 2014), which is ten vectorised integer operations a word.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_FIRST_MULTIPLIER = 0xBF58476D1CE4E5B9
_SECOND_MULTIPLIER = 0x94D049BB133111EB
# FNV-1a, to turn a stream's name into a number that no interpreter option changes (Python's own hash() is salted).
_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3


def _mix(word: int) -> int:
    """SplitMix64's finalizer on one Python integer."""
    word = ((word ^ (word >> 30)) * _FIRST_MULTIPLIER) & _MASK
    word = ((word ^ (word >> 27)) * _SECOND_MULTIPLIER) & _MASK
    return word ^ (word >> 31)


@functools.cache
def _stream_key(seed: int, stream: str) -> int:
    name = _FNV_OFFSET
    for byte in stream.encode():
        name = ((name ^ byte) * _FNV_PRIME) & _MASK
    return _mix((_mix(((seed & _MASK) + _GAMMA) & _MASK) ^ name) & _MASK)


def words(seed: int, stream: str, counters: NDArray[np.integer]) -> Words:
    """One 64-bit word for each counter.

    Args:
        seed: Any integer; taken modulo 2**64.
        stream: Name of the quantity drawn, for example ``"store_sales.quantity"``. Streams are independent.
        counters: Row ids, ticket numbers or keys, not negative; any integer type, any order, repeats allowed.

    Returns:
        A new array of the counters' shape, uniform over all 64 bits.
    """
    word = counters.astype(np.uint64)
    word *= np.uint64(_GAMMA)
    word += np.uint64(_stream_key(seed, stream))
    shifted = word >> np.uint64(30)
    word ^= shifted
    word *= np.uint64(_FIRST_MULTIPLIER)
    np.right_shift(word, np.uint64(27), out=shifted)
    word ^= shifted
    word *= np.uint64(_SECOND_MULTIPLIER)
    np.right_shift(word, np.uint64(31), out=shifted)
    word ^= shifted
    return word


def below(word: Words, bound: int, *, shift: int = 32, bits: int = 32) -> Int32s:
    """Integers in [0, bound) made of `bits` bits of each word, taken above bit `shift`.

    A multiply and a shift, not a remainder: cheaper, and the bias is at most bound / 2**bits. Several draws may share
    a word as long as their bits do not overlap.

    Args:
        word: Uniform 64-bit words.
        bound: Exclusive upper limit, 1 to 2**31.
        shift: Lowest bit used.
        bits: How many bits are used; at most 32, so that the product stays in 64 bits.
    """
    piece = word >> np.uint64(shift)
    if shift + bits < 64:
        piece &= np.uint64((1 << bits) - 1)
    piece *= np.uint64(bound)
    piece >>= np.uint64(bits)
    return piece.astype(np.int32)


def below_wide(word: Words, bound: int) -> Words:
    """Integers in [0, bound), bound below 2**64, made of all bits of each word: the high half of word * bound."""
    low_half = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    word_high, word_low = word >> half, word & low_half
    bound_high, bound_low = np.uint64(bound >> 32), np.uint64(bound & 0xFFFFFFFF)
    # No partial product with the carry that joins it exceeds 64 bits.
    middle = word_high * bound_low + (word_low * bound_low >> half)
    carry = (word_low * bound_high + (middle & low_half)) >> half
    return word_high * bound_high + (middle >> half) + carry


def draw(seed: int, stream: str, counters: NDArray[np.integer], bound: int) -> Int32s:
    """Integers in [0, bound), one for each counter, from a stream of their own."""
    return below(words(seed, stream, counters), bound)


def shuffled(seed: int, stream: str, count: int) -> Int64s:
    """A random order of the numbers 0 to count - 1, the same on every machine."""
    return np.argsort(words(seed, stream, np.arange(count)), kind="stable")
