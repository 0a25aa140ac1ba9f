"""Every call that takes names of columns takes a list of them; a single text is no list of its characters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import icebench
from icebench.errors import Invalid

ROWS = pa.table({"id": [3, 1, 2], "i": [1, 2, 3], "d": [4, 5, 6]})
"""With columns that are called as the characters of another's name."""


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[icebench.Catalog]:
    made = icebench.load_catalog(f"{tmp_path_factory.mktemp('names')}/wh")
    yield made
    made.close()


@pytest.fixture
def table(catalog: icebench.Catalog, request: pytest.FixtureRequest) -> icebench.Table:
    made = catalog.create_table(("db", request.node.name.translate(str.maketrans("[]", "__"))), ROWS.schema)
    made.append(ROWS)
    return made


CALLS: dict[str, Callable[[icebench.Table, Any], object]] = {
    "scan": lambda t, names: t.scan(columns=names).to_arrow(),
    "incremental": lambda t, names: t.incremental_append_scan(columns=names).to_arrow(),
    "changelog": lambda t, names: t.changelog_scan(columns=names).to_arrow(),
    "identifiers": lambda t, names: t.changelog_scan(identifier_columns=names).to_arrow(),
    "narrowed": lambda t, names: t.scan().narrowed(columns=names).to_arrow(),
    "upsert": lambda t, names: t.upsert(ROWS, on=names, mode="copy-on-write"),
    "keyed stream": lambda t, names: t.keyed_stream(names).insert(ROWS),
    "statistics": lambda t, names: t.maintenance.compute_table_stats(names),
    "sort": lambda t, names: t.maintenance.rewrite_data_files("sort", sort_order=names),
    "zorder": lambda t, names: t.maintenance.rewrite_data_files("zorder", zorder_by=names),
    "hilbert": lambda t, names: t.maintenance.rewrite_data_files("hilbert", hilbert_by=names),
    "order": lambda t, names: t.replace_sort_order(names),
    "order in a transaction": lambda t, names: t.transaction().replace_sort_order(names),
}


@pytest.mark.parametrize("call", CALLS)
def test_names_are_a_list(call: str, table: icebench.Table) -> None:
    CALLS[call](table, ["id"])
    CALLS[call](table, ("id",))
    for wrong, said in (("id", "is a list of names"), (5, "is a list of names"), (["x"], "no column 'x'"), ([5], "5")):
        with pytest.raises(Invalid, match=said):
            CALLS[call](table, wrong)


def test_one_column_is_one_name(table: icebench.Table) -> None:
    for call in (
        lambda: table.update_spec(lambda s: s.add_field(["id"], "identity")),  # type: ignore[arg-type]
        lambda: table.update_schema(lambda s: s.set_identifier_fields(["id"])),  # type: ignore[arg-type]
        lambda: table.maintenance.build_index(["id"]),  # type: ignore[arg-type]
    ):
        with pytest.raises(Invalid, match=r"\['id'\]"):
            call()


def test_a_sort_order_by_names_is_the_one_by_ids(table: icebench.Table, catalog: icebench.Catalog) -> None:
    table.replace_sort_order(["d", "id"])
    assert [(f.source_id, str(f.transform), f.direction, f.null_order) for f in table.sort_order.fields] == [
        (3, "identity", "asc", "nulls-first"),
        (1, "identity", "asc", "nulls-first"),
    ]
    made = catalog.create_table("db.ordered", ROWS.schema, sort_order=["d", "id"])
    assert made.sort_order.fields == table.sort_order.fields
    with catalog.replace_table_transaction("db.ordered", ROWS.schema, sort_order=["i"]):
        pass
    assert [f.source_id for f in catalog.load_table("db.ordered").sort_order.fields] == [2]
    assert table.replace_sort_order([]).sort_order.is_unsorted
    with pytest.raises(Invalid, match="list of names"):
        catalog.create_table("db.wrong", ROWS.schema, sort_order="id")


@pytest.mark.parametrize("spec", ["id", ["id"], [("id",)], [5], [("id", "bucket[4]", "name")]])
def test_a_partition_field_is_a_pair(spec: Any, catalog: icebench.Catalog) -> None:
    with pytest.raises(Invalid, match="a partition field is a column and a transform"):
        catalog.create_table("db.wrong", ROWS.schema, partition_spec=spec)


def test_names_that_are_given_once_last_for_a_transaction(table: icebench.Table) -> None:
    with table.transaction() as transaction:
        transaction.replace_sort_order(name for name in ["id"])  # type: ignore[arg-type]
    assert [field.source_id for field in table.sort_order.fields] == [table.schema().find("id").field_id]


def test_a_sort_order_names_a_column_once(table: icebench.Table) -> None:
    with pytest.raises(Invalid, match="sort_order names a column twice"):
        table.replace_sort_order(["id", "id"])
