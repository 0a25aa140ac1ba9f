"""Rows for the reading experiments, as Arrow tables and as the Parquet files that several writers make of them.

Everything is drawn from a seed, so that the same definition gives the same files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Storage = Literal["INT32", "INT64", "FIXED"]

DELETE_KINDS = ("vectors", "positions", "equality")
DELETE_TITLES = {"vectors": "deletion vectors", "positions": "position deletes", "equality": "equality deletes"}
PATTERNS = ("random", "clustered")
CELL_COLUMNS = 4
INTEGER_COLUMNS = 12
DELETE_COLUMNS = 6
KEYS = KEY, PLACE = "key", "place"
"""Columns that together, and the first alone, identify rows."""

_SCALE = 2
_DISTINCT = 1_000
_HIGH_WORD = {20: 5, 38: 5 * 10**18}
"""For decimals of two words: the greatest high word with which every low word is within the precision."""
_ROW_GROUP_ROWS = 250_000


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A cell of the decimal matrix: columns decimal(precision, 2), how they are stored, and how many are null."""

    precision: int
    storage: Storage
    dictionary: bool
    nulls: float

    @property
    def name(self) -> str:
        """Such as ``decimal(7,2) INT32, dictionary, 5% null``."""
        kind = "dictionary" if self.dictionary else "plain"
        return f"decimal({self.precision},{_SCALE}) {self.storage}, {kind}, {self.nulls:.0%} null"


@dataclass(frozen=True, kw_only=True)
class DeleteRows:
    """The table of the delete matrix: rows, spread over files of some row groups each."""

    rows: int
    files: int
    row_groups: int
    seed: int

    @property
    def rows_in_file(self) -> int:
        """Of each file."""
        return self.rows // self.files


def cells_of(precisions: Sequence[int], nulls: Sequence[float]) -> tuple[Cell, ...]:
    """The matrix: each precision in each storage that writers use for it, with and without dictionary, and nulls."""
    found = []
    for precision in precisions:
        integer: list[Storage] = ["INT32"] if precision <= 9 else ["INT64"] if precision <= 18 else []
        for storage in (*integer, "FIXED"):
            for dictionary in (True, False):
                found += [
                    Cell(precision=precision, storage=storage, dictionary=dictionary, nulls=share) for share in nulls
                ]
    return tuple(found)


def cell_table(cell: Cell, rows: int, seed: int) -> pa.Table:
    """The rows of a cell; dictionary cells have a thousand distinct values, the others draw from the whole range."""
    columns = {}
    for number in range(CELL_COLUMNS):
        random = np.random.default_rng((seed, cell.precision, number))
        distinct = _DISTINCT if cell.dictionary else rows
        values = _decimals(random, cell.precision, distinct)
        if cell.dictionary:
            values = values.take(pa.array(random.integers(0, distinct, rows)))
        if cell.nulls:
            values = _with_nulls(values, random.random(rows) < cell.nulls)
        columns[f"d{number + 1}"] = values
    return pa.table(columns)


def write_cell(cell: Cell, table: pa.Table, path: Path) -> None:
    """The rows of a cell as a Parquet file with field ids 1, 2, ..."""
    pq.write_table(
        with_ids(table),
        path,
        compression="zstd",
        use_dictionary=cell.dictionary,
        store_decimal_as_integer=cell.storage != "FIXED",
        store_schema=False,
        row_group_size=_ROW_GROUP_ROWS,
    )


def integers_and_decimals(rows: int, seed: int) -> tuple[pa.Table, pa.Table]:
    """The same numbers as int64 columns and as decimal(7,2) columns: prices, of which every other column has few."""
    random = np.random.default_rng((seed, 64))
    integers, decimals = {}, {}
    for number in range(INTEGER_COLUMNS):
        values = random.integers(0, 2_000_000 if number % 2 else 20_000, rows)
        integers[f"c{number + 1}"] = pa.array(values)
        decimals[f"c{number + 1}"] = _wide(values, np.where(values < 0, -1, 0), 7)
    return pa.table(integers), pa.table(decimals)


def delete_table(made: DeleteRows, file: int) -> pa.Table:
    """The rows of one file: a unique key in random order, the row's place in its file, and prices."""
    random = np.random.default_rng((made.seed, 2, file))
    columns = {KEY: pa.array(_keys_by_file(made)[file]), PLACE: pa.array(np.arange(made.rows_in_file))}
    for number in range(DELETE_COLUMNS):
        values = random.integers(0, 2_000_000, made.rows_in_file)
        columns[f"d{number + 1}"] = _wide(values, np.zeros(made.rows_in_file, np.int64), 7)
    return pa.table(columns)


@lru_cache(maxsize=1)
def _keys_by_file(made: DeleteRows) -> npt.NDArray[np.int64]:
    """The keys of each file in the order of its rows; drawn once for all files."""
    keys = np.random.default_rng((made.seed, 1)).permutation(made.rows_in_file * made.files)
    return keys.astype(np.int64).reshape(made.files, made.rows_in_file)


def deleted_rows(made: DeleteRows, pattern: str, fraction: float) -> str:
    """The filter for the rows that a pattern deletes: keys all over the files, or the first rows of each file."""
    if pattern == "random":
        return f"{KEY} < {round(made.rows_in_file * made.files * fraction)}"
    return f"{PLACE} < {round(made.rows_in_file * fraction)}"


def deleted_keys(made: DeleteRows, pattern: str, fraction: float) -> npt.NDArray[np.int64]:
    """The keys of the same rows, in the order in which a stream may bring them."""
    total = made.rows_in_file * made.files
    if pattern == "random":
        keys = np.arange(round(total * fraction), dtype=np.int64)
    else:
        keys = _keys_by_file(made)[:, : round(made.rows_in_file * fraction)].ravel()
    return np.random.default_rng((made.seed, 3)).permutation(keys)


def places_of(made: DeleteRows, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The place of each key in its file."""
    all_keys = _keys_by_file(made).ravel()
    found = np.empty(len(all_keys), np.int64)
    found[all_keys] = np.arange(len(all_keys)) % made.rows_in_file
    return found[keys]


def with_ids(table: pa.Table) -> pa.Table:
    """The table with field ids 1, 2, ... in its order, as the first schema of a table gives them."""
    fields = [f.with_metadata({"PARQUET:field_id": str(i)}) for i, f in enumerate(table.schema, 1)]
    return table.cast(pa.schema(fields))


def _decimals(random: np.random.Generator, precision: int, count: int) -> pa.Array:
    if precision <= 18:
        low = random.integers(-(10**precision) + 1, 10**precision, count)
        return _wide(low, low >> 63, precision)
    most = _HIGH_WORD[precision]
    high = random.integers(-most, most, count)
    return _wide(random.integers(0, 2**64, count, dtype=np.uint64).view(np.int64), high, precision)


def _wide(low: npt.NDArray[np.int64], high: npt.NDArray[np.int64], precision: int) -> pa.Array:
    """decimal128 values of these words."""
    words = np.ascontiguousarray(np.column_stack([low, high]).astype(np.int64))
    return pa.Array.from_buffers(pa.decimal128(precision, _SCALE), len(low), [None, pa.py_buffer(words)])


def _with_nulls(values: pa.Array, is_null: npt.NDArray[np.bool_]) -> pa.Array:
    validity = pa.py_buffer(np.packbits(~is_null, bitorder="little"))
    return pa.Array.from_buffers(values.type, len(values), [validity, values.buffers()[1]])
