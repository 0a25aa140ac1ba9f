"""Equality-delete files, merged so that the cost of a row does not grow with their number (spec: "Equality Delete
Files").

All files that compare the same columns in the same scope become one index from key to the highest sequence number that
deletes it. A row is deleted if that number is greater than its data file's. A scope is one partition, or the whole
table for the deletes of unpartitioned specs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.columnar.batch_columns import column_by_id, no_rows
from icebench.engine.columnar.key_index import KeyIndex
from icebench.engine.columnar.projection import Projector
from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.deletes.cache import DeleteCache
from icebench.engine.deletes.files import DeleteFile, PerList, check_file, distinct_deletes
from icebench.engine.errors import CorruptTable
from icebench.engine.formats.opening import open_source
from icebench.engine.formats.source import locating_errors
from icebench.engine.runtime.counters import DELETE_FILES_LOADED, DELETE_KEYS_APPLIED, Counters
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.name_mapping import NameMapping
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import NestedField, StructType
from icebench.engine.storage.store import Store

Scope = tuple[object, ...]
"""A partition: spec id and hashable partition tuple."""

GLOBAL: Scope = ()
"""The scope of deletes that apply to more than one partition."""


@dataclass(frozen=True, eq=False)
class EqualityGroup:
    """The keys of all delete files of one scope that compare the same columns.

    `schema` holds the columns `field_ids`, in the types of the table, and the structs around them. `keys` are the
    values of `field_ids`, key by key as read, and `sequence_numbers` of the files that they were read from.
    """

    scope: Scope
    field_ids: tuple[int, ...]
    schema: Schema
    keys: tuple[pa.Array, ...]
    sequence_numbers: npt.NDArray[np.int64]

    @cached_property
    def index(self) -> KeyIndex:
        """The index of the keys."""
        return KeyIndex.build(self.keys, self.sequence_numbers)

    def deleted(self, rows: pa.Table | pa.RecordBatch, sequence_number: int) -> npt.NDArray[np.bool_]:
        """A mask of the deleted rows; `rows` has the group's columns, of a data file with that data sequence number."""
        columns = [column_by_id(rows, self.schema, field_id) for field_id in self.field_ids]
        return self.index.greatest(columns) > sequence_number


@dataclass(frozen=True)
class EqualityDeletes:
    """Delete files with the groups that they are part of."""

    group_of: Mapping[DeleteFile, EqualityGroup]

    @cached_property
    def groups(self) -> list[EqualityGroup]:
        """All groups."""
        return list(dict.fromkeys(self.group_of.values()))

    @cached_property
    def _of_lists(self) -> PerList[list[EqualityGroup]]:
        return PerList(lambda deletes: list(dict.fromkeys(map(self.group_of.__getitem__, deletes))))

    def of(self, deletes: tuple[DeleteFile, ...]) -> list[EqualityGroup]:
        """The groups that apply to a data file with these equality deletes."""
        return self._of_lists.of(deletes)


def compared_columns(file: DeleteFile) -> tuple[int, ...]:
    """The columns that a delete file compares, in the same order for all files."""
    if not file.equality_ids:
        raise CorruptTable("an equality-delete file without equality ids", location=file.file_path)
    return tuple(sorted(set(file.equality_ids)))


def scopes(planned: Iterable[tuple[Scope | None, tuple[DeleteFile, ...]]]) -> dict[DeleteFile, Scope]:
    """The scope of each delete file, from the partitions of the data files to which a plan applies it.

    A file that applies to data files of a single partition gets that partition. One that applies to a data file of
    unknown partition gets a scope of its own, and is not merged with others.
    """
    # Data files of one partition often have one list.
    lists = {(partition, id(deletes)): deletes for partition, deletes in planned}
    found: dict[DeleteFile, Scope] = {}
    for (partition, _), deletes in lists.items():
        scope = partition or GLOBAL
        for file in deletes:
            if found.setdefault(file, scope) != scope:
                found[file] = GLOBAL
    of_unknown = distinct_deletes(deletes for (partition, _), deletes in lists.items() if partition is None)
    return found | {file: ("alone", file.file_path) for file in of_unknown}


def key_schema(field_ids: Sequence[int], schemas: Sequence[Schema], location: str) -> Schema:
    """The columns of a key, each from the first schema that has it: the current schema first, since a column may have
    been promoted, then older ones, since it may have been dropped.

    Raises:
        CorruptTable: No schema of the table has a column.
        Unsupported: A column's values are not compared.
    """
    fields: dict[int, NestedField] = {}
    for field_id in field_ids:
        known = next((s for s in schemas if field_id in s.by_id), None)
        if known is None:
            raise CorruptTable(f"it compares column {field_id}, which no schema of the table has", location=location)
        known.key_type(field_id)
        (top,) = known.select([field_id]).fields
        before = fields.get(top.field_id)
        fields[top.field_id] = top if before is None else joined_fields(before, top)
    return Schema(tuple(fields.values()))


