"""Damaged files: a reader says CorruptTable or Unsupported, or reads a value; never another error, crash or hang."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from icebench.engine.codec.avro.compiled.machine_kernels import DECODE_CHUNK
from icebench.engine.codec.manifests.manifest_list import decode_manifest_list, encode_manifest_list
from icebench.engine.codec.manifests.reader import decode_columns, decode_entries, decode_header
from icebench.engine.codec.metadata_json.table import decode_metadata
from icebench.engine.codec.puffin.bitmap import decode_vector, encode_vector
from icebench.engine.codec.puffin.file import NewBlob, footer_size, read_blob, read_footer, write_puffin
from icebench.engine.spec.manifest import ManifestContent, ManifestFile, PartitionFieldSummary
from icebench.errors import CorruptTable, Unsupported
from tests.property.manifest_strategies import WrittenManifest, manifests

FLIPS = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 7)), min_size=1, max_size=4)


@pytest.fixture(params=["interpreted", "compiled"], scope="module")
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways to run the kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DECODE_CHUNK, "should_use", lambda _: request.param != "interpreted")
        yield


def flipped(data: bytes, flips: list[tuple[int, int]]) -> bytes:
    """The data with some bits turned over."""
    made = bytearray(data)
    for place, bit in flips:
        made[place % len(made)] ^= 1 << bit
    return bytes(made)


def tolerant(read: Callable[[bytes], Any], data: bytes) -> Any:
    """What `read` makes of the data; None when it says that the data is bad."""
    try:
        return read(data)
    except (CorruptTable, Unsupported):
        return None


def read_manifest(data: bytes) -> None:
    tolerant(decode_header, data)
    tolerant(decode_columns, data)
    tolerant(lambda d: decode_columns(d, metrics=[1, 2, 200]), data)
    tolerant(lambda d: decode_columns(d, metrics=None), data)
    tolerant(decode_entries, data)


# Uncompressed, so that the damage reaches the entries.
@given(manifest=manifests(codecs=["null"]), flips=FLIPS)
def test_manifests_with_flipped_bits(kernels: None, manifest: WrittenManifest, flips: list[tuple[int, int]]):
    body = manifest.data.index(b"\x0f") if manifest.entries else 0
    read_manifest(manifest.data[:body] + flipped(manifest.data[body:], flips))


@given(manifest=manifests(), flips=FLIPS, cut=st.integers(0, 1 << 20))
def test_manifests_that_are_cut_off(kernels: None, manifest: WrittenManifest, flips: list[tuple[int, int]], cut: int):
    read_manifest(manifest.data[: cut % len(manifest.data)])
    read_manifest(flipped(manifest.data, flips))


MANIFEST_LIST = encode_manifest_list(
    [
        ManifestFile(
            manifest_path=f"s3://bucket/metadata/{i}.avro",
            manifest_length=1000 + i,
            partition_spec_id=0,
            content=ManifestContent.DATA,
            sequence_number=i,
            min_sequence_number=i,
            added_snapshot_id=1 << 60,
            added_files_count=1,
            existing_files_count=0,
            deleted_files_count=0,
            added_rows_count=10,
            existing_rows_count=0,
            deleted_rows_count=0,
            partitions=(PartitionFieldSummary(contains_null=False, lower_bound=b"a", upper_bound=b"b"),),
            first_row_id=0,
        )
        for i in range(3)
    ],
    format_version=3,
    snapshot_id=7,
    sequence_number=3,
    first_row_id=0,
    compression="uncompressed",
)


@given(flips=FLIPS, cut=st.integers(0, len(MANIFEST_LIST)))
def test_manifest_lists(kernels: None, flips: list[tuple[int, int]], cut: int):
    tolerant(decode_manifest_list, MANIFEST_LIST[:cut])
    header = MANIFEST_LIST.index(b"s3://") - 20
    tolerant(decode_manifest_list, MANIFEST_LIST[:header] + flipped(MANIFEST_LIST[header:], flips))
    tolerant(decode_manifest_list, flipped(MANIFEST_LIST, flips))


PUFFIN = write_puffin(
    [
        NewBlob(type="deletion-vector-v1", data=encode_vector(BitMap64([1, 2, 3, 1 << 40]))),
        NewBlob(type="x", data=b"sketch" * 50, fields=(1, 2), compression="zstd", properties={"ndv": "3"}),
    ],
    properties={"created-by": "a test"},
).data


def read_puffin(data: bytes) -> None:
    footer = tolerant(read_footer, data)
    tolerant(footer_size, data)
    for blob in footer.blobs if footer else ():
        content = tolerant(partial(read_blob, blob=blob), data)
        tolerant(decode_vector, content or b"")


@given(flips=FLIPS, cut=st.integers(0, len(PUFFIN)))
def test_puffin_files(flips: list[tuple[int, int]], cut: int):
    read_puffin(PUFFIN[:cut])
    read_puffin(PUFFIN[cut:])
    read_puffin(flipped(PUFFIN, flips))


POSITIONS = st.one_of(
    st.sets(st.integers(0, (1 << 63) - 1), max_size=10),
    st.sets(st.integers(0, 200), min_size=1, max_size=60),
    st.builds(lambda start, step: set(range(start, start + 70_000, step)), st.integers(0, 1 << 34), st.integers(1, 9)),
)


@given(positions=POSITIONS, flips=FLIPS, checksum=st.booleans())
def test_deletion_vectors(positions: set[int], flips: list[tuple[int, int]], checksum: bool):
    damaged = flipped(encode_vector(BitMap64(positions)), flips)
    if checksum:
        # Damage that the checksum does not give away, as a malicious writer could make it.
        damaged = damaged[:-4] + zlib.crc32(damaged[4:-4]).to_bytes(4, "big")
    found = tolerant(decode_vector, damaged)
    if found is not None:
        assert len(found.to_array()) == len(found) == len(set(found))


METADATA: dict[str, Any] = {
    "format-version": 3,
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "s3://bucket/table",
    "last-sequence-number": 34,
    "last-updated-ms": 1602638573590,
    "last-column-id": 5,
    "current-schema-id": 1,
    "schemas": [
        {
            "type": "struct",
            "schema-id": 1,
            "identifier-field-ids": [1],
            "fields": [
                {"id": 1, "name": "x", "required": True, "type": "long", "initial-default": 3},
                {"id": 2, "name": "d", "required": False, "type": "decimal(9, 2)", "write-default": "1.50"},
                {"id": 3, "name": "t", "required": False, "type": "timestamptz",
                 "write-default": "2024-02-29T10:11:12.000013+00:00"},
                {"id": 4, "name": "l", "required": False,
                 "type": {"type": "list", "element-id": 5, "element": "uuid", "element-required": False}},
            ],
        }
    ],
    "default-spec-id": 0,
    "partition-specs": [
        {"spec-id": 0, "fields": [{"name": "x", "transform": "bucket[4]", "source-id": 1, "field-id": 1000}]}
    ],
    "last-partition-id": 1000,
    "default-sort-order-id": 3,
    "sort-orders": [
        {"order-id": 3, "fields": [
            {"transform": "identity", "source-ids": [1, 2], "direction": "desc", "null-order": "nulls-last"}]}
    ],
    "properties": {"a": "b"},
    "current-snapshot-id": 3051729675574597004,
    "next-row-id": 10,
    "refs": {"main": {"snapshot-id": 3051729675574597004, "type": "branch", "min-snapshots-to-keep": 4}},
    "snapshots": [
        {"snapshot-id": 3051729675574597004, "timestamp-ms": 1515100955770, "sequence-number": 1,
         "summary": {"operation": "append", "added-records": "10"}, "manifest-list": "s3://a/b/1.avro",
         "schema-id": 1, "first-row-id": 0, "added-rows": 10}
    ],
    "snapshot-log": [{"snapshot-id": 3051729675574597004, "timestamp-ms": 1515100955770}],
    "metadata-log": [{"metadata-file": "s3://bucket/.../v1.json", "timestamp-ms": 1515100}],
    "statistics": [
        {"snapshot-id": 1, "statistics-path": "s3://a/b/stats.puffin", "file-size-in-bytes": 413,
         "file-footer-size-in-bytes": 42,
         "blob-metadata": [{"type": "ndv", "snapshot-id": 1, "sequence-number": 2, "fields": [1]}]}
    ],
    "partition-statistics": [{"snapshot-id": 1, "statistics-path": "s3://a/b/p.parquet", "file-size-in-bytes": 43}],
    "encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "a2V5", "properties": {"p": "q"}}],
}  # fmt: skip
JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.just(-1), st.just(1 << 70)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=4), inner, max_size=2)),
    max_leaves=3,
)


def places_of(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of all members of a JSON value."""
    if path:
        yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        yield from places_of(inner, (*path, key))


