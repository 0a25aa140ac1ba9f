"""Figures from data file footers: storage by column, row groups, pages, and contradictions of manifest entries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from icebench.engine.codec.array_views import data_of, offsets_of, valid_of
from icebench.engine.columnar.schemas import field_id_of
from icebench.engine.errors import EngineError, FileNotFound
from icebench.engine.expressions.bounds import ColumnBounds
from icebench.engine.expressions.vectors import BytesVector, Vector, from_serialized
from icebench.engine.formats.name_mapping import FilesWithoutIds
from icebench.engine.formats.opening import open_source
from icebench.engine.formats.parquet.chunk_storage import ChunkStorage
from icebench.engine.formats.parquet.row_groups import RowGroupStatistics
from icebench.engine.formats.parquet.source import ParquetSource
from icebench.engine.maintenance.profile.column_figures import comparable_schema, first_group
from icebench.engine.maintenance.profile.figures import ColumnStorage, Contradiction, FooterFigures
from icebench.engine.maintenance.profile.live_files import LiveFiles, quantiles
from icebench.engine.maintenance.profile.overlap import rank_values, select_rows
from icebench.engine.plan.manifests import LiveEntries, ManifestSource
from icebench.engine.plan.written_schemas import columns_of_all_snapshots
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.name_mapping import NameMapping
from icebench.engine.spec.properties import NAME_MAPPING
from icebench.engine.storage.store import Store

_LISTED = 20
_LONGEST_TEXT = 60
"""Writers truncate longer bounds in footers, so that they may lie outside the values."""


@dataclass(frozen=True)
class _Stated:
    """A file's manifest entry, with the bounds to compare."""

    location: str
    file_format: str
    size_bytes: int
    records: int
    bounds: Mapping[int, tuple[Vector | None, Vector | None]]


@dataclass
class _Found:
    contradictions: list[Contradiction] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    chunks: list[tuple[int | str, ChunkStorage]] = field(default_factory=list)
    """By field id; by its path in the file, where no schema has the column."""


@dataclass(frozen=True)
class _Opening:
    """Opens data files and compares them with their entries."""

    store: Store
    metadata: TableMetadata
    names: Mapping[int, str]
    name_mapping: NameMapping | None
    without_ids: FilesWithoutIds

    def examine(self, stated: _Stated) -> _Found:
        """Open a file and compare it with its entry. Errors become contradictions; none is raised."""
        found = _Found()

        def report(what: str, detail: str) -> None:
            found.contradictions.append(Contradiction(file_path=stated.location, what=what, detail=detail))

        try:
            with open_source(
                self.store,
                stated.location,
                file_format=stated.file_format,
                name_mapping=self.name_mapping,
                without_ids=self.without_ids,
            ) as source:
                if source.size_bytes != stated.size_bytes:
                    report("size", f"{source.size_bytes} bytes, and its entry says {stated.size_bytes}")
                if source.num_rows != stated.records:
                    report("records", f"{source.num_rows} rows, and its entry says {stated.records}")
                if isinstance(source, ParquetSource):
                    found.rows += [group.num_rows for group in source.row_groups]
                    leaves = [(field_id_of(leaf.field), leaf.path) for leaf in source.columns.leaves]
                    keys = [path if i is None or i not in self.names else i for i, path in leaves]
                    found.chunks += [(keys[each.leaf], each) for each in source.storages()]
                    for detail in self._outside(source, stated):
                        report("bounds", detail)
        except FileNotFound:
            report("missing", "there is no such file")
        except EngineError as error:
            report("unreadable", str(error))
        return found

    def _outside(self, source: ParquetSource, stated: _Stated) -> Iterator[str]:
        """Describe columns whose row-group statistics exceed the bounds of the manifest entry."""
        for field_id, (lower, upper) in stated.bounds.items():
            schema = comparable_schema(field_id, self.metadata)
            assert schema is not None
            groups = RowGroupStatistics(source.footer, source.chunks, source.columns, schema, lambda _: None)
            for each in groups.evidence(field_id):
                assert isinstance(each, ColumnBounds)
                for bound, own, side in ((lower, each.lower, -1), (upper, each.upper, 1)):
                    if bound is not None and own is not None and _reaches_beyond(bound, own, side):
                        word = "below its lower" if side < 0 else "above its upper"
                        yield f"{schema.name_of[field_id]}: a row group reaches {word} bound"


def _reaches_beyond(bound: Vector, own: Vector, side: int) -> bool:
    if bound.valid is not None and not bound.valid[0]:
        return False
    known = np.ones(len(own), np.bool_) if own.valid is None else own.valid
    if isinstance(own, BytesVector):
        known = known & (np.diff(own.offsets) < _LONGEST_TEXT)
    stated, stored = rank_values([bound, own])
    return bool((known & (side * (stored - stated[0]) > 0)).any())