def joined_fields(left: NestedField, right: NestedField) -> NestedField:
    """Merge two versions of a column: a struct with the fields of both; any other column is `left`."""
    if not isinstance(left.type, StructType) or not isinstance(right.type, StructType):
        return left
    fields = {f.field_id: f for f in left.type.fields}
    for f in right.type.fields:
        fields[f.field_id] = joined_fields(fields[f.field_id], f) if f.field_id in fields else f
    return replace(left, type=StructType(tuple(fields.values())))


def load_equality(
    scope_of: Mapping[DeleteFile, Scope],
    schemas: Sequence[Schema],
    *,
    store: Store,
    runner: Runner,
    counters: Counters,
    needed_by: str | None = None,
    name_mapping: NameMapping | None = None,
    cache: DeleteCache | None = None,
) -> EqualityDeletes:
    """Decode equality-delete files and index their keys.

    Args:
        scope_of: The files with their scopes; see `scopes`.
        schemas: The table's schemas, the current one first, then the newest first.
        store: Where the files are.
        runner: Decodes files in parallel.
        counters: Count the files.
        needed_by: For errors, e.g. ``"table db.t, snapshot 17"``.
        name_mapping: For files without field ids.
        cache: Keeps groups with their indexes.
    """
    members: dict[tuple[Scope, tuple[int, ...]], list[DeleteFile]] = {}
    for file, scope in scope_of.items():
        members.setdefault((scope, compared_columns(file)), []).append(file)
    of_ids = {ids: key_schema(ids, schemas, files[0].file_path) for (_, ids), files in members.items()}

    def load(file: DeleteFile) -> pa.Table:
        return _load(file, of_ids[compared_columns(file)], store, needed_by, name_mapping)

    groups: dict[tuple[Scope, tuple[int, ...]], EqualityGroup] = {}
    if cache is not None:
        kept = {key: cache.find(_cache_key(key, own, of_ids)) for key, own in members.items()}
        groups = {key: group for key, group in kept.items() if group is not None}
    ordered = [file for key, files in members.items() if key not in groups for file in files]
    tables = dict(zip(ordered, runner.map(load, ordered), strict=True))
    counters.add(DELETE_FILES_LOADED, len(ordered))
    for key, own in members.items():
        if key not in groups:
            scope, ids = key
            group = _group(scope, ids, of_ids[ids], [(tables[file], file.sequence_number) for file in own])
            groups[key] = group
            if cache is not None:
                # The index is about as large as the keys.
                cache.keep(_cache_key(key, own, of_ids), group, 2 * sum(k.nbytes for k in group.keys))
    counters.add(DELETE_KEYS_APPLIED, sum(len(group.sequence_numbers) for group in groups.values()))
    return EqualityDeletes({file: groups[key] for key, own in members.items() for file in own})


def _cache_key(
    key: tuple[Scope, tuple[int, ...]], files: Sequence[DeleteFile], of_ids: Mapping[tuple[int, ...], Schema]
) -> tuple[object, ...]:
    return ("equality", *key, tuple(files), of_ids[key[1]].fields)


def _load(
    file: DeleteFile, schema: Schema, store: Store, needed_by: str | None, name_mapping: NameMapping | None
) -> pa.Table:
    def missing(_: NestedField, name: str, length: int) -> pa.Array:
        raise CorruptTable(
            f"an equality-delete file without its column {name!r} ({length} rows)", location=file.file_path
        )

    projector = Projector(missing=missing)
    with (
        locating_errors(file.file_path),
        open_source(
            store,
            file.file_path,
            file_format=file.file_format,
            name_mapping=name_mapping,
            needed_by=needed_by,
            size_bytes=file.file_size_in_bytes,
        ) as source,
    ):
        check_file(file, source, store)
        parts = [projector.table(source.read(group.index, schema), schema) for group in source.row_groups]
    return pa.concat_tables(parts) if parts else no_rows(to_arrow_schema(schema))


def _group(
    scope: Scope, field_ids: tuple[int, ...], schema: Schema, tables: Sequence[tuple[pa.Table, int]]
) -> EqualityGroup:
    joined = pa.concat_tables([table for table, _ in tables])
    numbers = np.repeat([number for _, number in tables], [table.num_rows for table, _ in tables])
    keys = tuple(column_by_id(joined, schema, field_id) for field_id in field_ids)
    return EqualityGroup(scope, field_ids, schema, keys, numbers.astype(np.int64))
