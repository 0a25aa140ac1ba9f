"""Advice on a table that PyIceberg wrote, beside what the table then is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icebench
from icebench.bench.advise.advice import Options, advise
from icebench.bench.advise.candidates import todays_layout
from icebench.bench.advise.planned import StoredColumns
from icebench.bench.advise.queries import parse_queries
from icebench.bench.advise.statements import icebench_commands

ROWS, FILES = 160_000, 16
SQL = """
-- weight: 10
select sum(amount) from orders where customer_id = 471;
select * from orders where order_id = 12345;
"""


def _rows(number: int, rng: np.random.Generator) -> pa.Table:
    count = ROWS // FILES
    seconds = np.sort(rng.integers(0, 2_000_000, count)) + number * 2_000_000
    return pa.table(
        {
            "order_id": np.arange(number * count, (number + 1) * count),
            "customer_id": rng.integers(0, 2_000, count),
            "order_time": np.datetime64("2025-01-01", "us") + seconds.astype("timedelta64[s]"),
            "amount": pa.array(rng.integers(100, 10**9, count)).cast(pa.decimal128(20, 0)).cast(pa.decimal128(22, 2)),
            "status": rng.choice(np.array(["new", "paid", "shipped"]), count),
        }
    )


def test_advice_holds_once_the_table_is_rewritten(tmp_path: Path) -> None:
    """PyIceberg's files are larger than the same rows in this project's, column by column."""
    rng = np.random.default_rng(1)
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = SqlCatalog("default", uri=uri, warehouse=f"file://{tmp_path}")
    catalog.create_namespace("shop")
    made = catalog.create_table("shop.orders", schema=_rows(0, rng).schema)
    for number in range(FILES):
        made.append(_rows(number, rng))
    table = icebench.load_catalog(uri).load_table("shop.orders")
    advice = advise(table, parse_queries(SQL, table), Options(minimize="seconds", sample_rows=40_000))
    assert advice.sample_rows < ROWS / 2
    for each in advice.recommendations:
        for effect in each.effects:
            assert effect.after.bytes_read <= effect.worst.bytes_read <= each.data_bytes
    best = advice.recommendations[0]
    for command in icebench_commands(best.layout, todays_layout(table), table, ()):
        if command.startswith("table."):
            eval(command, {"table": table})
    order = [term.column for term in best.layout.sort]
    table.maintenance.rewrite_data_files("sort" if order else "binpack", sort_order=order or None, rewrite_all=True)
    stored = StoredColumns(table)
    assert len(stored.sizes) == best.files == 1
    assert stored.sizes.sum() < 0.85 * advice.data_bytes
    assert best.data_bytes == pytest.approx(stored.sizes.sum(), rel=0.12)
    for effect in best.effects:
        assert effect.after.bytes_read == pytest.approx(stored.reading(effect.query).bytes_read, rel=0.25)
