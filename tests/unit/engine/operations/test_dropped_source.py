"""Files of a partition spec whose source column was dropped can still be changed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.engine.operations.row_changes import Mode
from icebench.errors import Invalid

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("s", pa.string())])


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("transform", ["identity", "truncate[10]", "bucket[4]"])
def test_rows_are_deleted_updated_and_merged(tmp_path: Path, mode: Mode, version: int, transform: str) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table(
        "db.t",
        SCHEMA,
        partition_spec=[("n", transform), ("s", "identity")],
        properties={"format-version": str(version), "commit.manifest.min-count-to-merge": "2"},
    )
    table.append(pa.table({"id": [1, 2, 3], "n": [10, None, 20], "s": ["a", "a", "b"]}, SCHEMA))
    table.update_spec(lambda s: s.drop_field(table.spec.fields[0].name))
    table.update_schema(lambda s: s.drop_column("n"))
    table.append(pa.table({"id": [4], "s": ["a"]}))
    assert table.delete("id = 1", mode) is not None
    table.append(pa.table({"id": [5], "s": ["b"]}))
    assert table.update("id = 3", {"s": "c"}, mode) is not None
    table.overwrite(pa.table({"id": [6], "s": ["d"]}), "id = 2")
    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [(row["id"], row["s"]) for row in rows] == [(3, "c"), (4, "a"), (5, "b"), (6, "d")]


@pytest.mark.parametrize("transform", ["identity", "truncate[10]", "bucket[4]"])
def test_in_version_1_a_source_can_be_dropped_once_its_field_is_void(tmp_path: Path, transform: str) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table(
        "db.t",
        SCHEMA,
        partition_spec=[("n", transform), ("s", "identity")],
        properties={"format-version": "1", "commit.manifest.min-count-to-merge": "2"},
    )
    table.append(pa.table({"id": [1, 2, 3], "n": [10, None, 20], "s": ["a", "a", "b"]}, SCHEMA))
    with pytest.raises(Invalid, match="column 'n' is needed by partition field"):
        table.update_schema(lambda s: s.drop_column("n"))
    table.update_spec(lambda s: s.drop_field(table.spec.fields[0].name))
    assert [field.transform.name for field in table.spec.fields] == ["void", "identity"]
    table.update_schema(lambda s: s.drop_column("n"))
    table.append(pa.table({"id": [4, 5, 6], "s": ["a", None, "c"]}))
    assert {tuple(p.values()) for p in table.inspect.data_files()["partition"].to_pylist()[:3]} >= {(None, "c")}
    table.upgrade_format(2)
    table.delete("id = 1", "merge-on-read")
    table.update("id = 3", {"s": "c"}, "copy-on-write")
    table.maintenance.rewrite_data_files(rewrite_all=True)
    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [(row["id"], row["s"]) for row in rows] == [(2, "a"), (3, "c"), (4, "a"), (5, None), (6, "c")]
    assert table.scan(filter="s = 'c'").count() == 2
