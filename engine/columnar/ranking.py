"""Ranks of byte strings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def rank_bytes(values: pa.Array) -> NDArray[np.int64]:
    """Dense ranks from 0 of byte strings, compared as unsigned bytes: equal for equal values. There are no nulls."""
    ranks: NDArray[np.uint64] = pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy()
    return ranks.astype(np.int64) - 1
