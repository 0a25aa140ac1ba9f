"""Tables without rows: every type at every place, every way to be empty, every operation, and what it should leave.

A `Case` is a table in memory with columns of some types, in one state; `READS` and `WRITES` are the operations. The
oracle are plain Python rows: what a table holds, and which of them an operation should have left.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa

import icebench
from icebench.engine.catalog.filesystem import FileSystemCatalog
from icebench.engine.columnar.batch_columns import no_rows
from icebench.engine.columnar.schemas import storage_field, to_arrow_schema
from icebench.engine.formats.file_writers import open_writer
from icebench.engine.formats.orc.orc_writer import OrcFileWriter
from icebench.engine.read.plans import planned_files
from icebench.engine.spec.data_file import DataFile, FileFormat
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import (
    INCOMPARABLE,
    UNKNOWN,
    GeospatialType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    list_type,
    map_type,
)
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.write.data_files import WriteTarget
from icebench.engine.write.delete_files import DeletedRows, write_position_deletes
from icebench.engine.write.vectors import write_deletion_vectors
from tests.unit.engine.codec.variant_encoder import encode

Row = dict[str, Any]

_POINTS = tuple(b"\x01\x01\0\0\0" + np.array([x, 2.0]).tobytes() for x in (1.0, 3.0, 5.0))
_DATES = tuple(dt.date(2024, month, 1) for month in (1, 3, 5))
_TIMES = tuple(dt.datetime(2024, month, 1, 12, tzinfo=dt.UTC) for month in (1, 3, 5))
_NANOS = tuple(n * 10**18 + 1 for n in (1, 3, 5))

TYPES: dict[str, tuple[PrimitiveType, tuple[Any, ...]]] = {
    "boolean": (icebench.BOOLEAN, (False, True, False)),
    "int": (icebench.INT, (1, 3, 5)),
    "long": (icebench.LONG, (1, 3, 5)),
    "float": (icebench.FLOAT, (1.0, 3.0, 5.0)),
    "double": (icebench.DOUBLE, (1.0, 3.0, 5.0)),
    "decimal9": (icebench.DecimalType(9, 2), (Decimal("1.00"), Decimal("3.00"), Decimal("5.00"))),
    "decimal18": (icebench.DecimalType(18, 2), (Decimal("1.00"), Decimal("3.00"), Decimal("5.00"))),
    "decimal38": (icebench.DecimalType(38, 10), (Decimal("1.0000000000"), Decimal("3.0000000000"), Decimal(5))),
    "date": (icebench.DATE, _DATES),
    "time": (icebench.TIME, tuple(dt.time(hour) for hour in (1, 3, 5))),
    "timestamp": (icebench.TIMESTAMP, tuple(each.replace(tzinfo=None) for each in _TIMES)),
    "timestamptz": (icebench.TIMESTAMPTZ, _TIMES),
    "timestamp_ns": (icebench.TIMESTAMP_NS, _NANOS),
    "timestamptz_ns": (icebench.TIMESTAMPTZ_NS, _NANOS),
    "string": (icebench.STRING, ("a", "c", "e")),
    "uuid": (icebench.UUID, tuple(uuid.UUID(int=n << 100).bytes for n in (1, 3, 5))),
    "fixed": (icebench.FixedType(4), (b"aaaa", b"cccc", b"eeee")),
    "binary": (icebench.BINARY, (b"a", b"c", b"e")),
    "variant": (icebench.VARIANT, (encode({"a": 1}), encode(3), encode("e"))),
    "geometry": (GeospatialType("geometry"), _POINTS),
    "geography": (GeospatialType("geography"), _POINTS),
    "unknown": (icebench.UNKNOWN, (None, None, None)),
}
"""Each type with three values as Arrow's storage takes them; the tables hold the first two."""

