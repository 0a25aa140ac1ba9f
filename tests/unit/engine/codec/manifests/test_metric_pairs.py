"""Lists of keys and values as columns by key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import bytes_array, list_array, number_array
from icebench.engine.codec.manifests.metric_pairs import pairs_by_key

# Five lists: keys 1 and 2; no list; none; key 2 twice; key 1 without a value.
LISTS = list_array(np.array([0, 2, 2, 2, 4, 5]), pa.nulls(5), np.array([True, False, True, True, True]))
KEYS = number_array(np.array([1, 2, 2, 2, 1]))
VALID = np.array([True, True, True, True, False])
NUMBERS = number_array(np.array([10, 20, 21, 22, 0]), VALID)
STRINGS = bytes_array(np.array([0, 1, 3, 3, 5, 5]), np.frombuffer(b"abbcc", np.uint8), VALID)


def test_numbers_by_key():
    found = pairs_by_key(LISTS, KEYS, NUMBERS, wanted=None)
    assert {key: column.to_pylist() for key, column in found.items()} == {
        1: [10, None, None, None, None],
        2: [20, None, None, 22, None],
    }


def test_byte_strings_by_key():
    found = pairs_by_key(LISTS, KEYS, STRINGS, wanted=None)
    assert found[1].to_pylist() == [b"a", None, None, None, None]
    assert found[2].to_pylist() == [b"bb", None, None, b"cc", None]


def test_only_wanted_keys_that_occur():
    assert set(pairs_by_key(LISTS, KEYS, NUMBERS, wanted=[2, 3])) == {2}
    assert pairs_by_key(LISTS, number_array(np.zeros(0, np.int64)), number_array(np.zeros(0)), wanted=None) == {}
