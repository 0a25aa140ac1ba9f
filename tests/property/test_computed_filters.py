"""Filters that compute values, against DuckDB on the same rows: rows, rows under NOT, and rows left by deletes."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import icebench
from icebench.errors import Invalid

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("d", pa.decimal128(7, 2)),
        ("s", pa.string()),
        ("u", pa.string()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("tz", pa.timestamp("us", "UTC")),
        ("n", pa.struct([("i", pa.int64())])),
    ]
)
LIKE = ["%b%", "a%", "_b%", "%", "", "a!%%", "%!_", "a%b", "\n%", "aB", "%\\\\"]


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[icebench.Table, duckdb.DuckDBPyConnection]]:
    table = make_table(tmp_path_factory.mktemp("computed"))
    rows = table.scan().to_arrow()
    place = rows.schema.get_field_index("tz")
    rows = rows.set_column(place, "tz", rows["tz"].cast(pa.timestamp("us")))  # DuckDB's zones are an extension
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        connection.execute("create table t as select * from rows")
        yield table, connection


def make_table(directory: Path) -> icebench.Table:
    """Six files; values of neighbours overlap little, so that filters prune."""
    rng = random.Random(7)
    catalog = icebench.load_catalog(str(directory))
    table = catalog.create_table("db.t", SCHEMA, partition_spec=[("ts", "year")])
    for number in range(6):
        table.append(pa.Table.from_pylist([make_row(rng, number * 40 + k) for k in range(40)], SCHEMA))
    return table


def make_row(rng: random.Random, number: int) -> dict[str, Any]:
    moment = dt.datetime.fromisoformat("2018-01-01") + dt.timedelta(
        hours=number * 111 + rng.randrange(50), microseconds=1
    )
    row = {
        "i": number % 9 - 4,
        "l": rng.randrange(-3, 9),
        "x": rng.choice([math.nan, -0.0, 0.0, 1.5, -2.0, math.inf]),
        "y": rng.choice([math.nan, 0.0, 1.5]),
        "d": Decimal(rng.randrange(-500, 500)).scaleb(-2),
        "s": "".join(rng.choices("aB%_\\\n", k=rng.randrange(4))),
        "u": "".join(rng.choices("abAB", k=2)),
        "day": moment.date(),
        "ts": moment,
        "tz": moment.replace(tzinfo=dt.UTC),
        "n": {"i": rng.randrange(3)},
    }
    return {"id": number, **{name: None if rng.random() < 0.1 else value for name, value in row.items()}}


OPERATORS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
COMPUTED: st.SearchStrategy[str] = st.deferred(
    lambda: st.one_of(
        st.sampled_from(["i", "l", "n.i", "length(s)", "month(ts)", "day(tz)", "hour(ts)", "year(day)", "abs(i)"]),
        st.builds("({} {} {})".format, COMPUTED, st.sampled_from("+-*"), WHOLE),
        st.builds("({} % {})".format, COMPUTED, st.sampled_from(["2", "3", "-4"])),
        st.builds("coalesce({}, {})".format, COMPUTED, WHOLE),
    )
)
WHOLE: st.SearchStrategy[str] = COMPUTED | st.integers(-5, 9).map(str)
NUMBER = COMPUTED | st.sampled_from(["x", "y", "d", "(d + i)", "(x * 2)", "(i / 2)", "(d - 1.25)"])
TEXT = st.sampled_from(
    ["s", "u", "lower(s)", "upper(u)", "substr(s, 2)", "substr(u, 1, 1)", "(s || u)", "coalesce(s, u)", "lower(u)"]
)
DAYS = st.sampled_from(["DATE '2019-01-01'", "DATE '2020-02-29'", "cast('2019-12-31' as date)", "day"])
TEST = st.one_of(
    st.builds("{} {} {}".format, NUMBER, OPERATORS, NUMBER | WHOLE),
    st.builds("{} {} {}".format, TEXT, OPERATORS, TEXT | st.just("'ab'")),
    st.builds("{} {} {}".format, st.sampled_from(["day", "cast(ts as date)"]), OPERATORS, DAYS),
    st.builds("year({}) {} {}".format, st.sampled_from(["ts", "tz", "day"]), OPERATORS, st.integers(2017, 2022)),
    st.builds("{} {} '{}' escape '!'".format, TEXT, st.sampled_from(["like", "not like"]), st.sampled_from(LIKE)),
    st.builds("{} between {} and {}".format, COMPUTED, WHOLE, WHOLE),
    st.builds("{} in ({}, {})".format, COMPUTED, WHOLE, WHOLE),
    st.builds("{} is {}distinct from {}".format, NUMBER, st.sampled_from(["", "not "]), NUMBER | WHOLE),
    st.builds("{} is {}distinct from {}".format, TEXT, st.sampled_from(["", "not "]), TEXT | st.just("'ab'")),
    st.builds("{} is null".format, NUMBER | TEXT),
)
FILTER = st.recursive(
    TEST,
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner)
        | st.builds("(not ({}))".format, inner)
    ),
    max_leaves=4,
)


@given(text=FILTER)
@example(text="x < y or not (x >= y)")
@example(text="i is distinct from l")
@example(text="i + 0 is distinct from 1")
@example(text="coalesce(s, u) is distinct from 'ab'")
@example(text="i != 0 and l / i > 1")
@example(text="1 + 1 = 2")
@example(text="year(tz) != 2019 and s like 'a%b' escape '!'")
@example(text="s like '%\\\\' escape '!'")
def test_rows_are_those_of_duckdb(peers: tuple[icebench.Table, duckdb.DuckDBPyConnection], text: str) -> None:
    table, connection = peers
    expected = connection.execute(f"select id from t where {text} order by id").fetchall()
    scan = table.scan(text, ["id"])
    assert [(n,) for n in sorted(scan.to_arrow()["id"].to_pylist())] == expected
    assert scan.count() == len(expected)


def test_parts_of_moments_prune(peers: tuple[icebench.Table, duckdb.DuckDBPyConnection]) -> None:
    table, _ = peers
    for text in ("year(ts) = 2019", "cast(ts as date) < DATE '2019-01-01'", "year(ts) > 2019 and i < l"):
        assert 0 < len(table.scan(text).plan().files) < len(table.scan().plan().files), text


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_change_by_what_they_compute(tmp_path: Path, mode: Any) -> None:
    table = make_table(tmp_path)
    ids = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    gone = {n for n, row in ids.items() if row["s"] is not None and "B" in row["s"]}
    table.delete("s like '%B%'", mode=mode)
    assert set(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == ids.keys() - gone
    table.update("i < l and hour(ts) % 2 = 0", {"u": "seen"}, mode=mode)
    seen = table.scan("u = 'seen'", ["id"]).to_arrow()["id"].to_pylist()
    whole = [row for n, row in ids.items() if n not in gone and None not in (row["i"], row["l"], row["ts"])]
    assert sorted(seen) == sorted(row["id"] for row in whole if row["i"] < row["l"] and row["ts"].hour % 2 == 0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("lower(s)", "not boolean"),
        ("s < i", "cast one of them"),
        ("lower(i) = 'x'", "lower of int32"),
        ("day = ts", "cast one of them"),
        ("year(s) = 2020", "year of string"),
        ("missing < i", "missing"),
        ("isnan(i + 1)", "isnan of int64"),
        ("n < i", "cast one of them"),
        ("hour(day) = 1", "hour of date32"),
    ],
)
def test_types_are_reported_before_anything_is_read(tmp_path: Path, text: str, reason: str) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", SCHEMA)
    with pytest.raises((Invalid, icebench.errors.Unsupported), match=reason):
        table.scan(text).plan()


def test_values_that_cannot_be_computed_are_reported(peers: tuple[icebench.Table, duckdb.DuckDBPyConnection]) -> None:
    with pytest.raises(Invalid, match=r"the filter `.*`: divide by zero"):
        peers[0].scan("l / i > 1").to_arrow()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("l + 1e0 = l", [1 << 53]),
        ("l + 1.0 = l", []),
        ("l + 1.0 = l or l + 1e0 = l", [1 << 53]),
        ("l + 1e0 = l and l + 1.0 = l", []),
        ("l + 1.0 = l or (l + 1.0 = l and true) or l + 1e0 = l", [1 << 53]),
    ],
)
def test_tests_that_differ_only_in_the_kind_of_a_literal_are_both_kept(
    tmp_path: Path, text: str, expected: list[int]
) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", pa.schema([("l", pa.int64())]))
    table.append(pa.table({"l": [1 << 53, 1]}))  # the first is the least whole number that a double cannot add 1 to
    assert table.scan(text).to_arrow()["l"].to_pylist() == expected


@pytest.mark.parametrize(
    "made",
    [
        icebench.col("l") + 1e0 == icebench.col("l"),
        icebench.col("l") + np.float64(1) == icebench.col("l"),
        icebench.col("l") + Decimal("1E+3") == 1001,
        icebench.col("l") * math.inf < Decimal("Infinity"),
    ],
)
def test_the_text_of_a_filter_keeps_its_rows(tmp_path: Path, made: Any) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", pa.schema([("l", pa.int64())]))
    table.append(pa.table({"l": [1 << 53, 1, -1]}))
    rows = table.scan(made).to_arrow()["l"].to_pylist()
    assert len(rows) == 1
    assert table.scan(str(made)).to_arrow()["l"].to_pylist() == rows
