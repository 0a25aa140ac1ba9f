"""Digests of columns: equal for equal values in equal order, however they are cut into batches and kept in memory."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.codec.array_views import data_of, offsets_of, valid_of, values_of
from icebench.engine.columnar.batch_columns import list_elements
from icebench.engine.columnar.schemas import child_fields, is_list, storage_of

_SIZE = 16


class ColumnDigest:
    """The digest of one column, of which parts are added in order. All NaN are equal; zeros of either sign differ."""

    def __init__(self) -> None:
        # Of each level: which values are null, how long they are, what they are. Each is a stream of its own.
        self._streams: dict[str, hashlib.blake2b] = {}

    def add(self, array: pa.Array) -> None:
        """Add the next values, of the same type as those before but for dictionaries."""
        self._add("", array)

    def result(self) -> bytes:
        """The digest of all values so far."""
        parts = (f"{path}={self._streams[path].hexdigest()}" for path in sorted(self._streams))
        return hashlib.blake2b(";".join(parts).encode(), digest_size=_SIZE).digest()

    def _add(self, path: str, array: pa.Array) -> None:
        if pat.is_dictionary(array.type):
            array = array.dictionary_decode()
        array = storage_of(array)
        valid = valid_of(array)
        self._feed(f"{path}?", np.ones(len(array), np.bool_) if valid is None else valid)
        if pat.is_struct(array.type):
            for place, child in enumerate(array.flatten()):
                self._add(f"{path}.{place}", child)
        elif pat.is_map(array.type) or is_list(array.type):
            lengths = np.diff(offsets_of(array)).astype(np.int64)
            self._feed(f"{path}#", lengths if valid is None else lengths[valid])
            self._add(f"{path}.0", list_elements(_as_list(array)))
        else:
            # What is in the place of a null differs from writer to writer.
            self._add_leaf(path, array if valid is None else array.drop_null())

    def _add_leaf(self, path: str, array: pa.Array) -> None:
        type_ = array.type
        if pat.is_null(type_):
            return
        if pat.is_string(type_) or pat.is_binary(type_):
            ends = offsets_of(array)
            self._feed(f"{path}#", np.diff(ends).astype(np.int64))
            self._feed(path, data_of(array)[int(ends[0]) : int(ends[-1])])
        elif pat.is_boolean(type_):
            self._feed(path, values_of(array.cast(pa.uint8())))
        elif pat.is_floating(type_):
            values = values_of(array)
            self._feed(path, np.where(np.isnan(values), values.dtype.type(np.nan), values))
        else:
            width = type_.bit_width // 8
            stored = np.frombuffer(array.buffers()[1] or b"", np.uint8)
            self._feed(path, stored[array.offset * width : (array.offset + len(array)) * width])

    def _feed(self, stream: str, values: npt.NDArray[Any]) -> None:
        if stream not in self._streams:
            self._streams[stream] = hashlib.blake2b(digest_size=_SIZE)
        self._streams[stream].update(np.ascontiguousarray(values).view(np.uint8).data)


def _as_list(array: pa.Array) -> pa.Array:
    """A list array, or the list of structs that a map array is stored as."""
    if not pat.is_map(array.type):
        return array
    fields = child_fields(array.type)
    entries = pa.StructArray.from_arrays([array.keys, array.items], fields=list(fields))
    type_ = pa.list_(pa.struct(fields))
    return pa.Array.from_buffers(type_, len(array), array.buffers()[:2], offset=array.offset, children=[entries])
