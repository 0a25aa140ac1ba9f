import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.workloads.draws import below, below_wide, draw, shuffled, words

MASK = (1 << 64) - 1


def splitmix_reference(state: int) -> int:
    """SplitMix64's output for a state, as its authors publish it, on Python integers."""
    z = state & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def stream_key_reference(seed: int, stream: str) -> int:
    name = 0xCBF29CE484222325
    for byte in stream.encode():
        name = ((name ^ byte) * 0x100000001B3) & MASK
    return splitmix_reference(splitmix_reference((seed & MASK) + 0x9E3779B97F4A7C15) ^ name)


@given(
    seed=st.integers(-(2**70), 2**70),
    stream=st.text(max_size=20),
    counters=st.lists(st.integers(0, 2**62), min_size=1, max_size=20),
)
def test_words_equal_the_reference(seed: int, stream: str, counters: list[int]) -> None:
    key = stream_key_reference(seed, stream)
    expected = [splitmix_reference((counter * 0x9E3779B97F4A7C15 + key) & MASK) for counter in counters]
    assert words(seed, stream, np.array(counters)).tolist() == expected


def test_splitmix_reference_gives_the_published_sequence() -> None:
    # The first outputs of SplitMix64 seeded with 1234567, from the test vector of its reference implementation.
    states = [1234567 + 0x9E3779B97F4A7C15 * step for step in range(1, 4)]
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [splitmix_reference(state) for state in states] == published


@pytest.mark.parametrize(("shift", "bits"), [(32, 32), (0, 32), (43, 21), (22, 21), (1, 21)])
@pytest.mark.parametrize("bound", [1, 2, 10, 101])
def test_draws_are_uniform(shift: int, bits: int, bound: int) -> None:
    count = 100_000
    values = below(words(7, "uniform", np.arange(count)), bound, shift=shift, bits=bits)
    seen = np.bincount(values, minlength=bound)
    assert len(seen) == bound
    chi_square = ((seen - count / bound) ** 2 / (count / bound)).sum()
    # Mean bound - 1, deviation sqrt(2 (bound - 1)): five deviations.
    assert chi_square <= bound - 1 + 5 * np.sqrt(2 * (bound - 1))


@given(bound=st.integers(1, 2**31), word=st.integers(0, MASK))
def test_below_is_a_multiply_and_shift(bound: int, word: int) -> None:
    value = below(np.array([word], np.uint64), bound).item()
    assert value == ((word >> 32) * bound) >> 32
    assert 0 <= value < bound


@given(bound=st.integers(1, 2**64 - 1), word=st.integers(0, MASK))
def test_below_wide_is_the_high_half_of_the_product(bound: int, word: int) -> None:
    assert below_wide(np.array([word], np.uint64), bound).item() == (word * bound) >> 64


def test_streams_and_seeds_are_independent() -> None:
    counters = np.arange(50_000)
    columns = np.stack([draw(seed, name, counters, 1000) for seed in (1, 2) for name in ("a", "b")]).astype(float)
    correlation = np.corrcoef(columns) - np.eye(4)
    assert np.abs(correlation).max() < 5 / np.sqrt(len(counters))


def test_bits_of_one_word_are_independent() -> None:
    word = words(1, "shared", np.arange(50_000))
    pieces = np.stack([below(word, 100, shift=shift, bits=21) for shift in (43, 22, 1)]).astype(float)
    assert np.abs(np.corrcoef(pieces) - np.eye(3)).max() < 5 / np.sqrt(50_000)


@given(seed=st.integers(0, 2**64), count=st.integers(0, 300))
def test_shuffled_is_an_order(seed: int, count: int) -> None:
    assert sorted(shuffled(seed, "order", count).tolist()) == list(range(count))


def test_words_leave_the_counters_alone() -> None:
    counters = np.arange(10, dtype=np.uint64)
    words(1, "x", counters)
    assert counters.tolist() == list(range(10))
