"""Nested values come back from every format as they were given, whatever is null and how the rows come."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from icebench.engine.storage.memory import MemoryStore
from icebench.engine.write.data_files import write_data_files
from tests.property.nested_patterns import LEAVES, column, nestings, patterns, shapes
from tests.property.test_write_formats import read
from tests.unit.engine.write.metadata_for_writes import metadata_of

FORMATS = ("parquet", "orc", "avro")
_COLUMNS = 128
"""Columns in a file: each has its own pattern, and writers take them one by one."""


@pytest.mark.parametrize("file_format", FORMATS)
def test_structs_in_structs_keep_all_values_whatever_is_null(file_format: str) -> None:
    random = Random(1)
    for depth, rows in ((1, 3), (2, 3), (3, 2), (4, 2)):
        nesting = "s" * depth
        found = (column(nesting, p, 0) for p in patterns(nesting, rows, most=1000, random=random))
        assert_kept(found, file_format, [rows])


@pytest.mark.parametrize("file_format", FORMATS)
def test_any_nesting_keeps_all_values_whatever_is_null(file_format: str) -> None:
    random = Random(2)
    for rows in (2, 5):
        found = sampled(random, rows, each=4)
        assert_kept(found, file_format, [1, rows - 1])


def test_orc_keeps_nested_values_in_many_batches() -> None:
    random = Random(3)
    # Null structs in structs of which none is null: where one is, pyarrow passes its nulls on itself.
    found = [column(n, random.choices(shapes(n)[1:], k=9001), 1) for n in ("ss", "sss", "ssl")]
    assert_kept(found, "orc", [5000, 1, 4000])


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("file_format", FORMATS)
def test_all_patterns_of_one_to_five_rows(file_format: str, depth: int, rows: int) -> None:
    random = Random(4)
    for count, nesting in enumerate(nestings(depth)):
        leaf = (5 * count + rows - 1) % len(LEAVES)
        most = 100_000 if nesting == "s" * depth else 2000
        found = (column(nesting, p, leaf) for p in patterns(nesting, rows, most=most, random=random))
        assert_kept(found, file_format, [rows])


def sampled(random: Random, rows: int, *, each: int) -> Iterator[pa.Array]:
    """Some columns of every nesting."""
    for depth in (1, 2, 3, 4):
        for nesting in nestings(depth):
            for pattern in patterns(nesting, rows, most=each, random=random):
                yield column(nesting, pattern, random.randrange(len(LEAVES)))


def assert_kept(columns: Iterable[pa.Array], file_format: str, batch_rows: Sequence[int]) -> None:
    """Write columns of equal lengths in batches of so many rows each, and compare what is read with what was given."""
    remaining = iter(columns)
    while part := list(itertools.islice(remaining, _COLUMNS)):
        table = pa.table({f"c{place}": own for place, own in enumerate(part)})
        metadata = metadata_of(table.schema, properties={"write.format.default": file_format})
        ends = list(itertools.accumulate(batch_rows))
        batches = [b for n, end in zip(batch_rows, ends, strict=True) for b in table.slice(end - n, n).to_batches()]
        store = MemoryStore()
        reader = pa.RecordBatchReader.from_batches(table.schema, batches)
        (file,) = write_data_files(reader, metadata=metadata, store=store)
        found = read(store, file, metadata.schema)
        for name in table.schema.names:
            given: list[Any] = table.column(name).to_pylist()
            assert found.column(name).to_pylist() == given, (file_format, table.schema.field(name).type)
