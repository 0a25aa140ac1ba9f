"""Which items a ticket holds: different ones, as (item, ticket) is store_sales' primary key.

Lay all items end to end on a circle, each with an arc as long as its share of sales. A ticket starts at a random
point, and its line j sells the item at j/16 of the circle further on. A line's item then has exactly its share, and as
long as no arc is longer than 1/16 of the circle, no two lines of a ticket meet the same item: nothing has to be
remembered or redrawn. This is systematic sampling (Madow 1949). Without skew all arcs are equal; with skew s the arcs
are proportional to 1/rank**s, cut at 1/16: an item that is on every ticket of sixteen lines can sell no more.

Items lie on the circle in random order, so neither what is bought together nor the item's number reveals its rank.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icebench.bench.workloads.draws import Int32s, Words, shuffled
from icebench.bench.workloads.popularity import CIRCLE, zipf_arcs
from icebench.bench.workloads.revisions import ERAS, key_count, row_valid_in
from icebench.bench.workloads.tickets import LARGEST_TICKET

_LONGEST_ARC = CIRCLE // LARGEST_TICKET
# A line's step around the circle, in words of 64 bits, whose overflow is the circle's closing.
_STEP = (1 << 64) // LARGEST_TICKET


@dataclass(frozen=True, eq=False)
class Assortment:
    """The items of a workload, ready to be picked from.

    Attributes:
        row_by_slot: The surrogate key valid in each era (rows) of the item in each slot of the circle (columns).
        ends: Where each slot's arc ends on a circle of 2**32; None when all arcs are equal.
    """

    row_by_slot: Int32s
    ends: NDArray[np.int64] | None

    def pick(self, starts: Words, line: NDArray[np.uint8], era: Int32s) -> Int32s:
        """Surrogate keys of items.

        Args:
            starts: For each row, its ticket's random point on the circle.
            line: For each row, its line inside the ticket, below 16.
            era: For each row, the stretch of time it was sold in, which decides the item's revision.
        """
        position = line.astype(np.uint64)
        position *= np.uint64(_STEP)
        position += starts
        position >>= np.uint64(32)
        slots = self.row_by_slot.shape[1]
        if self.ends is None:
            position *= np.uint64(slots)
            position >>= np.uint64(32)
            slot = position.astype(np.int64)
        else:
            slot = np.searchsorted(self.ends, position.astype(np.int64), side="right")
        slot += era * slots
        return self.row_by_slot.reshape(-1)[slot]


@functools.lru_cache(maxsize=4)
def assortment(seed: int, item_rows: int, skew: float) -> Assortment:
    """The assortment for an item table of `item_rows` rows; costs a sort of the items, then is kept for the process."""
    count = key_count(item_rows)
    order = shuffled(seed, "store_sales.assortment", count)
    row_by_slot = np.stack([row_valid_in(order, era, item_rows) for era in range(ERAS)])
    if skew == 0:
        return Assortment(row_by_slot, None)
    # Ranks have their own order: the item's number must not reveal how well it sells.
    rank_of_slot = shuffled(seed, "store_sales.rank", count)
    return Assortment(row_by_slot, np.cumsum(zipf_arcs(count, skew, _LONGEST_ARC)[rank_of_slot]))
