"""Reads new files back and compares their rows with those that were given, before anything refers to them.

Encoders of nested columns are libraries, one of which has lost values without an error.
"""

from __future__ import annotations

import pyarrow as pa

from engine.columnar.digests import ColumnDigest
from engine.columnar.projection import Projector
from engine.columnar.schemas import field_id_of
from engine.errors import CorruptTable, WriteMismatch
from engine.formats.opening import open_source
from engine.spec.schema import Schema
from engine.spec.types import UNKNOWN, NestedField, PrimitiveType
from engine.storage.store import Store

_ROWS = 1 << 16
_NOT_TRUSTED = ("orc", "avro")
"""Formats whose nested columns are compared by default."""


def compared_columns(schema: Schema, file_format: str, which: str) -> Schema | None:
    """The columns of new files that are read back and compared; None for none.

    Args:
        schema: Of the files.
        file_format: Their format.
        which: ``nested`` for nested columns of ORC and Avro files, ``all`` for all columns of all files, ``none``.
    """
    fields = [f for f in schema.fields if f.type != UNKNOWN]  # which is not written
    if which == "nested":
        fields = [f for f in fields if not isinstance(f.type, PrimitiveType) and file_format in _NOT_TRUSTED]
    return Schema(tuple(fields), schema.schema_id) if fields and which != "none" else None


class GivenRows:
    """Digests of the rows that are given to a writer.

    Args:
        compared: The columns to compare.
    """

    def __init__(self, compared: Schema) -> None:
        self._compared = compared
        self._digests = [ColumnDigest() for _ in compared.fields]
        self._rows = 0

    def add(self, batch: pa.RecordBatch, schema: pa.Schema) -> None:
        """Add the next rows, which have the columns of `schema`."""
        places = {field_id_of(f): place for place, f in enumerate(schema)}
        _add(self._digests, [batch.column(places[f.field_id]) for f in self._compared.fields])
        self._rows += batch.num_rows

    def compare(self, store: Store, location: str, *, file_format: str) -> None:
        """Read a file, a row group at a time.

        Raises:
            WriteMismatch: It does not hold the given rows.
        """
        found = [ColumnDigest() for _ in self._compared.fields]
        projector = Projector(missing=_missing)
        try:
            with open_source(store, location, file_format=file_format) as source:
                rows = source.num_rows
                for group in source.row_groups:
                    for table in source.batches(group.index, self._compared, rows=_ROWS):
                        for batch in projector.table(table, self._compared).to_batches():
                            _add(found, batch.columns)
        except CorruptTable as error:
            raise WriteMismatch(f"a new file cannot be read back: {error}") from error
        if rows != self._rows:
            raise WriteMismatch(f"{location}: {rows} rows were written of {self._rows}")
        for field, given, own in zip(self._compared.fields, self._digests, found, strict=True):
            if given.result() != own.result():
                raise WriteMismatch(f"{location}: column {field.name!r} reads back with other values than were given")


def _add(digests: list[ColumnDigest], columns: list[pa.Array]) -> None:
    for digest, column in zip(digests, columns, strict=True):
        digest.add(column)


def _missing(field: NestedField, name: str, length: int) -> pa.Array:
    raise CorruptTable(f"no column {name!r} (id {field.field_id}) for {length} rows")
