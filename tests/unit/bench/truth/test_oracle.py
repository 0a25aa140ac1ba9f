"""Every planted fault of delivered rows is found and named."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from icebench.bench.engines.checksum import Checksum, checksum_of
from icebench.bench.errors import ConfigError, DatasetFailed
from icebench.bench.truth import sql
from icebench.bench.truth.oracle import Oracle
from icebench.bench.truth.sql import NoTruth, Sql

COLUMNS = ("id", "price", "tax", "name")
SCHEMA = pa.schema(
    [("id", pa.int64()), ("price", pa.decimal128(7, 2)), ("tax", pa.decimal128(7, 2)), ("name", pa.string())]
)


def rows_of(ids: range) -> pa.Table:
    values = [
        {
            "id": i,
            "price": None if i % 10 == 3 else Decimal(i).scaleb(-2),
            "tax": Decimal(i * 7 % 50).scaleb(-2),
            "name": None if i % 10 == 4 else "" if i % 10 == 5 else f"it's {i}",
        }
        for i in ids
    ]
    return pa.Table.from_pylist(values, SCHEMA)


ROWS = rows_of(range(100))


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    # hive-like names bring no columns
    paths = [tmp_path_factory.mktemp("raw") / f"day={part}" / "it's.parquet" for part in range(4)]
    for part, path in enumerate(paths):
        path.parent.mkdir()
        pq.write_table(ROWS.slice(part * 25, 25), path)
    return paths


def fault(raw: list[Path], delivered: pa.Table, filter: str | None = None) -> str | None:
    return Oracle(raw).answer(COLUMNS, filter).fault_of(_checksum(delivered))


def _checksum(rows: pa.Table) -> Checksum:
    return checksum_of(rows.to_batches(), rows.column_names)


def test_the_same_rows_in_any_order_are_right(raw: list[Path]) -> None:
    assert fault(raw, ROWS.take(pa.array(range(99, -1, -1)))) is None


@pytest.mark.parametrize(
    ("filter", "kept"),
    [
        ("id >= 40 and id < 60", lambda r: 40 <= r["id"] < 60),
        ("price is null or id = 1", lambda r: r["price"] is None or r["id"] == 1),
        ("not price > 0.50", lambda r: r["price"] is not None and r["price"] <= Decimal("0.50")),
        ("name = 'it''s 7'", lambda r: r["id"] == 7),
        ("false", lambda r: False),
    ],
)
def test_filters_keep_what_is_true(raw: list[Path], filter: str, kept: Callable[[dict[str, Any]], bool]) -> None:
    right = pa.Table.from_pylist([row for row in ROWS.to_pylist() if kept(row)], SCHEMA)
    answer = Oracle(raw).answer(COLUMNS, filter)
    assert answer.rows == right.num_rows
    assert answer.columns == _checksum(right).columns
    assert answer.fault_of(_checksum(right)) is None


def test_rows_are_deleted_where_a_filter_of_deletes_is_true(raw: list[Path]) -> None:
    left = pa.Table.from_pylist([r for r in ROWS.to_pylist() if r["price"] is None or r["price"] <= Decimal("0.50")])
    answer = Oracle(raw, ["price > 0.50"]).answer(COLUMNS)
    assert answer.fault_of(_checksum(left.cast(SCHEMA))) is None
    both = Oracle(raw, ["price > 0.50", "id = 3"]).answer(COLUMNS, "id < 60")
    assert both.rows == len([row for row in left.to_pylist() if row["id"] < 60 and row["id"] != 3])


def test_an_answer_is_found_out_once_for_its_filter_and_columns(tmp_path: Path) -> None:
    path = tmp_path / "raw.parquet"
    pq.write_table(ROWS, path)
    oracle = Oracle([path])
    asked: list[tuple[list[str], str | None]] = [
        (["id"], "id < 7"),
        (["id"], None),
        (["name"], "id < 7"),
        (["id"], "id < 8"),
    ]
    found = [oracle.answer(*each) for each in asked]
    assert [(answer.rows, list(answer.columns)) for answer in found] == [
        (7, ["id"]),
        (100, ["id"]),
        (7, ["name"]),
        (8, ["id"]),
    ]
    path.unlink()
    assert [oracle.answer(*each) for each in asked] == found


def replaced(column: str, value: object, *, at: int) -> pa.Table:
    values = ROWS.column(column).to_pylist()
    values[at] = value
    return ROWS.set_column(SCHEMA.get_field_index(column), column, pa.array(values, SCHEMA.field(column).type))


def named(source: dict[str, str]) -> pa.Table:
    return pa.table({name: ROWS.column(source.get(name, name)) for name in COLUMNS})


WRONG = {
    "wrong row": (replaced("price", Decimal("0.99"), at=2), "column price: sum 4567 against 4470"),
    "null for zero": (replaced("tax", None, at=0), "column tax: 1 nulls against 0"),
    "zero for null": (replaced("price", Decimal(0), at=3), "column price: 9 nulls against 10"),
    "empty for null": (replaced("name", "", at=4), "column name: 9 nulls against 10"),
    "wrong column": (named({"price": "tax"}), "column price has the values of column tax"),
    "swapped columns": (named({"price": "tax", "tax": "price"}), "column price has the values of column tax"),
    "missing rows": (ROWS.slice(1), "99 rows against 100"),
    "values in other rows": (
        ROWS.set_column(0, "id", pc.take(ROWS.column("id"), pa.array([1, 0, *range(2, 100)]))),
        "the same values in other rows",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_planted_fault_is_found_and_named(raw: list[Path], name: str) -> None:
    delivered, message = WRONG[name]
    assert fault(raw, delivered) == message


def test_a_file_that_is_lost_or_read_twice_is_named(raw: list[Path]) -> None:
    without = pa.concat_tables([ROWS.slice(0, 50), ROWS.slice(75)])
    assert fault(raw, without) == f"lacks all 25 rows of {raw[2]}"
    assert fault(raw, pa.concat_tables([ROWS, ROWS.slice(75)])) == f"has the 25 rows of {raw[3]} twice"


def test_files_and_filters_that_cannot_be_read(raw: list[Path], tmp_path: Path) -> None:
    with pytest.raises(DatasetFailed, match=r"file .*absent.parquet cannot be read"):
        Oracle([*raw, tmp_path / "absent.parquet"]).answer(COLUMNS)
    with pytest.raises(ConfigError, match="names column 'nothing', which the table does not have"):
        Oracle(raw).answer(COLUMNS, "nothing = 1")
    with pytest.raises(NoTruth, match="DuckDB, which evaluates filters, says"):
        Oracle(raw).answer(COLUMNS, "no_function(id) = 1")
    damaged = tmp_path / "damaged.parquet"
    data = bytearray(raw[0].read_bytes())
    data[40:400] = bytes(360)
    damaged.write_bytes(data)
    with pytest.raises(DatasetFailed, match=r"damaged.parquet cannot be read"):
        Oracle([damaged]).answer(COLUMNS)


def test_without_duckdb_there_is_no_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(sql, "import_module", missing)
    with pytest.raises(NoTruth, match=r"pip install 'icebench\[peers\]'"):
        Sql()
