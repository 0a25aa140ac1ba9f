"""Metadata table position_deletes: what was deleted, file by file, in both forms that deletes by position have."""

from pathlib import Path

import pyarrow as pa
import pytest

import icebench


@pytest.mark.parametrize("version", [2, 3])
def test_every_deleted_position_is_a_row(tmp_path: Path, version: int) -> None:
    catalog = icebench.load_catalog(str(tmp_path))
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.string())])
    table = catalog.create_table(
        "db.t", schema, partition_spec=[("day", "identity")], properties={"format-version": str(version)}
    )
    table.append(pa.table({"id": range(10), "day": ["a"] * 5 + ["b"] * 5}, schema))
    assert table.inspect.position_deletes().num_rows == 0
    table.delete("id in (1, 3, 9)", mode="merge-on-read")
    first = table.inspect.position_deletes()
    files = {f["file_path"]: f["partition"]["day"] for f in table.inspect.data_files().to_pylist()}
    deletes = {f["file_path"]: f for f in table.inspect.delete_files().to_pylist()}
    rows = first.to_pylist()
    assert {(files[r["file_path"]], r["pos"]) for r in rows} == {("a", 1), ("a", 3), ("b", 4)}
    assert len(rows) == 3
    for row in rows:
        assert row["partition"] == {"day": files[row["file_path"]]}
        assert row["spec_id"] == 0
        assert row["delete_file_path"] in deletes
        if version == 3:
            places = {
                (d["content_offset"], d["content_size_in_bytes"]) for d in table.inspect.delete_files().to_pylist()
            }
            assert (row["content_offset"], row["content_size_in_bytes"]) in places
    assert ("content_offset" in first.column_names) == (version == 3)
    before = table.current_snapshot
    assert before is not None
    table.delete("id = 0", mode="merge-on-read")
    assert {(files[r["file_path"]], r["pos"]) for r in table.inspect.position_deletes().to_pylist()} == {
        ("a", 0),
        ("a", 1),
        ("a", 3),
        ("b", 4),
    }
    assert table.inspect.position_deletes(before.snapshot_id).num_rows == 3
