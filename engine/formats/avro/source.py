"""Avro data and delete files: blocks by field id (spec: appendix A, "Avro").

Top-level columns of primitive types are decoded by the columnar decoder of `icebench.engine.codec`. fastavro decodes,
value by value, what that does not support: nested types, decimals of varying length and fields without ids.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import fastavro
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat
from fastavro.schema import SchemaParseException

from icebench.engine.codec.array_views import cast_array, data_of, offsets_of, valid_of
from icebench.engine.codec.avro.file import AvroBlock, AvroHeader, read_blocks, read_header
from icebench.engine.codec.avro.reading.block_columns import decode_objects
from icebench.engine.codec.avro.reading.program import Selection
from icebench.engine.codec.block_codecs import BadBlockError, Buffer, Inflater
from icebench.engine.codec.budget import budget_of, piece_limit, too_large
from icebench.engine.columnar.schemas import field_id_of
from icebench.engine.errors import CorruptTable
from icebench.engine.formats.avro.schemas import MALFORMED, arrow_schema, converter, is_plain, plain_schema
from icebench.engine.formats.file_columns import FileColumns
from icebench.engine.formats.name_mapping import FilesWithoutIds, assign_field_ids, has_field_ids
from icebench.engine.formats.source import RowGroup, Source, explaining_missing_file, without_columns
from icebench.engine.spec.name_mapping import NameMapping
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.store import Store

_SYNC_SIZE = 16
_DECIMAL_BYTES = 16
_MOST_EMPTY_ROWS = 1 << 20
"""The most rows without bytes in one block: nulls of a type that is only null."""
_VALUE_TIMES = 32
"""Memory of values decoded one by one, relative to columns: an empty record takes hundreds of bytes."""
_GROUP_BYTES = 8 << 20
"""Compressed bytes that are decoded at a time, about."""


class AvroSource(Source):
    """An Avro file, held in memory: blocks cannot be found without reading those before them."""

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
            self._data = store.read(location)
        self.size_bytes = len(self._data)
        self._header: AvroHeader = read_header(self._data, location=location)
        self._stored = arrow_schema(self._header.schema, location)
        if name_mapping is None and without_ids is not None and not has_field_ids(self._stored):
            name_mapping = without_ids.ids_of(self._stored, location, store, by_position=False)
        self.columns = FileColumns(assign_field_ids(self._stored, name_mapping, location))
        self._groups = _groups(read_blocks(self._data, self._header))
        found, first_row = [], 0
        for index, blocks in enumerate(self._groups):
            self._check_counts(blocks)
            rows = sum(block.count for block in blocks)
            found.append(RowGroup(index, first_row, rows, blocks[-1].end - self._start_of(blocks)))
            first_row += rows
        self.row_groups = tuple(found)
        self.num_rows = first_row

    def _check_counts(self, blocks: Sequence[AvroBlock]) -> None:
        """Raise CorruptTable for a block that claims more rows than its bytes can hold, before memory is allocated for
        them."""
        most = max(piece_limit(len(self._data)), _MOST_EMPTY_ROWS)
        for block in blocks:
            if block.count > most:
                reason = f"claims {block.count} rows"
                raise CorruptTable(reason, location=self.location, path=f"block {block.index}")

    @property
    def accounts_for_all_bytes(self) -> bool:
        return True  # a sync marker after each block, to the end

    def offset(self, row_group: int) -> int:
        return self._start_of(self._groups[row_group])

    def read(self, row_group: int, wanted: Schema) -> pa.Table:
        places = [place for f in wanted.fields if (place := self.columns.place_of(f.field_id, f.name)) is not None]
        if not places:
            return without_columns(self.row_groups[row_group].num_rows)
        blocks = self._groups[row_group]
        plain = [place for place in places if is_plain(self._stored.field(place), self._header.schema["fields"][place])]
        columns = {**self._decoded(blocks, plain), **self._by_value(blocks, [p for p in places if p not in plain])}
        fields = [self.columns.schema.field(place) for place in places]
        arrays = [columns[place].cast(f.type) for place, f in zip(places, fields, strict=True)]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def _start_of(self, blocks: Sequence[AvroBlock]) -> int:
        """The offset of the first block, with its count: after the sync marker of the one before."""
        first = blocks[0].index
        return self._header.size if first == 0 else self._before[first] + _SYNC_SIZE

    @cached_property
    def _before(self) -> list[int]:
        """For each block, the end of the block before it."""
        return [0, *(block.end for blocks in self._groups for block in blocks)]

    def _decoded(self, blocks: Sequence[AvroBlock], places: Sequence[int]) -> dict[int, pa.Array]:
        if not places:
            return {}
        part = self._data[self._start_of(blocks) : blocks[-1].end + _SYNC_SIZE]
        ids = {place: field_id_of(self._stored.field(place)) for place in places}
        selection = Selection(frozenset((i,) for i in ids.values() if i is not None))
        found = decode_objects(self._data[: self._header.size] + part, self._header, selection)
        made = {}
        for place, field_id in ids.items():
            assert field_id is not None
            made[place] = _typed(found.columns[field_id,], self._stored.field(place).type, self.location)
        return made

    def _by_value(self, blocks: Sequence[AvroBlock], places: Sequence[int]) -> dict[int, pa.Array]:
        if not places:
            return {}
        schema = self._value_schema()
        budget = budget_of(len(self._data))
        most = piece_limit(len(self._data)) // _VALUE_TIMES
        inflate = Inflater(self._header.codec, most)
        if len(blocks) * most > budget:
            self._check_inflated(blocks, inflate, budget)
        made: dict[int, list[pa.Array]] = {place: [pa.array([], self._stored.field(place).type)] for place in places}
        kept = 0
        for block in blocks:
            rows = self._values(block, inflate, schema)
            for place, parts in made.items():
                field = self._stored.field(place)
                convert = converter(field.type)
                values = [row[field.name] for row in rows]
                parts.append(pa.array([None if v is None else convert(v) for v in values], field.type))
                kept += parts[-1].nbytes
            if kept > budget:
                raise self._too_large(block, budget)
        return {place: pa.concat_arrays(parts) for place, parts in made.items()}

    def _check_inflated(self, blocks: Sequence[AvroBlock], inflate: Inflater, budget: int) -> None:
        """Raise TooLarge if the blocks inflate to more than the columns may take: values are made so slowly that this
        would be known after minutes."""
        left = budget
        for block in blocks:
            left -= len(self._body(block, inflate))
            if left < 0:
                raise self._too_large(block, budget)

    def _too_large(self, block: AvroBlock, budget: int) -> CorruptTable:
        what = f"a file of {len(self._data)} bytes"
        return too_large(what, budget, location=self.location, path=f"block {block.index}")

    def _body(self, block: AvroBlock, inflate: Inflater) -> Buffer:
        try:
            return inflate(memoryview(self._data)[block.start : block.end])
        except BadBlockError as error:
            raise error.at(self.location, f"block {block.index}") from error

    def _values(self, block: AvroBlock, inflate: Inflater, schema: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON
        """The rows of a block as Python values."""
        path = f"block {block.index}"
        body = bytes(self._body(block, inflate))
        try:
            if block.count > max(len(body), _MOST_EMPTY_ROWS):
                raise CorruptTable("has fewer bytes than rows", location=self.location, path=path)
            stream = io.BytesIO(body)
            return [fastavro.schemaless_reader(stream, schema, None) for _ in range(block.count)]  # type: ignore[misc]
        except (EOFError, ValueError, IndexError, RecursionError) as error:
            raise CorruptTable(f"{error!s:.300}", location=self.location, path=path) from error

    def _value_schema(self) -> Any:  # noqa: ANN401 - JSON
        """The schema in fastavro's form."""
        try:
            return fastavro.parse_schema(plain_schema(self._header.schema))
        except (SchemaParseException, *MALFORMED) as error:
            raise CorruptTable(f"the Avro schema is malformed: {error!s:.300}", location=self.location) from error

    def close(self) -> None:
        self._data = b""