PLACES: dict[str, Callable[[Type, Callable[[], int]], Type]] = {
    "top": lambda type_, _: type_,
    "struct": lambda type_, new_id: StructType(
        (
            NestedField(field_id=new_id(), name="v", type=type_),
            NestedField(field_id=new_id(), name="n", type=icebench.INT),
        )
    ),
    "list": lambda type_, new_id: list_type(new_id(), type_),
    "map": lambda type_, new_id: map_type(new_id(), icebench.STRING, new_id(), type_),
    "key": lambda type_, new_id: map_type(new_id(), type_, new_id(), icebench.INT),
    "deep": lambda type_, new_id: list_type(
        new_id(),
        StructType(
            (NestedField(field_id=new_id(), name="v", type=map_type(new_id(), icebench.STRING, new_id(), type_)),)
        ),
    ),
}
_WRAPPED: dict[str, Callable[[Any], Any]] = {
    "top": lambda value: value,
    "struct": lambda value: {"v": value, "n": 1},
    "list": lambda value: [value, value],
    "map": lambda value: [("k", value)],
    "key": lambda value: [(value, 1)],
    "deep": lambda value: [{"v": [("k", value)]}],
}


@dataclass(frozen=True)
class Column:
    """A column of the table: a type at a place."""

    type_name: str
    place: str

    @property
    def name(self) -> str:
        return f"{self.type_name}_{self.place}"

    @property
    def leaf(self) -> PrimitiveType:
        return TYPES[self.type_name][0]

    @property
    def source(self) -> str:
        """The full name by which filters and partition fields refer to the values; empty inside lists and maps."""
        return {"top": self.name, "struct": f"{self.name}.v"}.get(self.place, "")

    def value(self, place: int) -> Any:
        return _WRAPPED[self.place](TYPES[self.type_name][1][place])

    def exists(self) -> bool:
        return not (self.place == "key" and self.leaf in (UNKNOWN, icebench.VARIANT))


COLUMNS = tuple(column for type_ in TYPES for place in PLACES if (column := Column(type_, place)).exists())


def schema_of(columns: Sequence[Column]) -> Schema:
    """``id`` and the columns."""
    ids = count(2)
    made = [NestedField(field_id=1, name="id", type=icebench.LONG)]
    for column in columns:
        type_ = PLACES[column.place](column.leaf, lambda: next(ids))
        made.append(NestedField(field_id=next(ids), name=column.name, type=type_))
    return Schema(tuple(made))


