"""Manifest lists."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.codec.avro.compiled.machine_kernels import DECODE_CHUNK
from icebench.engine.codec.avro.file import read_header
from icebench.engine.codec.manifests import manifest_list
from icebench.engine.codec.manifests.manifest_list import decode_manifest_list, encode_manifest_list
from icebench.engine.spec.manifest import ManifestContent, ManifestFile, PartitionFieldSummary
from icebench.errors import CorruptTable, Invalid
from tests.property.avro_writing import Style, container

COUNT = st.integers(0, (1 << 31) - 1)
LONG = st.integers(0, (1 << 63) - 1)
SUMMARIES = st.builds(
    PartitionFieldSummary,
    contains_null=st.booleans(),
    contains_nan=st.one_of(st.none(), st.booleans()),
    lower_bound=st.one_of(st.none(), st.binary(max_size=8)),
    upper_bound=st.one_of(st.none(), st.binary(max_size=8)),
)
MANIFESTS = st.builds(
    ManifestFile,
    manifest_path=st.text(max_size=20),
    manifest_length=LONG,
    partition_spec_id=COUNT,
    content=st.sampled_from(ManifestContent),
    sequence_number=LONG,
    min_sequence_number=LONG,
    added_snapshot_id=st.integers(-(1 << 63), (1 << 63) - 1),
    added_files_count=COUNT,
    existing_files_count=COUNT,
    deleted_files_count=COUNT,
    added_rows_count=LONG,
    existing_rows_count=LONG,
    deleted_rows_count=LONG,
    partitions=st.one_of(st.none(), st.lists(SUMMARIES, max_size=3).map(tuple)),
    key_metadata=st.one_of(st.none(), st.binary(max_size=4)),
    first_row_id=st.one_of(st.none(), LONG),
)
ONE = ManifestFile(
    manifest_path="m.avro",
    manifest_length=10,
    partition_spec_id=0,
    added_snapshot_id=1,
    added_files_count=1,
    existing_files_count=0,
    deleted_files_count=0,
    added_rows_count=1,
    existing_rows_count=0,
    deleted_rows_count=0,
)


@pytest.fixture(params=["interpreted", "compiled"], scope="module", autouse=True)
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways to run the kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DECODE_CHUNK, "should_use", lambda _: request.param != "interpreted")
        yield


def of_version(manifest: ManifestFile, version: int) -> ManifestFile:
    """What of a manifest a version can hold."""
    if version == 1:
        manifest = replace(manifest, content=ManifestContent.DATA, sequence_number=0, min_sequence_number=0)
    return manifest if version == 3 else replace(manifest, first_row_id=None)


@given(
    manifests=st.lists(MANIFESTS, max_size=6),
    version=st.integers(1, 3),
    compression=st.sampled_from(["gzip", "zstd", "snappy", "uncompressed"]),
    block=st.sampled_from([1, 100, 65536]),
)
def test_manifests_are_read_back(manifests: list[ManifestFile], version: int, compression: Any, block: int):
    listed = [of_version(manifest, version) for manifest in manifests]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_list, "_BLOCK_BYTES", block)
        data = encode_manifest_list(listed, format_version=version, snapshot_id=1, compression=compression)
    assert decode_manifest_list(data) == tuple(listed)
    if compression != "zstd":
        rows: list[Any] = list(fastavro.reader(io.BytesIO(data)))
        assert [row["manifest_path"] for row in rows] == [m.manifest_path for m in listed]


def test_the_header_is_iceberg_javas():
    data = encode_manifest_list([ONE], format_version=3, snapshot_id=5, sequence_number=6, first_row_id=7)
    header = read_header(data)
    texts = {key: header.text(key) for key in header.metadata if not key.startswith("avro.")}
    assert texts == {
        "snapshot-id": "5",
        "parent-snapshot-id": "null",
        "sequence-number": "6",
        "first-row-id": "7",
        "format-version": "3",
    }


def test_counts_may_be_missing_in_v1_only():
    bare = replace(ONE, added_files_count=None, deleted_rows_count=None)
    assert decode_manifest_list(encode_manifest_list([bare], format_version=1, snapshot_id=1)) == (bare,)
    with pytest.raises(Invalid, match="added_files_count"):
        encode_manifest_list([bare], format_version=2, snapshot_id=1)


def test_v1_lists_no_delete_manifests():
    with pytest.raises(Invalid, match="delete files"):
        encode_manifest_list([replace(ONE, content=ManifestContent.DELETES)], format_version=1, snapshot_id=1)
    with pytest.raises(Invalid, match="format version 4"):
        encode_manifest_list([], format_version=4, snapshot_id=1)


REQUIRED = {
    "manifest_path": (500, "string", "m.avro"),
    "manifest_length": (501, "long", 10),
    "partition_spec_id": (502, "int", 0),
    "added_snapshot_id": (503, ["null", "long"], (1, 1)),
}


def listed(**changes: Any) -> bytes:
    """A list of one manifest with some fields as (id, type, value), or left out where None."""
    fields = {name: f for name, f in {**REQUIRED, **changes}.items() if f is not None}
    schema = {
        "type": "record",
        "name": "manifest_file",
        "fields": [{"name": name, "type": type_, "field-id": i} for name, (i, type_, _) in fields.items()],
    }
    return container(schema, [{name: value for name, (_, _, value) in fields.items()}], {}, Style(codec="null"))


def test_the_least_that_a_writer_must_say():
    (found,) = decode_manifest_list(listed())
    assert found == ManifestFile(manifest_path="m.avro", manifest_length=10, partition_spec_id=0, added_snapshot_id=1)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"manifest_path": None}, "no field manifest_path"),
        ({"added_snapshot_id": (503, ["null", "long"], (0, None))}, "has no added_snapshot_id"),
        ({"manifest_length": (501, "string", "x")}, "another type"),
        ({"manifest_length": (501, "boolean", True)}, "another type"),
        ({"content": (517, "int", 2)}, "2 is not a content"),
        ({"partitions": (507, "long", 1)}, "not a list"),
        ({"partitions": (507, {"type": "array", "items": "long"}, [1])}, "contains_null"),
    ],
)
def test_lists_that_contradict_the_specification(changes: Any, reason: str):
    with pytest.raises(CorruptTable, match=reason):
        decode_manifest_list(listed(**changes))


def test_paths_are_utf8():
    with pytest.raises(CorruptTable, match="UTF-8") as caught:
        decode_manifest_list(listed(manifest_path=(500, "bytes", b"\xff")), location="snap.avro")
    assert (caught.value.location, caught.value.path) == ("snap.avro", "entry 0")