def footer_figures(files: LiveFiles, source: ManifestSource, runner: Runner, metadata: TableMetadata) -> FooterFigures:
    """Open every data file, and compare its size, rows and bounds with its manifest entry.

    Args:
        files: The live files.
        source: Where manifests come from, without a cache.
        runner: Opens files concurrently.
        metadata: The table.
    """
    text, settled = NAME_MAPPING.of(metadata.properties), columns_of_all_snapshots(metadata)
    names = {i: name for schema in (*metadata.schemas, metadata.schema) for i, name in schema.name_of.items()}
    opening = _Opening(source.store, metadata, names, *FilesWithoutIds.of(text, metadata.schema, metadata, settled))
    ids = [i for i in first_group(files, metadata) if _is_compared(i, metadata)]
    stated = (each for entries in files.data for each in _stated(entries, source, ids, metadata))
    return _figures(list(runner.map(opening.examine, stated)), names)


def _is_compared(field_id: int, metadata: TableMetadata) -> bool:
    """Whether bounds can be compared. Those of uuids cannot: writers use two different orders."""
    schema = comparable_schema(field_id, metadata)
    return schema is not None and schema.primitive(field_id).name != "uuid"


def _stated(
    entries: LiveEntries, source: ManifestSource, ids: Sequence[int], metadata: TableMetadata
) -> Iterator[_Stated]:
    columns = source.columns(entries.manifest, frozenset(ids))
    vectors: dict[int, list[Vector | None]] = {}
    for field_id in ids:
        schema = comparable_schema(field_id, metadata)
        assert schema is not None
        stored = (columns.get(name, field_id) for name in ("lower_bounds", "upper_bounds"))
        type_ = schema.primitive(field_id)
        vectors[field_id] = [
            None if b is None else from_serialized(type_, offsets_of(b), data_of(b), valid_of(b)) for b in stored
        ]
    sizes, records = columns.numbers("file_size_in_bytes"), columns.numbers("record_count")
    for row in entries.rows.tolist():
        at = np.array([row])
        bounds = {i: [None if v is None else select_rows(v, at) for v in pair] for i, pair in vectors.items()}
        yield _Stated(
            location=columns["file_path"][row].as_py().decode(),
            file_format=columns["file_format"][row].as_py().decode().lower(),
            size_bytes=int(sizes[row]),
            records=int(records[row]),
            bounds={i: (pair[0], pair[1]) for i, pair in bounds.items()},
        )


def _figures(found: Sequence[_Found], names: Mapping[int, str]) -> FooterFigures:
    contradictions = [each for own in found for each in own.contradictions]
    chunks = [each for own in found for each in own.chunks]
    rows = [count for own in found for count in own.rows]
    return FooterFigures(
        files=len(found),
        row_groups=len(rows),
        row_group_rows=quantiles(np.array(rows, np.int64)),
        row_group_bytes=quantiles(np.array([size for own in found for size in _group_bytes(own)], np.int64)),
        pages=sum(chunk.pages or 0 for _, chunk in chunks),
        chunks=len(chunks),
        chunks_without_pages=sum(chunk.pages is None for _, chunk in chunks),
        columns=_columns(chunks, names),
        contradicting_files=sum(bool(own.contradictions) for own in found),
        contradictions=tuple(contradictions[:_LISTED]),
    )


def _group_bytes(found: _Found) -> Iterable[int]:
    sizes: Counter[int] = Counter()
    for _, chunk in found.chunks:
        sizes[chunk.row_group] += chunk.compressed_bytes
    return sizes.values()


def _columns(chunks: Sequence[tuple[int | str, ChunkStorage]], names: Mapping[int, str]) -> tuple[ColumnStorage, ...]:
    by_key: dict[int | str, list[ChunkStorage]] = defaultdict(list)
    for key, chunk in chunks:
        by_key[key].append(chunk)
    made = []
    for key, own in by_key.items():
        codecs: Counter[str] = Counter()
        encodings: Counter[str] = Counter()
        for chunk in own:
            codecs[chunk.codec] += chunk.compressed_bytes
            encodings.update(dict.fromkeys(chunk.encodings, chunk.compressed_bytes))
        made.append(
            ColumnStorage(
                field_id=None if isinstance(key, str) else key,
                name=key if isinstance(key, str) else names[key],
                chunks=len(own),
                compressed_bytes=sum(chunk.compressed_bytes for chunk in own),
                uncompressed_bytes=sum(chunk.uncompressed_bytes for chunk in own),
                pages=sum(chunk.pages or 0 for chunk in own),
                codecs=dict(codecs),
                encodings=dict(encodings),
            )
        )
    return tuple(sorted(made, key=lambda each: -each.compressed_bytes))
