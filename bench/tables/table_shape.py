"""Whether a table has the shape that its layout claims, read from its metadata, manifests, footers and rows.

It is read by other code than wrote it (`icebench.bench.truth`, pyarrow), before anything of the table is timed.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import pairwise
from typing import Any

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icebench.bench.errors import DatasetFailed
from icebench.bench.layouts.layout import CODEC, FORMAT_VERSION, ROW_GROUP_SIZE, TARGET_SIZE, Layout, Term
from icebench.bench.truth.manifests import (
    DATA,
    DELETED,
    FileEntry,
    leftover_manifests,
    live_files,
    manifest_list,
    read_avro,
)
from icebench.bench.truth.metadata import TableJson, load_table_json, read_bytes

_BLOOM = "write.parquet.bloom-filter-enabled.column."
_METRICS = "write.metadata.metrics."
_METRICS_COLUMNS = 100
"""Columns that have bounds unless a property says otherwise."""
_FEWEST, _MOST = 0.6, 1.7
"""Files, as shares of what was asked for: sizes before compression are estimates."""
_OVER = 1.3
"""How far a file or row group may exceed its target."""
_CURVE, _WIDEST = 2.5, 0.9
"""How much wider a file's range in a column of a curve may be than that of a cube, and how wide at most, as a share of
the column's values."""
_RANKED = {
    (descending, nulls_last): (order, nulls)
    for descending, order in ((False, "ascending"), (True, "descending"))
    for nulls_last, nulls in ((False, "at_start"), (True, "at_end"))
}
_BOUNDLESS = ("none", "counts")
_EPOCH = date(1970, 1, 1)

Ranks = npt.NDArray[np.int64]


def check_shape(layout: Layout, location: str, rows: int) -> None:
    """Hold a table against its layout.

    Args:
        layout: With the properties of its table in full.
        location: The metadata file.
        rows: How many there are.

    Raises:
        DatasetFailed: What is claimed and not so.
    """
    shape = _Shape(layout, load_table_json(location))
    for check in (_metadata, _rows, _partitions, _order, _curve, _sizes, _encoding, _statistics, _extras, _properties):
        fault = next(check(shape, rows), None)
        if fault is not None:
            raise DatasetFailed(f"layout {layout.name} is not what it claims: {fault}")


def check_manifests(name: str, location: str) -> None:
    """Hold a table, which is to be planned, against having no manifests but those of live files.

    Raises:
        DatasetFailed: It lists one without a live file; `name` is the table's.
    """
    if leftovers := leftover_manifests(load_table_json(location)):
        number = f"{len(leftovers)} manifest{'s' if len(leftovers) > 1 else ''}"
        raise DatasetFailed(f"{name} lists {number} without a live file, such as {leftovers[0]}")


@dataclass(frozen=True)
class _Shape:
    layout: Layout
    table: TableJson

    @cached_property
    def files(self) -> list[FileEntry]:
        return [file for file in live_files(self.table) if file.content == DATA]

    @cached_property
    def footers(self) -> dict[str, pq.FileMetaData]:
        return {file.path: pq.read_metadata(file.path) for file in self.files}

    @cached_property
    def by_partition(self) -> list[list[FileEntry]]:
        found: dict[str, list[FileEntry]] = defaultdict(list)
        for file in self.files:
            found[str(file.partition)].append(file)
        return list(found.values())

    def read(self, file: FileEntry, columns: Sequence[str]) -> pa.Table:
        return pq.ParquetFile(file.path).read(columns=list(dict.fromkeys(columns)))


def _metadata(shape: _Shape, _: int) -> Iterator[str]:
    values, layout = shape.table.values, shape.layout
    if str(values["format-version"]) != layout.properties[FORMAT_VERSION]:
        yield f"format version {values['format-version']}, not {layout.properties[FORMAT_VERSION]}"
    names = {column.field_id: column.name for column in shape.table.columns}
    spec = next(s["fields"] for s in values["partition-specs"] if s["spec-id"] == values["default-spec-id"])
    found = [(names.get(field["source-id"]), field["transform"]) for field in spec]
    if found != (claimed := [(term.column, term.transform) for term in layout.partition]):
        yield f"its partition spec is {found}, not {claimed}"


def _properties(shape: _Shape, _: int) -> Iterator[str]:
    """Of what files do not show, such as a compression level, the table says at least that it was asked for."""
    found = {**shape.table.values.get("properties", {}), FORMAT_VERSION: shape.layout.properties[FORMAT_VERSION]}
    for name, claimed in shape.layout.properties.items():
        if found.get(name) != claimed:
            yield f"its property {name} is {found.get(name)}, not {claimed}"


