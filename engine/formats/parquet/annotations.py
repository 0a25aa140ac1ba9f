"""Logical types that pyarrow does not write, and one that it does not read (parquet.thrift: LogicalType).

pyarrow writes VARIANT, GEOMETRY and GEOGRAPHY as plain groups and byte arrays. `AnnotatedOutput` adds the annotations
to the footer before it reaches the file; nothing else in a file depends on the footer's length.

parquet-mr from 1.11 on writes UNKNOWN for the inner group of a map that Hive annotates as MAP_KEY_VALUE, which has no
logical type. pyarrow refuses such a file, whichever columns are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa

from icebench.engine.formats.parquet.footer_bytes import MARK_BYTES
from icebench.engine.formats.parquet.thrift import BINARY, LIST, STOP, STRUCT, read_field, read_list, read_number, skip
from icebench.engine.formats.parquet.thrift_writing import varint
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import VARIANT, GeospatialType, PrimitiveType, Type
from icebench.engine.storage.store import OutputFile

_SCHEMA = 2  # of FileMetaData
_NUM_CHILDREN, _FIELD_ID, _LOGICAL_TYPE = 5, 9, 10  # of SchemaElement
_UNKNOWN = 11  # of LogicalType
_BYTE, _INT32 = 3, 5
_VERSION = 1  # of the variant encoding
_ALGORITHMS = ("spherical", "vincenty", "thomas", "andoyer", "karney")


def annotations_of(schema: Schema) -> dict[int, bytes]:
    """The logical types to add, serialized, by field id."""
    return {
        field_id: _union(16, bytes([1 << 4 | _BYTE, _VERSION])) if f.type == VARIANT else _geospatial(f.type)
        for field_id, f in schema.by_id.items()
        if type(f.type) is GeospatialType or (type(f.type) is PrimitiveType and f.type.name == "variant")
    }


def _geospatial(type_: Type) -> bytes:
    assert isinstance(type_, GeospatialType)
    crs = (type_.crs or "").encode()
    parameters = bytes([1 << 4 | BINARY]) + varint(len(crs)) + crs if crs else b""
    if type_.algorithm is not None:
        parameters += bytes([(1 if crs else 2) << 4 | _INT32, _ALGORITHMS.index(type_.algorithm) << 1])
    return _union(17 if type_.name == "geometry" else 18, parameters)


def _union(member: int, fields: bytes) -> bytes:
    """A union whose member is a struct of these fields; numbers above 15 are not written as differences."""
    return bytes([STRUCT, member << 1]) + fields + bytes([STOP, STOP])


def annotate_footer(footer: bytes, annotations: Mapping[int, bytes]) -> bytes:
    """The footer with logical types on the schema elements of these field ids, which have none."""
    parts, copied = [], 0
    for fields, stop in _schema_elements(footer):
        field_id = read_number(footer, fields[_FIELD_ID].value)[0] if _FIELD_ID in fields else -1
        if field_id in annotations:
            head = bytes([(_LOGICAL_TYPE - max(fields)) << 4 | STRUCT])
            parts += [footer[copied:stop], head, annotations[field_id]]
            copied = stop
    return b"".join([*parts, footer[copied:]])


def without_null_groups(footer: bytes) -> bytes | None:
    """The footer without the logical type UNKNOWN on groups; None if it has none.

    Raises:
        IndexError: It ends too early.
        ValueError: It is damaged.
    """
    parts, copied = [], 0
    for fields, stop in _schema_elements(footer):
        logical = fields.get(_LOGICAL_TYPE)
        # No other field may follow, as its head has the difference from this one's number.
        if logical is None or logical.end != stop or _NUM_CHILDREN not in fields:
            continue
        if logical.kind == STRUCT and read_field(footer, logical.value, 0)[0] == _UNKNOWN:
            parts.append(footer[copied : logical.start])
            copied = stop
    return b"".join([*parts, footer[copied:]]) if parts else None


class _Field(NamedTuple):
    """A field of a struct: the positions of its head and value, and the position after it."""

    kind: int
    start: int
    value: int
    end: int


def _schema_elements(footer: bytes) -> Iterator[tuple[dict[int, _Field], int]]:
    """The fields of each schema element by number, and the position of the stop after them."""
    number, at = 0, 0
    while True:
        number, kind, at = read_field(footer, at, number)
        if kind == STOP:
            return
        if number == _SCHEMA and kind == LIST:
            break
        at = skip(footer, at, kind)
    count, _, at = read_list(footer, at)
    for _ in range(count):
        number, start, fields = 0, at, {}
        while True:
            number, kind, value = read_field(footer, start, number)
            if kind == STOP:
                break
            at = skip(footer, value, kind)
            fields[number] = _Field(kind, start, value, at)
            start = at
        yield fields, start
        at = start + 1


class AnnotatedOutput(OutputFile):
    """An output for a Parquet writer, whose footer gets annotations.

    Args:
        output: Where the file goes.
        annotations: The logical types to add, by field id.
    """

    def __init__(self, output: OutputFile, annotations: Mapping[int, bytes]) -> None:
        self._output = output
        self._annotations = annotations
        self._tail: pa.BufferOutputStream | None = None

    @contextmanager
    def annotating(self) -> Iterator[None]:
        """Context in which the rest of the file is written, the footer last."""
        self._tail = pa.BufferOutputStream()
        yield
        tail = self._tail.getvalue().to_pybytes()
        self._tail = None
        start = len(tail) - MARK_BYTES - int.from_bytes(tail[-MARK_BYTES:-4], "little")
        footer = annotate_footer(tail[start:-MARK_BYTES], self._annotations)
        self._output.write(tail[:start] + footer + len(footer).to_bytes(4, "little") + tail[-4:])

    @property
    def closed(self) -> bool:
        return self._output.closed

    def write(self, data: bytes, /) -> int:
        written: int = (self._output if self._tail is None else self._tail).write(data)
        return written

    def tell(self) -> int:
        return self._output.tell() + (0 if self._tail is None else int(self._tail.tell()))

    def close(self) -> None:
        self._output.close()

    def abort(self) -> None:
        self._output.abort()
