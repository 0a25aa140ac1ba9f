"""Flat columns of files that DuckDB and Polars wrote are decoded by this project's kernels as pyarrow decodes them."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.codec.parquet_choice import KERNELS
from engine.columnar import parquet_columns
from engine.columnar.parquet import ParquetSource
from engine.columnar.schemas import from_arrow_schema
from engine.spec.name_mapping import parse_name_mapping
from engine.storage.local import LocalStore

ROWS = 30_000
QUERY = f"""
    select i::int as "int", i * 7_000_000_000 as "long", (i % 100)::bigint as few, (i / 4)::double as "double",
        (i % 9)::float as "float", (i * 3 % 10_000_000 / 100)::decimal(7, 2) as d7,
        (i * 12345678)::decimal(15, 2) as d15, (i * 123456789012)::decimal(18, 2) as d18,
        (i::hugeint * 12345678901234567890)::decimal(38, 2) as d38,
        date '2020-01-01' + (i % 5000)::int as "date", timestamp '2020-01-01' + interval (i) second as "timestamp",
        case when i % 10 > 0 then i end as some, case when i > 20_000 then i::decimal(9, 1) end as later,
        null::bigint as none, i::varchar as "text"
    from range({ROWS}) t(i)
"""


@pytest.fixture(autouse=True, scope="module")
def kernels() -> None:
    assert KERNELS.load()


def check(path: Path, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the columns, at least so many are decoded here."""
    decoded = Mock(wraps=parquet_columns.decoded)
    monkeypatch.setattr("engine.columnar.parquet.decoded", decoded)
    file = pq.ParquetFile(path)
    names = file.schema_arrow.names
    ids = "".join(f'{{"field-id": {i}, "names": ["{name}"]}}, ' for i, name in enumerate(names, 1))
    schema = from_arrow_schema(file.schema_arrow)
    with ParquetSource(LocalStore(), str(path), name_mapping=parse_name_mapping(f"[{ids[:-2]}]")) as source:
        for group in source.row_groups:
            keep = np.random.default_rng(1).random(group.num_rows) < 0.9
            expected = file.read_row_group(group.index)
            found, some = source.read(group.index, schema), source.read(group.index, schema, keep=keep)
            for name in names:
                assert found.column(name).equals(expected.column(name)), name
                left = expected.column(name).filter(pa.array(keep))
                assert some.column(name).cast(left.type).equals(left), name
    assert decoded.call_count >= 2 * least * len(source.row_groups)


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "gzip", "zstd", "lz4_raw"])
def test_duckdb(version: str, codec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "duckdb.parquet"
    duckdb.sql(
        f"""copy ({QUERY}) to '{path}'
            (format parquet, parquet_version {version}, compression {codec}, row_group_size 20_000)"""
    )
    check(path, 13, monkeypatch)


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "gzip", "zstd", "lz4"])
def test_polars(codec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "polars.parquet"
    frame = pl.DataFrame(duckdb.sql(QUERY).to_arrow_table())
    frame.write_parquet(path, compression=codec, row_group_size=20_000)  # type: ignore[arg-type]
    check(path, 13, monkeypatch)
