"""Modelled layouts against tables that were really laid out so, and against brute force."""

from __future__ import annotations

import datetime as dt
import math
import tempfile
from collections import Counter
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import icebench
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.parse import parse
from icebench.errors import Invalid
from tests.property.evaluate import evaluate

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us")),
        ("m", pa.decimal128(20, 2)),
    ]
)
_LONG = "a text of more than sixteen "
_ROW = st.tuples(
    st.one_of(st.none(), st.integers(-20, 20)),
    st.one_of(st.none(), st.sampled_from([math.nan, -0.0, 0.0, 1.5, -3.0, math.inf])),
    st.one_of(st.none(), st.sampled_from(["", "a", "b", _LONG + "a", _LONG + "b", "\U0010ffff" * 17])),
    st.one_of(st.none(), st.integers(-40, 400).map(lambda n: dt.date(1970, 1, 1) + dt.timedelta(n))),
    st.one_of(st.none(), st.integers(0, 400).map(lambda n: 1_704_067_200_000_000 + n * 3_600_000_000)),
    st.one_of(st.none(), st.integers(-500, 500).map(lambda n: Decimal(n).scaleb(-2))),
)
_FILTERS = st.sampled_from([
    "n = 3", "n > 12 or n < -12", "n is null", "n in (1, 19) and x > 1", "x is nan", "x <= -0.0", "not (x < 2)",
    "s = 'b'", f"s = '{_LONG}b'", f"s > '{_LONG}a' and s < 'b'", "s like 'a text%'", "id = 7",
    "s is not null and n >= 0", "d >= date '1970-03-01' and d < date '1970-04-01'", "d < date '1970-01-01'",
    "t = timestamp '2024-01-03 05:00:00'", "t >= timestamp '2024-01-10 00:00:00'",
    "m between 1.5 and 2", "m <> 0 or n = 1", "id < 4 or id > 40",
])  # fmt: skip
_SPECS = st.sampled_from(
    [
        [],
        [("n", "identity")],
        [("d", "month")],
        [("t", "day"), ("n", "bucket[3]")],
        [("s", "truncate[2]")],
        [("x", "identity")],
        [("m", "truncate[100]")],
    ]
)
_ORDERS = st.sampled_from(
    [
        {},
        {"sort": ("n",)},
        {"sort": ("s", "d", "id")},
        {"zorder": ("n", "t")},
        {"hilbert": ("x", "m", "s")},
    ]
)


def _table(
    rows: list[tuple[object, ...]], folder: str, spec: list[tuple[str, str]], **properties: str
) -> icebench.Table:
    columns = [list(range(len(rows))), *map(list, zip(*rows, strict=True))]
    catalog = icebench.load_catalog(folder)
    table = catalog.create_table("db.t", SCHEMA, partition_spec=spec, properties=properties)
    table.append(pa.table(columns, schema=SCHEMA))
    return table


_MODES = st.sampled_from(["truncate(16)", "truncate(3)", "full", "counts", "none"])
_TABLE_ORDERS = st.sampled_from([(), ("n",), ("s", "x")])


@given(
    rows=st.lists(_ROW, min_size=1, max_size=40),
    layout=st.tuples(_SPECS, _ORDERS, st.integers(6, 30), _TABLE_ORDERS),
    filters=st.lists(_FILTERS, min_size=1, max_size=6),
    mode=_MODES,
)
@example(
    [(1, math.nan, None, None, None, None), (1, 0.0, None, None, None, None)], ([], {}, 9, ()), ["x = 1.5"], "full"
)
@example([(None, None, f"{_LONG}a", None, None, None)], ([], {}, 9, ()), [f"s = '{_LONG}b'"], "truncate(16)")
@example([(n, None, None, None, None, None) for n in range(18)], ([], {}, 9, ("n",)), ["n = 3"], "counts")
def test_what_is_planned_is_what_a_real_table_plans(
    rows: list[tuple[object, ...]],
    layout: tuple[list[tuple[str, str]], dict[str, tuple[str, ...]], int, tuple[str, ...]],
    filters: list[str],
    mode: str,
) -> None:
    """Each modelled file is really written as one, so the plan must have exactly the files that were modelled."""
    spec, order, size, table_order = layout
    with tempfile.TemporaryDirectory() as folder:
        table = _table(rows, folder, spec, **{"write.metadata.metrics.default": mode})
        if table_order:
            table.replace_sort_order(table_order)
        own = table.scan().to_arrow()
        model = icebench.LayoutModel(own, table.metadata)
        found = model.lay_out(size, spec=table.spec, **order)  # type: ignore[arg-type]
        written = _written(table, [own.take(pa.array(found.order[a:b])) for a, b in pairwise(found.starts)])
        for filter in filters:
            planned = set(table.scan(filter=filter).plan().files["file_path"].to_pylist())
            assert [path in planned for path in written] == found.planned(filter).tolist(), filter
            bound = bind(parse(filter), table.schema())
            for (start, end), is_planned in zip(pairwise(found.starts), found.planned(filter), strict=True):
                assert is_planned or not any(_matches(bound, own, int(row)) for row in found.order[start:end]), filter


