"""Logical types that pyarrow does not write: VARIANT, GEOMETRY and GEOGRAPHY (parquet.thrift: LogicalType).

pyarrow writes such columns as plain groups and byte arrays. `AnnotatedOutput` adds the annotations to the footer before
it reaches the file; nothing else in a file depends on the footer's length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from icebench.engine.formats.parquet.footer_bytes import MARK_BYTES
from icebench.engine.formats.parquet.thrift import BINARY, LIST, STOP, STRUCT, read_field, read_list, read_number, skip
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import VARIANT, GeospatialType, PrimitiveType, Type
from icebench.engine.storage.store import OutputFile

_SCHEMA = 2  # of FileMetaData
_FIELD_ID, _LOGICAL_TYPE = 9, 10  # of SchemaElement
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
    parameters = bytes([1 << 4 | BINARY]) + _varint(len(crs)) + crs if crs else b""
    if type_.algorithm is not None:
        parameters += bytes([(1 if crs else 2) << 4 | _INT32, _ALGORITHMS.index(type_.algorithm) << 1])
    return _union(17 if type_.name == "geometry" else 18, parameters)


def _union(member: int, fields: bytes) -> bytes:
    """A union whose member is a struct of these fields; numbers above 15 are not written as differences."""
    return bytes([STRUCT, member << 1]) + fields + bytes([STOP, STOP])


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def annotate_footer(footer: bytes, annotations: Mapping[int, bytes]) -> bytes:
    """The footer with logical types on the schema elements of these field ids, which have none."""
    number, at = 0, 0
    while True:
        number, kind, at = read_field(footer, at, number)
        if number == _SCHEMA and kind == LIST:
            break
        at = skip(footer, at, kind)
    count, _, at = read_list(footer, at)
    parts, copied = [], 0
    for _ in range(count):
        number, field_id = 0, -1
        while True:
            before = number, at
            number, kind, at = read_field(footer, at, number)
            if kind == STOP:
                break
            if number == _FIELD_ID:
                field_id, _ = read_number(footer, at)
            at = skip(footer, at, kind)
        if field_id in annotations:
            last, stop = before
            parts += [footer[copied:stop], bytes([(_LOGICAL_TYPE - last) << 4 | STRUCT]), annotations[field_id]]
            copied = stop
    return b"".join([*parts, footer[copied:]])


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
