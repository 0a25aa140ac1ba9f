import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.workloads.tickets import LARGEST_TICKET, SMALLEST_TICKET, TicketLayout


def sizes_of(layout: TicketLayout) -> np.ndarray:
    lines = layout.lines(0, layout.rows)
    return np.bincount(lines.tickets[lines.place])


@given(seed=st.integers(0, 2**64), rows=st.integers(8, 2_000))
def test_every_ticket_has_8_to_16_lines(seed: int, rows: int) -> None:
    layout = TicketLayout(seed, rows)
    sizes = sizes_of(layout)
    assert sizes.min() >= SMALLEST_TICKET
    assert sizes.max() <= LARGEST_TICKET
    assert sizes.sum() == rows
    assert len(sizes) == layout.count


@pytest.mark.parametrize("rows", range(8))
def test_too_few_rows_make_one_small_ticket(rows: int) -> None:
    layout = TicketLayout(1, rows)
    assert layout.count == min(rows, 1)
    assert layout.lines(0, rows).line.tolist() == list(range(rows))


@given(rows=st.integers(0, 1_500), cuts=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_a_range_is_found_without_what_comes_before(rows: int, cuts: tuple[float, float]) -> None:
    layout = TicketLayout(3, rows)
    start, stop = sorted(int(cut * rows) for cut in cuts)
    whole, part = layout.lines(0, rows), layout.lines(start, stop)
    assert part.tickets[part.place].tolist() == whole.tickets[whole.place][start:stop].tolist()
    assert part.line.tolist() == whole.line[start:stop].tolist()
    # Only tickets of the range, all of them used.
    assert sorted(set(part.place.tolist())) == list(range(len(part.tickets)))


def test_lines_of_a_ticket_are_numbered_in_order() -> None:
    lines = TicketLayout(5, 1_000).lines(0, 1_000)
    ticket = lines.tickets[lines.place]
    assert (np.diff(ticket) >= 0).all()
    for number in np.unique(ticket):
        assert lines.line[ticket == number].tolist() == list(range((ticket == number).sum()))


def test_all_sizes_are_equally_frequent() -> None:
    counts = np.bincount(sizes_of(TicketLayout(5, 108 * 1_000)))
    assert counts[SMALLEST_TICKET:].tolist() == [1_000] * 9


def test_sizes_come_in_random_order() -> None:
    sizes = sizes_of(TicketLayout(5, 108 * 1_000)).astype(float)
    # Inside a block sizes exclude each other, a correlation of -1/8 by construction; across blocks there is none.
    assert abs(np.corrcoef(sizes[:-9], sizes[9:])[0, 1]) < 0.05
    assert sizes_of(TicketLayout(6, 108 * 1_000)).tolist() != sizes.tolist()


def test_far_rows_cost_no_more_than_near_ones() -> None:
    rows = 287_997_818_084
    lines = TicketLayout(1, rows).lines(rows - 300, rows)
    assert lines.tickets[-1] + 1 == TicketLayout(1, rows).count
    assert abs(TicketLayout(1, rows).count - rows / 12) < 10