def _rows(shape: _Shape, rows: int) -> Iterator[str]:
    if (found := sum(file.records for file in shape.files)) != rows:
        yield f"it has {found} rows, not {rows}"
    for file in shape.files:
        if shape.footers[file.path].num_rows != file.records:
            yield f"{file.path} has {shape.footers[file.path].num_rows} rows, its manifest says {file.records}"


def _partitions(shape: _Shape, _: int) -> Iterator[str]:
    for place, term in enumerate(shape.layout.partition):
        for file in shape.files:
            if file.spec_id != shape.table.values["default-spec-id"]:
                yield f"{file.path} is of partition spec {file.spec_id}"
                return
            claimed = list(file.partition.values())[place]
            claimed = (claimed - _EPOCH).days if isinstance(claimed, date) else claimed
            for value in pc.unique(shape.read(file, [term.column]).column(0)).to_pylist():
                if (found := _transformed(term, value)) != claimed:
                    yield f"{file.path} of partition {claimed} has {term.column} = {value}, which is of {found}"
                    break


def _transformed(term: Term, value: Any) -> Any:  # noqa: ANN401 - of any type
    """A value's partition, by the specification's words."""
    name, _, width = term.transform.rstrip("]").partition("[")
    if value is None or name == "identity":
        return (value - _EPOCH).days if isinstance(value, date) else value
    if name == "truncate":
        return value[: int(width)] if isinstance(value, str | bytes) else value - value % int(width)
    if name == "bucket":
        whole = (value - _EPOCH).days if isinstance(value, date) else value
        data = whole.to_bytes(8, "little", signed=True) if isinstance(whole, int) else whole
        return (mmh3.hash(data) & 0x7FFFFFFF) % int(width)
    by_name: dict[str, Callable[[], int]] = {
        "year": lambda: value.year - 1970,
        "month": lambda: (value.year - 1970) * 12 + value.month - 1,
        "day": lambda: (date(value.year, value.month, value.day) - _EPOCH).days,
        "hour": lambda: (date(value.year, value.month, value.day) - _EPOCH).days * 24 + value.hour,
    }
    return by_name[name]()


def _order(shape: _Shape, _: int) -> Iterator[str]:
    """Rows are sorted in every file, and the files of a partition follow each other."""
    terms = shape.layout.sort
    for files in shape.by_partition if terms else ():
        ranks = _places([shape.read(file, [term.column for term in terms]) for file in files], terms)
        for file, own in zip(files, ranks, strict=True):
            if (own[1:] < own[:-1]).any():
                yield f"{file.path} is not sorted by {', '.join(term.column for term in terms)}"
        ordered = sorted((int(own[0]), int(own[-1]), file.path) for file, own in zip(files, ranks, strict=True))
        for (_first, last, path), (start, _last, other) in pairwise(ordered):
            if start < last:
                yield f"{path} and {other} overlap in {', '.join(term.column for term in terms)}"


def _curve(shape: _Shape, _: int) -> Iterator[str]:
    """Files along a curve are narrow in each of its columns."""
    columns = shape.layout.curve
    for files in shape.by_partition if columns else ():
        if len(files) < 2 ** len(columns):
            continue
        tables = [shape.read(file, columns) for file in files]
        most = min(_WIDEST, _CURVE * len(files) ** (-1 / len(columns)))
        for column in columns:
            ranks = _places(tables, [Term(column=column)])
            spread = sum(int(own.max() - own.min() + 1) for own in ranks) / len(files)
            share = spread / (max(int(own.max()) for own in ranks) + 1)
            if share > most:
                yield f"its files have {share:.0%} of the values of {column} each, not {most:.0%} or less"


def _places(tables: Sequence[pa.Table], terms: Sequence[Term]) -> list[Ranks]:
    """For each table, its rows' places in the order of the terms; equal rows have equal places."""
    whole = pa.concat_tables(tables)
    places = np.zeros(whole.num_rows, np.int64)
    for term in terms:
        column = whole.column(term.column)
        if term.transform != "identity":
            column = pa.array([_transformed(term, value) for value in column.to_pylist()])
        ranks = (
            pc.rank(
                column,
                sort_keys=[("", *_RANKED[term.descending, term.nulls_last])],
                tiebreaker="dense",
            )
            .to_numpy()
            .astype(np.int64)
        )
        places = np.unique(places * (int(ranks.max(initial=0)) + 1) + ranks, return_inverse=True)[1]
    ends = np.cumsum([table.num_rows for table in tables])
    return np.split(places, ends[:-1])


