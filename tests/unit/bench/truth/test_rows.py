from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import IntegerType

import icebench
from icebench.bench.engines.checksum import checksum_of
from icebench.bench.engines.engine import normalised
from icebench.bench.errors import ConfigError, DatasetFailed
from icebench.bench.truth.filters import filter_columns
from icebench.bench.truth.manifests import DATA, FileEntry, live_files
from icebench.bench.truth.metadata import load_table_json
from icebench.bench.truth.rows import GroundTruth
from icebench.bench.truth.sql import NoTruth
from tests.unit.bench.execution.scripted import small_rows, small_table

ROWS = small_rows().to_pylist()


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "partitioned"])
def truth(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GroundTruth:
    return truth_of(small_table(tmp_path_factory.mktemp("truth"), partitioned=request.param))


def truth_of(location: str) -> GroundTruth:
    table = load_table_json(location)
    return GroundTruth(table, live_files(table))


def test_every_row_is_in_some_file(truth: GroundTruth) -> None:
    assert sum(truth.matching("true").values()) == 400
    assert set(truth.matching("true")) == set(truth.files)
    assert truth.matching("false") == {}


@settings(max_examples=10)  # each reads every file
@given(st.integers(-10, 410), st.integers(0, 120))
def test_ranges_of_ids(truth: GroundTruth, start: int, width: int) -> None:
    found = truth.matching(f"id >= {start} and id < {start + width}")
    assert sum(found.values()) == len([r for r in ROWS if start <= r["id"] < start + width])


@pytest.mark.parametrize(
    ("filter", "count"),
    [
        ("day = '2000-01-25'", len([r for r in ROWS if r["day"] == date(2000, 1, 25)])),
        ("day is null", 8),
        ("price > 3.95", len([r for r in ROWS if r["price"] is not None and r["price"] > Decimal("3.95")])),
        ("name in ('n1', 'n3') and not id > 20", 6),
        ("ID = 7", 1),
    ],
)
def test_filters_of_other_types(truth: GroundTruth, filter: str, count: int) -> None:
    assert sum(truth.matching(filter).values()) == count


def test_the_rows_are_found_in_their_own_files(truth: GroundTruth) -> None:
    for path in truth.matching("id = 250"):
        assert 250 in pq.read_table(path, columns=["id"]).column("id").to_pylist()


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        ("nothing = 1", r"names column 'nothing', which the table does not have"),
        ("id = = 1", "cannot be parsed: something is missing at line 1, column 6$"),
        ("select = 1", "cannot be parsed: Invalid expression / Unexpected token at line 1, column 6$"),
        ("id = '", "cannot be parsed"),
    ],
)
def test_wrong_filters(truth: GroundTruth, filter: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        truth.matching(filter)


def test_a_column_that_a_file_lacks_has_its_default(tmp_path: Path) -> None:
    table = load_table_json(small_table(tmp_path))
    later = {"id": 99, "name": "later", "required": False, "type": "int", "initial-default": 5}
    schemas = [{**schema, "fields": [*schema["fields"], later]} for schema in table.values["schemas"]]
    truth = GroundTruth(replace(table, values={**table.values, "schemas": schemas}), live_files(table))
    assert sum(truth.matching("later = 5").values()) == 400
    assert truth.matching("later is null") == {}


def test_files_that_are_not_what_the_table_says(tmp_path: Path) -> None:
    table = load_table_json(small_table(tmp_path))
    files = live_files(table)
    with pytest.raises(DatasetFailed, match=r"has 100 rows, its manifest says 99"):
        GroundTruth(table, [replace(files[0], records=99)]).matching("id = 1")
    with pytest.raises(DatasetFailed, match="cannot be read"):
        GroundTruth(table, [replace(files[0], path="/no/where.parquet")]).matching("id = 1")
    with pytest.raises(NoTruth, match=r"read from Parquet files only, and .* is orc"):
        GroundTruth(table, [replace(files[0], format="orc")])


@pytest.fixture
def evolved(tmp_path: Path) -> Iterator[tuple[SqlCatalog, str]]:
    small_table(tmp_path)
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/small.db", warehouse=str(tmp_path))
    yield catalog, "db.small"
    catalog.close()


def test_columns_are_found_by_id_when_they_were_renamed_added_or_swapped(evolved: tuple[SqlCatalog, str]) -> None:
    catalog, name = evolved
    table = catalog.load_table(name)
    with table.update_schema() as update:
        update.rename_column("name", "label")
        update.rename_column("price", "name")
        update.add_column("extra", IntegerType())
    truth = truth_of(normalised(table.metadata_location))
    assert sum(truth.matching("label = 'n1'").values()) == len([r for r in ROWS if r["name"] == "n1"])
    assert sum(truth.matching("name > 3.95").values()) == 4
    assert sum(truth.matching("extra is null").values()) == 400
    assert truth.matching("extra = 1") == {}


def test_rows_older_than_a_column_have_its_initial_default(tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table(
        "db.t", pa.schema([("id", pa.int64())]), properties={"format-version": "3"}
    )
    table.append(pa.table({"id": [1, 2, 3]}))
    table.update_schema(lambda s: s.add_column("extra", icebench.INT, default=7))
    table.append(pa.table({"id": [4, 5], "extra": pa.array([8, None], pa.int32())}))
    truth = truth_of(table.metadata_location)
    counts = {filter: sum(truth.matching(f"extra {filter}").values()) for filter in ("= 7", "= 8", "is null")}
    assert counts == {"= 7": 3, "= 8": 1, "is null": 1}


def test_files_without_ids_are_matched_by_name_and_partition_values_fill_in(tmp_path: Path) -> None:
    table = load_table_json(small_table(tmp_path, partitioned=True))
    files = live_files(table)
    for file in files:
        path = normalised(file.path)
        rows = pq.read_table(path).drop_columns(["name"])
        without_ids = pa.schema([field.remove_metadata() for field in rows.schema])
        pq.write_table(pa.table(rows.columns, schema=without_ids), path)
    truth = GroundTruth(table, files)
    assert sum(truth.matching("name = 'n1'").values()) == len([r for r in ROWS if r["name"] == "n1"])
    assert sum(truth.matching("id < 10").values()) == 10


def test_the_columns_of_a_filter(tmp_path: Path) -> None:
    table = load_table_json(small_table(tmp_path))
    assert [c.name for c in filter_columns("price > 1 or not (ID = 3 and price < 7)", table)] == ["id", "price"]
    assert filter_columns("1 = 1", table) == ()


def test_position_deletes_apply_to_the_files_of_their_partition_that_are_no_younger(tmp_path: Path) -> None:
    """Each delete file names rows of several data files, and places that other files have too."""
    properties = {"format-version": "2", "write.delete.granularity": "partition"}
    schema = pa.schema([("id", pa.int64()), ("part", pa.int64())])
    table = icebench.load_catalog(str(tmp_path)).create_table(
        "db.t", schema, partition_spec=[("part", "identity")], properties=properties
    )
    for start in range(0, 40, 10):
        table.append(pa.table({"id": range(start, start + 10), "part": [start // 20] * 10}, schema=schema))
    for ids in ("id in (3, 17, 25, 38)", "id in (0, 19, 31)"):
        table.delete(ids, mode="merge-on-read")
    found = load_table_json(table.metadata_location)
    files = live_files(found)
    deletes = [file for file in files if file.content != DATA]
    assert len(deletes) == 4

    def check(left: set[int], changed: FileEntry | None = None, **changes: Any) -> None:
        truth = GroundTruth(found, [replace(file, **changes) if file is changed else file for file in files])
        rows = pa.record_batch({"id": pa.array(sorted(left), pa.int64())})
        assert truth.answer(["id"], None).fault_of(checksum_of([rows], ["id"])) is None

    left = set(range(40)) - {3, 17, 25, 38, 0, 19, 31}
    check(left)
    first = min((d for d in deletes if d.partition == {"part": 0}), key=lambda d: d.sequence_number)
    assert sorted(pq.read_table(first.path)["pos"].to_pylist()) == [3, 7]
    check(left | {3, 17}, first, sequence_number=0)
    check(left | {3, 17}, first, partition={"part": 1})
