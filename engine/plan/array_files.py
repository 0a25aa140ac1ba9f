"""Arrays as an Arrow IPC file, and the columns of manifests as such arrays.

A file has one column of one value, the bytes of all arrays behind each other, so that opening it makes them views of
the file's own memory. Its metadata says what the file is about and lists the arrays with their types, places and
checksums.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.codec.columns import BytesColumn, FixedColumn, ListColumn, ManifestColumns

Array = NDArray[Any]
_Column = FixedColumn | BytesColumn | ListColumn

METRICS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
"""The fields of `ManifestColumns` that are metrics of columns."""

_PARTS: Mapping[type[_Column], tuple[str, ...]] = {
    FixedColumn: ("values",),
    BytesColumn: ("offsets", "data"),
    ListColumn: ("offsets", "values"),
}
_KINDS = {kind.__name__: kind for kind in _PARTS}
_ALIGNMENT = 64


class DamagedError(Exception):
    """The bytes are not those that were written."""


@dataclass(frozen=True, slots=True)
class StoredArrays:
    """A file as opened: what it says of itself, and where its arrays are. None is checked before it is asked for."""

    about: Mapping[str, Any]
    index: Mapping[str, tuple[str, int, int, int]]
    data: memoryview

    def array(self, name: str) -> Array:
        """An array of the file's memory; raises DamagedError for another checksum, KeyError for an unknown name."""
        dtype, start, end, checksum = self.index[name]
        own = self.data[start:end]
        if len(own) != end - start or zlib.crc32(own) != checksum:
            raise DamagedError(name)
        return np.frombuffer(own, dtype)


def encode_arrays(
    about: Mapping[str, object], arrays: Mapping[str, Array], *, compression: Literal["zstd"] | None = None
) -> pa.Buffer:
    """The file of these arrays.

    Args:
        about: What the file says of itself, as JSON has it.
        arrays: By name.
        compression: Of the arrays; a compressed file is not mapped but copied when it is opened.
    """
    parts: list[memoryview | bytes] = []
    index: dict[str, tuple[str, int, int, int]] = {}
    end = 0
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array).view(np.uint8).reshape(-1).data
        index[name] = (array.dtype.str, end, end + len(raw), zlib.crc32(raw))
        padding = -len(raw) % _ALIGNMENT
        parts += [raw, bytes(padding)]
        end += len(raw) + padding
    text = json.dumps({"about": about, "arrays": index}).encode()
    field = pa.field("arrays", pa.large_binary(), nullable=False)
    schema = pa.schema([field], metadata={"index": text, "checksum": str(zlib.crc32(text))})
    data = [None, pa.py_buffer(np.array([0, end], np.int64)), pa.py_buffer(b"".join(parts))]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([pa.Array.from_buffers(field.type, 1, data)], schema=schema))
    return sink.getvalue()


def open_arrays(data: pa.Buffer) -> StoredArrays:
    """The arrays of a file.

    Raises:
        DamagedError: What the file says of itself has another checksum.
        pyarrow.ArrowException, OSError, KeyError, TypeError, ValueError: It is no such file.
    """
    with pa.ipc.open_file(pa.BufferReader(data)) as reader:
        metadata = reader.schema.metadata or {}
        if str(zlib.crc32(metadata[b"index"])) != metadata[b"checksum"].decode():
            raise DamagedError("index")
        told = json.loads(metadata[b"index"])
        column = reader.get_batch(0).column(0)
        return StoredArrays(told["about"], told["arrays"], memoryview(column.buffers()[2]))


def arrays_of(columns: ManifestColumns) -> Iterator[tuple[str, Array]]:
    """Every array with the name ``field/column id/kind/part``; the id is empty for a column of all manifests."""
    for field in fields(columns):
        value = getattr(columns, field.name)
        if isinstance(value, Mapping):
            for column_id, column in value.items():
                yield from _arrays_of_column(f"{field.name}/{column_id}", column)
        elif not isinstance(value, int):
            yield from _arrays_of_column(f"{field.name}/", value)


def _arrays_of_column(name: str, column: _Column) -> Iterator[tuple[str, Array]]:
    kind = type(column)
    for part in _PARTS[kind]:
        yield f"{name}/{kind.__name__}/{part}", getattr(column, part)
    if column.valid is not None:
        yield f"{name}/{kind.__name__}/valid", column.valid


def columns_of(
    count: int, names: Iterable[str], array: Callable[[str], Array], metrics: frozenset[int] | None = None
) -> ManifestColumns:
    """The columns of which `arrays_of` made arrays.

    Args:
        count: How many entries there are.
        names: What `arrays_of` named the arrays.
        array: Gives the array of a name.
        metrics: Ids of the columns whose metrics are wanted; None for all.
    """
    parts: dict[tuple[str, str, str], dict[str, Array]] = {}
    for name in names:
        field, column_id, kind, part = name.split("/")
        if metrics is None or field not in METRICS or int(column_id) in metrics:
            parts.setdefault((field, column_id, kind), {})[part] = array(name)
    found: dict[str, Any] = {f.name: {} for f in fields(ManifestColumns) if f.default_factory is dict}
    for (field, column_id, kind), arrays in parts.items():
        column = _KINDS[kind](**arrays)
        if column_id:
            found[field][int(column_id)] = column
        else:
            found[field] = column
    return ManifestColumns(count=count, **found)
