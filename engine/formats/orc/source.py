"""ORC files: stripes by field id (spec: appendix A, "ORC").

Field ids are type attributes (``iceberg.id``), which pyarrow gives as the metadata of Arrow fields. Attributes also say
which longs are times and which binaries are of a fixed length. pyarrow knows no statistics of stripes, so filters skip
none of them.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat
from pyarrow import orc

from icebench.engine.columnar.schemas import FIELD_ID_KEY, child_fields, is_list
from icebench.engine.errors import CorruptTable, Unsupported
from icebench.engine.formats.file_columns import FileColumns
from icebench.engine.formats.name_mapping import FilesWithoutIds, assign_field_ids, has_field_ids
from icebench.engine.formats.orc.footer import OrcFooters, footers_of
from icebench.engine.formats.orc.tail import decode_orc_footer
from icebench.engine.formats.source import RowGroup, Source, explaining_missing_file, native_file, without_columns
from icebench.engine.spec.name_mapping import NameMapping
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.store import Store

_ID, _LONG_TYPE, _BINARY_TYPE, _LENGTH = b"iceberg.id", b"iceberg.long-type", b"iceberg.binary-type", b"iceberg.length"
_UUID_BYTES = 16
_MAGIC = b"ORC"
_TAIL_BYTES = 16 << 10
"""Bytes fetched from the end of a file first, as the library does."""
_MOST_MILLISECONDS = (2**63 - 1) // 1_000_000
"""pyarrow reads timestamps of ORC as 64-bit nanoseconds, whatever they are in the table; see `_check_timestamps`."""


class OrcSource(Source):
    """An open ORC file. Thread-safe: each `read` has a reader of its own.

    Raises:
        Unsupported: Besides, the file holds timestamps before 1678 or after 2261, which pyarrow can not read.
    """

    def __init__(
        self,
        store: Store,
        location: str,
        *,
        name_mapping: NameMapping | None = None,
        without_ids: FilesWithoutIds | None = None,
        needed_by: str | None = None,
    ) -> None:
        self.location = location
        with explaining_missing_file(location, needed_by):
            self._input = native_file(store.open_input(location))
        try:
            self.size_bytes = self._input.size()
            self._footers, footer = _checked_footer(self._input, location)
            tail = decode_orc_footer(footer, location=location)
            file = orc.ORCFile(self._input)
            self.num_rows = int(file.nrows)
            self._stored: pa.Schema = file.schema
            schema = pa.schema([_identified_field(f) for f in file.schema])
            if name_mapping is None and without_ids is not None and not has_field_ids(schema):
                name_mapping = without_ids.ids_of(schema, location, store, by_position=False)
            self._schema = assign_field_ids(schema, name_mapping, location)
            self.columns = FileColumns(self._schema)
            _check_timestamps(tail.timestamp_bounds_ms, location)
            stated = sum(stripe.rows for stripe in tail.stripes)
            if stated != self.num_rows:
                raise ValueError(f"its stripes have {stated} rows, and its footer says {self.num_rows}")
        except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
            # Attributes that are no numbers, names that are not UTF-8.
            self._input.close()
            raise CorruptTable(f"not a readable ORC file: {error}", location=location) from error
        except BaseException:
            self._input.close()
            raise
        self._stripes = tail.stripes
        found, first_row = [], 0
        for index, stripe in enumerate(tail.stripes):
            found.append(RowGroup(index, first_row, stripe.rows, stripe.size_bytes))
            first_row += stripe.rows
        self.row_groups = tuple(found)

    @property
    def accounts_for_all_bytes(self) -> bool:
        last = max((s.offset + s.size_bytes for s in self._stripes), default=len(_MAGIC))
        return last + self._footers.tail_bytes == self.size_bytes

    def offset(self, row_group: int) -> int:
        return self._stripes[row_group].offset

    def read(self, row_group: int, wanted: Schema) -> pa.Table:
        """See `Source.read`; the wanted top-level columns are decoded whole."""
        places = sorted(
            place for f in wanted.fields if (place := self.columns.place_of(f.field_id, f.name)) is not None
        )
        rows = self.row_groups[row_group].num_rows
        if not places:
            return without_columns(rows)
        names = [self._stored.field(place).name for place in places]
        # pyarrow takes a dot as a path into a struct.
        chosen = None if any("." in name for name in names) else names
        stripe = self._stripes[row_group]
        try:
            footer_at = stripe.offset + stripe.size_bytes - stripe.footer_bytes
            self._footers.check_stripe(self._input.read_at(stripe.footer_bytes, footer_at), row_group)
            batch = orc.ORCFile(self._input).read_stripe(row_group, columns=chosen)
            table = pa.Table.from_batches([batch]).select(names)
            # ORC has no checksums, and pyarrow does not check for UTF-8.
            table.validate(full=True)
            return table.cast(pa.schema([self._schema.field(place) for place in places]))
        except (pa.ArrowException, OSError, OverflowError, MemoryError) as error:
            raise CorruptTable(f"stripe {row_group}: {error}", location=self.location) from error

    def close(self) -> None:
        self._input.close()


def _checked_footer(file: pa.NativeFile, location: str) -> tuple[OrcFooters, bytes]:
    """The footer of a file; raises as `icebench.engine.formats.orc.footer.footers_of`."""
    size, wanted = file.size(), _TAIL_BYTES
    while True:
        tail = file.read_at(min(wanted, size), max(size - wanted, 0))
        found = footers_of(tail, size, location=location)
        if found.footer is not None:
            return found, found.footer
        wanted = found.end_bytes


def _check_timestamps(bounds_ms: tuple[int, ...], location: str) -> None:
    if any(abs(bound) > _MOST_MILLISECONDS for bound in bounds_ms):
        raise Unsupported(f"{location}: an ORC file with timestamps before 1678 or after 2261")


def _identified_field(field: pa.Field) -> pa.Field:
    """A field with its id in Parquet's metadata key, and the type that its attributes state."""
    attributes = field.metadata or {}
    metadata = {FIELD_ID_KEY: str(int(attributes[_ID]))} if _ID in attributes else None
    return pa.field(field.name, _type_of(field.type, attributes), nullable=True, metadata=metadata)


def _type_of(type_: pa.DataType, attributes: dict[bytes, bytes]) -> pa.DataType:
    if pat.is_struct(type_):
        return pa.struct([_identified_field(f) for f in child_fields(type_)])
    if pat.is_map(type_):
        key, value = (_identified_field(f) for f in child_fields(type_))
        return pa.map_(key.with_nullable(False), value)
    if is_list(type_):
        return pa.list_(_identified_field(type_.value_field))
    if pat.is_int64(type_) and attributes.get(_LONG_TYPE) == b"TIME":
        return pa.time64("us")
    if pat.is_binary(type_):
        match attributes.get(_BINARY_TYPE):
            case b"UUID":
                return pa.binary(_UUID_BYTES)
            case b"FIXED":
                return pa.binary(int(attributes[_LENGTH]))
    return type_
