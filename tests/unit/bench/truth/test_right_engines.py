"""Engines that are right are not counted as wrong: the truth of what DuckDB by itself takes for something else."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench.bench.engines.checksum import checksum_of
from icebench.bench.errors import ConfigError
from icebench.bench.truth.oracle import Oracle
from icebench.bench.truth.rows import GroundTruth, truth_at
from tests.property.test_harness_truth import equality_deletes


def a_table(folder: Path, rows: pa.Table, version: int = 3, **more: Any) -> icebench.Table:
    table = icebench.load_catalog(str(folder)).create_table(
        "db.t", rows.schema, properties={"format-version": str(version)}, **more
    )
    if rows.num_rows:
        table.append(rows)
    return table


def truth_of(folder: Path, rows: pa.Table, **more: Any) -> GroundTruth:
    return truth_at(a_table(folder, rows, **more).metadata_location)


def count(truth: GroundTruth, filter: str) -> int:
    assert sum(truth.matching(filter).values()) == truth.answer(["id"], filter).rows
    return truth.answer(["id"], filter).rows


@pytest.mark.parametrize(
    ("filter", "rows"),
    [
        ("f > 5", 3),
        ("f <= 5", 3),
        ("f = 0", 2),
        ("f in (0.0, 7.5)", 3),
        ("f is nan", 1),
        ("f is not nan", 6),
        ("f != 0", 4),
        ("not f > 5", 3),
    ],
)
def test_nan_is_above_all_numbers_and_zeros_are_equal(tmp_path: Path, filter: str, rows: int) -> None:
    values = [math.nan, -0.0, 0.0, 7.5, -1.0, math.inf, None]
    table = pa.table({"id": range(7), "f": values})
    assert count(truth_of(tmp_path, table), filter) == rows
    pq.write_table(table, tmp_path / "raw.parquet")
    assert Oracle([tmp_path / "raw.parquet"]).answer(["id"], filter).rows == rows


def test_deletes_in_a_partition_of_nan_reach_its_rows(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": [1, 2, 1],
            "kind": pa.array([0, 0, 0], pa.int32()),
            "name": ["a", "b", "c"],
            "f": [math.nan, math.nan, 1.0],
        }
    )
    table = a_table(tmp_path, rows, version=2, partition_spec=[("f", "identity")])
    delete = equality_deletes(tmp_path, table, {"id": [1]})
    table.add_files([replace(delete, partition=(math.nan,))])
    found = truth_at(table.metadata_location).answer(["id", "name"])
    left = rows.slice(1).select(["id", "name"])
    assert found.fault_of(checksum_of(left.to_batches(), ["id", "name"])) is None


def test_defaults_of_bytes_are_bytes(tmp_path: Path) -> None:
    table = a_table(tmp_path, pa.table({"id": [1, 2]}))
    table.update_schema(lambda s: s.add_column("b", icebench.BINARY, default=b"\x00\xff"))
    table.update_schema(lambda s: s.add_column("g", icebench.FixedType(3), default=b"\x01\x02\xfe"))
    truth = truth_at(table.metadata_location)
    right = pa.table({"b": pa.array([b"\x00\xff"] * 2), "g": pa.array([b"\x01\x02\xfe"] * 2, pa.binary(3))})
    assert truth.answer(["b", "g"]).fault_of(checksum_of(right.to_batches(), ["b", "g"])) is None
    assert count(truth, "b = X'00ff' and g = X'0102fe'") == 2
    assert count(truth, "b > X'00ff' or g < X'0102fe'") == 0


@pytest.mark.parametrize(
    "filter",
    [
        "t < timestamp '2020-01-01T12:00:00+02:00'",
        "t < '2020-01-01 12:00:00+02:00'",
        "t <= '2020-01-01T09:59:59.999999Z'",
        "t < cast('2020-01-01T12:00:00+02:00' as timestamptz)",
        "'2020-01-01T12:00:00+02:00' > t",
        "t between '2020-01-01T00:00:00+00:00' and '2020-01-01T11:59:59+02:00'",
        "t in ('2020-01-01T11:00:00+02:00')",
    ],
)
def test_zones_of_literals_count(tmp_path: Path, filter: str) -> None:
    moments = np.array(["2020-01-01T09:00", "2020-01-01T10:00", "2020-01-01T11:00"], "datetime64[us]")
    rows = pa.table({"id": [1, 2, 3], "t": pa.array(moments).cast(pa.timestamp("us", "UTC"))})
    assert count(truth_of(tmp_path, rows), filter) == 1
    pq.write_table(rows, tmp_path / "raw.parquet")
    assert Oracle([tmp_path / "raw.parquet"]).answer(["id"], filter).rows == 1


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds_count(tmp_path: Path, zone: str | None) -> None:
    ticks = np.array([1577880000123456788, 1577880000123456789, -1])
    rows = pa.table({"id": [1, 2, 3], "t": pa.array(ticks).cast(pa.timestamp("ns", zone))})
    truth = truth_of(tmp_path, rows)
    suffix = "" if zone is None else "+00:00"
    assert truth.answer(["t"]).fault_of(checksum_of(rows.select(["t"]).to_batches(), ["t"])) is None
    assert count(truth, f"t = '2020-01-01T12:00:00.123456789{suffix}'") == 1
    assert count(truth, f"t < '2020-01-01T12:00:00.123456789{suffix}'") == 2
    assert count(truth, f"t < '1970-01-01T00:00:00{suffix}'") == 1
    pq.write_table(rows, tmp_path / "raw.parquet")
    assert Oracle([tmp_path / "raw.parquet"]).answer(["id"], f"t > '2020-01-01T12:00:00.123456788{suffix}'").rows == 1


def test_nanoseconds_of_a_literal_count_for_microseconds(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "t": pa.array([0, 1], pa.timestamp("us"))})
    assert count(truth_of(tmp_path, rows), "t < '1970-01-01T00:00:00.000000001'") == 1
    assert count(truth_of(tmp_path / "other", rows), "t = '1970-01-01T00:00:00.000001001'") == 0


def test_casts_to_whole_numbers_truncate(tmp_path: Path) -> None:
    values = [Decimal("2.50"), Decimal("2.99"), Decimal("-2.99"), Decimal("3.00")]
    rows = pa.table({"id": range(4), "d": pa.array(values, pa.decimal128(5, 2)), "f": [2.5, 2.99, -2.99, 3.0]})
    truth = truth_of(tmp_path, rows)
    for column in ("d", "f"):
        assert count(truth, f"cast({column} as int) = 2") == 2
        assert count(truth, f"cast({column} as bigint) = -2") == 1
        assert count(truth, f"cast({column} + 1 as int) = 3") == 2


def test_names_that_differ_in_case_are_two_columns(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "a": [5, 6], "A": [7, 8]})
    table = a_table(tmp_path, rows)
    pq.write_table(rows, tmp_path / "raw.parquet")
    for truth in (truth_at(table.metadata_location), Oracle([tmp_path / "raw.parquet"])):
        assert truth.answer(["a", "A"]).fault_of(checksum_of(rows.to_batches(), ["a", "A"])) is None
        assert truth.answer(["id"], "A = 7").rows == 1
        assert truth.answer(["A"], 'a = 6 and "A" = 8').rows == 1
        assert truth.answer(["id"], "ID = 1").rows == 1
    wide = pa.table({"id": [1], "ab": [1], "AB": [2]})
    with pytest.raises(ConfigError, match=r"names column 'Ab', which is 'ab' and 'AB' without regard to case"):
        truth_of(tmp_path / "wide", wide).matching("Ab = 1")


def test_a_number_with_an_exponent_makes_no_double_of_a_field(tmp_path: Path) -> None:
    least = -(2**63)
    fields = pa.array([{"i": least}, {"i": 100}], pa.struct([("i", pa.int64())]))
    rows = pa.table({"id": [1, 2], "n": fields})
    truth = truth_of(tmp_path, rows)
    assert count(truth, f"n.i not in ({least + 1}.5, 1e2)") == 1
    assert count(truth, "n.i = 1e2") == 1
