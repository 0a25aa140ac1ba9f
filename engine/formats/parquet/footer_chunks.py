"""Column chunks of a Parquet footer: offsets, storage and statistics.

pyarrow's objects of column chunks end the process for some damaged footers (statistics that are too short, size
statistics that do not fit the column, marks of encryption). So they are decoded here, by compiled code if it is loaded,
else in plain Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from icebench.engine.formats.parquet import layout, thrift
from icebench.engine.formats.parquet.chunk_storage import ChunkStorage, chunk_storages
from icebench.engine.formats.parquet.machine_kernels import LIST_CHUNKS

_TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_TYPE_ORDER = 1
_IN_TYPE_ORDER = b"\x1c\x00\x00"
"""A ColumnOrder that is an empty TypeDefinedOrder."""
_OLD_MAX, _OLD_MIN, _NULL_COUNT, _MAX, _MIN = 1, 2, 3, 5, 6


@dataclass(frozen=True, slots=True)
class ChunkStatistics:
    """The statistics of a column chunk; None for unknown values.

    Args:
        values: In the chunk, with nulls.
        nulls: Of these.
        lower: No value is lower, in the order of the column's logical type; in plain encoding.
        upper: No value is higher.
        is_signed: The bounds are of the older kind (`min`, `max`), which writers computed in the order of signed
            numbers for any type: correct for signed numbers only.
    """

    values: int
    nulls: int | None
    lower: bytes | None
    upper: bytes | None
    is_signed: bool


class FooterChunks:
    """The column chunks of a footer, listed at the first use.

    Args:
        footer: A FileMetaData of the Parquet format, without length and magic; None if it could not be found.
        row_groups: The number of row groups.
        leaves: The number of columns of each.
    """

    def __init__(self, footer: bytes | None, row_groups: int, leaves: int) -> None:
        self._footer = footer or b""
        self._row_groups = row_groups
        self._leaves = leaves

    @property
    def is_known(self) -> bool:
        """Whether each row group has a column chunk for each leaf, and all can be listed."""
        return self._table is not None

    def storages(self) -> list[ChunkStorage]:
        """How the chunks are stored, in order; raises IndexError or ValueError for a damaged footer."""
        found = chunk_storages(self._footer) if self._footer else []
        if any(each.leaf >= self._leaves or each.row_group >= self._row_groups for each in found):
            raise ValueError("column chunks of columns or row groups that it does not have")
        return found

    def offset(self, row_group: int) -> int | None:
        """The offset of a row group: of the first page of its first column; None if unknown."""
        found = -1 if self._table is None else _start(self._table[row_group, 0].tolist())
        return None if found < 0 else found

    def statistics(self, row_group: int, leaf: int, physical_type: str) -> ChunkStatistics | None:
        """The statistics of a column chunk; None if it has none, or none that can be right.

        Args:
            row_group: The row group.
            leaf: The column.
            physical_type: As the schema has it, e.g. ``"INT32"``.
        """
        if self._table is None:
            return None
        chunk = self._table[row_group, leaf].tolist()
        at, values = chunk[layout.CHUNK_STATISTICS_AT], chunk[layout.CHUNK_VALUES]
        is_other = chunk[layout.CHUNK_TYPE] != _TYPES.index(physical_type)
        if at < 0 or values < 0 or is_other or chunk[layout.CHUNK_IS_ELSEWHERE]:
            return None
        statistics = _fields(self._footer, at)
        nulls = statistics.get(_NULL_COUNT)
        if not isinstance(nulls, int) or not 0 <= nulls <= values:
            nulls = None
        is_ordered = leaf in self._in_type_order
        lower, upper = (statistics.get(n) for n in ((_MIN, _MAX) if is_ordered else (_OLD_MIN, _OLD_MAX)))
        return ChunkStatistics(
            values,
            nulls,
            lower if isinstance(lower, bytes) else None,
            upper if isinstance(upper, bytes) else None,
            is_signed=not is_ordered,
        )

    @property
    def _table(self) -> npt.NDArray[np.int64] | None:
        return self._listed[0]

    @cached_property
    def _listed(self) -> tuple[npt.NDArray[np.int64] | None, int]:
        """The CHUNK_WIDTH numbers of each column chunk by row group and leaf, and the offset of the column orders."""
        if not self._footer or not self._row_groups or not self._leaves:
            return None, -1
        if not LIST_CHUNKS.should_use(len(self._footer)):
            return listed_in_python(self._footer, self._row_groups, self._leaves)
        return listed_by_kernel(self._footer, self._row_groups, self._leaves)

    @cached_property
    def _in_type_order(self) -> frozenset[int]:
        """Leaves whose bounds are in the order of their logical type."""
        at = self._listed[1]
        if at < 0:
            return frozenset()
        count, _, at = thrift.read_list(self._footer, at)
        if count != self._leaves:
            return frozenset()
        if self._footer.startswith(_IN_TYPE_ORDER * count, at):
            return frozenset(range(count))
        found = []
        for leaf in range(count):
            number, kind, after = thrift.read_field(self._footer, at, 0)
            if kind != thrift.STOP and number == _TYPE_ORDER:
                found.append(leaf)
            at = thrift.skip(self._footer, at, thrift.STRUCT) if kind != thrift.STOP else after
        return frozenset(found)


def listed_in_python(footer: bytes, row_groups: int, leaves: int) -> tuple[npt.NDArray[np.int64] | None, int]:
    """The numbers of all column chunks in the order of row groups, and the offset of the list of column orders, or -1.

    None for the numbers if the footer is damaged, unusual, or has another number of row groups or leaves.
    """
    try:
        table, orders = thrift.list_chunks(footer, row_groups, leaves)
    except (IndexError, ValueError):
        return None, -1
    return table.reshape(row_groups, leaves, layout.CHUNK_WIDTH), orders


def listed_by_kernel(footer: bytes, row_groups: int, leaves: int) -> tuple[npt.NDArray[np.int64] | None, int]:
    """The same by the kernel."""
    source = np.frombuffer(footer, np.uint8)
    # Each takes some bytes.
    room = min(row_groups * leaves, len(source))
    table = np.empty((room, layout.CHUNK_WIDTH), np.int64)
    stack = np.empty(2 * layout.STACK_DEPTH, np.int64)
    orders = np.empty(1, np.int64)
    if LIST_CHUNKS(source, table, stack, orders) != row_groups * leaves:
        return None, -1
    chunks = table.reshape(row_groups, leaves, layout.CHUNK_WIDTH)
    is_even = bool((chunks[:, :, layout.CHUNK_GROUP] == np.arange(row_groups)[:, None]).all())
    return (chunks, int(orders[0])) if is_even else (None, -1)


def _start(chunk: list[int]) -> int:
    data, dictionary = chunk[layout.CHUNK_DATA_AT], chunk[layout.CHUNK_DICTIONARY_AT]
    return dictionary if 0 < dictionary < data else data


def _fields(footer: bytes, at: int) -> dict[int, int | bytes]:
    """The numbers and strings of a struct whose extent was checked."""
    found: dict[int, int | bytes] = {}
    number = 0
    while True:
        number, kind, at = thrift.read_field(footer, at, number)
        if kind == thrift.STOP:
            return found
        after = thrift.skip(footer, at, kind)
        if kind == thrift.BINARY:
            size, start = thrift.read_size(footer, at)
            found[number] = footer[start : start + size]
        elif kind == thrift.INT64:
            found[number], _ = thrift.read_number(footer, at)
        at = after
