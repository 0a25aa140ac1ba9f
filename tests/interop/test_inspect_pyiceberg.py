"""Our metadata tables beside PyIceberg's, on a table that PyIceberg wrote."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.transforms import MonthTransform

from icebench.engine.codec.metadata_json.table import decode_metadata
from icebench.engine.inspect.inspector import TABLES, Inspector
from icebench.engine.storage.local import LocalStore
from icebench.errors import NotFound

pytestmark = pytest.mark.interop

ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "day": [dt.date(2024, 1, 1), dt.date(2024, 2, 1), None],
        "price": pa.array([Decimal("1.50"), None, Decimal("2.25")], pa.decimal128(7, 2)),
        "inner": [{"x": 1.5}, {"x": 2.5}, None],
    }
)
# Ours are those of Iceberg Java: in UTC, with more columns, and leaf columns by full name in readable_metrics.
NOT_COMPARED = {"readable_metrics", "data_file"}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory) -> Table:
    warehouse = tmp_path_factory.mktemp("warehouse")
    catalog = SqlCatalog("interop", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=str(warehouse))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema=ROWS.schema)
    with table.update_spec() as update:
        update.add_field("day", MonthTransform())
    table.append(ROWS)
    table.append(ROWS)
    with pytest.warns(UserWarning, match="Delete operation did not match"):
        table.delete("id = 99")
    table.delete("id = 2")
    return table


@pytest.fixture(scope="module")
def ours(theirs) -> Inspector:
    store = LocalStore()
    return Inspector(decode_metadata(store.read(theirs.metadata_location)), theirs.metadata_location, store)


def plain(values):
    return [v.replace(tzinfo=None) if isinstance(v, dt.datetime) else v for v in values]


@pytest.mark.parametrize("name", TABLES)
def test_every_column_that_pyiceberg_has_is_equal(name, ours, theirs):
    made = getattr(ours, name)()
    reference = getattr(theirs.inspect, name, None)
    if reference is None:
        assert made.num_rows >= (0 if name == "position_deletes" else 4)
        return
    expected = reference()
    assert made.num_rows == expected.num_rows
    assert set(expected.column_names) <= set(made.column_names)
    for column in set(expected.column_names) - NOT_COMPARED:
        one, other = plain(made[column].to_pylist()), plain(expected[column].to_pylist())
        if name.startswith("all_"):  # PyIceberg's order is that of its threads
            one, other = sorted(map(str, one)), sorted(map(str, other))
        assert one == other, column


def test_readable_metrics_are_typed_and_named(ours):
    metrics = ours.files()["readable_metrics"].to_pylist()
    january = next(m for m in metrics if m["day"]["lower_bound"] == dt.date(2024, 1, 1))
    assert january["price"] == {
        "column_size": january["price"]["column_size"],
        "value_count": 1,
        "null_value_count": 0,
        "nan_value_count": None,
        "lower_bound": Decimal("1.50"),
        "upper_bound": Decimal("1.50"),
    }
    assert set(january) == {"day", "id", "inner.x", "price"}


def test_an_earlier_snapshot_is_shown_and_an_unknown_one_named(ours):
    first = ours.snapshots()["snapshot_id"].to_pylist()[0]
    assert ours.files(first).num_rows == 3
    with pytest.raises(NotFound, match="no snapshot 5"):
        ours.files(5)
