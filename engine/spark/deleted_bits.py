"""Row-level deletes by position as a bitmap that tasks receive as a constant, without a join.

The bitmaps of all files of a group are concatenated into one array of longs, passed to the scan as a scalar subquery. A
row finds the part of its own file by `_metadata.file_size`, which Spark's Parquet reader provides for every row at no
cost: where no two files of the group have the same size, some bits of the size are a perfect hash into a second array,
which holds the size itself, the offset of the file's bitmap, and its row count. A row whose size is not there, or whose
position is past the row count, belongs to a file that the plan does not have, and fails the query.
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

from icebench.engine.spark.file_chunks import PREFIX, ROW, LocatedFile

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
    """A perfect hash of file sizes: ``(size >> shift) & (count - 1)``."""

    shift: int
    count: int

    def of(self, size: int) -> int:
        """The slot of a file of `size` bytes."""
        return (size >> self.shift) & (self.count - 1)


def slots_of(sizes: Sequence[int]) -> Slots | None:
    """The smallest hash table in which no two sizes collide; None where there is no small one."""
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
    """Bitmaps of the deleted positions of the data files of one DataFrame; made by `bits_of`.

    Args:
        files: All data files of the DataFrame.
        sizes: The files' sizes in bytes, all different.
        slots: The hash of these sizes.
    """

    files: Sequence[LocatedFile]
    sizes: Sequence[int]
    slots: Slots

    def is_live(self) -> str:
        """SQL of the condition that a row is not deleted, over the columns `WORDS` and `SLOTS` of `table`."""
        count = self.slots.count
        slot = f"cast(shiftright({_SIZE}, {self.slots.shift}) & {count - 1} as int)"
        word = f"get({WORDS}, cast(get({SLOTS}, {slot} + {count}) + shiftright({ROW}, {_WORD_SHIFT}) as int))"
        return f"""
            case when get({SLOTS}, {slot}) = {_SIZE} and {ROW} < get({SLOTS}, {slot} + {2 * count})
                 then (shiftright({word}, cast({ROW} & 63 as int)) & 1) = 0
                 else raise_error('rows of a file that the plan does not have: bytes ' || cast({_SIZE} as string))
            end"""

    def table(self, spark: SparkSession) -> DataFrame:
        """A DataFrame of one row with the arrays `WORDS` and `SLOTS`.

        Args:
            spark: The session to create it in.
        """
        arrays = {WORDS: np.concatenate([self.words_of(file) for file in self.files]), SLOTS: self.known()}
        columns = {
            n: pa.ListArray.from_arrays(pa.array([0, len(a)], pa.int32()), pa.array(a)) for n, a in arrays.items()
        }
        longs = st.ArrayType(st.LongType(), containsNull=False)
        schema = st.StructType([st.StructField(name, longs, nullable=False) for name in arrays])
        return spark.createDataFrame(pa.table(columns), schema=schema)

    @staticmethod
    def words_of(file: LocatedFile) -> npt.NDArray[np.int64]:
        """The bitmap of a file: one bit for each row, set where the row is deleted."""
        bits = np.zeros(_word_count(file.file.record_count) << _WORD_SHIFT, np.bool_)
        positions = file.deletes.positions
        if positions is not None:
            bits[positions[positions < len(bits)]] = True
        return np.packbits(bits, bitorder="little").view("<i8")

    def known(self) -> npt.NDArray[np.int64]:
        """For every slot the file's size, then for every slot the offset of its first word, then its row count; -1
        where a slot is empty."""
        found = np.full((3, self.slots.count), -1, np.int64)
        start = 0
        for file, size in zip(self.files, self.sizes, strict=True):
            rows = file.file.record_count
            found[:, self.slots.of(size)] = size, start, rows
            start += _word_count(rows)
        return found.ravel()


def bits_of(files: Sequence[LocatedFile], listed: Callable[[], Mapping[tuple[str, int], int]]) -> DeletedBits | None:
    """The bitmaps of a group of files.

    Args:
        files: All data files of the group.
        listed: Gives the number of files by name and size in Spark's listing; called only where all other conditions
            hold.

    Returns:
        None where file sizes are not distinct, differ from Spark's listing, or the bitmaps would be too large; then the
            join of `icebench.engine.spark.file_chunks` is used.
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
