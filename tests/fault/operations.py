"""The changes that a writer makes one after the other, known from a seed and a number, and what they mean for rows."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias

import pyarrow as pa

import icebench
from icebench.engine.operations.row_changes import Mode

Rows: TypeAlias = dict[int, int]
"""A table's rows by id: ids are never given twice."""

ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("part", pa.int32()), pa.field("n", pa.int64())])
SPEC = [("part", "identity")]
ROWS_EACH = 20
_SPACING = 100


@dataclass(frozen=True)
class Operation:
    """Number `number` of a seed's changes: rows of ids from `first` to before `end`."""

    number: int
    kind: Literal["append", "delete", "update", "upsert", "compact", "expire"]
    mode: Mode
    first: int
    end: int

    def make(self, table: icebench.Table) -> None:
        """Commit it; one commit, or none where nothing matches."""
        where = f"id >= {self.first} and id < {self.end}"
        match self.kind:
            case "append":
                table.append(self.rows)
            case "delete":
                table.delete(where, self.mode)
            case "update":
                table.update(where, {"n": self.number}, self.mode)
            case "upsert":
                table.upsert(self.rows, ["id"], self.mode)
            case "compact":
                table.maintenance.rewrite_data_files(rewrite_all=True)
            case "expire":
                table.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z", retain_last=2)

    @property
    def rows(self) -> pa.Table:
        """What it brings."""
        ids = range(self.first, self.end)
        return pa.table({"id": ids, "part": [i % 3 for i in ids], "n": [self.number] * len(ids)}, schema=ROWS)

    def meant(self, rows: Rows) -> Rows:
        """The rows after it."""
        ids = range(self.first, self.end)
        match self.kind:
            case "delete":
                return {i: n for i, n in rows.items() if i not in ids}
            case "update":
                return {i: self.number if i in ids else n for i, n in rows.items()}
            case "append" | "upsert":
                return {**rows, **dict.fromkeys(ids, self.number)}
            case "compact" | "expire":
                return rows


def operation(seed: int, number: int) -> Operation:
    """Number `number` of the changes of a seed. Half bring new rows; most others change those of the last ten."""
    random = Random(f"{seed}-{number}")
    kind = random.choice([*["append"] * 6, *["delete", "update", "upsert"] * 2, "compact", "expire"])
    mode: Mode = random.choice(["merge-on-read", "copy-on-write"])
    if kind == "append":
        return Operation(number, "append", mode, number * _SPACING, number * _SPACING + ROWS_EACH)
    earlier = max(0, number - random.randrange(1, 11))
    first = earlier * _SPACING + random.randrange(ROWS_EACH)
    # An upsert may reach beyond what was appended: it brings new rows, too.
    return Operation(number, kind, mode, first, first + random.randrange(1, ROWS_EACH))  # type: ignore[arg-type]


def marker(number: int) -> Operation:
    """An append of one row that no operation of any seed touches."""
    return Operation(number, "append", "merge-on-read", -number - 1, -number)


def rows_of(table: icebench.Table) -> list[tuple[int, int]]:
    """What the table holds, as ids with values, ordered; an id that is there twice is there twice."""
    read = table.scan(columns=["id", "n"]).to_arrow()
    return sorted(zip(read["id"].to_pylist(), read["n"].to_pylist(), strict=True))
