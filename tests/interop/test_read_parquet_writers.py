"""Files that DuckDB and Polars wrote are read as pyarrow reads them, in batches and wide or narrow."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icebench.engine.columnar.schemas import from_arrow_schema
from icebench.engine.formats.parquet.source import ParquetSource
from icebench.engine.spec.name_mapping import parse_name_mapping
from icebench.engine.storage.local import LocalStore

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


def check(path: Path) -> None:
    file = pq.ParquetFile(path)
    names = file.schema_arrow.names
    ids = "".join(f'{{"field-id": {i}, "names": ["{name}"]}}, ' for i, name in enumerate(names, 1))
    schema = from_arrow_schema(file.schema_arrow)
    with ParquetSource(LocalStore(), str(path), name_mapping=parse_name_mapping(f"[{ids[:-2]}]")) as source:
        for group in source.row_groups:
            expected = file.read_row_group(group.index)
            for narrow in (False, True):
                found = pa.concat_tables(source.batches(group.index, schema, rows=7_000, narrow=narrow, threads=True))
                for name in names:
                    own = expected.column(name)
                    assert found.column(name).cast(own.type).equals(own), name


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "gzip", "zstd", "lz4_raw"])
def test_duckdb(version: str, codec: str, tmp_path: Path) -> None:
    path = tmp_path / "duckdb.parquet"
    duckdb.sql(
        f"""copy ({QUERY}) to '{path}'
            (format parquet, parquet_version {version}, compression {codec}, row_group_size 20_000)"""
    )
    check(path)


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "gzip", "zstd", "lz4"])
def test_polars(codec: str, tmp_path: Path) -> None:
    path = tmp_path / "polars.parquet"
    frame = pl.DataFrame(duckdb.sql(QUERY).to_arrow_table())
    frame.write_parquet(path, compression=codec, row_group_size=20_000)  # type: ignore[arg-type]
    check(path)
