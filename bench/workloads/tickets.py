"""Which ticket a row of store_sales belongs to, by arithmetic.

A ticket has 8 to 16 lines, each size equally likely (TPC-DS; mean 12). Drawing sizes one after another would make
finding the ticket of row n a prefix sum over all before it. Instead rows come in blocks of 108 = 8 + 9 + ... + 16: each
block holds nine tickets, one of each size, in an order that the block's number picks from a table of 512. So block,
ticket and line follow from the row id in constant time, sizes are exactly uniform, and any range of rows can be made
alone.

The row count is seldom a multiple of 108: what is left joins the last whole block and the two are divided anew into
tickets of about twelve lines, so that no ticket is cut short.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from icebench.bench.workloads.draws import Int64s, shuffled, words

SMALLEST_TICKET = 8
LARGEST_TICKET = 16
_SIZES = np.arange(SMALLEST_TICKET, LARGEST_TICKET + 1)
BLOCK_TICKETS = len(_SIZES)
BLOCK_ROWS = int(_SIZES.sum())
_MEAN_SIZE = BLOCK_ROWS // BLOCK_TICKETS
_PATTERNS = 512


class Lines(NamedTuple):
    """Where a range of rows stands among tickets.

    Attributes:
        tickets: Ticket ids, from 0, of all tickets that the range touches: consecutive numbers.
        place: For each row, the index of its ticket in `tickets`.
        line: For each row, its line inside the ticket, from 0.
    """

    tickets: Int64s
    place: Int64s
    line: NDArray[np.uint8]


def _expand(sizes: NDArray[np.integer]) -> tuple[Int64s, NDArray[np.uint8]]:
    """For tickets of these sizes in a row: each row's ticket and its line."""
    ticket = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    return ticket, (np.arange(len(ticket)) - starts[ticket]).astype(np.uint8)


@functools.cache
def _patterns() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Ticket inside the block and line inside the ticket, for each pattern (rows) and row of the block (columns)."""
    ticket = np.empty((_PATTERNS, BLOCK_ROWS), np.uint8)
    line = np.empty((_PATTERNS, BLOCK_ROWS), np.uint8)
    for pattern in range(_PATTERNS):
        ticket[pattern], line[pattern] = _expand(_SIZES[shuffled(pattern, "tickets.pattern", BLOCK_TICKETS)])
    return ticket, line


def _tail_sizes(rows: int) -> Int64s:
    """Divide rows into tickets of even size near the mean; fewer than eight rows make one small ticket."""
    if rows == 0:
        return np.zeros(0, np.int64)
    count = max(math.ceil(rows / LARGEST_TICKET), round(rows / _MEAN_SIZE))
    sizes = np.full(count, rows // count, np.int64)
    sizes[: rows % count] += 1
    return sizes


@dataclass(frozen=True)
class TicketLayout:
    """The tickets of a store_sales table.

    Args:
        seed: Decides the order of sizes inside blocks.
        rows: Rows of the whole table.
    """

    seed: int
    rows: int

    @property
    def _blocks(self) -> int:
        """Blocks of 108 rows before the tail."""
        whole, left = divmod(self.rows, BLOCK_ROWS)
        return whole if left == 0 else max(0, whole - 1)

    @property
    def count(self) -> int:
        """Tickets in the whole table."""
        tail = self.rows - self._blocks * BLOCK_ROWS
        return self._blocks * BLOCK_TICKETS + len(_tail_sizes(tail))

    def lines(self, start: int, stop: int) -> Lines:
        """Tickets and lines of rows `start` to `stop` (exclusive), 0 <= start <= stop <= rows."""
        body_rows = self._blocks * BLOCK_ROWS
        parts: list[tuple[Int64s, NDArray[np.uint8]]] = []
        if start < min(stop, body_rows):
            parts.append(self._body(start, min(stop, body_rows)))
        if stop > body_rows:
            ticket, line = _expand(_tail_sizes(self.rows - body_rows))
            piece = slice(max(start, body_rows) - body_rows, stop - body_rows)
            parts.append((ticket[piece] + self._blocks * BLOCK_TICKETS, line[piece]))
        if not parts:
            return Lines(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8))
        ticket = np.concatenate([part[0] for part in parts])
        line = np.concatenate([part[1] for part in parts])
        if len(ticket) == 0:
            return Lines(ticket, ticket, line)
        first = ticket[0]
        return Lines(np.arange(first, ticket[-1] + 1), ticket - first, line)

    def _body(self, start: int, stop: int) -> tuple[Int64s, NDArray[np.uint8]]:
        blocks = np.arange(start // BLOCK_ROWS, -(-stop // BLOCK_ROWS))
        pattern = words(self.seed, "tickets.order", blocks) & np.uint64(_PATTERNS - 1)
        ticket_in_block, line_in_ticket = _patterns()
        ticket = blocks[:, np.newaxis] * BLOCK_TICKETS + ticket_in_block[pattern]
        piece = slice(start - int(blocks[0]) * BLOCK_ROWS, stop - int(blocks[0]) * BLOCK_ROWS)
        return ticket.reshape(-1)[piece], line_in_ticket[pattern].reshape(-1)[piece]
