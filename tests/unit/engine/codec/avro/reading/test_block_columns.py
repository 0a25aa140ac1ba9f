from __future__ import annotations

import pytest

from icebench.engine.codec.avro.compiled.machine_kernels import DECODE_CHUNK
from icebench.engine.codec.avro.file import encode_block, encode_header, encode_long, read_header
from icebench.engine.codec.avro.reading.block_columns import decode_objects
from icebench.engine.codec.avro.reading.program import Selection
from icebench.engine.codec.block_codecs import compress_block
from icebench.engine.codec.manifests.manifest_writer import encode_manifest
from icebench.engine.codec.manifests.reader import decode_columns
from icebench.engine.spec.manifest import ManifestContent
from icebench.engine.spec.partitioning import UNPARTITIONED
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import STRING, NestedField
from icebench.errors import CorruptTable
from tests.property.manifest_batches import metrics_of
from tests.property.table_builder import added, data_file

SCHEMA = Schema((NestedField(field_id=1, name="s", type=STRING),))


@pytest.mark.parametrize("length", [1, 17, 1_000])
def test_bounds_of_any_length_are_decoded(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    monkeypatch.setattr(DECODE_CHUNK, "should_use", lambda _: True)
    bounds = [f"{i:04d}".encode() * length for i in range(2_000)]
    entries = [added(data_file(f"memory://t/{i}", lower_bounds={1: bound})) for i, bound in enumerate(bounds)]
    encoded = encode_manifest(
        entries,
        schema=SCHEMA,
        spec=UNPARTITIONED,
        format_version=2,
        content=ManifestContent.DATA,
        snapshot_id=1,
    )
    columns = decode_columns(encoded.data, location="memory://m", metrics=frozenset({1}))
    assert metrics_of(columns, "lower_bounds")[1] == bounds


@pytest.mark.parametrize("count", [1 << 40, 1 << 62, (1 << 63) - 1])
@pytest.mark.parametrize("codec", ["deflate", "null"])
def test_blocks_that_claim_too_many_objects_are_damage(monkeypatch: pytest.MonkeyPatch, codec: str, count: int) -> None:
    monkeypatch.setattr(DECODE_CHUNK, "should_use", lambda _: True)
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long", "field-id": 1}]}
    header, sync = encode_header(schema, {}, codec)
    block = encode_block(count, compress_block(codec, b"\x02\x04"), sync)
    for blocks in (1, 2):
        data = b"".join([header, *(block * blocks)])
        with pytest.raises(CorruptTable, match="objects"):
            decode_objects(data, read_header(data), Selection(frozenset({(1,)})))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("is_compiled", [True, False])
def test_lists_that_claim_more_items_than_the_file_has_bytes_for_are_damage(
    monkeypatch: pytest.MonkeyPatch, is_compiled: bool
) -> None:
    """Not more than there are bytes, so that they are found where the items are to be stored."""
    monkeypatch.setattr(DECODE_CHUNK, "should_use", lambda _: is_compiled)
    fields = [{"name": name, "type": "long", "field-id": i} for i, name in enumerate("xyzw", 4)]
    items = {"type": "array", "items": {"type": "record", "name": "i", "fields": fields}, "element-id": 3}
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": items, "field-id": 1}]}
    header, sync = encode_header(schema, {}, "null")
    data = b"".join([header, *encode_block(1, encode_long(60) + b"\x02" * 100, sync)])
    with pytest.raises(CorruptTable, match=r"cut off|more items than there are bytes"):
        decode_objects(data, read_header(data), Selection(frozenset({(1,)}), frozenset({(1, "element")})))
