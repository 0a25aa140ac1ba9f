"""The short form of each metadata table: what people ask first, in few enough columns for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from rich.cells import cell_len, set_cell_size

import icebench
from icebench.bench.cli.failures import printable
from icebench.bench.cli.rows import text_of, values_of
from icebench.bench.errors import ConfigError
from icebench.bench.report.quantities import digits, duration, quantity

Form = Literal["end", "text", "bytes", "count", "id", "time", "age"]
"""How values are shown: ends of paths and texts can be cut, the others cannot."""
_CUT: tuple[Form, ...] = ("end", "text")
_LARGE_COUNT = 10_000_000
_FEWEST = 6
"""Characters that a column keeps, however narrow the terminal."""
_CONTENTS = {0: "data", 1: "position", 2: "equality"}
_STATUSES = {0: "existing", 1: "added", 2: "deleted"}
_UNITS: Mapping[str, Callable[[int], str]] = {
    "year": lambda value: f"{value + 1970:04d}",
    "month": lambda value: f"{value // 12 + 1970:04d}-{value % 12 + 1:02d}",
    "hour": lambda value: f"{pa.scalar(value // 24, pa.date32()).cast(pa.string())}-{value % 24:02d}",
}
"""Partition values that count units of time since 1970, as partition paths have them."""


@dataclass(frozen=True)
class Read:
    """A metadata table as it was read.

    Args:
        table: What it is of.
        rows: Its own columns.
        snapshot_id: As of that snapshot; None for the current one.
    """

    table: icebench.Table
    rows: pa.Table
    snapshot_id: int | None = None


@dataclass(frozen=True)
class Column:
    """A column of a short form.

    Args:
        name: Its heading, and its name in options.
        of: A column of the metadata table, with dots; or what computes it, None where it does not apply.
        form: How values are shown.
        shown: Turns a value into one of `form`.
    """

    name: str
    of: str | Callable[[Read], pa.Array | None]
    form: Form = "count"
    shown: Callable[[Any], Any] | None = None


def _deletes(read: Read) -> pa.Array:
    """How many delete files apply to each data file; null for delete files."""
    planned = read.table.scan(snapshot_id=read.snapshot_id).plan().files
    lengths = pc.list_value_length(planned["deletes"]).to_pylist()
    counts = dict(zip(planned["file_path"].to_pylist(), lengths, strict=True))
    return pa.array([counts.get(path) for path in read.rows["file_path"].to_pylist()], pa.int32())


def _kind(read: Read) -> pa.Array | None:
    """Which files delete rows, in a table that has such."""
    rows = read.rows
    if not pc.any(pc.not_equal(rows["content"], 0)).as_py():
        return None
    pairs = zip(rows["content"].to_pylist(), rows["file_format"].to_pylist(), strict=True)
    return pa.array(["vector" if format == "PUFFIN" else _CONTENTS[content] for content, format in pairs])


def _sorted(read: Read) -> pa.Array:
    """By which columns files claim to be sorted."""
    names = {}
    for order_id, order in read.table.sort_orders().items():
        fields = [read.table.schema.name_of.get(field.source_id, str(field.source_id)) for field in order.fields]
        names[order_id] = ",".join(fields) or None
    return pa.array([names.get(order_id) for order_id in read.rows["sort_order_id"].to_pylist()], pa.string())


def key_column(table: icebench.Table) -> str | None:
    """The column whose bounds are shown: the first of the sort order, else the first identifier, else the first that
    is not nested; None if there is none."""
    schema = table.schema
    ids = [*(field.source_id for field in table.sort_order.fields), *sorted(schema.identifier_field_ids)]
    leaves = [f.field_id for f in schema.walk() if isinstance(f.type, icebench.PrimitiveType)]
    return next((schema.name_of[each] for each in [*ids, *leaves] if each in leaves), None)


def _bound(name: str) -> Callable[[Read], pa.Array | None]:
    def bound(read: Read) -> pa.Array | None:
        key = key_column(read.table)
        metrics = read.rows["readable_metrics"].combine_chunks()
        if key is None or metrics.type.get_field_index(key) < 0:
            return None
        return pc.struct_field(pc.struct_field(metrics, [metrics.type.get_field_index(key)]), name)

    return bound


def _summary(key: str) -> Callable[[Read], pa.Array]:
    def counts(read: Read) -> pa.Array:
        texts = [dict(each or ()).get(key) for each in read.rows["summary"].to_pylist()]
        return pa.array([int(text) if text is not None and text.isdecimal() else None for text in texts], pa.int64())

    return counts


def _files_of(change: str) -> Callable[[Read], pa.Array]:
    def counts(read: Read) -> pa.Array:
        of_kinds = [read.rows[f"{change}_{kind}_files_count"] for kind in ("data", "delete")]
        return pc.add(*(pc.fill_null(each, 0) for each in of_kinds)).combine_chunks()

    return counts


def _partition_bounds(summaries: Sequence[Mapping[str, Any]] | None) -> str:
    # There is none where no schema has the field's column any more.
    bounds = [(each["lower_bound"], each["upper_bound"]) for each in summaries or ()]
    ends = [("?" if low is None else low, "?" if high is None else high) for low, high in bounds]
    return ", ".join(low if low == high else f"{low} to {high}" for low, high in ends)


_CONTENT = Column("content", "content", "text", lambda value: "data" if value == 0 else "deletes")
_PARTITION = Column("partition", "partition", "text")
_FILES = (
    Column("file", "file_path", "end"),
    Column("kind", _kind, "text"),
    Column("rows", "record_count"),
    Column("size", "file_size_in_bytes", "bytes"),
    _PARTITION,
    Column("deletes", _deletes),
    Column("sorted", _sorted, "text"),
    Column("lower", _bound("lower_bound"), "text"),
    Column("upper", _bound("upper_bound"), "text"),
)
_ALL_FILES = tuple(column for column in _FILES if column.name != "deletes")
_MANIFESTS = (
    Column("file", "path", "end"),
    _CONTENT,
    Column("size", "length", "bytes"),
    *(Column(change, _files_of(change)) for change in ("added", "existing", "deleted")),
    Column("bounds", "partition_summaries", "text", _partition_bounds),
)
_ENTRIES = (
    Column("status", "status", "text", _STATUSES.get),
    Column("snapshot_id", "snapshot_id", "id"),
    Column("file", "data_file.file_path", "end"),
    Column("rows", "data_file.record_count"),
    Column("size", "data_file.file_size_in_bytes", "bytes"),
)
SHORT: Mapping[str, tuple[Column, ...]] = {
    "snapshots": (
        Column("committed_at", "committed_at", "time"),
        Column("snapshot_id", "snapshot_id", "id"),
        Column("operation", "operation", "text"),
        Column("added", _summary("added-records")),
        Column("deleted", _summary("deleted-records")),
        Column("files", _summary("total-data-files")),
        Column("rows", _summary("total-records")),
    ),
    "history": (
        Column("made_current_at", "made_current_at", "time"),
        Column("snapshot_id", "snapshot_id", "id"),
        Column("parent_id", "parent_id", "id"),
        Column("ancestor", "is_current_ancestor", "text", lambda value: "yes" if value else "no"),
    ),
    "refs": (
        Column("name", "name", "text"),
        Column("type", "type", "text"),
        Column("snapshot_id", "snapshot_id", "id"),
        Column("keep", "min_snapshots_to_keep"),
        Column("max_age", "max_snapshot_age_in_ms", "age"),
        Column("ref_max_age", "max_reference_age_in_ms", "age"),
    ),
    "metadata_log_entries": (
        Column("timestamp", "timestamp", "time"),
        Column("file", "file", "end"),
        Column("latest_snapshot_id", "latest_snapshot_id", "id"),
        Column("schema", "latest_schema_id", "id"),
    ),
    "manifests": _MANIFESTS,
    "all_manifests": _MANIFESTS,
    "entries": _ENTRIES,
    "all_entries": _ENTRIES,
    "files": _FILES,
    "data_files": _FILES,
    "delete_files": _ALL_FILES,
    "all_files": _ALL_FILES,
    "all_data_files": _ALL_FILES,
    "all_delete_files": _ALL_FILES,
    "partitions": (
        _PARTITION,
        Column("rows", "record_count"),
        Column("files", "file_count"),
        Column("size", "total_data_file_size_in_bytes", "bytes"),
        Column("by_position", "position_delete_record_count"),
        Column("by_key", "equality_delete_record_count"),
        Column("updated", "last_updated_at", "time"),
    ),
    "position_deletes": (
        Column("file", "file_path", "end"),
        Column("pos", "pos"),
        Column("delete_file", "delete_file_path", "end"),
    ),
}


def with_short_columns(name: str, read: Read) -> tuple[pa.Table, tuple[Column, ...]]:
    """The metadata table with the columns of its short form, which come first, and those that apply to it."""
    applied: list[Column] = []
    columns: dict[str, pa.ChunkedArray] = {}
    for column in SHORT[name]:
        if callable(column.of):
            made = column.of(read)
        elif column is _PARTITION and column.name not in read.rows.column_names:
            made = None  # as in a table that was never partitioned
        else:
            made = column_of(read.rows, column.of, "X")
        if made is not None:
            applied.append(column)
            columns[column.name] = made
    own = {own: read.rows[own] for own in read.rows.column_names if own not in columns}
    return pa.table(columns | own), tuple(applied)


def column_of(rows: pa.Table, path: str, option: str) -> pa.ChunkedArray:
    """A column by its name, of fields of structs with dots.

    Raises:
        ConfigError: There is none; names the option and the columns there are.
    """
    names, rest = tuple(rows.column_names), path
    found: pa.ChunkedArray | None = None
    while True:
        name = max((each for each in names if rest == each or rest.startswith(f"{each}.")), key=len, default=None)
        if name is None:
            within = f"{path.removesuffix(rest).rstrip('.')} has no field {rest!r}" if found is not None else ""
            raise ConfigError(
                f"{within or f'no column {path!r}'}; there are: {', '.join(names) or 'none'}", path=option
            )
        found = rows[name] if found is None else pc.struct_field(found, [names.index(name)])
        rest = rest[len(name) + 1 :]
        if not rest:
            return found
        names = tuple(field.name for field in found.type) if pa.types.is_struct(found.type) else ()


def short_texts(read: Read, column: Column, values: pa.ChunkedArray) -> list[str]:
    """The texts of a column's values; nothing for null."""
    units = _partition_units(read.table)
    is_partition = column.name.rpartition(".")[2] == _PARTITION.name

    def text(value: Any) -> str:  # noqa: ANN401 - any value that Arrow holds
        value = column.shown(value) if column.shown is not None and value is not None else value
        if value is None:
            return ""
        match column.form:
            case "end":
                name = str(value).rpartition("/")[2]
                return name.removesuffix(".parquet").removesuffix(".avro")
            case "bytes":
                return quantity(value, "bytes")
            case "count":
                return f"{value:,}" if abs(value) < _LARGE_COUNT else _large(value)
            case "time":
                return f"{value:%Y-%m-%d %H:%M}"
            case "age":
                return duration(value / 1000)
        if isinstance(value, dict) and is_partition:
            parts = ("null" if part is None else units.get(name, text_of)(part) for name, part in value.items())
            return "/".join(parts)
        return text_of(value)

    return [printable(text(value)) for (value,) in values_of(pa.table({"": values}), "--columns")]


