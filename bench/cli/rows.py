"""Rows of Arrow as text: a grid for a terminal, JSON and CSV for other programs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from rich.table import Table as Grid

from icebench.bench.cli.failures import printable
from icebench.bench.errors import ConfigError

_TEXT_WIDTH = 60
_NULL = "NULL"
_QUOTED = re.compile(r'[",\r\n]')


def grid(rows: pa.Table, path: str) -> Grid:
    """Rows for a terminal; null looks like no other value. Errors as `values_of`."""
    grid = Grid(box=None, pad_edge=False)
    for field in rows.schema:
        is_number = pa.types.is_integer(field.type)
        grid.add_column(printable(field.name), justify="right" if is_number else "left", overflow="fold")
    for row in values_of(rows, path):
        grid.add_row(*(printable(text_of(value)) for value in row))
    return grid


def values_of(rows: pa.Table, path: str) -> Iterator[tuple[Any, ...]]:
    """The rows as Python values, also of columns that share a name; times beyond those of Python are text.

    Args:
        rows: The rows.
        path: Where the user chose the columns, for errors: an argument or option.

    Raises:
        ConfigError: Python holds no such values, and they have no text.
    """
    try:
        return zip(*map(_column_values, rows.columns), strict=True)
    except pa.ArrowNotImplementedError as error:
        raise ConfigError(f"values that cannot be shown: {error}", path=path) from error


def _column_values(column: pa.ChunkedArray) -> list[Any]:
    try:
        return _python_values(column)
    except (OverflowError, ValueError):
        return [value for chunk in column.chunks for value in _values_by_leaf(chunk)]


def _python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    try:
        return column.to_pylist(maps_as_pydicts="strict")
    except (KeyError, TypeError):  # a key that comes twice, or is nested
        return column.to_pylist()


def _values_by_leaf(array: pa.Array) -> list[Any]:
    """The values, those that are not nested as text if Python cannot hold one of their column."""
    type_ = array.type
    values: Iterable[Any]
    names = [field.name for field in type_] if pa.types.is_struct(type_) else []
    if pa.types.is_struct(type_) and len(set(names)) == len(names):
        columns = [_values_by_leaf(child) for child in array.flatten()]
        rows = zip(*columns, strict=True) if columns else [()] * len(array)
        values = (dict(zip(names, row, strict=True)) for row in rows)
    elif pa.types.is_map(type_):
        pairs = zip(_values_by_leaf(array.keys), _values_by_leaf(array.items), strict=True)
        values = map(_as_dict, _by_row(array, list(pairs)))
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_):
        values = _by_row(array, _values_by_leaf(array.values))
    elif pa.types.is_fixed_size_list(type_):
        return _values_by_leaf(array.cast(pa.list_(type_.value_field)))
    else:
        return _leaf_values(array)
    return [value if valid else None for value, valid in zip(values, array.is_valid().to_pylist(), strict=True)]


def _leaf_values(array: pa.Array) -> list[Any]:
    try:
        return _python_values(array)
    except (OverflowError, ValueError):
        return array.cast(pa.string()).to_pylist()


def _by_row(array: pa.Array, elements: list[Any]) -> Iterator[list[Any]]:
    return (elements[start:end] for start, end in pairwise(array.offsets.to_pylist()))


def _as_dict(entries: list[tuple[Any, Any]]) -> dict[Any, Any] | list[tuple[Any, Any]]:
    """A map as a dictionary, unless a key comes twice or is nested."""
    try:
        made = dict(entries)
    except TypeError:
        return entries
    return made if len(made) == len(entries) else entries


def json_lines(rows: pa.Table, path: str) -> str:
    """An object a row, each on a line of its own. Errors as `values_of`, and ConfigError for columns that share a
    name."""
    return "".join(f"{_json_object(rows.column_names, row, path)}\n" for row in values_of(rows, path))


def _json_object(names: Sequence[str], row: Sequence[Any], path: str) -> str:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"two columns are named {twice!r}; an object needs other names", path=path)
    return json_text(dict(zip(names, row, strict=True)))


def json_text(value: Any) -> str:  # noqa: ANN401 - any value that Arrow holds
    """JSON of a value; keys of maps are text, and so are NaN, Infinity and -Infinity, which are no numbers of JSON."""
    return json.dumps(_of_json(value), default=plain)


def _of_json(value: Any) -> Any:  # noqa: ANN401 - nested as it comes
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if isinstance(value, dict):
        return {k if isinstance(k, str) else plain(k): _of_json(v) for k, v in value.items()}
    return [_of_json(v) for v in value] if isinstance(value, list | tuple) else value


def text_of(value: Any) -> str:  # noqa: ANN401 - any value that Arrow holds
    """The text of a value in a grid; what is nested is cut."""
    if isinstance(value, dict | list):
        text = json_text(value)
        return text if len(text) <= _TEXT_WIDTH else f"{text[: _TEXT_WIDTH - 1]}…"
    if value is None:
        return _NULL
    text = plain(value)
    return f"'{text}'" if text == _NULL else text


def plain(value: object) -> str:
    """The text of a value that is not nested: of bytes, hexadecimal digits."""
    return value.hex() if isinstance(value, bytes) else str(value)


def csv_text(rows: pa.Table, path: str) -> str:
    """The rows as CSV: null is nothing, and a text of no character is ``""``. Errors as `values_of`."""
    lines = [rows.column_names, *values_of(rows, path)]
    return "".join(f"{','.join(map(_cell, line))}\n" for line in lines)


def encodable(text: str, encoding: str) -> str:
    """The text, which other programs read: nothing in it may be escaped."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        lacking = text[error.start].encode("unicode_escape").decode()
        raise ConfigError(
            f"the output is {encoding}, which lacks {lacking}; set PYTHONUTF8=1", path="--format"
        ) from error
    return text


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = json_text(value) if isinstance(value, dict | list) else plain(value)
    if text and not _QUOTED.search(text):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


FOR_PROGRAMS: Mapping[str, Callable[[pa.Table, str], str]] = {"csv": csv_text, "json": json_lines}
"""The formats of text that other programs read: of rows, and of where the user chose their columns."""
