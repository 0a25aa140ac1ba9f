"""Maintenance of a branch needs one that exists: it creates none, as changes of rows do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.errors import Invalid, NotFound

ROWS = pa.table({"id": [1, 2, 3]})

OPERATIONS: dict[str, Callable[[icebench.Table, str], object]] = {
    "rewrite_data_files": lambda table, branch: table.maintenance.rewrite_data_files(branch=branch),
    "rewrite_position_deletes": lambda table, branch: table.maintenance.rewrite_position_deletes(branch=branch),
    "convert_equality_deletes": lambda table, branch: table.maintenance.convert_equality_deletes(branch=branch),
    "rewrite_manifests": lambda table, branch: table.maintenance.rewrite_manifests(branch=branch),
    "cluster": lambda table, branch: table.maintenance.cluster(branch=branch),
    "cluster, dry run": lambda table, branch: table.maintenance.cluster(branch=branch, dry_run=True),
}


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    properties = {"icebench.clustering.strategy": "sort", "icebench.clustering.keys": "id"}
    return icebench.load_catalog(str(tmp_path)).create_table("db.t", ROWS.schema, properties=properties)


@pytest.mark.parametrize("name", OPERATIONS)
def test_of_a_branch_that_does_not_exist_is_an_error(name: str, table: icebench.Table) -> None:
    for _ in range(2):
        before = table.refresh().metadata
        with pytest.raises(NotFound, match="no branch or tag 'typo'"):
            OPERATIONS[name](table, "typo")
        assert table.refresh().metadata == before
        table.append(ROWS)
    table.create_tag("v1")
    with pytest.raises(Invalid, match="'v1' is a tag"):
        OPERATIONS[name](table, "v1")


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "rewrite_manifests"])
def test_of_main_in_an_empty_table_does_nothing(name: str, table: icebench.Table) -> None:
    OPERATIONS[name](table, "main")
    assert table.refresh().current_snapshot is None