def changed(path: tuple[str | int, ...], change: Callable[[Any, str | int], None]) -> bytes:
    """The metadata with the member at that path changed."""
    made = json.loads(json.dumps(METADATA))
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    change(holder, path[-1])
    return json.dumps(made).encode()


def test_the_metadata_is_good_before_it_is_damaged():
    assert decode_metadata(json.dumps(METADATA).encode()).current_snapshot_id == 3051729675574597004


@pytest.mark.parametrize("path", list(places_of(METADATA)), ids=lambda path: ".".join(map(str, path)))
def test_metadata_without_one_member(path: tuple[str | int, ...]):
    tolerant(decode_metadata, changed(path, lambda holder, key: holder.pop(key)))
    with_null = changed(path, lambda holder, key: holder.__setitem__(key, None))
    tolerant(decode_metadata, with_null)


@given(path=st.sampled_from(list(places_of(METADATA))), value=JSON_VALUES)
def test_metadata_with_another_value(path: tuple[str | int, ...], value: Any):
    tolerant(decode_metadata, changed(path, lambda holder, key: holder.__setitem__(key, value)))


@given(flips=FLIPS, cut=st.integers(0, 3000), compress=st.booleans())
def test_metadata_bytes(flips: list[tuple[int, int]], cut: int, compress: bool):
    text = json.dumps(METADATA).encode()
    if compress:
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        text = packer.compress(text) + packer.flush()
    tolerant(decode_metadata, text[:cut])
    tolerant(decode_metadata, flipped(text, flips))
    tolerant(decode_metadata, flipped(text, flips)[:cut])


@pytest.mark.parametrize("text", [b"[" * 100_000, b"\xff\xfe", b"", b"NaN", b"1" * 5000, b'{"format-version": 1e999}'])
def test_metadata_that_is_no_metadata(text: bytes):
    with pytest.raises(CorruptTable):
        decode_metadata(text)
