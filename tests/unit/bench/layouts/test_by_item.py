from hypothesis import given
from hypothesis import strategies as st

from bench.layouts.by_item import range_starts


def test_equal_keys_make_equal_ranges() -> None:
    assert range_starts(dict.fromkeys(range(1, 13), 10), 4) == [1, 4, 7, 10]


def test_a_key_is_never_divided() -> None:
    assert range_starts({1: 1, 2: 100, 3: 1}, 4) == [1, 3]
    assert range_starts({5: 7}, 3) == [5]
    assert range_starts({}, 3) == []


@given(st.dictionaries(st.integers(-50, 50), st.integers(1, 1000), min_size=1), st.integers(1, 20))
def test_laws_of_ranges(counts: dict[int, int], ranges: int) -> None:
    starts = range_starts(counts, ranges)
    assert starts[0] == min(counts)
    assert starts == sorted(set(starts))
    assert set(starts) <= set(counts)
    assert len(starts) <= ranges
    sizes = [
        sum(rows for key, rows in counts.items() if start <= key < stop)
        for start, stop in zip(starts, [*starts[1:], max(counts) + 1], strict=True)
    ]
    assert sum(sizes) == sum(counts.values())
    # A range exceeds its share by less than the key that would not be divided.
    assert max(sizes) < sum(counts.values()) / ranges + 2 * max(counts.values())