@pytest.mark.filterwarnings(
    "ignore::icebench.engine.errors.ContradictionWarning"
)  # files are written anew, in their place
@given(
    rows=st.lists(_ROW, min_size=1, max_size=60),
    layout=st.tuples(_SPECS, _ORDERS, st.integers(6, 30), st.integers(1, 12)),
    filters=st.lists(_FILTERS, min_size=1, max_size=6),
    mode=_MODES,
)
@example([(1, 0.0, None, None, None, None)] * 5, ([], {}, 9, 2), ["x >= 0 and n = 1", "n = 2"], "none")
def test_row_groups_are_skipped_as_by_a_real_scan(
    rows: list[tuple[object, ...]],
    layout: tuple[list[tuple[str, str]], dict[str, tuple[str, ...]], int, int],
    filters: list[str],
    mode: str,
) -> None:
    """Files of the same rows, each with row groups of the same rows, so that the row groups read must be those that
    were modelled. Parquet distinguishes neither NaN nor the sign of zero, so more floating-point rows may be read."""
    spec, order, size, group = layout
    with tempfile.TemporaryDirectory() as folder:
        table = _table(rows, folder, spec, **{"write.metadata.metrics.default": mode})
        own = table.scan().to_arrow()
        found = icebench.LayoutModel(own, table.metadata).lay_out(size, spec=table.spec, **order)  # type: ignore[arg-type]
        parts = found.row_groups(group)
        files = [own.take(pa.array(found.order[a:b])) for a, b in pairwise(found.starts)]
        written = _written(table, files)
        for path, file in zip(written, files, strict=True):
            _regroup(path, file, group)
        file_of = np.searchsorted(found.starts, parts.starts[:-1], side="right") - 1
        for filter in filters:
            groups = icebench.load_table(table.metadata_location).scan(filter=filter).row_groups().to_pylist()
            seen = {(each["file_path"], each["first_row"]): each for each in groups}
            # The statistics of the only row group of a small file are not looked at.
            of_file = Counter(each["file_path"] for each in groups)
            for start, end, file, is_read in zip(
                parts.starts, parts.starts[1:], file_of.tolist(), parts.planned(filter).tolist(), strict=False
            ):
                real = seen.get((written[file], int(start - found.starts[file])))
                if real is not None:
                    assert real["record_count"] == end - start
                    assert not (real["is_skipped"] and is_read), filter
                    assert real["is_skipped"] or is_read or "x " in filter or of_file[written[file]] == 1, filter
                else:
                    assert not found.planned(filter)[file], filter


