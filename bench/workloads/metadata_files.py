"""Data and delete files that do not exist, described as a writer of store_sales would have described them.

Every description is a function of the table's definition and the file's ordinal, so any range of files can be made
alone, in vectors, and what a filter must keep is known without reading a manifest.

A file holds rows of one month and one slice of the items, a hundredth of them: a table partitioned by month and sorted
by item within each partition. Clustered tables have their months in order, so that a manifest spans few of them; in
others the month of each file is drawn anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import icebench
from icebench.bench.workloads.draws import below, draw, words
from icebench.bench.workloads.schemas import schema

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Deletes = Literal["none", "equality", "positions", "vectors"]

DELETES: tuple[Deletes, ...] = ("none", "equality", "positions", "vectors")
"""What a table may have deleted: nothing; by key, in delete files of a partition; by position, in one file for each
data file; the same as deletion vectors."""

DATE, ITEM = "ss_sold_date", "ss_item_sk"
NARROW = 23
"""The columns of store_sales, the day in place of the day's key."""

MONTHS = 60
FIRST_MONTH = 336
"""January 1998, in months since 1970; the table ends with December 2002."""

ITEMS = 18_000
ITEMS_IN_FILE = ITEMS // 100
EQUALITY_DELETES_IN_PARTITION = 10
VECTORS_IN_PUFFIN = 1_000

_PATH_ID = 2147483546
"""The reserved field id of a position-delete file's ``file_path``."""

_FILTERED_ITEM = 9_000
_FILTERED_MONTH = 34
_MONTH_STARTS = np.arange(FIRST_MONTH, FIRST_MONTH + MONTHS + 1).astype("datetime64[M]").astype("datetime64[D]")
_MONTH_DAYS = _MONTH_STARTS.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class MetadataFiles:
    """Which files.

    Args:
        files: How many data files.
        columns: How many columns have statistics; those above 23 are more bigints.
        partitioned: By month of the day of sale, or not at all.
        manifests: How many manifests list them; 0 for as many as commits of a usual size make.
        clustered: Whether months come in order.
        deletes: What is deleted.
        seed: Draws everything.
    """

    files: int
    columns: int = NARROW
    partitioned: bool = True
    manifests: int = 0
    clustered: bool = True
    deletes: Deletes = "none"
    seed: int = 1

    def schema(self) -> pa.Schema:
        """The table's columns; the id of a column is its place, from 1."""
        fields = list(schema("store_sales", wide_decimals=False))
        fields[0] = pa.field(DATE, pa.date32())
        more = range(NARROW + 1, self.columns + 1)
        return pa.schema([*fields, *(pa.field(f"ss_extra_{n:05d}", pa.int64()) for n in more)])

    def partition_fields(self) -> list[tuple[str, str]]:
        """Column and transform of each partition field."""
        return [(DATE, "month")] if self.partitioned else []

    def months(self, ordinals: Ints) -> Ints:
        """The month of each file, from 0."""
        if self.clustered:
            return ordinals * MONTHS // self.files
        return draw(self.seed, "metadata.month", ordinals, MONTHS).astype(np.int64)

    def first_items(self, ordinals: Ints) -> Ints:
        """The lowest item of each file; the highest is `ITEMS_IN_FILE` - 1 above it."""
        starts = draw(self.seed, "metadata.item", ordinals, ITEMS - ITEMS_IN_FILE + 1)
        return starts.astype(np.int64) + 1

    def row_counts(self, ordinals: Ints) -> Ints:
        """The rows of each file."""
        return 100_000 + draw(self.seed, "metadata.rows", ordinals, 900_000).astype(np.int64)

    def filters(self) -> dict[str, str]:
        """Name -> SQL text: one item, which metrics prune to about a hundredth, and one month."""
        first, after = _MONTH_STARTS[_FILTERED_MONTH], _MONTH_STARTS[_FILTERED_MONTH + 1]
        return {
            "metric": f"{ITEM} = {_FILTERED_ITEM}",
            "partition": f"{DATE} >= '{first}' and {DATE} < '{after}'",
        }

    def kept(self, filter: str | None) -> Bools:
        """For each file, whether its bounds leave room for a matching row.

        Args:
            filter: A name out of `filters`, or None for all files.
        """
        ordinals = np.arange(self.files)
        match filter:
            case "metric":
                first = self.first_items(ordinals)
                return (first <= _FILTERED_ITEM) & (first + ITEMS_IN_FILE > _FILTERED_ITEM)
            case "partition":
                found: Bools = self.months(ordinals) == _FILTERED_MONTH
                return found
        return np.ones(self.files, np.bool_)

    def delete_pairs(self, filter: str | None) -> int:
        """How many pairs of a kept data file and a delete file that concerns it there are, by their bounds.

        Equality deletes whose keys cannot satisfy the filter delete no row that matches, and concern nothing.
        """
        kept = self.kept(filter)
        if self.deletes == "none":
            return 0
        if self.deletes != "equality":
            return int(kept.sum())
        first = self.first_items(np.flatnonzero(kept))
        slices = _key_slices()
        overlap = (first[:, None] <= slices[1]) & (first[:, None] + ITEMS_IN_FILE > slices[0])
        if filter == "metric":
            overlap &= (slices[0] <= _FILTERED_ITEM) & (slices[1] >= _FILTERED_ITEM)
        return int(overlap.sum())

    def data_files(self, location: str, start: int, stop: int) -> list[icebench.DataFile]:
        """The files of these ordinals.

        Args:
            location: The table's.
            start: The first ordinal.
            stop: After the last ordinal.
        """
        return _Batch(self, location, np.arange(start, min(stop, self.files))).data_files()

    def delete_files(self, location: str, start: int, stop: int) -> list[icebench.DataFile]:
        """The delete files of the data files of these ordinals; equality deletes come with the first of them."""
        ordinals = np.arange(start, min(stop, self.files))
        match self.deletes:
            case "positions" | "vectors":
                return _Batch(self, location, ordinals).deletes_by_position()
            case "equality" if start == 0:
                return _equality_deletes(self, location)
        return []


