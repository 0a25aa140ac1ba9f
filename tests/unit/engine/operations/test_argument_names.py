"""Names of PyIceberg's are taken beside our own, and mean the same."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icebench
from icebench.errors import Invalid

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    return icebench.load_catalog(str(tmp_path))


@pytest.fixture
def table(catalog: Any) -> Any:
    made = catalog.create_table(identifier="db.t", schema=ROWS.schema)
    made.append(df=ROWS)
    return made


def ids(table: Any) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_scans(table: Any) -> None:
    scan = table.scan(row_filter="id > 1", selected_fields=("name",), limit=5)
    assert scan.to_arrow().to_pydict() == {"name": ["b", "c"]}
    assert scan.to_arrow_batch_reader().read_all() == scan.to_arrow()
    added = table.incremental_append_scan(row_filter="id = 1", selected_fields=("id",))
    assert added.to_arrow()["id"].to_pylist() == [1]


def test_changes(table: Any) -> None:
    table.delete(delete_filter="id = 1")
    assert ids(table) == [2, 3]
    table.upsert(df=pa.table({"id": [3, 4], "name": ["x", "y"]}), join_cols=["id"])
    assert ids(table) == [2, 3, 4]
    table.overwrite(df=ROWS, overwrite_filter="id < 4")
    assert ids(table) == [1, 2, 3, 4]
    with table.transaction() as transaction:
        transaction.append(df=pa.table({"id": [9], "name": ["z"]}))
        transaction.delete(delete_filter="id < 9")
    assert ids(table) == [9]
    table.dynamic_partition_overwrite(df=ROWS)
    assert ids(table) == [1, 2, 3]


def test_names_in_a_catalog(catalog: Any, table: Any) -> None:
    assert catalog.load_table(identifier="db.t").metadata == table.metadata
    assert catalog.table_exists(identifier="db.t")
    catalog.drop_table(identifier=("db", "t"))
    assert not catalog.table_exists("db.t")


def test_an_argument_under_both_names_is_refused(table: Any) -> None:
    with pytest.raises(TypeError, match=r"scan\(\) got 'filter' and 'row_filter'"):
        table.scan(filter="id = 1", row_filter="id = 2")
    with pytest.raises(TypeError, match="multiple values for argument 'filter'"):
        table.delete("id = 1", delete_filter="id = 2")
    with pytest.raises(TypeError, match="unexpected keyword argument 'row_filters'"):
        table.scan(row_filters="id = 2")
    assert ids(table) == [1, 2, 3]


def test_signatures_are_our_own() -> None:
    assert list(inspect.signature(icebench.Table.scan).parameters)[1:3] == ["filter", "columns"]
    assert "Selects rows" in (icebench.Table.scan.__doc__ or "")


def test_what_is_a_property_here_may_be_called_as_there(table: Any) -> None:
    assert table.schema == table.schema() == table.metadata.schema
    assert table.spec == table.spec() == table.metadata.spec
    assert table.sort_order == table.sort_order() == table.metadata.sort_order


def test_all_states_of_a_table(table: Any) -> None:
    table.update_schema(lambda schema: schema.add_column("more", icebench.LONG))
    table.update_spec(lambda spec: spec.add_field("id", "bucket[4]"))
    table.replace_sort_order(["name"])
    assert list(table.schemas()) == [0, 1]
    assert table.schemas()[1] == table.schema
    assert table.specs()[table.metadata.default_spec_id] == table.spec
    assert table.sort_orders()[table.metadata.default_sort_order_id] == table.sort_order
    head = table.current_snapshot
    assert table.snapshot_by_id(head.snapshot_id) == head == table.snapshot_by_name("main")
    assert table.snapshot_by_id(1) is None
    assert table.snapshot_by_name("nowhere") is None
    assert table.format_version == 2


def test_the_key_of_an_upsert_is_the_identifier_of_the_schema(catalog: Any) -> None:
    fields = (
        icebench.NestedField(field_id=1, name="id", type=icebench.LONG, required=True),
        icebench.NestedField(field_id=2, name="name", type=icebench.STRING),
    )
    made = catalog.create_table("db.u", icebench.Schema(fields, identifier_field_ids=frozenset({1})))
    made.append(ROWS.cast(made.scan().arrow_schema))
    made.upsert(pa.table({"id": [3, 4], "name": ["x", "y"]}, made.scan().arrow_schema))
    assert ids(made) == [1, 2, 3, 4]
    plain = catalog.create_table("db.v", ROWS.schema)
    with pytest.raises(Invalid, match="no identifier columns"):
        plain.upsert(ROWS)
