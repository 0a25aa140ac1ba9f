"""Variants in Arrow (canonical extension type ``arrow.parquet.variant``, without shredding).

A variant column is a struct of the non-null binary fields ``metadata`` and ``value``. Files may have *shredded*
variants, parts of which are columns of their own (Parquet: "Variant Shredding"): `plain_variants` encodes these again,
column by column. Only objects of which a part was not shredded are put together one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from icebench.engine.codec.variants import (
    NULL,
    array_header,
    byte_width,
    encode_object,
    field_names,
    object_fields,
    object_header,
)
from icebench.engine.columnar.batch_columns import Elements
from icebench.engine.columnar.schemas import VARIANT_TYPE, child_fields, is_list, storage_of
from icebench.engine.errors import CorruptTable, Unsupported

_Bytes: TypeAlias = npt.NDArray[np.uint8]
_Integers: TypeAlias = npt.NDArray[np.int64]

_MOST_SHORT = 63  # bytes of a short string
_MOST_SMALL = 255  # elements that a count of one byte holds


def plain_variants(array: pa.StructArray, name: str) -> pa.StructArray:
    """Variants, shredded or not, as an array of `VARIANT_TYPE`.

    Args:
        array: A struct of ``metadata`` and of ``value``, ``typed_value`` or both, in any order.
        name: The column's full name, for errors.

    Raises:
        CorruptTable: It is not such a struct, or its values contradict the specification.
        Unsupported: A part was shredded to a type that the specification does not have.
    """
    columns = _columns(array, name)
    if set(columns) - {"metadata", "value", "typed_value"} or not _is_bytes(columns.get("metadata")):
        raise CorruptTable(f"column {name!r} is stored as {array.type} and can not be read as variant")
    metadata = columns.pop("metadata").cast(pa.binary())
    if metadata.null_count > array.null_count:
        raise CorruptTable(f"column {name!r} has variants without metadata")
    if "typed_value" in columns:
        values = _Assembly(_Dictionaries.of(metadata), name).values(columns)
    elif _is_bytes(columns.get("value")):
        values = columns["value"].cast(pa.binary())
    else:
        raise CorruptTable(f"column {name!r} has variants without values")
    mask = array.is_null() if array.null_count else None
    # Not even under a null struct are there nulls: pyarrow does not write such columns.
    children = [metadata.fill_null(b""), values.fill_null(NULL)]
    return pa.StructArray.from_arrays(children, fields=list(child_fields(VARIANT_TYPE)), mask=mask)


def check_metadata(array: pa.StructArray) -> None:
    """Raise CorruptTable or Unsupported if the metadata of an array of `VARIANT_TYPE` are none."""
    _Dictionaries.of(array.flatten()[0])


def _is_bytes(array: pa.Array | None) -> bool:
    return array is not None and (
        pat.is_binary(array.type) or pat.is_large_binary(array.type) or pat.is_binary_view(array.type)
    )


def _columns(array: pa.Array, name: str) -> dict[str, pa.Array]:
    """The children of structs by name, null where the struct is null."""
    if not pat.is_struct(array.type):
        raise CorruptTable(f"column {name!r} has variants shredded to {array.type} without their groups")
    return dict(zip([f.name for f in child_fields(array.type)], array.flatten(), strict=True))


@dataclass(frozen=True, slots=True)
class _Dictionaries:
    """The field names of each of many variants: a number per variant, and for each number the names in order."""

    codes: _Integers
    names: Sequence[Sequence[bytes]]

    @classmethod
    def of(cls, metadata: pa.Array) -> _Dictionaries:
        encoded = metadata.dictionary_encode()
        names = [field_names(m) for m in encoded.dictionary.to_pylist()]
        return cls(encoded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64), names)

    def ids(self, name: bytes) -> _Integers:
        """The number of a field name for each variant, -1 where it has none."""
        found = [names.index(name) if name in names else -1 for names in self.names]
        return np.array(found or [-1], np.int64)[self.codes]

    def take(self, rows: _Integers) -> _Dictionaries:
        return _Dictionaries(self.codes[rows], self.names)


@dataclass(frozen=True, slots=True)
class _Assembly:
    """Encodes the values of shredded columns, with the dictionaries of their variants."""

    dictionaries: _Dictionaries
    name: str

    def values(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        """The encoded values of a pair of columns ``value`` and ``typed_value``; null where both are."""
        value, typed = columns.get("value"), columns.get("typed_value")
        if value is not None and not _is_bytes(value):
            raise CorruptTable(f"column {self.name!r} has variants whose values are {value.type}")
        plain = None if value is None else value.cast(pa.binary())
        if typed is None:
            return pa.nulls(len(self.dictionaries.codes), pa.binary()) if plain is None else plain
        is_object = pat.is_struct(typed.type)
        made = (
            self._objects(typed) if is_object else self._arrays(typed) if is_list(typed.type) else self._scalars(typed)
        )
        if plain is None:
            return made
        both = pc.and_(plain.is_valid(), typed.is_valid())
        if pc.any(both).as_py():
            if not is_object:
                raise CorruptTable(f"column {self.name!r} has variants that are shredded and not")
            shredded = frozenset(f.name.encode() for f in child_fields(typed.type))
            made = pc.replace_with_mask(made, both, self._united(made, plain, both, shredded))
        return pc.coalesce(made, plain)

    def _united(self, made: pa.Array, rest: pa.Array, both: pa.Array, shredded_names: frozenset[bytes]) -> pa.Array:
        """The objects at `both` with all their fields: those that were shredded, and the rest.

        A rest has no field with the name of a shredded one; if it has, it does not count, as in Iceberg Java.
        """
        found = []
        rows = np.flatnonzero(both.to_numpy(zero_copy_only=False))
        for row, shredded, other in zip(
            rows, made.filter(both).to_pylist(), rest.filter(both).to_pylist(), strict=True
        ):
            names = self.dictionaries.names[self.dictionaries.codes[row]]
            fields = object_fields(other, names)
            if fields is None:
                raise CorruptTable(f"column {self.name!r} has an object with a rest that is none")
            own = {n: field for n, field in fields.items() if n not in shredded_names}
            found.append(encode_object({**own, **(object_fields(shredded, names) or {})}))
        return pa.array(found, pa.binary())

    def _objects(self, typed: pa.StructArray) -> pa.Array:
        columns = sorted((n.encode(), n, c) for n, c in _columns(typed, self.name).items())
        values = [self.values(_columns(column, f"{self.name}.{n}")) for _, n, column in columns]
        ids = np.column_stack([self.dictionaries.ids(n) for n, _, _ in columns])
        present = np.column_stack([_valid(v) for v in values])
        if (ids[present] < 0).any():
            raise CorruptTable(f"column {self.name!r} has variants with fields that are not in their metadata")
        sizes = np.column_stack([_sizes(v) for v in values])
        starts = np.cumsum(np.column_stack([np.zeros(len(typed), np.int64), sizes]), axis=1)
        is_large = len(values) > _MOST_SMALL
        id_width = byte_width(int(ids.max(initial=0)))
        width = byte_width(int(starts.max(initial=0)))
        head = object_header(is_large=is_large, id_width=id_width, width=width)
        count = _little_endian(present.sum(axis=1), 4 if is_large else 1)
        # A row per object: of its ids and starts, those of missing fields are left out.
        bounds = np.column_stack([present, np.ones(len(typed), np.bool_)])
        matrix = np.column_stack(
            [
                np.full((len(typed), 1), head, np.uint8),
                count,
                _little_endian(ids, id_width),
                _little_endian(starts, width),
            ]
        )
        always = np.ones((len(typed), 1 + count.shape[1]), np.bool_)
        kept = np.column_stack([always, np.repeat(present, id_width, axis=1), np.repeat(bounds, width, axis=1)])
        return _joined([_ragged(matrix, kept), *values], typed)

    def _arrays(self, typed: pa.Array) -> pa.Array:
        lists = Elements.of(typed)
        counts, first = lists.lengths, lists.offsets
        rows = np.arange(len(typed))
        inner = lists.select(typed.values)
        elements = _Assembly(self.dictionaries.take(np.repeat(rows, counts)), f"{self.name}.element")
        values = elements.values(_columns(inner, elements.name)).fill_null(NULL)
        data_starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(_sizes(values))])
        # An array has one offset more than elements: the end of the last.
        owner = np.repeat(rows, counts + 1)
        starts = data_starts[np.arange(len(owner)) - owner] - data_starts[first[:-1]][owner]
        is_large = bool(counts.max(initial=0) > _MOST_SMALL)
        width = byte_width(int(starts.max(initial=0)))
        head = np.full((len(typed), 1), array_header(is_large=is_large, width=width), np.uint8)
        prefix = np.column_stack([head, _little_endian(counts, 4 if is_large else 1)])
        offsets = _binary(_little_endian(starts, width).reshape(-1), (counts + 1) * width)
        data = _binary(_content(values), data_starts[first[1:]] - data_starts[first[:-1]])
        return _joined([_rows(prefix), offsets, data], typed)

    def _scalars(self, typed: pa.Array) -> pa.Array:
        array = typed.dictionary_decode() if pat.is_dictionary(typed.type) else typed
        type_ = array.type
        if pat.is_boolean(type_):
            is_true = array.fill_null(False).to_numpy(zero_copy_only=False)
            return _joined([_rows(np.where(is_true, 1 << 2, 2 << 2).astype(np.uint8)[:, None])], array)
        if pat.is_string(type_) or pat.is_large_string(type_) or pat.is_string_view(type_):
            return _texts(array.cast(pa.binary()), is_text=True)
        if _is_bytes(array):
            return _texts(array.cast(pa.binary()), is_text=False)
        kind = _FIXED.get(type_)
        head = [] if kind is None else [kind]
        if pat.is_decimal(type_) and type_.precision <= 38 and 0 <= type_.scale <= type_.precision:
            size = 0 if type_.precision <= 9 else 1 if type_.precision <= 18 else 2
            head = [8 + size, type_.scale]
            width = 4 << size
        elif kind is not None:
            width = storage_of(array).type.bit_width // 8
        else:
            raise Unsupported(f"column {self.name!r} has variants shredded to {type_}")
        matrix = np.column_stack(
            [
                np.full((len(array), 1), head[0] << 2, np.uint8),
                *(np.full((len(array), 1), extra, np.uint8) for extra in head[1:]),
                _stored(storage_of(array))[:, :width],
            ]
        )
        return _joined([_rows(matrix)], array)


_FIXED: dict[pa.DataType, int] = {
    pa.int8(): 3,
    pa.int16(): 4,
    pa.int32(): 5,
    pa.int64(): 6,
    pa.float64(): 7,
    pa.date32(): 11,
    pa.timestamp("us", "UTC"): 12,
    pa.timestamp("us"): 13,
    pa.float32(): 14,
    pa.time64("us"): 17,
    pa.timestamp("ns", "UTC"): 18,
    pa.timestamp("ns"): 19,
    pa.uuid(): 20,
}
"""Types of fixed width, which a variant stores as Arrow does, and their numbers in the encoding."""


def _texts(array: pa.Array, *, is_text: bool) -> pa.Array:
    sizes = _sizes(array)
    is_short = (sizes <= _MOST_SHORT) & is_text
    head = np.where(is_short, sizes << 2 | 1, (16 if is_text else 15) << 2).astype(np.uint8)[:, None]
    long = np.repeat(~is_short[:, None], 4, axis=1)
    kept = np.column_stack([np.ones((len(array), 1), np.bool_), long])
    return _joined([_ragged(np.column_stack([head, _little_endian(sizes, 4)]), kept), array], array)


def _joined(parts: Sequence[pa.Array], like: pa.Array) -> pa.Array:
    """The parts of each value one after the other; null where `like` is, else a null part is nothing."""
    joined = (
        parts[0]
        if len(parts) == 1
        else pc.binary_join_element_wise(*parts, pa.scalar(b""), null_handling="replace", null_replacement=b"")
    )
    return pc.if_else(like.is_valid(), joined, pa.scalar(None, pa.binary())) if like.null_count else joined


def _valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return found


def _sizes(array: pa.Array) -> _Integers:
    """The length of each value, 0 for null."""
    found: _Integers = pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _content(array: pa.Array) -> _Bytes:
    """The bytes of all values of an array without nulls."""
    _, offsets, data = array.buffers()
    if not len(array) or data is None:
        return np.zeros(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]


def _stored(array: pa.Array) -> _Bytes:
    """The bytes of values of fixed width, a row each."""
    width = array.type.bit_width // 8
    data = array.buffers()[1]
    if data is None:
        return np.zeros((len(array), width), np.uint8)
    start = array.offset * width
    return np.frombuffer(data, np.uint8)[start : start + len(array) * width].reshape(-1, width)


def _little_endian(numbers: npt.NDArray[np.integer], width: int) -> _Bytes:
    """The low bytes of numbers: `width` columns for each."""
    columns = 1 if numbers.ndim == 1 else numbers.shape[1]
    raw = np.ascontiguousarray(numbers, "<i8").view(np.uint8).reshape(len(numbers), columns, 8)[:, :, :width]
    return raw.reshape(len(numbers), columns * width)


def _rows(matrix: _Bytes) -> pa.Array:
    """A value for each row of a matrix."""
    return _binary(matrix.reshape(-1), np.full(matrix.shape[0], matrix.shape[1], np.int64))


def _ragged(matrix: _Bytes, kept: npt.NDArray[np.bool_]) -> pa.Array:
    """A value for each row of a matrix, without the bytes that are not kept."""
    return _binary(matrix[kept], kept.sum(axis=1))


def _binary(data: _Bytes, sizes: _Integers) -> pa.Array:
    """Consecutive values of these sizes."""
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise Unsupported("variants of over 2 GiB in a batch")
    content = pa.py_buffer(np.ascontiguousarray(data))
    return pa.Array.from_buffers(pa.binary(), len(sizes), [None, pa.py_buffer(offsets.astype(np.int32)), content])