def path_of(location: str, ordinal: int) -> str:
    """Where the data file of an ordinal would be."""
    return f"{location}/data/{ordinal % 977:03d}/00000-{ordinal:010d}-5f1cb0ae.parquet"


def ordinal_of(path: str) -> int:
    """The ordinal in a path that `path_of` made."""
    return int(path[-27:-17])


class _Batch:
    """A range of files, drawn together: arrays have a value for each file."""

    def __init__(self, table: MetadataFiles, location: str, ordinals: Ints) -> None:
        self._table = table
        self._location = location
        self._ordinals = ordinals
        self._months = table.months(ordinals)
        self._rows = table.row_counts(ordinals).tolist()

    def data_files(self) -> list[icebench.DataFile]:
        """The descriptions."""
        columns = self._table.schema()
        ids = range(1, len(columns) + 1)
        lower, upper = zip(*(self._bounds(number, field) for number, field in enumerate(columns, 1)), strict=True)
        sizes = [self._draw(f"size.{number}", 400_000, 20_000) for number in ids]
        nulls = [
            self._draw(f"nulls.{n}", 9_000) if f.nullable else [0] * len(self._rows) for n, f in enumerate(columns, 1)
        ]
        keys = self._partitions()
        rows = zip(
            self._ordinals.tolist(),
            self._rows,
            keys,
            zip(*lower, strict=True),
            zip(*upper, strict=True),
            zip(*sizes, strict=True),
            zip(*nulls, strict=True),
            strict=True,
        )
        return [
            icebench.DataFile(
                file_path=path_of(self._location, ordinal),
                file_format="parquet",
                partition=key,
                record_count=count,
                file_size_in_bytes=sum(stored) + 4_096,
                column_sizes=dict(zip(ids, stored, strict=True)),
                value_counts=dict.fromkeys(ids, count),
                null_value_counts=dict(zip(ids, absent, strict=True)),
                lower_bounds=dict(zip(ids, least, strict=True)),
                upper_bounds=dict(zip(ids, most, strict=True)),
                split_offsets=(4,),
                sort_order_id=0,
            )
            for ordinal, count, key, least, most, stored, absent in rows
        ]

    def deletes_by_position(self) -> list[icebench.DataFile]:
        """One delete file, or one deletion vector, for each data file."""
        make = _vector if self._table.deletes == "vectors" else _position_deletes
        keys = self._partitions()
        return [make(self._location, n, key) for n, key in zip(self._ordinals.tolist(), keys, strict=True)]

    def _partitions(self) -> Sequence[tuple[int, ...]]:
        if not self._table.partitioned:
            return [()] * len(self._rows)
        return [(month,) for month in (self._months + FIRST_MONTH).tolist()]

    def _draw(self, stream: str, bound: int, least: int = 0) -> list[int]:
        drawn: list[int] = (draw(self._table.seed, f"metadata.{stream}", self._ordinals, bound) + least).tolist()
        return drawn

    def _bounds(self, number: int, field: pa.Field) -> tuple[list[bytes], list[bytes]]:
        """Serialised lower and upper bounds of a column."""
        if field.name == DATE:
            return _packed(_MONTH_DAYS[self._months], "<i4"), _packed(_MONTH_DAYS[self._months + 1] - 1, "<i4")
        if field.name == ITEM:
            first = self._table.first_items(self._ordinals)
            return _packed(first, "<i4"), _packed(first + ITEMS_IN_FILE - 1, "<i4")
        word = words(self._table.seed, f"metadata.bounds.{number}", self._ordinals)
        low = below(word, 10_000).astype(np.int64)
        high = 10_000 + below(word, 1_000_000, shift=0).astype(np.int64)
        if pa.types.is_decimal(field.type):
            return [_decimal(v) for v in low.tolist()], [_decimal(v) for v in high.tolist()]
        kind = "<i8" if field.type == pa.int64() else "<i4"
        return _packed(low, kind), _packed(high, kind)


