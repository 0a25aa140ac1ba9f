"""Whatever a writer did within the specification, columns and entries are what fastavro reads and what was written."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.codec.array_views import ManifestColumns
from icebench.engine.codec.avro.compiled import read_compiled
from icebench.engine.codec.avro.compiled.machine_kernels import DECODE_CHUNK
from icebench.engine.codec.avro.reading import block_columns
from icebench.engine.codec.manifests.reader import decode_columns, decode_entries
from icebench.engine.kernels.compiling import jit
from icebench.engine.spec.manifest import ManifestEntry
from tests.property.manifest_batches import metrics_of
from tests.property.manifest_strategies import (
    BOUND_MAPS,
    COLUMN_IDS,
    COUNT_MAPS,
    ENTRY_FIELDS,
    OPTIONAL_FIELDS,
    REQUIRED_FIELDS,
    WrittenManifest,
    manifests,
)

MAPS = {**COUNT_MAPS, **BOUND_MAPS}


@pytest.fixture(params=["interpreted", "kept", "Numba"], scope="module", autouse=True)
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """All ways to run the kernels: as Python, as kept machine code, as Numba runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DECODE_CHUNK, "should_use", lambda _: request.param != "interpreted")
        if request.param == "Numba":
            patch.setattr(DECODE_CHUNK, "_function", jit(read_compiled.decode_chunk_at, _nrt=False))
        yield


def plain(value: Any) -> Any:
    """A written union value without its branch."""
    return plain(value[1]) if isinstance(value, tuple) else value


def as_read(value: Any) -> Any:
    """How a column gives an Avro value: text and binary as bytes, booleans as numbers."""
    if isinstance(value, str):
        return value.encode("utf-8")
    return int(value) if isinstance(value, bool) else value


def metric_of(entry: dict[str, Any], name: str) -> dict[int, Any]:
    pairs = plain(entry["data_file"].get(name))
    values = {pair["key"]: plain(pair["value"]) for pair in pairs or ()}
    return {key: value for key, value in values.items() if value is not None}


def check_columns(columns: ManifestColumns, entries: list[dict[str, Any]], metrics: set[int] | None) -> None:
    assert columns.count == len(entries)
    for name in ("status", *ENTRY_FIELDS):
        assert columns[name].to_pylist() == [plain(e.get(name)) for e in entries], name
    for name in {**REQUIRED_FIELDS, **OPTIONAL_FIELDS}:
        expected = [as_read(plain(e["data_file"].get(name))) for e in entries]
        if name == "content":
            expected = [code or 0 for code in expected]
        assert columns[name].to_pylist() == expected, name
    for name in MAPS:
        maps = [metric_of(e, name) for e in entries]
        present = {key for m in maps for key in m}
        wanted = present if metrics is None else present & metrics
        assert metrics_of(columns, name) == {key: [m.get(key) for m in maps] for key in wanted}, name


def check_partition(columns: ManifestColumns, entries: list[dict[str, Any]]) -> None:
    for name in entries[0]["data_file"]["partition"] if entries else ():
        expected = [as_read(plain(e["data_file"]["partition"][name])) for e in entries]
        assert columns[f"partition/{field_id_of(name)}"].to_pylist() == expected, name


def field_id_of(partition_name: str) -> int:
    """Of ``p0``, ``p1``, ..."""
    return 1000 + int(partition_name[1:])


@given(manifests(), st.one_of(st.none(), st.sets(COLUMN_IDS, max_size=5)))
def test_columns_are_what_was_written(manifest: WrittenManifest, metrics: set[int] | None):
    columns = decode_columns(manifest.data, metrics=metrics)
    check_columns(columns, manifest.entries, metrics)
    check_partition(columns, manifest.entries)


# fastavro takes zstandard from a package of its own.
@given(manifests(codecs=("null", "deflate", "snappy")), st.one_of(st.none(), st.sets(COLUMN_IDS, max_size=5)))
def test_columns_are_what_fastavro_reads(manifest: WrittenManifest, metrics: set[int] | None):
    rows: list[Any] = list(fastavro.reader(io.BytesIO(manifest.data)))
    columns = decode_columns(manifest.data, metrics=metrics)
    check_columns(columns, rows, metrics)
    check_partition(columns, rows)


@given(manifests())
def test_entries_are_what_was_written(manifest: WrittenManifest):
    entries = decode_entries(manifest.data)
    assert len(entries) == len(manifest.entries)
    for entry, written in zip(entries, manifest.entries, strict=True):
        check_entry(entry, written)


def check_entry(entry: ManifestEntry, written: dict[str, Any]) -> None:
    for name in ("status", *ENTRY_FIELDS):
        assert getattr(entry, name) == plain(written.get(name)), name
    file, expected = entry.data_file, written["data_file"]
    assert file.spec_id == 3
    assert file.content == (plain(expected.get("content")) or 0)
    assert file.file_format == expected["file_format"].lower()
    for name in ({*REQUIRED_FIELDS, *OPTIONAL_FIELDS}) - {"content", "file_format"}:
        value = plain(expected.get(name))
        assert getattr(file, name) == (tuple(value) if isinstance(value, list) else value), name
    for name in MAPS:
        assert getattr(file, name) == metric_of(written, name), name
    names = sorted(expected["partition"], key=field_id_of)
    assert file.partition == tuple(plain(expected["partition"][name]) for name in names)


@given(manifests(), st.integers(1, 3))
def test_parts_may_be_decoded_in_any_way_that_keeps_their_order(manifest: WrittenManifest, per_chunk: int):
    def backwards(function: Any, items: Any) -> list[Any]:
        return [function(item) for item in reversed(list(items))][::-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_columns, "_CHUNK_BYTES", per_chunk)
        columns = decode_columns(manifest.data, metrics=None, map_chunks=backwards)
    check_columns(columns, manifest.entries, None)
