"""Sketches of distinct values against sets of the values, and against hashes of values one by one."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icebench
from icebench.engine.codec.puffin.theta import NOMINAL_ENTRIES, SEED, ThetaSketch, decode_theta, encode_theta
from icebench.engine.columnar.scalars import to_arrow_array
from icebench.engine.columnar.single_values import single_value_hashes
from icebench.engine.spec.types import LONG, PrimitiveType
from icebench.engine.spec.values import encode_value
from icebench.errors import CorruptTable, Unsupported
from tests.property.test_file_index import TYPES

ANY_VALUE = st.sampled_from(TYPES).flatmap(lambda t: st.tuples(st.just(t[0]), st.lists(st.none() | t[2], max_size=12)))
MASK = (1 << 64) - 1


def murmur3_128(data: bytes, seed: int) -> int:
    """The first 64 bits of Murmur3 (x64, 128 bits), by its definition."""

    def rotated(word: int, bits: int) -> int:
        return (word << bits | word >> (64 - bits)) & MASK

    def finished(word: int) -> int:
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            word = (word ^ word >> 33) * factor & MASK
        return word ^ word >> 33

    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    h1 = h2 = seed
    for at in range(0, len(data), 16):
        block = data[at : at + 16]
        k1, k2 = int.from_bytes(block[:8], "little"), int.from_bytes(block[8:], "little")
        h1 ^= rotated(k1 * c1 & MASK, 31) * c2 & MASK
        if len(block) == 16:
            h1 = ((rotated(h1, 27) + h2) * 5 + 0x52DCE729) & MASK
        h2 ^= rotated(k2 * c2 & MASK, 33) * c1 & MASK
        if len(block) == 16:
            h2 = ((rotated(h2, 31) + h1) * 5 + 0x38495AB5) & MASK
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = (h1 + h2) & MASK
    h2 = (h2 + h1) & MASK
    return (finished(h1) + finished(h2)) & MASK


@settings(max_examples=150)
@given(case=ANY_VALUE, offset=st.integers(0, 3))
def test_values_hash_as_they_are_serialized(case: tuple[PrimitiveType, list[Any]], offset: int) -> None:
    """Those of each type, null or not, wherever the array begins."""
    type_, values = case
    array = to_arrow_array(type_, [None, *values[:1], *values[:1], *values])[offset:]
    kept = [None, *values[:1], *values[:1], *values][offset:]
    encoded = [encode_value(type_, value) for value in kept if value is not None]
    assert single_value_hashes(array, SEED).tolist() == [murmur3_128(each, SEED) for each in encoded if each]


@given(values=st.lists(st.binary(min_size=1, max_size=50), max_size=20))
def test_byte_strings_of_any_length_hash_by_the_definition(values: list[bytes]) -> None:
    assert single_value_hashes(pa.array(values, pa.binary()), 7).tolist() == [murmur3_128(v, 7) for v in values]


HASHES = st.lists(st.integers(0, 2**64 - 1), max_size=30)
MANY = st.builds(
    lambda seed, count: np.random.default_rng(seed).integers(0, 2**64, count, np.uint64),
    st.integers(0, 2**32),
    st.sampled_from([1, NOMINAL_ENTRIES - 1, NOMINAL_ENTRIES, NOMINAL_ENTRIES + 1, 30_000]),
)


@settings(max_examples=60)
@given(parts=st.lists(st.builds(lambda v: np.array(v, np.uint64), HASHES) | MANY, max_size=4), cut=st.integers(0, 4))
def test_a_sketch_depends_on_the_set_alone(parts: list[Any], cut: int) -> None:
    """However its values are divided; it counts few of them exactly, and is what was written of it."""
    every = np.concatenate([np.zeros(0, np.uint64), *parts])
    least = sorted({h >> 1 for h in every.tolist()} - {0, 2**63 - 1})  # neither is below theta and above 0
    sketch = ThetaSketch()
    for part in parts[:cut]:
        sketch = sketch.with_values(part)
    other = ThetaSketch()
    for part in parts[cut:]:
        other = other.with_values(part)
    joined = sketch.joined(other)
    assert joined.hashes.tolist() == least[:NOMINAL_ENTRIES]
    assert joined.theta == (least[NOMINAL_ENTRIES] if len(least) > NOMINAL_ENTRIES else 2**63 - 1)
    if len(least) <= NOMINAL_ENTRIES:
        assert joined.estimate == len(least)
    read = decode_theta(encode_theta(joined))
    assert (read.hashes.tolist(), read.theta) == (joined.hashes.tolist(), joined.theta)


@given(count=st.integers(0, 3), at=st.integers(0, 60), damage=st.binary(max_size=4), cut=st.integers(0, 40))
def test_damaged_sketches_are_refused_or_sketches(count: int, at: int, damage: bytes, cut: int) -> None:
    sketch = ThetaSketch(np.arange(1, count + 1, dtype=np.uint64) << np.uint64(40), 1 << 50)
    data = encode_theta(sketch)
    data = (data[:at] + damage + data[at + len(damage) :])[: len(data) - cut]
    try:
        read = decode_theta(data)
    except (CorruptTable, Unsupported):
        return
    assert (np.diff(read.hashes.astype(np.int64)) > 0).all()
    assert all(0 < h < read.theta for h in read.hashes.tolist())


@pytest.mark.parametrize("count", [10_000, 300_000])
def test_estimates_of_many_values_are_near(count: int) -> None:
    """Within four standard errors."""
    hashes = single_value_hashes(pa.array(range(count), pa.int64()), SEED)
    assert abs(ThetaSketch().with_values(hashes).estimate / count - 1) < 4 / 64


ROWS = st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["", "a", "b", None])), max_size=4)
STEPS = st.lists(
    st.tuples(st.just("append"), ROWS)
    | st.tuples(st.sampled_from(["merge-on-read", "copy-on-write"]), st.integers(0, 9))
    | st.just(("compute", None))
    | st.just(("index", None))
    | st.just(("compact", None))
    | st.just(("widen", None))
    | st.just(("rollback", None)),
    max_size=9,
)


@settings(max_examples=60)
@given(steps=STEPS, partitioned=st.booleans(), version=st.sampled_from([2, 3]))
def test_estimates_are_of_the_live_rows(steps: list[Any], partitioned: bool, version: int) -> None:
    """Whatever was computed, deleted, compacted and promoted before."""
    home = tempfile.mkdtemp()
    try:
        with closing(icebench.load_catalog(f"{home}/wh")) as catalog:
            _run(catalog, steps, partitioned=partitioned, version=version)
    finally:
        shutil.rmtree(home)


def _run(catalog: icebench.Catalog, steps: list[Any], *, partitioned: bool, version: int) -> None:
    columns = pa.schema([("n", pa.int32()), ("t", pa.string())])
    by = [("t", "identity")] if partitioned else []
    table = catalog.create_table("db.t", columns, partition_spec=by, properties={"format-version": str(version)})
    for kind, what in [("append", [(1, "a")]), *steps, ("compute", None)]:
        if kind == "append":
            table.append(pa.Table.from_pylist([{"n": n, "t": t} for n, t in what], schema=columns))
        elif kind in ("merge-on-read", "copy-on-write"):
            table.delete(f"n = {what}", kind)
        elif kind == "index":
            table.maintenance.build_index("n")
        elif kind == "compact":
            table.maintenance.rewrite_data_files(rewrite_all=True)
        elif kind == "widen":
            table.update_schema(lambda schema: schema.promote_column("n", LONG))
        elif kind == "rollback":
            parent = table.current_snapshot.parent_snapshot_id if table.current_snapshot else None
            if parent is not None:
                table.rollback(snapshot_id=parent)
        else:
            indexed = any(b.type.startswith("icebench") for f in table.metadata.statistics for b in f.blob_metadata)
            computed = table.maintenance.compute_table_stats()
            rows = table.scan().to_arrow()
            assert computed.distinct_values == {
                "n": len(set(rows["n"].to_pylist()) - {None}),
                "t": len(set(rows["t"].to_pylist()) - {None, ""}),
            }
            assert indexed == any(
                b.type.startswith("icebench") for f in table.metadata.statistics for b in f.blob_metadata
            )
