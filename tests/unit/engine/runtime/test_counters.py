from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from icebench.engine.runtime import counters
from icebench.engine.runtime.counters import Counters
from icebench.errors import Invalid


def test_counts_by_name_in_order() -> None:
    made = Counters()
    made.add("b")
    made.add("a", 5)
    made.add("b", 2)
    made.add("zero", 0)
    assert list(made.as_dict().items()) == [("a", 5), ("b", 3), ("zero", 0)]
    assert made["b"] == 3
    assert made["never"] == 0
    assert "never" not in made.as_dict()


def test_merging_adds() -> None:
    made = Counters({"a": 1})
    made.merge(Counters({"a": 2, "b": 3}))
    made.merge({"b": 4})
    assert made.as_dict() == {"a": 3, "b": 7}
    made.merge(made)
    assert made.as_dict() == {"a": 6, "b": 14}


def test_nothing_is_uncounted() -> None:
    made = Counters({"a": 1})
    with pytest.raises(Invalid, match="cannot go down"):
        made.add("a", -1)
    assert made.as_dict() == {"a": 1}


def test_threads_lose_nothing() -> None:
    made = Counters()

    def count(_: int) -> None:
        for _ in range(2_000):
            made.add("a")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(8)))
    assert made.as_dict() == {"a": 16_000}


def test_names_are_the_constants_in_lower_case() -> None:
    names = {name: value for name, value in vars(counters).items() if name.isupper()}
    assert len(names) >= 25
    assert {name.lower() for name in names} == set(names.values())
