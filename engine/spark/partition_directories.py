"""Columns of identity partitions, as Spark reads them from the names of directories.

Spark skips files by a query's filters only where a column is a partition column of its own relation: one of which each
file's value is in its path, ``day=2024-02-29/``. Then it also skips what no row of a join's other side asks for
(dynamic partition pruning). Iceberg's writers name directories in this way, but only as labels: values are those of
manifests. So a file is read by its path only if its path is exactly what its manifest's values are written as, and if
Spark reads that back as the same values; other files of the scan are read as without partitions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from icebench.engine.deletes.files import FileRead
from icebench.engine.spark.read_schema import ReadColumn
from icebench.engine.spec.partition_paths import partition_path
from icebench.engine.spec.partitioning import Partition, PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Identity

_TEXTS = {
    "boolean": re.compile(r"true|false"),
    "int": re.compile(r"-?\d+"),
    "long": re.compile(r"-?\d+"),
    "date": re.compile(r"\d{4}-\d{2}-\d{2}"),
    "string": re.compile(r"[\w.~-]+", re.ASCII),
}
"""What Spark reads as the value that was written, by the type of the column. Other types have several texts for a value
(decimals), or are escaped (timestamps)."""

_NAME = re.compile(r"\w+", re.ASCII)
_NULL = "null"
"""Iceberg's text. Spark takes it for null, as it is no value of the type; among strings it is one."""
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

_MOST_ROOTS = 8
"""Each root is a relation of its own. Of tables whose directories begin with a hash there are as many as files."""


class Root(NamedTuple):
    """A directory below which all directories are partitions, and their names from the outermost on; Spark refuses
    others of the same relation."""

    directory: str
    names: tuple[str, ...]


class PartitionDirectories:
    """Which files of a scan Spark may read with partition columns."""

    def __init__(self, columns: Sequence[ReadColumn], specs: Mapping[int, PartitionSpec], schema: Schema) -> None:
        """Args:
        columns: The columns that are read.
        specs: The table's partition specs by id.
        schema: Has the columns that the specs refer to.
        """
        self._columns = columns
        self._specs = {spec_id: spec for spec_id, spec in specs.items() if self._is_readable(spec)}
        self._schema = schema
        self._paths: dict[tuple[int, Partition], str | None] = {}

    def roots(self, files: Sequence[FileRead], locations: Sequence[str]) -> list[Root | None]:
        """For each file what it is below, and None where its path is no source of values."""
        found = [self._root(file, location) for file, location in zip(files, locations, strict=True)]
        return [None] * len(found) if len(set(found)) > _MOST_ROOTS else found

    def _root(self, file: FileRead, location: str) -> Root | None:
        if file.spec_id not in self._specs or file.partition is None:
            return None
        key = file.spec_id, file.partition
        if key not in self._paths:
            self._paths[key] = self._path(*key)
        path = self._paths[key]
        directory = location.rpartition("/")[0]
        if path is None or not directory.endswith(f"/{path}"):
            return None
        names = tuple(field.name for field in self._specs[file.spec_id].fields)
        return Root(directory[: -len(path) - 1], names)

    def _path(self, spec_id: int, partition: Partition) -> str | None:
        """The directories of a partition; None where Spark would not read them as its values."""
        spec = self._specs[spec_id]
        path = partition_path(spec, self._schema, partition)
        for field, value, segment in zip(spec.fields, partition, path.split("/"), strict=True):
            name, _, text = segment.partition("=")
            column = self._read_as(field.name)
            if name != field.name or not text:
                return None
            if column is None:
                continue
            type_ = str(column.field.type)
            if value is None:
                if type_ == "string":
                    return None
            elif text == _HIVE_NULL or not _TEXTS[type_].fullmatch(text) or (type_ == "string" and text == _NULL):
                return None
        return path

    def _is_readable(self, spec: PartitionSpec) -> bool:
        """Whether all names of its directories that are columns of the scan are these columns, and there is one."""
        names = [field.name.lower() for field in spec.fields]
        if len(set(names)) < len(names) or not all(_NAME.fullmatch(name) for name in names):
            return False
        read = {field.name: self._read_as(field.name) for field in spec.fields}
        if any(c.name.lower() in names and c.name not in read for c in self._columns):
            return False
        return any(read.values()) and all(
            (column := read[field.name]) is None
            or (
                isinstance(field.transform, Identity)
                and field.source_id == column.field.field_id
                and str(column.field.type) in _TEXTS
            )
            for field in spec.fields
        )

    def _read_as(self, name: str) -> ReadColumn | None:
        return next((c for c in self._columns if c.name == name), None)
