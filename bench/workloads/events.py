"""A stream of changes by key: inserts, updates and deletes in batches, popular keys by Zipf's law, late arrivals.

Change n is a function of its number. The first `keys` changes insert the keys 0, 1, ...; after them come batches of
`changes` each, in which updates come first, then deletes, then inserts, as a staging table is merged. Updates and
deletes take the popular among the first keys, in one batch often the same one; an update of a key that was deleted
brings it back. An insert has a new key: the change's number.

`happened_at` grows with the number, but for the late, `late` of the updates, which happened up to a day before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from icebench.bench.workloads.arrays import BatchBuilder, Bools, chosen
from icebench.bench.workloads.draws import Int64s, below, draw, words
from icebench.bench.workloads.popularity import popular

UPDATE, DELETE, INSERT = "update", "delete", "insert"
SHARES = {UPDATE: 0.8, DELETE: 0.1, INSERT: 0.1}
"""What a batch is of, in its order."""

START = 1_735_689_600_000_000
"""2025-01-01, in microseconds since 1970."""

_SECOND = 1_000_000
_DAY_SECONDS = 86_400
_MILLION = 1_000_000
_KINDS = ("opened", "paid", "packed", "shipped", "delivered", "returned")
_WORDS = tuple(f"w{number:03d} " for number in range(1_000))


@dataclass(frozen=True, kw_only=True)
class Events:
    """A stream of `batches` batches after its first keys, decided by these values alone."""

    keys: int
    batches: int
    changes: int
    skew: float = 1.0
    late: float = 0.02
    seed: int = 42

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table that the changes make; the key is `key`."""
        return pa.schema(
            [
                pa.field("key", pa.int64(), nullable=False),
                pa.field("version", pa.int64(), nullable=False),
                pa.field("happened_at", pa.timestamp("us"), nullable=False),
                pa.field("kind", pa.string(), nullable=False),
                pa.field("amount", pa.decimal128(12, 2), nullable=False),
                pa.field("note", pa.string(), nullable=False),
            ]
        )

    @property
    def filters(self) -> Mapping[str, str]:
        """One key that changes often, the changes of the last batches, and a hundredth of the keys."""
        hot = np.bincount(self.rows(self.keys, self.keys + self.changes).column("key"), minlength=1).argmax()
        version = self.keys + self.changes * (self.batches - 1)
        return {
            "one_key": f"key = {hot}",
            "last_batch": f"version >= {version}",
            "keys_1_percent": f"key < {max(1, self.keys // 100)}",
        }

    def span(self, batch: int) -> tuple[int, int]:
        """The numbers of the changes of a batch, from 1: first, and first of the next; batch 0 is the first keys."""
        first = self.keys + (batch - 1) * self.changes
        return (first, first + self.changes) if batch else (0, self.keys)

    def kinds(self, batch: int) -> Mapping[str, tuple[int, int]]:
        """The numbers of the changes of a batch by kind, in the order in which they apply."""
        start, stop = self.span(batch)
        if not batch:
            return {INSERT: (start, stop)}
        updates, deletes = (start + round(self.changes * part) for part in (SHARES[UPDATE], 1 - SHARES[INSERT]))
        return {UPDATE: (start, updates), DELETE: (updates, deletes), INSERT: (deletes, stop)}

    def is_delete(self, numbers: Int64s) -> Bools:
        """Which of these changes are deletes."""
        place = (numbers - self.keys) % self.changes
        updates, inserts = (round(self.changes * part) for part in (SHARES[UPDATE], 1 - SHARES[INSERT]))
        return (numbers >= self.keys) & (place >= updates) & (place < inserts)

    def last(self, start: int, stop: int) -> pa.RecordBatch:
        """Of these changes the last one of each key, in the order of keys."""
        rows = self.rows(start, stop)
        _, from_end = np.unique(rows.column("key").to_numpy()[::-1], return_index=True)
        return rows.take(pa.array(len(rows) - 1 - from_end))

    @property
    def first_rows(self) -> int:
        """How many rows there are before the first batch."""
        return self.keys

    def live(self, batch: int) -> pa.Table:
        """The rows that are left after a batch: of each key the last change, unless it is a delete."""
        last = self.last(0, self.span(batch)[1])
        return pa.Table.from_batches([last.filter(pa.array(~self.is_delete(last.column("version").to_numpy())))])

    def key(self) -> dict[str, Any]:
        """JSON values that decide the changes."""
        return {"workload": type(self).__name__, **asdict(self)}

    def rows(self, start: int, stop: int) -> pa.RecordBatch:
        """What changes `start` to `stop`, exclusive, write: the rows of inserts and updates; of a delete, the key
        counts. The batches of any division of a range, put together, equal the range's own batch."""
        numbers = np.arange(start, stop, dtype=np.int64)
        builder = BatchBuilder(self.schema, stop - start)
        word = words(self.seed, "events.key", numbers)
        known = popular(word, self.seed, "events.rank", self.keys, self.skew)
        place = (numbers - self.keys) % self.changes
        is_insert = (numbers < self.keys) | (place >= round(self.changes * (1 - SHARES[INSERT])))
        builder.integers("key", np.where(is_insert, numbers, known))
        builder.integers("version", numbers)
        is_late = ~is_insert & (draw(self.seed, "events.late", numbers, _MILLION) < round(self.late * _MILLION))
        delay = is_late * (1 + below(word, _DAY_SECONDS, shift=0)).astype(np.int64)
        builder.integers("happened_at", START + (numbers - delay) * _SECOND)
        builder.strings("kind", chosen(_KINDS, draw(self.seed, "events.kind", numbers, len(_KINDS))))
        builder.decimals("amount", draw(self.seed, "events.amount", numbers, 10_000_000))
        builder.strings("note", chosen(_WORDS, draw(self.seed, "events.note", numbers, len(_WORDS))))
        return builder.finish()
