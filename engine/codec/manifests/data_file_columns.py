"""Data files to be added, by column: what a manifest says of them, with no Python object per file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import Integers, has_values, values_of
from icebench.engine.codec.manifests import schema as ids
from icebench.engine.codec.manifests.partition_columns import DistinctColumn, distinct_tuples
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.partitioning import PartitionKey, partition_key
from icebench.engine.spec.values import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileColumns:
    """Files of one partition spec and one kind of content.

    Args:
        count: How many.
        spec_id: Their partition spec.
        content: What they hold.
        columns: By field id (see `icebench.engine.codec.manifests.schema`), without content and partition; optional
            ones may be missing. Integers of 32 or 64 bits, text, byte strings, lists and maps; they may be slices. No
            map is null.
        partition: A column for each field of the spec.
    """

    count: int
    spec_id: int
    content: FileContent
    columns: Mapping[int, pa.Array]
    partition: tuple[DistinctColumn, ...]

    def has_values(self, field_id: int) -> bool:
        """Whether any file has a value of that field."""
        column = self.columns.get(field_id)
        return column is not None and has_values(column)

    @property
    def row_count(self) -> int:
        """The rows of all files."""
        return self._total(ids.RECORD_COUNT)

    @property
    def size_bytes(self) -> int:
        """The bytes of all files."""
        return self._total(ids.FILE_SIZE_IN_BYTES)

    def by_partition(self) -> list[tuple[tuple[Value | None, ...], int, int, int]]:
        """Of each partition that occurs its values, and how many files, rows and bytes it has."""
        group, tuples = distinct_tuples(self.partition, self.count)
        sums = [
            np.bincount(group, weights, len(tuples)).astype(np.int64).tolist()
            for weights in (None, self._numbers(ids.RECORD_COUNT), self._numbers(ids.FILE_SIZE_IN_BYTES))
        ]
        return list(zip(tuples, *sums, strict=True))

    def partitions(self) -> set[PartitionKey]:
        """The partitions that occur."""
        return {partition_key(self.spec_id, each) for each in distinct_tuples(self.partition, self.count)[1]}

    def _total(self, field_id: int) -> int:
        return int(self._numbers(field_id).sum())

    def _numbers(self, field_id: int) -> Integers:
        return values_of(self.columns[field_id])
