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


VIEWS = pa.array(["a", "text that is not inlined", None, "d"], pa.string_view())
RUNS = pa.RunEndEncodedArray.from_arrays([2, 3, 4], [5, None, 6])
PLACES = pa.array([0, 1, 2, 3, 4], pa.int32())


@pytest.mark.parametrize("filter", ["n = 1", "n != 2", "n > 1", "n > 0", "n > 9"])
@pytest.mark.parametrize(
    "column",
    [
        VIEWS,
        VIEWS.cast(pa.binary_view()),
        RUNS,
        pa.StructArray.from_arrays([VIEWS, RUNS], ["v", "r"], mask=pa.array([False, True, False, False])),
        pa.ListArray.from_arrays(PLACES, VIEWS, mask=pa.array([False, True, False, False])),
        pa.StructArray.from_arrays([VIEWS], ["v"], mask=pa.array([False, True, False, False])),
        pa.ListViewArray.from_arrays(PLACES[:4], pa.array([1] * 4, pa.int32()), VIEWS),
        pa.ListArray.from_arrays(PLACES, RUNS),
        pa.MapArray.from_arrays(PLACES, pa.array(["k"] * 4), VIEWS),
    ],
    ids=lambda column: str(column.type)[:24],
)
def test_columns_that_arrow_does_not_filter(column: pa.Array, filter: str) -> None:
    n = [1, 2, 3, 4, 1, 2, 3, 4]
    rows = pa.table({"c": pa.chunked_array([column, column]), "n": n})
    found = icebench.filter_rows(rows, filter)
    assert found.schema == rows.schema
    found.validate(full=True)
    assert found["n"].to_pylist() == icebench.filter_rows(pa.table({"n": n}), filter)["n"].to_pylist()
    values = column.to_pylist()
    assert found["c"].to_pylist() == [values[each - 1] for each in found["n"].to_pylist()]


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