def _regroup(path: str, rows: pa.Table, row_group_size: int) -> None:
    """The same file with row groups of so many rows."""
    location = path.removeprefix("file://")
    schema = pq.read_schema(location)
    pq.write_table(pq.read_table(location), location, row_group_size=row_group_size, store_decimal_as_integer=True)
    assert pq.read_schema(location).equals(schema)
    assert pq.read_metadata(location).num_row_groups == -(-rows.num_rows // row_group_size)


def _written(table: icebench.Table, files: list[pa.Table]) -> list[str]:
    """The table with these rows in a file each instead of its own; the files."""
    with table.transaction() as transaction:
        transaction.delete("true", mode="copy-on-write")
        for rows in files:
            transaction.append(rows)
    found = table.scan(columns=["id", "_file"]).to_arrow()
    file_of = dict(zip(found["id"].to_pylist(), found["_file"].to_pylist(), strict=True))
    return [file_of[rows["id"][0].as_py()] for rows in files]


def _matches(bound: object, rows: pa.Table, row: int) -> bool:
    values = {i + 1: _value(rows.column(i), row) for i in range(rows.num_columns)}
    return evaluate(bound, values) is True  # type: ignore[arg-type]


def _value(column: pa.ChunkedArray, row: int) -> object:
    """A value as filters are evaluated on it: dates and times are integers."""
    is_time = pa.types.is_temporal(column.type)
    integers = {32: pa.int32(), 64: pa.int64()}
    return (column.slice(row, 1).cast(integers[column.type.bit_width]) if is_time else column.slice(row, 1))[0].as_py()


@settings(max_examples=12)
@given(
    values=st.lists(st.tuples(st.integers(-30, 30), st.integers(-30, 30)), min_size=8, max_size=60, unique=True),
    order=st.sampled_from(["sort", "zorder", "hilbert"]),
)
def test_rows_are_ordered_as_a_rewrite_orders_them(values: list[tuple[int, int]], order: str) -> None:
    rows: list[tuple[object, ...]] = [(a, float(b), None, None, None, None) for a, b in values]
    with tempfile.TemporaryDirectory() as folder:
        table = _table(rows, folder, [])
        model = icebench.LayoutModel(table.scan().to_arrow(), table.metadata)
        given_order = {
            "sort": {"sort_order": ["n", "x"]},
            "zorder": {"zorder_by": ["n", "x"]},
            "hilbert": {"hilbert_by": ["n", "x"]},
        }[order]
        table.maintenance.rewrite_data_files(order, rewrite_all=True, **given_order)  # type: ignore[arg-type]
        layout = model.lay_out(7, **{order: ("n", "x")})  # type: ignore[arg-type]
        rewritten = table.scan().to_arrow()
        assert model.rows["id"].take(pa.array(layout.order)).to_pylist() == rewritten["id"].to_pylist()


def test_files_are_cut_as_a_rewrite_cuts_them(tmp_path: object) -> None:
    rows = pa.table({"n": np.arange(20_000) * 7919 % 20_011, "p": np.arange(20_000) % 3})
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", rows.schema, partition_spec=[("p", "identity")])
    table.append(rows)
    model = icebench.LayoutModel(table.scan().to_arrow(), table.metadata)
    for target in (9_000, 14_000, 50_000):
        table.maintenance.rewrite_data_files("sort", sort_order=["n"], rewrite_all=True, target_file_size_bytes=target)
        sizes = table.inspect.files()["file_size_in_bytes"].to_pylist()
        row_bytes = sum(sizes) / rows.num_rows
        layout = model.lay_out(target / row_bytes, spec=table.spec, sort=("n",))
        assert len(layout.record_counts) == pytest.approx(len(sizes), rel=0.35)
        assert layout.record_counts.sum() == rows.num_rows


def test_metrics_of_wide_tables_and_wrong_arguments(tmp_path: object) -> None:
    rows = pa.table({"a": [1, 2, 3, 4], "b": [4, 3, 2, 1]})
    properties = {"write.metadata.metrics.max-inferred-column-defaults": "1"}
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", rows.schema, properties=properties)
    table.append(rows)
    model = icebench.LayoutModel(table.scan().to_arrow(), table.metadata)
    assert model.lay_out(2, sort=("b",)).planned("b < 2").tolist() == [True, True]
    named = {"write.metadata.metrics.column.b": "full"}
    assert model.lay_out(2, sort=("b",), properties=named).planned("b < 2").tolist() == [True, False]
    assert model.of_files(np.array([1, 0, 1, 0])).planned("a = 1 or a = 3").tolist() == [True, True]
    assert model.of_files(np.array([0, 1, 0, 1])).planned("a = 1").tolist() == [True, False]
    with pytest.raises(Invalid, match="one order"):
        model.lay_out(2, sort=("a",), zorder=("b",))
    with pytest.raises(Invalid, match="no column"):
        model.lay_out(2, sort=("c",))
