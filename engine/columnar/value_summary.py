"""The values of a column in short: all distinct ones if they are few, else the least and the greatest."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icebench.engine.columnar.scalars import literal_of
from icebench.engine.expressions.predicate import Predicate, all_of, greater_equal, is_in, less_equal

MOST_VALUES = 200
"""With more distinct values, their range is kept instead."""


@dataclass(frozen=True, slots=True)
class ValueSummary:
    """What is known of some values.

    Args:
        values: The distinct values; of a range its two ends.
        is_range: Whether there may be values between these two.
    """

    values: pa.Array
    is_range: bool = False

    @classmethod
    def of(cls, column: pa.Array) -> ValueSummary:
        """The summary of a column without nulls, of a type that Arrow compares as filters do."""
        distinct = column.unique()
        if len(distinct) <= MOST_VALUES:
            return cls(distinct)
        ends = pc.min_max(distinct)
        return cls(pa.array([ends["min"], ends["max"]], distinct.type), is_range=True)

    def filter(self, name: str) -> Predicate:
        """A filter on the column of that name, true for every one of the values."""
        values = [literal_of(each) for each in self.values]
        if not self.is_range:
            return is_in(name, values)
        least, greatest = values
        return all_of([greater_equal(name, least), less_equal(name, greatest)])
