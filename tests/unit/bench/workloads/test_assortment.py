import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.workloads.assortment import assortment
from icebench.bench.workloads.draws import words
from icebench.bench.workloads.popularity import CIRCLE, zipf_arcs
from icebench.bench.workloads.revisions import key_count

SIXTEENTH = CIRCLE // 16


@given(seed=st.integers(0, 2**64), rows=st.integers(32, 400), skew=st.sampled_from([0.0, 0.5, 1.0, 3.0]))
def test_no_two_lines_of_a_ticket_sell_the_same_item(seed: int, rows: int, skew: float) -> None:
    tickets = 40
    starts = np.repeat(words(seed, "start", np.arange(tickets)), 16)
    line = np.tile(np.arange(16, dtype=np.uint8), tickets)
    era = np.repeat(words(seed, "era", np.arange(tickets)) % np.uint64(4), 16).astype(np.int32)
    picked = assortment(seed, rows, skew).pick(starts, line, era).reshape(tickets, 16)
    assert picked.min() >= 1
    assert picked.max() <= rows
    for ticket in picked:
        assert len(set(ticket.tolist())) == 16


@pytest.mark.parametrize("line", [0, 7, 15])
@pytest.mark.parametrize("skew", [0.0, 1.0])
def test_each_line_sells_each_item_by_its_share(skew: float, line: int) -> None:
    rows, count = 600, 400_000
    chosen = assortment(5, rows, skew)
    era = np.zeros(count, np.int32)
    picked = chosen.pick(words(1, "start", np.arange(count)), np.full(count, line, np.uint8), era)
    seen = np.sort(np.bincount(picked)[np.unique(picked)])[::-1]
    expected = zipf_arcs(key_count(rows), skew, SIXTEENTH) / CIRCLE * count
    assert len(seen) == key_count(rows)
    assert abs(seen[0] - expected[0]) < 6 * np.sqrt(expected[0])
    assert ((seen - expected) ** 2 / expected).sum() < key_count(rows) + 5 * np.sqrt(2 * key_count(rows))


def test_an_items_number_does_not_reveal_its_rank() -> None:
    chosen = assortment(5, 18_000, 1.0)
    assert chosen.ends is not None
    shares = np.diff(chosen.ends, prepend=0).astype(float)
    assert abs(np.corrcoef(shares, chosen.row_by_slot[0])[0, 1]) < 0.05