def _sizes(shape: _Shape, _: int) -> Iterator[str]:
    layout, found = shape.layout, len(shape.files)
    if layout.files is not None:
        partitions = len(shape.by_partition)
        low, high = layout.files * _FEWEST, max(layout.files, partitions) * _MOST
        if partitions > 1:  # the largest partition has its share of the files, others fewer
            low = partitions
        if not low <= found <= max(high, 1):
            yield f"it has {found} data files, not about {layout.files}, in {partitions} partitions"
    if TARGET_SIZE in layout.properties:
        target = int(layout.properties[TARGET_SIZE])
        for file in shape.files:
            if file.size_bytes > target * _OVER:
                yield f"{file.path} has {file.size_bytes} bytes, its target is {target}"
        partitions, size = len(shape.by_partition), sum(file.size_bytes for file in shape.files)
        if (most := math.ceil(size / target) * _MOST + partitions) < found:
            yield f"it has {found} data files of {size} bytes, more than {most:.0f} of {target} each"
    if ROW_GROUP_SIZE in layout.properties:
        limit = int(layout.properties[ROW_GROUP_SIZE])
        for path, footer in shape.footers.items():
            sizes = [footer.row_group(i).total_byte_size for i in range(footer.num_row_groups)]
            if max(sizes) > limit * _OVER:
                yield f"{path} has a row group of {max(sizes)} bytes, not {limit} or less"
            if len(sizes) > math.ceil(sum(sizes) / limit) * _MOST + 1:
                yield f"{path} has {len(sizes)} row groups, of {sum(sizes)} bytes, which are to have {limit} each"


def _encoding(shape: _Shape, _: int) -> Iterator[str]:
    properties = shape.layout.properties
    codec = properties.get(CODEC, "zstd").upper().replace("NONE", "UNCOMPRESSED")
    blooms = {name.removeprefix(_BLOOM) for name, on in properties.items() if name.startswith(_BLOOM) and on == "true"}
    for path, footer in shape.footers.items():
        for group in range(footer.num_row_groups):
            for place in range(footer.num_columns):
                chunk = footer.row_group(group).column(place)
                if chunk.compression != codec:
                    yield f"{path} has {chunk.path_in_schema} compressed with {chunk.compression}, not {codec}"
                if chunk.path_in_schema in blooms and chunk.bloom_filter_offset is None:
                    yield f"{path} has no Bloom filter of {chunk.path_in_schema}"


def _statistics(shape: _Shape, _: int) -> Iterator[str]:
    """Manifests have the bounds that the metrics modes say; columns that files are sorted by have bounds at least."""
    properties = shape.layout.properties
    default = properties.get(f"{_METRICS}default")
    own = {term.column for term in shape.layout.sort}
    for place, column in enumerate(shape.table.columns):
        mode = properties.get(f"{_METRICS}column.{column.name}", default)
        if column.type == "nested" or (mode is None and place >= _METRICS_COLUMNS) or (column.name in own):
            continue
        for file in shape.files:
            has = column.field_id in file.lower_bounds
            if has and mode in _BOUNDLESS:
                yield f"{file.path} has bounds of {column.name}, whose metrics mode is {mode}"
            if not has and mode not in _BOUNDLESS and _has_values(shape.footers[file.path], column.name):
                yield f"{file.path} has no bounds of {column.name}"


def _has_values(footer: pq.FileMetaData, column: str) -> bool:
    """Whether a file has any value of a top-level column that is not null."""
    names = [footer.schema.column(i).path for i in range(footer.num_columns)]
    if column not in names:
        return False
    chunks = [footer.row_group(i).column(names.index(column)) for i in range(footer.num_row_groups)]
    return any(c.statistics is None or c.statistics.null_count != c.num_values for c in chunks)


def _indexed_fields(table: TableJson) -> list[list[int]]:
    """The columns of the file indexes, as the footers of statistics files say (Puffin spec: "Footer structure")."""
    found = []
    for each in table.values.get("statistics", ()):
        footer = read_bytes(each["statistics-path"])[-each["file-footer-size-in-bytes"] :]
        blobs = json.loads(footer[4:-12])["blobs"]
        found += [blob["fields"] for blob in blobs if blob["type"] == "icebench-file-index-v1"]
    return found


def _extras(shape: _Shape, _: int) -> Iterator[str]:
    """File indexes are there, and manifests that were clustered have partitions of their own."""
    ids = {column.name: column.field_id for column in shape.table.columns}
    indexed = _indexed_fields(shape.table) if shape.layout.file_index else ()
    for column in shape.layout.file_index:
        if [ids[column]] not in indexed:
            yield f"it has no file index of {column}"
    if shape.layout.cluster_manifests:
        manifests = manifest_list(shape.table)
        pairs = {
            (m["manifest_path"], str(entry["data_file"]["partition"]))
            for m in manifests
            for entry in read_avro(m["manifest_path"])
            if entry["status"] != DELETED
        }
        if len(pairs) >= len(shape.by_partition) + len(manifests):
            yield f"its {len(manifests)} manifests share partitions"
