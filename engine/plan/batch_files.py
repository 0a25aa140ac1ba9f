"""Record batches as Arrow IPC files that are checked when they are opened, column by column.

A file has one batch. Its metadata says what the file is about, and of each column its type, how many values and nulls
it has, and a checksum of its buffers: Arrow itself does not notice bytes that changed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


class DamagedError(Exception):
    """The bytes are not those that were written."""


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A file as opened: what it says of itself, and its columns, none of which is checked before it is asked for."""

    about: Mapping[str, Any]
    facts: Mapping[str, list[object]]
    batch: pa.RecordBatch

    def columns(self, names: Iterable[str]) -> pa.RecordBatch:
        """These columns, in the file's memory.

        Raises:
            DamagedError, pyarrow.ArrowInvalid, KeyError, ValueError: One of them is not what was written.
        """
        found = {name: self.batch.column(name) for name in names}
        for name, array in found.items():
            array.validate()  # the lengths that it claims, before anything of it is looked at
            if any(own != stored for own, stored in zip(_facts_of(array), self.facts[name], strict=True)):
                raise DamagedError(name)
        return pa.RecordBatch.from_arrays(list(found.values()), list(found))


def encode_batch(about: Mapping[str, object], batch: pa.RecordBatch) -> pa.Buffer:
    """The file of a batch.

    Args:
        about: What the file says of itself, as JSON has it.
        batch: Its columns have different names.
    """
    # Arrow leaves out what is not used of buffers, so the checksums are of what it reads.
    with pa.ipc.open_file(_written(batch)) as reader:
        stored = reader.get_batch(0)
    facts = {name: list(_facts_of(stored.column(name))) for name in stored.schema.names}
    text = json.dumps({"about": about, "columns": facts}).encode()
    return _written(stored.replace_schema_metadata({"index": text, "checksum": str(zlib.crc32(text))}))


def open_batch(data: pa.Buffer) -> StoredBatch:
    """The batch of a file, in the file's memory.

    Raises:
        DamagedError: What the file says of itself has another checksum.
        pyarrow.ArrowException, OSError, KeyError, TypeError, ValueError: It is no such file.
    """
    with pa.ipc.open_file(pa.BufferReader(data)) as reader:
        metadata = reader.schema.metadata or {}
        if str(zlib.crc32(metadata[b"index"])) != metadata[b"checksum"].decode():
            raise DamagedError("index")
        index = json.loads(metadata[b"index"])
        return StoredBatch(index["about"], index["columns"], reader.get_batch(0))


def _written(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _facts_of(array: pa.Array) -> Iterator[object]:
    """What is checked of an array, in an order in which each may be asked for where those before are right."""
    yield str(array.type)
    yield len(array)
    yield from (None if buffer is None else zlib.crc32(buffer) for buffer in array.buffers())
    yield array.null_count
    if pa.types.is_nested(array.type):
        yield from _facts_of(array.values)
