"""Decides which columns of a Parquet file get a dictionary.

A dictionary costs its values and an index for each value of the column: of nearly distinct values it makes the file
larger. parquet-mr compares both sizes at the first page of each column chunk. pyarrow has one decision for a file, and
gives a dictionary up only where it grows beyond its limit, so the comparison is made before the file is opened.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from icebench.engine.columnar.schemas import child_fields, storage_of
from icebench.engine.formats.parquet.encoded_sizes import plain_size

_FEWEST_ROWS = 1 << 12
"""For fewer the decision takes more than a tenth of a small append, and saves some kilobytes."""
_SAMPLED_VALUES = 1 << 17
"""More than the 20,000 of a page of parquet-mr: a column of 50,000 distinct values seems distinct there."""
_SAMPLED_SHARE = 1 / 8
_LEAST_SAMPLED, _MOST_SAMPLED = 1 << 9, 1 << 13
"""Counting the distinct ones among all sampled values would take longer than the encoding that it saves."""
_DRAWS = np.geomspace(1e-4, 100, 500)
"""Draws for each distinct value, and the share of distinct ones among them."""
_SHARES = -np.expm1(-_DRAWS) / _DRAWS


def dictionary_columns(rows: pa.Table, *, default: bool, by_column: Mapping[str, bool]) -> list[str] | bool:
    """The paths, as Parquet has them, of the columns whose first values are smaller with a dictionary; whether all may
    have one where the file is too small for a decision.

    Args:
        rows: The first row group of the file.
        default: Whether columns may have a dictionary.
        by_column: Overrides the default, by the names that `icebench.engine.columnar.schemas.Leaf` has as paths.
    """
    if rows.num_rows < _FEWEST_ROWS and not by_column:
        return default
    return [
        stored
        for field, column in zip(rows.schema, rows.columns, strict=True)
        for path, stored, values in leaf_values(field, column.slice(0, _SAMPLED_VALUES), "", "")
        if by_column.get(path, default) and _is_smaller(values)
    ]


def leaf_values(
    field: pa.Field, column: pa.ChunkedArray, prefix: str, stored_prefix: str
) -> Iterator[tuple[str, str, pa.ChunkedArray]]:
    """Each leaf of a column: its path, its path in Parquet, and its values, those in lists too."""
    path, stored, column = prefix + field.name, stored_prefix + field.name, storage_of(column)
    inner = child_fields(column.type)
    if not inner:
        yield path, stored, column
        return
    level = ""
    if pat.is_map(column.type):
        level, entries = "key_value.", column.cast(pa.list_(pa.struct(inner)))
        children = pc.list_flatten(entries).flatten()
    elif pat.is_struct(column.type):
        children = column.flatten()
    else:
        level, children = "list.", [pc.list_flatten(column)]
    for child, values in zip(inner, children, strict=True):
        yield from leaf_values(child, values, f"{path}.", f"{stored}.{level}")


def _is_smaller(values: pa.ChunkedArray) -> bool:
    """Whether the first values are smaller with a dictionary, before compression. Nulls only, and values that come with
    a dictionary, are taken to be."""
    if pat.is_dictionary(values.type):
        return True
    values = values.slice(0, _SAMPLED_VALUES)
    sampled = max(_LEAST_SAMPLED, min(int(len(values) * _SAMPLED_SHARE), _MOST_SAMPLED))
    first = values.slice(0, sampled)
    share = _distinct_share(first)
    if _pays(first, share) or len(first) == len(values):
        return _pays(first, share)
    # What repeats in runs repeats among the first; what comes back late, among values far apart.
    spread = values.take(np.linspace(0, len(values) - 1, sampled, dtype=np.int64))
    return _pays(values, _share_of_more(_distinct_share(spread), len(values) / sampled))


def _distinct_share(values: pa.ChunkedArray) -> float:
    """Distinct values for each value, without nulls; 0 for nulls only."""
    values = values.drop_null()
    return len(pc.unique(values)) / max(len(values), 1)


def _share_of_more(share: float, times: float) -> float:
    """The distinct share of that many times as many values, if all distinct values are equally frequent.

    Of D distinct values, n draws find D * (1 - exp(-n / D)).
    """
    draws = float(np.interp(-share, -_SHARES, _DRAWS)) * times
    return -math.expm1(-draws) / draws


def _pays(values: pa.ChunkedArray, share: float) -> bool:
    """Whether a dictionary and its indices are smaller than the values, of which the share is distinct."""
    count = len(values) - values.null_count
    index_bits = math.ceil(math.log2(max(share * count, 1)))
    return not count or count * index_bits / 8 < (1 - share) * plain_size(values)