def _groups(blocks: Sequence[AvroBlock]) -> list[list[AvroBlock]]:
    """Group neighbouring blocks that are decoded together."""
    groups: list[list[AvroBlock]] = []
    size = 0
    for block in blocks:
        if not groups or size >= _GROUP_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(block)
        size += block.end - block.start
    return groups


def _typed(column: pa.Array, type_: pa.DataType, location: str) -> pa.Array:
    """A decoded column as one of the types of `schemas.arrow_schema`."""
    if pat.is_decimal(type_) or pat.is_fixed_size_binary(type_):
        rows = _fixed_bytes(column, location)
        if pat.is_decimal(type_):
            rows = _little_endian(rows)
        elif not rows.shape[1]:
            return pa.nulls(len(column), type_)
        buffers = [column.buffers()[0], pa.py_buffer(np.ascontiguousarray(rows))]
        return pa.Array.from_buffers(type_, len(column), buffers)
    if not pat.is_large_binary(column.type):
        return cast_array(column, type_)
    if not pat.is_string(type_):
        return column
    made = pa.Array.from_buffers(pa.large_string(), len(column), column.buffers())
    try:
        made.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptTable(f"text that is not UTF-8: {error}", location=location) from error
    return made


def _fixed_bytes(column: pa.Array, location: str) -> npt.NDArray[np.uint8]:
    """Byte strings of one length as the rows of a matrix, zeros where there is none."""
    ends, valid = offsets_of(column), valid_of(column)
    lengths = np.diff(ends)
    present = np.ones(len(column), np.bool_) if valid is None else valid
    own = lengths[present]
    if len(own) and (own != own[0]).any():
        raise CorruptTable("fixed values of several lengths", location=location)
    rows = np.zeros((len(column), int(own[0]) if len(own) else 0), np.uint8)
    if len(own):
        start = int(ends[0])
        rows[present] = data_of(column)[start : start + int(own.sum())].reshape(len(own), -1)
    return rows


def _little_endian(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Big-endian two's complement of one length as decimal128 has it."""
    wide = np.zeros((len(rows), _DECIMAL_BYTES), np.uint8)
    if rows.shape[1]:
        wide[:] = np.where(rows[:, :1] & 0x80, 0xFF, 0)
        wide[:, : rows.shape[1]] = rows[:, ::-1]
    return wide
