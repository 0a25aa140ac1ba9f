from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import icebench

ROWS = pa.table(
    {
        "n": pa.chunked_array([[1, 2], [3, None]], pa.int32()),
        "at": pa.StructArray.from_arrays([pa.array([1, 2, None, 4])], ["day"]),
        "counts": pa.array([[(1, 2)], None, [], []], pa.map_(pa.int32(), pa.int64())),
    }
)


@pytest.mark.parametrize(
    ("filter", "kept"),
    [
        ("n > 1", [2, 3]),
        ("at.day is null", [3]),
        ("n is null or at.day = 2", [2, None]),
        ("not (n <= 2)", [3]),
        ("n + at.day = 4", [2]),
        ("n > 5", []),
        (icebench.col("n") == 1, [1]),
    ],
)
def test_rows_are_kept_as_a_scan_keeps_them(filter: str, kept: list[int | None]) -> None:
    assert icebench.filter_rows(ROWS, filter)["n"].to_pylist() == kept


def test_the_columns_stay_as_they_are() -> None:
    found = icebench.filter_rows(ROWS, "n >= 1")
    assert found.schema == ROWS.schema
    assert found["counts"].to_pylist() == [[(1, 2)], None, []]


@pytest.mark.parametrize("filter", ["m = 1", "n = 'x'", "n >", "at = 1"])
def test_what_does_not_fit_the_columns_is_refused(filter: str) -> None:
    with pytest.raises((icebench.errors.Invalid, icebench.errors.Unsupported)):
        icebench.filter_rows(ROWS, filter)
    with pytest.raises((icebench.errors.Invalid, icebench.errors.Unsupported)):
        icebench.filter_rows(ROWS.slice(0, 0), filter)


def test_a_metadata_table(tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table(
        "db.t", pa.schema([("id", pa.int64())]), partition_spec=[("id", "bucket[4]")]
    )
    table.append(pa.table({"id": list(range(50))}))
    files = table.inspect.files()
    few = icebench.filter_rows(files, "readable_metrics.id.lower_bound > 0 and partition.id_bucket < 4")
    expected = [file["file_path"] for file in files.to_pylist() if file["readable_metrics"]["id"]["lower_bound"] > 0]
    assert few["file_path"].to_pylist() == expected
    assert 0 < len(expected) < files.num_rows
