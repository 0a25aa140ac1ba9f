"""The truth reads rows and nothing else: files whose statistics of every kind lie do not change it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench.bench.engines.checksum import checksum_of
from icebench.bench.truth.oracle import Oracle
from icebench.bench.truth.rows import GroundTruth, truth_at
from tests.unit.bench.truth.lying_files import ACTUAL, CLAIMED, FILTERS, ROWS, SCHEMA, write_lying

COLUMNS = tuple(SCHEMA.names)


def a_table(folder: Path) -> icebench.Table:
    return icebench.load_catalog(str(folder)).create_table("db.t", SCHEMA, properties={"format-version": "2"})


def described(path: Path, records: int, **more: Any) -> icebench.DataFile:
    size = path.stat().st_size
    return icebench.DataFile(
        file_path=str(path), file_format="parquet", record_count=records, file_size_in_bytes=size, **more
    )


@pytest.fixture(scope="module")
def lying(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lying") / "rows.parquet"
    write_lying(path)
    return path


@pytest.fixture(scope="module")
def truth(lying: Path) -> GroundTruth:
    table = a_table(lying.parent / "warehouse")
    table.add_files([described(lying, ROWS)])
    return truth_at(table.metadata_location)


def test_the_file_is_what_it_is_meant_to_be(lying: Path) -> None:
    assert repr(pq.read_table(lying).to_pylist()) == repr(ACTUAL.to_pylist())
    chunks = [pq.read_metadata(lying).row_group(0).column(i) for i in range(len(COLUMNS))]
    stated = {chunk.path_in_schema: (chunk.statistics.min, chunk.statistics.max) for chunk in chunks}
    assert stated["whole"] == (0, 9)
    assert stated["name"] == ("a000", "a009")
    assert all(chunk.has_column_index and chunk.statistics.null_count == 0 for chunk in chunks)
    assert {chunk.path_in_schema for chunk in chunks if chunk.is_stats_set} == set(COLUMNS)


@pytest.mark.parametrize(("filter", "rows"), FILTERS.items())
def test_statistics_do_not_change_the_truth(lying: Path, truth: GroundTruth, filter: str, rows: int) -> None:
    assert sum(truth.matching(filter).values()) == rows
    assert truth.answer(COLUMNS, filter).rows == rows
    assert Oracle([lying]).answer(COLUMNS, filter).rows == rows
    assert Oracle([lying], [filter]).answer(COLUMNS).rows == ROWS - rows


def test_all_rows_are_the_actual_ones(lying: Path, truth: GroundTruth) -> None:
    actual = checksum_of(ACTUAL.to_batches(), COLUMNS)
    assert truth.answer(COLUMNS).fault_of(actual) is None
    assert Oracle([lying]).answer(COLUMNS).fault_of(actual) is None
    assert truth.answer(COLUMNS).fault_of(checksum_of(CLAIMED.to_batches(), COLUMNS)) is not None


def test_statistics_of_delete_files_do_not_change_the_truth(lying: Path, tmp_path: Path) -> None:
    table = a_table(tmp_path)
    data = tmp_path / "data.parquet"
    pq.write_table(ACTUAL, data)
    table.add_files([described(data, ROWS)])
    deletes = described(lying, ROWS, content=icebench.FileContent.EQUALITY_DELETES, equality_ids=(2, 4))
    table.add_files([deletes])
    assert truth_at(table.metadata_location).answer(COLUMNS).rows == 0


def test_statistics_of_position_deletes_do_not_change_the_truth(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    data = tmp_path / "data.parquet"
    pq.write_table(ACTUAL, data)
    table.add_files([described(data, ROWS)])
    claimed = str(data).replace("data.parquet", "zzzz.parquet")
    path = tmp_path / "deletes.parquet"
    fields = [("file_path", pa.string(), "2147483546"), ("pos", pa.int64(), "2147483545")]
    schema = pa.schema([pa.field(n, t, False, metadata={"PARQUET:field_id": i}) for n, t, i in fields])
    rows = pa.table([[claimed] * 3, [1, 2, 999]], schema=schema)
    pq.write_table(rows, path, compression="none", use_dictionary=False, write_page_index=True, store_schema=False)
    content = path.read_bytes()
    page = b"".join(len(claimed).to_bytes(4, "little") + claimed.encode() for _ in range(3))
    assert content.count(page) == 1
    path.write_bytes(content.replace(page, page.replace(claimed.encode(), str(data).encode())))
    table.add_files([described(path, 3, content=icebench.FileContent.POSITION_DELETES, referenced_data_file=str(data))])
    left = ACTUAL.filter(pa.array([i not in (1, 2, 999) for i in range(ROWS)]))
    found = truth_at(table.metadata_location).answer(COLUMNS)
    assert found.fault_of(checksum_of(left.to_batches(), COLUMNS)) is None
