"""The functions that hot paths spend their time in, one at a time: ``make microbench`` times and compares them.

Here they run once, so that each still works; what it gives is checked against another way to the same answer.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from pytest_benchmark.fixture import BenchmarkFixture

import icebench
from icebench.bench.workloads.metadata_files import ITEM, MetadataFiles
from icebench.engine.codec.manifests.manifest_list import decode_manifest_list, encode_manifest_list
from icebench.engine.codec.manifests.manifest_writer import EncodedManifest, encode_manifest
from icebench.engine.codec.manifests.reader import decode_columns, decode_entries
from icebench.engine.codec.metadata_json.table import decode_metadata
from icebench.engine.codec.puffin.bitmap import decode_vector, encode_vector
from icebench.engine.columnar.key_index import KeyIndex
from icebench.engine.columnar.schemas import from_arrow_schema
from icebench.engine.columnar.transforms import transform_array
from icebench.engine.deletes.cache import DeleteCache
from icebench.engine.deletes.equality import EqualityGroup
from icebench.engine.deletes.files import FileRead
from icebench.engine.deletes.loaded_deletes import load_deletes
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bounds import Evaluator
from icebench.engine.expressions.literal_intervals import FALSE, TRUE
from icebench.engine.expressions.parse import parse
from icebench.engine.formats.parquet.footer import check_footer, slim_footer
from icebench.engine.formats.parquet.machine_kernels import SLIM_FOOTER
from icebench.engine.maintenance.hilbert import hilbert_values
from icebench.engine.maintenance.z_order import UInt64s, z_values
from icebench.engine.plan.pruning import MetricStatistics
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Bucket, Month, Truncate
from icebench.engine.spec.types import LONG, STRING, NestedField, PrimitiveType
from icebench.engine.storage.memory import MemoryStore
from tests.unit.engine.deletes.test_equality import written

FILES = MetadataFiles(files=2_000)
ROWS = 100_000
NUMBERS = pa.array(np.random.default_rng(1).integers(-(1 << 40), 1 << 40, ROWS))
TEXTS = NUMBERS.cast(pa.string())


@cache
def schema() -> Schema:
    return from_arrow_schema(FILES.schema())


@cache
def entries() -> list[ManifestEntry]:
    files = FILES.data_files("s3://bucket/table", 0, FILES.files)
    return [ManifestEntry(status=EntryStatus.ADDED, snapshot_id=1, data_file=file) for file in files]


def encoded() -> EncodedManifest:
    months = PartitionField(source_ids=(1,), field_id=1000, name="month", transform=Month())
    return encode_manifest(
        entries(),
        schema=schema(),
        spec=PartitionSpec((months,)),
        format_version=2,
        content=ManifestContent.DATA,
        snapshot_id=1,
    )


@cache
def manifest() -> bytes:
    return encoded().data


def test_manifest_encode(benchmark: BenchmarkFixture) -> None:
    made = benchmark(encoded)
    assert made.added_rows_count == FILES.row_counts(np.arange(FILES.files)).sum()


def test_manifest_decode_whole(benchmark: BenchmarkFixture) -> None:
    assert [entry.data_file for entry in benchmark(decode_entries, manifest())] == [e.data_file for e in entries()]


def test_manifest_decode_one_column(benchmark: BenchmarkFixture) -> None:
    columns = benchmark(decode_columns, manifest(), metrics=[schema().find(ITEM).field_id])
    assert columns.numbers("record_count").tolist() == FILES.row_counts(np.arange(FILES.files)).tolist()


def test_manifest_list_decode(benchmark: BenchmarkFixture) -> None:
    made = encoded()
    listed = [made.manifest_file(f"s3://b/{n}.avro", sequence_number=n) for n in range(500)]
    data = encode_manifest_list(listed, format_version=2, snapshot_id=1, sequence_number=500)
    assert benchmark(decode_manifest_list, data) == tuple(listed)


def test_filter_on_metrics(benchmark: BenchmarkFixture) -> None:
    text = FILES.filters()["metric"]
    columns = decode_columns(manifest(), metrics=None)
    evaluator = Evaluator(bind(parse(text), schema()))
    found = benchmark(lambda: evaluator.outcomes(MetricStatistics(columns, schema())))
    assert ((found & TRUE) != 0).tolist() == FILES.kept("metric").tolist()


def test_residuals_of_many_keys(benchmark: BenchmarkFixture) -> None:
    """Of an upsert by two columns: each of 100 files may hold ten keys, other ones than the rest."""
    keys, files = 1_000, 100
    two = Schema((NestedField(field_id=1, name="a", type=LONG), NestedField(field_id=2, name="b", type=LONG)))
    evaluator = Evaluator(bind(parse(" or ".join(f"a = {n} and b = {n}" for n in range(keys))), two))
    open_leaf, never = TRUE | FALSE, FALSE
    sets = [np.full(files, open_leaf, np.uint8) for _ in range(2 * keys)]
    for n in range(keys):
        sets[2 * n] = np.where(np.arange(files) == n // 10, open_leaf, never).astype(np.uint8)
    codes, found = benchmark(evaluator.residuals, sets, files)
    own = [" or ".join(f"(a = {n} and b = {n})" for n in range(10 * file, 10 * file + 10)) for file in range(files)]
    assert [str(found[code]) for code in codes] == own


def test_filter_parse_and_bind(benchmark: BenchmarkFixture) -> None:
    text = " or ".join(f"({ITEM} between {n} and {n + 5})" for n in range(0, 200, 10))
    bound = benchmark(lambda: bind(parse(text), schema()))
    assert bound.leaf_ids == {schema().find(ITEM).field_id}


def test_metadata_json_decode(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", FILES.schema())
    for _ in range(20):
        table.append(FILES.schema().empty_table())
    data = Path(table.metadata_location).read_bytes()
    assert benchmark(decode_metadata, data) == table.metadata


@cache
def footer() -> tuple[bytes, int]:
    sink = io.BytesIO()
    wide = pa.schema([pa.field(f"c{n}", pa.int64(), metadata={"PARQUET:field_id": str(n)}) for n in range(1, 301)])
    rows = pa.table([NUMBERS[:40]] * 300, schema=wide)
    pq.write_table(rows, sink, row_group_size=10)
    data = sink.getvalue()
    length = int.from_bytes(data[-8:-4], "little")
    return data[-8 - length : -8], len(data)


def test_parquet_footer_check(benchmark: BenchmarkFixture) -> None:
    benchmark(check_footer, *footer())


def test_parquet_footer_of_two_columns(benchmark: BenchmarkFixture) -> None:
    assert SLIM_FOOTER.load()
    data = benchmark(slim_footer, footer()[0], [7, 290])
    file = b"PAR1" + data + len(data).to_bytes(4, "little") + b"PAR1"
    read = pq.read_metadata(io.BytesIO(file))
    assert (read.num_row_groups, read.num_rows) == (4, 40)
    assert [read.schema.column(n).path for n in range(read.num_columns)] == ["c7", "c290"]


def test_bucket_of_longs(benchmark: BenchmarkFixture) -> None:
    found = benchmark(transform_array, LONG, Bucket(16), NUMBERS)
    assert found.to_pylist() == [Bucket(16).apply(LONG, value) for value in NUMBERS.to_pylist()]


def test_murmur3_of_strings(benchmark: BenchmarkFixture) -> None:
    most = (1 << 31) - 1
    found = benchmark(transform_array, STRING, Bucket(most), TEXTS)
    assert found.to_pylist() == [(mmh3.hash(text) & most) % most for text in TEXTS.to_pylist()]


@pytest.mark.parametrize(("source", "values"), [(LONG, NUMBERS), (STRING, TEXTS)], ids=["long", "string"])
def test_truncate(benchmark: BenchmarkFixture, source: PrimitiveType, values: pa.Array) -> None:
    found = benchmark(transform_array, source, Truncate(10), values)
    assert found.to_pylist() == [v[:10] if source == STRING else v - v % 10 for v in values.to_pylist()]


@cache
def vector() -> BitMap64:
    return BitMap64(np.flatnonzero(np.random.default_rng(2).random(1_000_000) < 0.03).tolist())


def test_deletion_vector_encode(benchmark: BenchmarkFixture) -> None:
    assert decode_vector(benchmark(encode_vector, vector())) == vector()


def test_deletion_vector_decode(benchmark: BenchmarkFixture) -> None:
    found = benchmark(decode_vector, encode_vector(vector()), cardinality=len(vector()), rows=1_000_000)
    assert found == vector()


@pytest.mark.parametrize("version", ["2", "3"], ids=["positions", "vectors"])
def test_scan_with_deletes(benchmark: BenchmarkFixture, tmp_path: Path, version: str) -> None:
    rows = pa.table({"n": np.arange(ROWS)})
    table = icebench.load_catalog(str(tmp_path)).create_table(
        "db.t", rows.schema, properties={"format-version": version, "write.delete.mode": "merge-on-read"}
    )
    table.append(rows)
    table.delete("n % 10 = 3")
    found = benchmark(lambda: table.scan().to_arrow())
    assert found["n"].to_pylist() == [n for n in range(ROWS) if n % 10 != 3]


@pytest.mark.parametrize("shared", [True, False], ids=["one list", "own lists"])
def test_deletes_of_many_files(benchmark: BenchmarkFixture, shared: bool) -> None:
    """What there is to do before the first row of 400 data files with up to 400 decoded equality-delete files."""
    store, cache, count = MemoryStore(), DeleteCache(), 400
    columns = Schema((NestedField(field_id=1, name="k", type=LONG),))
    deletes = tuple(written(store, columns, {"k": [n]}, sequence_number=n) for n in range(1, count + 1))
    files = [
        FileRead(file_path=f"f{n}", record_count=1, deletes=deletes if shared else deletes[n:]) for n in range(count)
    ]

    def groups() -> list[Sequence[EqualityGroup]]:
        counters = Counters()
        found = load_deletes(files, [columns], store=store, runner=LocalRunner(1), counters=counters, cache=cache)
        return [found.of(file).equality for file in files]

    found = benchmark(groups)
    (group,) = found[0]
    assert sorted(group.sequence_numbers.tolist()) == list(range(1, count + 1))
    assert all(list(own) == [group] for own in found)


def test_equality_keys_found(benchmark: BenchmarkFixture) -> None:
    index = KeyIndex.build([NUMBERS[:1_000]], np.arange(1_000))
    found = benchmark(index.greatest, [NUMBERS])
    deleted = set(NUMBERS[:1_000].to_pylist())
    assert (found >= 0).tolist() == [number in deleted for number in NUMBERS.to_pylist()]


@pytest.mark.parametrize("curve", [z_values, hilbert_values])
def test_curve_keys(benchmark: BenchmarkFixture, curve: Callable[[Sequence[pa.Array]], UInt64s]) -> None:
    square = [pa.array(np.repeat(np.arange(64), 64)), pa.array(np.tile(np.arange(64), 64))]
    keys = benchmark(curve, square)
    order = np.argsort(keys, kind="stable")
    quarters = np.stack([np.asarray(column)[order].reshape(4, -1) // 32 for column in square])
    assert (quarters == quarters[:, :, :1]).all(), "each quarter of a curve is in one quadrant"
