"""Tables of format version 1 whose partition specs have no field ids: each spec counts its fields from 1000, so fields
of two specs share an id and may differ in column, transform and type."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icebench
from icebench.errors import Unsupported

ROWS = pa.table({"s": ["a", "b", "c"], "n": pa.array([1, 2, 3], pa.int64()), "m": pa.array([7, 7, 8], pa.int64())})
SPECS = {
    "another type": [("n_bucket", "bucket[4]", 2)],
    "another column": [("n", "identity", 2)],
    "another place": [("m", "identity", 3), ("s", "identity", 1)],
    "another transform of its type": [("s_trunc", "truncate[1]", 1)],
}


def evolved(folder: Path, fields: list[tuple[str, str, int]], given: pa.Table = ROWS) -> icebench.Table:
    """A table of the rows twice: partitioned by ``s``, and by these names, transforms and column ids."""
    catalog = icebench.load_catalog(str(folder))
    table = catalog.create_table(
        "db.t", ROWS.schema, partition_spec=[("s", "identity")], properties={"format-version": "1"}
    )
    table.append(given)
    file = Path(table.metadata_location)
    values = json.loads(file.read_bytes())
    del values["last-partition-id"], values["partition-specs"][0]["fields"][0]["field-id"]
    second = [{"name": name, "transform": transform, "source-id": source} for name, transform, source in fields]
    values |= {"partition-spec": second, "default-spec-id": 1}
    values["partition-specs"].append({"spec-id": 1, "fields": second})
    file.write_text(json.dumps(values))
    catalog.load_table("db.t").append(given)
    return catalog.load_table("db.t")


def rows(table: icebench.Table, filter: str | None = None) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan(filter=filter).to_arrow().to_pylist())


def plan_column(table: icebench.Table, name: str) -> list[Any]:
    """Of each planned file."""
    found: list[Any] = table.scan().plan().files.column(name).to_pylist()
    return found


@pytest.fixture(params=SPECS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> icebench.Table:
    return evolved(tmp_path, SPECS[request.param])


def test_scans_and_plans(table: icebench.Table) -> None:
    assert rows(table) == [("a", 1, 7)] * 2 + [("b", 2, 7)] * 2 + [("c", 3, 8)] * 2
    for filter, left in (("s = 'a'", 2), ("n = 2", 2), ("m = 8 and s = 'c'", 2), ("n = 1 and m = 8", 0)):
        assert len(rows(table, filter)) == left
    plan = table.scan(filter="s = 'a'").plan()
    assert plan.files.num_rows < table.scan().plan().files.num_rows
    fields = [len(table.spec.fields) if spec_id else 1 for spec_id in plan_column(table, "spec_id")]
    assert [sum(v is not None for v in row.values()) for row in plan_column(table, "partition")] == fields


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda t: t.delete("n = 1"), 4),
        (lambda t: t.update("n = 2", {"m": 9}), 6),
        (lambda t: t.upsert(pa.table({"s": ["b", "z"], "n": [2, 9], "m": [1, 1]}), ["s", "n"]), 6),
        (lambda t: t.maintenance.rewrite_data_files(rewrite_all=True), 6),
        (lambda t: t.maintenance.rewrite_manifests(), 6),
        (lambda t: t.overwrite(ROWS.slice(0, 1), "s = 'a'"), 5),
    ],
    ids=["delete", "update", "upsert", "rewrite", "rewrite manifests", "overwrite"],
)
def test_changes(table: icebench.Table, change: Callable[[icebench.Table], object], left: int) -> None:
    before = [row for row in rows(table) if row[0] == "c"]
    change(table)
    assert len(rows(table)) == left
    assert [row for row in rows(table) if row[0] == "c"] == before


@pytest.mark.parametrize("name", SPECS)
def test_deletes_of_one_spec_leave_the_other(tmp_path: Path, name: str) -> None:
    more = pa.table({"s": ["a", "b", "c"], "n": [11, 12, 13], "m": [7, 7, 8]}).cast(ROWS.schema)
    table = evolved(tmp_path, SPECS[name], pa.concat_tables([ROWS, more]))
    before = rows(table)
    table.upgrade_format(2)
    table.set_properties({"write.delete.mode": "merge-on-read", "write.merge.mode": "merge-on-read"})
    table.delete("n = 1")
    table.upsert(pa.table({"s": ["b"], "n": [2], "m": [9]}), ["s", "n"], "merge-on-read")
    assert table.scan().plan().counters["delete_files_planned"] > 0
    left = sorted([row for row in before if row[1] not in {1, 2}] + [("b", 2, 9)])
    assert rows(table) == left
    table.maintenance.rewrite_data_files(rewrite_all=True)
    assert rows(table) == left


def test_a_dropped_bucket_of_text_is_void_in_version_1(tmp_path: Path) -> None:
    """Its nulls are stored as text, where buckets are numbers."""
    catalog = icebench.load_catalog(str(tmp_path))
    table = catalog.create_table(
        "db.t", ROWS.schema, partition_spec=[("s", "bucket[4]")], properties={"format-version": "1"}
    )
    table.append(ROWS)
    table.update_spec(lambda spec: spec.drop_field("s_bucket"))
    table.append(ROWS)
    assert len(rows(table)) == 6
    assert rows(table, "s = 'a'") == [("a", 1, 7)] * 2
    partitions = [tuple(row.values()) for row in plan_column(table, "partition")]
    assert (None,) in partitions


def test_profiles(table: icebench.Table) -> None:
    found = table.maintenance.profile().partitions
    assert found is not None
    assert found.partitions == len(
        {*zip(plan_column(table, "spec_id"), map(str, plan_column(table, "partition")), strict=True)}
    )


def test_one_struct_for_all_partitions_is_refused_by_name(table: icebench.Table) -> None:
    with pytest.raises(Unsupported, match="share the id 1000"):
        table.scan(columns=["_partition"]).to_arrow()
