"""A random sample of rows, the same for the same rows and seed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import Int64Array
from icebench.engine.columnar.batch_columns import no_rows


def sample(batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int, seed: int) -> pa.Table:
    """That many of the rows, each set of them equally likely, in their order; all, if there are no more.

    Memory is that of the sample and of a batch: each row has a random number, and the least stay.
    """
    kept, keys, before = no_rows(schema), np.empty(0, np.uint64), 0
    for batch in batches:
        drawn = np.concatenate([keys, _keys(np.arange(before, before + len(batch)), seed)])
        before += len(batch)
        chosen = np.sort(np.argpartition(drawn, rows)[:rows]) if len(drawn) > rows else np.arange(len(drawn))
        kept = pa.concat_tables([kept, pa.Table.from_batches([batch], schema)]).take(pa.array(chosen))
        keys = drawn[chosen]
    return kept


def _keys(ordinals: Int64Array, seed: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """A random number for each ordinal (SplitMix64, whose steps are a permutation)."""
    with np.errstate(over="ignore"):
        mixed = (ordinals.astype(np.uint64) + np.uint64(seed & 0xFFFFFFFFFFFFFFFF)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