def _packed(values: Ints, kind: str) -> list[bytes]:
    raw = values.astype(kind)
    data, width = raw.tobytes(), raw.itemsize
    return [data[at : at + width] for at in range(0, len(data), width)]


def _decimal(unscaled: int) -> bytes:
    return unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big")


def _position_deletes(location: str, ordinal: int, key: tuple[int, ...]) -> icebench.DataFile:
    target = path_of(location, ordinal)
    bound = {_PATH_ID: target.encode()}
    return icebench.DataFile(
        content=icebench.FileContent.POSITION_DELETES,
        file_path=f"{target[:-8]}-deletes.parquet",
        file_format="parquet",
        partition=key,
        record_count=100 + ordinal % 900,
        file_size_in_bytes=2_000 + ordinal % 900,
        value_counts={_PATH_ID: 100 + ordinal % 900},
        null_value_counts={_PATH_ID: 0},
        lower_bounds=bound,
        upper_bounds=bound,
        referenced_data_file=target,
    )


def _vector(location: str, ordinal: int, key: tuple[int, ...]) -> icebench.DataFile:
    file, place = divmod(ordinal, VECTORS_IN_PUFFIN)
    return icebench.DataFile(
        content=icebench.FileContent.POSITION_DELETES,
        file_path=f"{location}/data/00000-{file:06d}-deletes.puffin",
        file_format="puffin",
        partition=key,
        record_count=100 + ordinal % 900,
        file_size_in_bytes=VECTORS_IN_PUFFIN * 250 + 1_000,
        referenced_data_file=path_of(location, ordinal),
        content_offset=4 + place * 250,
        content_size_in_bytes=250,
    )


def _key_slices() -> tuple[Ints, Ints]:
    """Lowest and highest item of each equality-delete file of a partition."""
    width = ITEMS // EQUALITY_DELETES_IN_PARTITION
    low = np.arange(EQUALITY_DELETES_IN_PARTITION) * width + 1
    return low, low + width - 1


def _equality_deletes(table: MetadataFiles, location: str) -> list[icebench.DataFile]:
    item = table.schema().get_field_index(ITEM) + 1
    low, high = _key_slices()
    months = range(MONTHS if table.partitioned else 1)
    return [
        icebench.DataFile(
            content=icebench.FileContent.EQUALITY_DELETES,
            file_path=f"{location}/data/00000-{month:03d}-{place:03d}-equality.parquet",
            file_format="parquet",
            partition=(month + FIRST_MONTH,) if table.partitioned else (),
            record_count=1_000,
            file_size_in_bytes=9_000,
            value_counts={item: 1_000},
            null_value_counts={item: 0},
            lower_bounds={item: least},
            upper_bounds={item: most},
            equality_ids=(item,),
        )
        for month in months
        for place, (least, most) in enumerate(zip(_packed(low, "<i4"), _packed(high, "<i4"), strict=True))
    ]