def plain(value: Any) -> Any:
    """A value as Python compares it: a uuid is its bytes, nanoseconds are their count."""
    if isinstance(value, uuid.UUID):
        return value.bytes
    if hasattr(value, "nanosecond"):  # pandas' Timestamp, of nanoseconds
        return value.value
    if isinstance(value, Mapping):
        return tuple((name, plain(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(plain(each) for each in value)
    return value


def plain_rows(rows: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(plain(each) for each in row.values()) for row in rows.to_pylist()), key=repr)


class Case:
    """A table in one state.

    Args:
        columns: Of what types, besides ``id``.
        state: Of `STATES`.
        partitioned_by: Transforms by column name.
        version: The format version.
        file_format: Of data files.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        state: str,
        *,
        partitioned_by: Sequence[tuple[str, str]] = (),
        version: int = 3,
        file_format: FileFormat = "parquet",
    ) -> None:
        self.columns = columns
        self.store = MemoryStore()
        self.file_format = file_format
        mode = "copy-on-write" if version == 1 else "merge-on-read"
        properties = {
            "format-version": str(version),
            "write.format.default": file_format,
            **{f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")},
            "write.spark.accept-any-schema": "true",
        }
        self._catalog = icebench.Catalog(FileSystemCatalog("memory://wh", self.store))
        table = self._catalog.create_table(
            "db.t", schema_of(columns), partition_spec=partitioned_by, properties=properties
        )
        self.arrow = to_arrow_schema(table.schema())
        self.stored = pa.schema([storage_field(field) for field in self.arrow])
        self.filters: Sequence[str] = ("id > 0",)
        self.live: list[Row] = []
        STATES[state](self, table)
        self._files = dict(self.store._files)

    @property
    def table(self) -> icebench.Table:
        """The table as it was in the beginning, whatever was done to it since."""
        self.store._files = dict(self._files)
        return self._catalog.load_table("db.t")

    def rows(self, ids: Sequence[int]) -> list[Row]:
        """Rows with these ids: the first two have values, others nulls."""
        return [
            {"id": n, **{column.name: column.value(n // 2) if n in (1, 3) else None for column in self.columns}}
            for n in ids
        ]

    def given(self, ids: Sequence[int]) -> pa.Table:
        """Rows in Arrow's own types, one chunk."""
        rows = self.rows(ids)
        return pa.table({f.name: pa.array([row[f.name] for row in rows], f.type) for f in self.stored})

    def plain(self, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
        made = pa.table({f.name: pa.array([row[f.name] for row in rows], f.type) for f in self.stored})
        return plain_rows(made)

    @cached_property
    def comparable(self) -> list[Column]:
        """The columns that filters and sort orders can name."""
        return [c for c in self.columns if c.source and c.leaf.name not in INCOMPARABLE]

    @property
    def keys(self) -> list[Column]:
        """The columns that can be a key."""
        return [c for c in self.comparable if c.place == "top" and c.leaf != UNKNOWN]

    def literal(self, column: Column) -> Any:
        """The first value of a column as a filter takes it; None where its type has none."""
        value = TYPES[column.type_name][1][0]
        if column.leaf == icebench.UUID:
            return uuid.UUID(bytes=value)
        if column.type_name.endswith("_ns"):
            return f"{np.datetime64(value, 'ns')}{'+00:00' if column.leaf == icebench.TIMESTAMPTZ_NS else ''}"
        return value


# ---- states ----------------------------------------------------------------------------------------------------------

_IDS = (1, 3, 5)


def _new(case: Case, table: icebench.Table) -> None:
    """No snapshot."""


def _appended_nothing(case: Case, table: icebench.Table) -> None:
    table.append(case.given(()))


def _removed(case: Case, table: icebench.Table) -> None:
    table.append(case.given(_IDS))
    table.delete("id > 0")
    assert not list(planned_files(table.scan().plan()))


def _by_position(case: Case, table: icebench.Table) -> None:
    table.append(case.given(_IDS))
    if table.metadata.format_version == 1:
        table.delete("id > 0")
        return
    deleted = [
        DeletedRows(
            file_path=file.file_path,
            positions=np.arange(file.record_count),
            spec_id=file.spec_id,
            partition=file.partition or (),
        )
        for file in planned_files(table.scan().plan())
    ]
    write = write_deletion_vectors if table.metadata.format_version >= 3 else write_position_deletes
    table.add_files(write(deleted, metadata=table.metadata, store=case.store))
    assert any(file.deletes for file in planned_files(table.scan().plan()))


def _by_key(case: Case, table: icebench.Table) -> None:
    table.append(case.given(_IDS))
    if table.metadata.format_version == 1 or table.spec.fields:
        table.delete("id > 0")
        return
    stream = table.keyed_stream(["id"])
    stream.delete(pa.table({"id": pa.array(_IDS, pa.int64())}))
    stream.commit()
    table.refresh()


def _file_without_rows(case: Case, table: icebench.Table) -> None:
    table.append(case.given(_IDS))
    first, *_ = planned_files(table.scan().plan())
    made = _written_empty(case, table)
    table.delete("id > 0")
    table.add_files(
        [
            DataFile(
                file_path=made,
                file_format=case.file_format,
                record_count=0,
                spec_id=first.spec_id,
                file_size_in_bytes=case.store.size(made),
                partition=first.partition or (),
            )
        ]
    )


def _written_empty(case: Case, table: icebench.Table) -> str:
    """A data file of the table's format without rows."""
    format = WriteTarget.of(table.metadata, case.store).format(sorted_by=None)
    location = f"{table.location}/data/empty.{format.options.file_format}"
    writer = open_writer(
        case.store.open_output(location), format.arrow_schema, format.schema, modes=format.modes, options=format.options
    )
    if isinstance(writer, OrcFileWriter):  # its library makes no file for no call
        writer._writer.write(no_rows(writer._file_schema))
    writer.close()
    return location


def _live(case: Case, table: icebench.Table) -> None:
    table.append(case.given(_IDS))
    case.live = case.rows(_IDS)
    case.filters = ("id > 100", "id = 2", "id * 2 = 4")


STATES: dict[str, Callable[[Case, icebench.Table], None]] = {
    "new": _new,
    "appended nothing": _appended_nothing,
    "removed": _removed,
    "deleted by position": _by_position,
    "deleted by key": _by_key,
    "file without rows": _file_without_rows,
    "no match": _live,
}


def transforms_of(column: Column) -> list[str]:
    """The transforms by which a table can be partitioned by a column."""
    names = ("identity", "bucket[4]", "truncate[2]", "year", "month", "day", "hour", "void")
    return [name for name in names if column.source and icebench.parse_transform(name).accepts(column.leaf)]
