"""Summaries of partition values across a manifest (spec: "Manifest Lists", struct `field_summary`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from icebench.engine.spec.manifest import PartitionFieldSummary
from icebench.engine.spec.types import PrimitiveType, StructType
from icebench.engine.spec.values import Value, encode_value


class PartitionSummaries:
    """Collects the partition tuples of a manifest. Bounds ignore null and NaN, and are not truncated."""

    def __init__(self, partition: StructType) -> None:
        self._fields = [_FieldSummary(f.type) for f in partition.fields if isinstance(f.type, PrimitiveType)]

    def add(self, partitions: Sequence[tuple[Value | None, ...]]) -> None:
        """Add tuples with a value for each field.

        Raises:
            TypeError, ValueError: A value is not one of its field's type.
        """
        for summary, values in zip(self._fields, zip(*partitions, strict=True), strict=True):
            summary.add(values)

    def add_fields(self, fields: Sequence[Sequence[Value | None]]) -> None:
        """Add the distinct values of each field; raises as `add`."""
        for summary, values in zip(self._fields, fields, strict=True):
            summary.add(values)

    def merge(self, other: PartitionSummaries) -> None:
        """Add all that another summary of the same struct has collected."""
        for summary, more in zip(self._fields, other._fields, strict=True):
            summary.merge(more)

    def finish(self) -> tuple[PartitionFieldSummary, ...]:
        """The summary of each field."""
        return tuple(summary.finish() for summary in self._fields)


class _FieldSummary:
    def __init__(self, type_: PrimitiveType) -> None:
        self._type = type_
        self._is_float = type_.name in ("float", "double")
        self._contains_null = False
        self._contains_nan = False
        self._bounds: tuple[Any, Any] | None = None

    def add(self, values: Sequence[Value | None]) -> None:
        distinct = set(values)
        if None in distinct:
            self._contains_null = True
            distinct.discard(None)
        if self._is_float:
            # Of values rather than of the set, which takes -0.0 for 0.0.
            numbers = [value for value in values if isinstance(value, float)]
            present = [value for value in numbers if not math.isnan(value)]
            self._contains_nan = self._contains_nan or len(present) < len(numbers)
            self._widen(present)
        else:
            self._widen(list(distinct))

    def merge(self, other: _FieldSummary) -> None:
        self._contains_null = self._contains_null or other._contains_null
        self._contains_nan = self._contains_nan or other._contains_nan
        self._widen(list(other._bounds or ()))

    def _widen(self, values: list[Any]) -> None:
        if not values:
            return
        if self._bounds is not None:
            values += self._bounds
        key = _signed_zero if self._is_float else None
        self._bounds = min(values, key=key), max(values, key=key)
        # Refuses values of another type while the manifest is being made.
        for value in self._bounds:
            encode_value(self._type, value)

    def finish(self) -> PartitionFieldSummary:
        lower, upper = (encode_value(self._type, v) for v in self._bounds) if self._bounds else (None, None)
        return PartitionFieldSummary(
            contains_null=self._contains_null,
            contains_nan=self._contains_nan,
            lower_bound=lower,
            upper_bound=upper,
        )


def _signed_zero(value: float) -> tuple[float, float]:
    """Orders -0.0 before 0.0, as the specification does."""
    return value, math.copysign(1.0, value)
