"""Data files and delete files, as readers get them from a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

from icebench.engine.columnar.schemas import field_id_of
from icebench.engine.errors import Contradiction, CorruptTable
from icebench.engine.expressions.bound import BoundPredicate
from icebench.engine.formats.source import Source
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.manifest import ManifestEntry
from icebench.engine.spec.partitioning import Partition, PartitionKey, partition_key
from icebench.engine.spec.schema import FIRST_METADATA_COLUMN_ID, Schema
from icebench.engine.storage.store import Store

T = TypeVar("T")

_SHORT = 8
"""What is known of a list of fewer delete files is found again as fast as it is looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    """A position-delete file, an equality-delete file or a deletion vector.

    A deletion vector is a range of a Puffin file, at `content_offset` and of `content_size_in_bytes`;
    `referenced_data_file` is its data file.
    """

    content: FileContent
    file_path: str
    file_format: str
    record_count: int
    file_size_in_bytes: int
    sequence_number: int
    equality_ids: tuple[int, ...] = ()
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None

    @classmethod
    def of(cls, entry: ManifestEntry) -> DeleteFile:
        """The delete file of a manifest entry, with sequence number 0 where that is still to be inherited."""
        file = entry.data_file
        return cls(
            content=file.content,
            file_path=file.file_path,
            file_format=file.file_format,
            record_count=file.record_count,
            file_size_in_bytes=file.file_size_in_bytes,
            sequence_number=entry.sequence_number or 0,
            equality_ids=file.equality_ids or (),
            referenced_data_file=file.referenced_data_file,
            content_offset=file.content_offset,
            content_size_in_bytes=file.content_size_in_bytes,
        )

    def __hash__(self) -> int:
        # Deletes are hashed as often as data files and deletes pair; the other fields would tell none apart.
        return hash((self.file_path, self.sequence_number, self.content_offset))

    @property
    def is_vector(self) -> bool:
        """Whether it is a deletion vector."""
        return self.file_format == "puffin"


@dataclass(frozen=True, kw_only=True)
class FileRead:
    """One data file to read, or a part of it.

    Args:
        file_path: Its location.
        file_format: ``"parquet"``, ``"orc"`` or ``"avro"``; others are refused.
        record_count: Its rows, by its manifest entry.
        file_size_in_bytes: Its size, by its manifest entry; None where it has none.
        spec_id: Its partition spec.
        partition: Its partition tuple, one internal value a field of the spec; None where unknown.
        data_sequence_number: For equality deletes and row lineage.
        first_row_id: For row lineage; None where the table has none.
        deletes: The delete files that apply to it.
        residual: What is left of the filter; None for nothing.
        byte_range: (start, length): only row groups that begin there; None for all.
    """

    file_path: str
    record_count: int
    file_format: str = "parquet"
    file_size_in_bytes: int | None = None
    spec_id: int = 0
    partition: Partition | None = ()
    data_sequence_number: int = 0
    first_row_id: int | None = None
    deletes: tuple[DeleteFile, ...] = ()
    residual: BoundPredicate | None = None
    byte_range: tuple[int, int] | None = None

    @property
    def scope(self) -> PartitionKey | None:
        """The partition as the scope of equality deletes."""
        return None if self.partition is None else partition_key(self.spec_id, self.partition)


class PerList(Generic[T]):
    """What a function gives for lists of delete files, computed once a list, since many data files share one.

    Args:
        compute: The function.
    """

    def __init__(self, compute: Callable[[tuple[DeleteFile, ...]], T]) -> None:
        self._compute = compute
        self._known: dict[int, tuple[tuple[DeleteFile, ...], T]] = {}

    def of(self, deletes: tuple[DeleteFile, ...]) -> T:
        """The function's value; that of the same object is known from before."""
        if len(deletes) < _SHORT:
            return self._compute(deletes)
        known = self._known.get(id(deletes))
        if known is None:
            # With its list, so that no other list gets the same id.
            known = self._known[id(deletes)] = deletes, self._compute(deletes)
        return known[1]


def distinct_deletes(lists: Iterable[tuple[DeleteFile, ...]]) -> dict[DeleteFile, None]:
    """The delete files of lists, each once, in order. A list that comes again as the same object costs nothing."""
    different = {id(deletes): deletes for deletes in lists}
    return dict.fromkeys(chain.from_iterable(different.values()))


def check_file(file: FileRead | DeleteFile, source: Source, store: Store, schemas: Sequence[Schema] = ()) -> None:
    """Compare an open file with its manifest entry.

    A file of another size than its entry states is read if nothing in it is missing, and reported to the store. So is a
    delete file with more rows. One with fewer may lack deletes; and the number of rows of a data file is believed
    elsewhere, in counts without reading and in row ids.

    Args:
        file: The entry.
        source: The file.
        store: Gets a report of another size.
        schemas: All schemas of the table, for data files: a file of another size must have columns of one of them.

    Raises:
        CorruptTable: The file has another number of rows (a delete file: fewer), or is not as its entry states while
            parts of it may be missing or it may be another table's.
    """
    if source.num_rows != file.record_count:
        kind = "data" if isinstance(file, FileRead) else "delete"
        reason = f"a {kind} file with {source.num_rows} rows, where its manifest entry says {file.record_count}"
        if kind == "data" or source.num_rows < file.record_count or not source.accounts_for_all_bytes:
            raise CorruptTable(reason, location=file.file_path)
        store.report(Contradiction("number of deletes", file.file_path, reason))
    if file.file_size_in_bytes in (None, source.size_bytes):
        return
    reason = f"has {source.size_bytes} bytes, and its manifest entry says {file.file_size_in_bytes}"
    if not source.accounts_for_all_bytes:
        raise CorruptTable(f"{reason}; its footer does not account for all of them", location=file.file_path)
    strangers = [] if isinstance(file, DeleteFile) else _strangers(source, schemas)
    if strangers:
        raise CorruptTable(f"{reason}; no schema of the table has its column {strangers[0]}", location=file.file_path)
    store.report(Contradiction("file size", file.file_path, reason))


def _strangers(source: Source, schemas: Sequence[Schema]) -> list[str]:
    """Columns of a file that no schema has under that id and name."""
    known = {(f.field_id, f.name.lower()) for schema in schemas for f in schema.fields}
    own = [(field_id_of(f), f.name) for f in source.columns.schema]
    return [
        name
        for field_id, name in own
        if (field_id, name.lower()) not in known and (field_id is None or field_id < FIRST_METADATA_COLUMN_ID)
    ]
