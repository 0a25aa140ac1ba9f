"""Rows deleted by position, told without a join.

The bits of all files are one array of longs, a value that is sent along with the code of the scan: a scalar subquery
over a table of one row, which is in the plan. A row knows its file by the file's size, a long that Spark's reader has
for each row at no cost: where no two files of a group have the same, some bits of it are the file's slot in a second
array, which has the size again, where the file's bits begin, and how many rows it has. A row that finds another size,
or is behind the last row, is of a file that we failed to recognize, and stops the query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from engine.spark.places import PREFIX, ROW, PlacedFile

WORDS, SLOTS = (f"{PREFIX}{name}" for name in ("bits", "slots"))
_SIZE = "_metadata.file_size"
_WORD_SHIFT = 6
_MOST_WORDS = 1 << 20
"""8 MB, of 67 million rows: every task gets a copy. The table of a join is sent to each executor once."""
_MOST_SLOT_BITS = 12
"""A table of 4,096 slots stays in a processor's first caches."""
_MOST_FILES = 256
"""Chance finds room in it for about a hundred; for more than this it is not worth looking."""
_SIZE_BITS = 40


@dataclass(frozen=True)
class Slots:
    """Where files of different sizes find what is known of them: ``(size >> shift) & (count - 1)``."""

    shift: int
    count: int

    def of(self, size: int) -> int:
        """The slot of a file."""
        return (size >> self.shift) & (self.count - 1)


def slots_of(sizes: Sequence[int]) -> Slots | None:
    """The smallest table in which no two sizes share a slot; None where there is none that is small."""
    if len(sizes) > _MOST_FILES or len(set(sizes)) < len(sizes):
        return None
    for bits in range(max(len(sizes) - 1, 0).bit_length(), _MOST_SLOT_BITS + 1):
        for shift in range(_SIZE_BITS):
            slots = Slots(shift, 1 << bits)
            if len({slots.of(size) for size in sizes}) == len(sizes):
                return slots
    return None


@dataclass(frozen=True)
class DeletedBits:
    """The deleted positions of data files whose rows are one DataFrame; made by `bits_of`.

    Args:
        files: All of its data files.
        sizes: Of these files, no two the same.
        slots: Where they find their own.
    """

    files: Sequence[PlacedFile]
    sizes: Sequence[int]
    slots: Slots

    def is_live(self) -> str:
        """The text of what tells whether a row is not deleted, beside the columns `WORDS` and `SLOTS` of `table`."""
        count = self.slots.count
        slot = f"cast(shiftright({_SIZE}, {self.slots.shift}) & {count - 1} as int)"
        word = f"get({WORDS}, cast(get({SLOTS}, {slot} + {count}) + shiftright({ROW}, {_WORD_SHIFT}) as int))"
        return f"""
            case when get({SLOTS}, {slot}) = {_SIZE} and {ROW} < get({SLOTS}, {slot} + {2 * count})
                 then (shiftright({word}, cast({ROW} & 63 as int)) & 1) = 0
                 else raise_error('rows of a file that the plan does not have: bytes ' || cast({_SIZE} as string))
            end"""

    def table(self, spark: SparkSession) -> DataFrame:
        """One row with the arrays `WORDS` and `SLOTS`.

        Args:
            spark: The session to make the table in.
        """
        arrays = {WORDS: np.concatenate([self.words_of(file) for file in self.files]), SLOTS: self.known()}
        columns = {
            n: pa.ListArray.from_arrays(pa.array([0, len(a)], pa.int32()), pa.array(a)) for n, a in arrays.items()
        }
        longs = st.ArrayType(st.LongType(), containsNull=False)
        schema = st.StructType([st.StructField(name, longs, nullable=False) for name in arrays])
        return spark.createDataFrame(pa.table(columns), schema=schema)

    @staticmethod
    def words_of(file: PlacedFile) -> npt.NDArray[np.int64]:
        """A bit for each row of a file, set where it is deleted."""
        bits = np.zeros(_word_count(file.file.record_count) << _WORD_SHIFT, np.bool_)
        positions = file.deletes.positions
        if positions is not None:
            bits[positions[positions < len(bits)]] = True
        return np.packbits(bits, bitorder="little").view("<i8")

    def known(self) -> npt.NDArray[np.int64]:
        """The sizes of the files slot by slot, then where their words begin, then their rows."""
        found = np.full((3, self.slots.count), -1, np.int64)
        start = 0
        for file, size in zip(self.files, self.sizes, strict=True):
            rows = file.file.record_count
            found[:, self.slots.of(size)] = size, start, rows
            start += _word_count(rows)
        return found.ravel()


def bits_of(files: Sequence[PlacedFile], listed: Callable[[], Mapping[tuple[str, int], int]]) -> DeletedBits | None:
    """The bits of a group of files.

    Args:
        files: All of its data files.
        listed: How many files there are of a name and a size, as Spark sees them; asked for where that decides.

    Returns:
        None where sizes do not tell files apart, where Spark sees others, and for many: the join of
        `engine.spark.places` does it then.
    """
    sizes = [file.file.file_size_in_bytes for file in files]
    known = [size for size in sizes if size is not None]
    if len(known) < len(files) or sum(_word_count(file.file.record_count) for file in files) > _MOST_WORDS:
        return None
    slots = slots_of(known)
    if slots is None:
        return None
    planned = Counter((file.file.file_path.rpartition("/")[2], size) for file, size in zip(files, known, strict=True))
    return DeletedBits(files, known, slots) if planned == listed() else None


def _word_count(rows: int) -> int:
    return -(-rows // 64)
