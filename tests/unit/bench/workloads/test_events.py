from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.engines.checksum import checksum_of
from icebench.bench.workloads.events import DELETE, INSERT, START, UPDATE, Events
from icebench.bench.workloads.popularity import CIRCLE, zipf_arcs

EVENTS = Events(keys=10_000, batches=4, changes=20_000)
TOTAL = 10_000 + 4 * 20_000


@given(st.lists(st.integers(0, 500), max_size=4), st.integers(0, 2**64))
def test_any_division_gives_the_same_changes(cuts: list[int], seed: int) -> None:
    made = Events(keys=100, batches=4, changes=100, seed=seed)
    parts = [made.rows(start, stop) for start, stop in pairwise([0, *sorted(cuts), 500])]
    assert pa.Table.from_batches(parts).combine_chunks() == pa.Table.from_batches([made.rows(0, 500)]).combine_chunks()


def test_the_changes_stay_what_they_are() -> None:
    rows = EVENTS.rows(0, TOTAL)
    rows.validate(full=True)
    assert checksum_of([rows], EVENTS.schema.names).text == "7818491c7c64ed98eac0"


@pytest.mark.parametrize(("changes", "sizes"), [(20_000, (16_000, 2_000, 2_000)), (7, (6, 0, 1)), (1, (1, 0, 0))])
def test_kinds_divide_a_batch(changes: int, sizes: tuple[int, ...]) -> None:
    events = Events(keys=50, batches=3, changes=changes)
    assert events.kinds(0) == {INSERT: (0, 50)}
    seen = 50
    for batch in (1, 2, 3):
        kinds = events.kinds(batch)
        assert list(kinds) == [UPDATE, DELETE, INSERT]
        assert tuple(stop - start for start, stop in kinds.values()) == sizes
        for start, stop in kinds.values():
            assert start == seen
            seen = stop
        assert events.span(batch) == (kinds[UPDATE][0], seen)


def test_inserts_have_new_keys_and_the_others_known_ones() -> None:
    for batch in range(5):
        for kind, (start, stop) in EVENTS.kinds(batch).items():
            keys = EVENTS.rows(start, stop).column("key").to_numpy()
            if kind == INSERT:
                assert (keys == np.arange(start, stop)).all()
            else:
                assert keys.max() < EVENTS.keys
                assert keys.min() >= 0


def test_keys_change_by_zipfs_law() -> None:
    start, stop = EVENTS.kinds(1)[UPDATE]
    seen = sorted(Counter(EVENTS.rows(start, stop).column("key").to_pylist()).values(), reverse=True)
    expected = zipf_arcs(EVENTS.keys, EVENTS.skew)[:10] / CIRCLE * (stop - start)
    assert np.abs(np.array(seen[:10]) - expected).max() < 6 * np.sqrt(expected[0])


def test_updates_are_late_in_their_share_by_up_to_a_day() -> None:
    rows = EVENTS.rows(0, TOTAL)
    times = rows.column("happened_at").cast(pa.int64()).to_numpy()
    lag = np.arange(TOTAL) - (times - START) / 1e6
    assert lag.min() == 0
    assert 80_000 < lag.max() <= 86_400
    changed = np.concatenate(
        [np.arange(*EVENTS.kinds(batch)[kind]) for batch in range(1, 5) for kind in (UPDATE, DELETE)]
    )
    assert (lag[changed] > 0).mean() == pytest.approx(0.02, abs=0.002)
    assert not np.delete(lag, changed).any()


def test_the_filters_are_of_keys_that_change() -> None:
    start, stop = EVENTS.span(1)
    keys = Counter(EVENTS.rows(start, stop).column("key").to_pylist())
    hot, _ = keys.most_common(1)[0]
    assert EVENTS.filters == {
        "one_key": f"key = {hot}",
        "last_batch": "version >= 70000",
        "keys_1_percent": "key < 100",
    }


@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 2**64))
def test_what_is_left_is_what_applying_one_change_after_the_other_leaves(keys: int, changes: int, seed: int) -> None:
    events = Events(keys=keys, batches=3, changes=changes, seed=seed)
    left: dict[int, dict[str, object]] = {}
    for batch in range(4):
        for kind, (start, stop) in events.kinds(batch).items():
            for row in events.rows(start, stop).to_pylist():
                if kind == DELETE:
                    left.pop(row["key"], None)
                else:
                    left[row["key"]] = row
        assert events.live(batch).to_pylist() == [left[key] for key in sorted(left)]