def _large(value: int) -> str:
    step, letter = next(each for each in ((1e12, "T"), (1e9, "G"), (1e6, "M")) if abs(value) >= each[0])
    return f"{digits(value / step)} {letter}"


def _partition_units(table: icebench.Table) -> dict[str, Callable[[Any], str]]:
    """How values of partition fields are shown that are not shown as they are."""
    found: dict[str, Callable[[Any], str]] = {}
    for spec in table.specs().values():
        for field in spec.fields:
            unit = _UNITS.get(str(field.transform))
            if unit is not None:
                found[field.name] = unit
    return found


def legend(table: icebench.Table, columns: Sequence[Column]) -> Iterator[str]:
    """What the headings of a short form leave unsaid."""
    names = {column.name for column in columns if column in (*_FILES, _PARTITION)}
    fields = list(dict.fromkeys(field.name for spec in table.specs().values() for field in spec.fields))
    if "partition" in names and fields:
        yield f"partition: {'/'.join(fields)}"
    if names & {"lower", "upper"}:
        yield f"lower, upper: the bounds of {key_column(table)}"


def lines_of(columns: Sequence[Column], texts: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """A heading and a line for each row, of at most `width` characters: texts that can be cut lose their middle, the
    longest first."""
    cells = [[column.name, *of_rows] for column, of_rows in zip(columns, texts, strict=True)]
    widths = [max(map(cell_len, of_column)) for of_column in cells]
    cuttable = [place for place, column in enumerate(columns) if column.form in _CUT]
    while width is not None and sum(widths) + len(widths) - 1 > width:
        longest = max(cuttable, key=lambda place: widths[place], default=None)
        if longest is None or widths[longest] <= _FEWEST:
            break
        widths[longest] -= 1
    padded = []
    for column, of_column, room in zip(columns, cells, widths, strict=True):
        short = [cut(text, room) for text in of_column]
        spaces = [" " * (room - cell_len(text)) for text in short]
        is_left = column.form in (*_CUT, "time")
        padded.append([text + space if is_left else space + text for text, space in zip(short, spaces, strict=True)])
    return [" ".join(line).rstrip() for line in zip(*padded, strict=True)]


def cut(text: str, width: int) -> str:
    """The text without its middle: begin and end say which file it is."""
    if cell_len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{set_cell_size(text, width - 1 - end)}…{set_cell_size(text[::-1], end)[::-1]}"
