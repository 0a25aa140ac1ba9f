"""Snapshot ids that only an unsigned long holds, as scripts of DuckDB's Iceberg extension write them.

The table is read; what would have to compare the ids with those in manifests is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import engine
from engine.codec.metadata_json.table import decode_metadata, encode_metadata
from engine.errors import ContradictionWarning, CorruptTable, Unsupported

ODD = 9876543210123456789
SCHEMA = pa.schema([pa.field("id", pa.int64())])


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A metadata file whose current snapshot, of three, has such an id wherever metadata name it."""
    table = engine.load_catalog(f"{tmp_path}/wh").create_table("db.t", SCHEMA)
    for i in range(2):
        table.append(pa.table({"id": [i]}))
    table.create_tag("v2")
    table.maintenance.compute_table_stats()
    own = str(_current(table))
    text = Path(table.metadata_location).read_text().replace(own, str(ODD)).replace(f"snap-{ODD}", f"snap-{own}")
    document = json.loads(text)
    document["snapshot-log"].append({"timestamp-ms": document["last-updated-ms"], "snapshot-id": ODD})
    made = tmp_path / "v9.metadata.json"
    made.write_text(json.dumps(document))
    return str(made)


def _current(table: engine.Table) -> int:
    assert table.current_snapshot is not None
    return table.current_snapshot.snapshot_id


@pytest.fixture
def table(place: str) -> engine.Table:
    with pytest.warns(ContradictionWarning, match=f"has the snapshot id {ODD}, which is beyond a long"):
        return engine.load_table(place)


def test_its_rows_are_read(table: engine.Table) -> None:
    assert _current(table) == ODD
    for scan in (table.scan(), table.scan(snapshot_id=ODD), table.scan(ref="v2")):
        assert sorted(scan.to_arrow()["id"].to_pylist()) == [0, 1]
    assert table.scan("id = 1").count() == 1
    parent = table.metadata.snapshots[0].snapshot_id
    assert table.scan(snapshot_id=parent).to_arrow()["id"].to_pylist() == [0]


def test_strict_refuses_it(place: str) -> None:
    with pytest.raises(CorruptTable, match=f"has the snapshot id {ODD}, which is beyond a long"):
        engine.load_table(place, verify="strict")


def test_metadata_tables_name_it(table: engine.Table) -> None:
    inspect = table.inspect
    assert inspect.snapshots()["snapshot_id"].to_pylist()[-1] == ODD
    assert inspect.refs()["snapshot_id"].to_pylist() == [ODD, ODD]
    assert inspect.history()["snapshot_id"].to_pylist()[-1] == ODD
    assert inspect.metadata_log_entries()["latest_snapshot_id"].to_pylist()[-1] == ODD
    assert ODD in inspect.all_manifests()["reference_snapshot_id"].to_pylist()
    assert inspect.files().num_rows == 2


def test_metadata_keep_it(place: str) -> None:
    metadata = decode_metadata(Path(place).read_bytes())
    assert decode_metadata(encode_metadata(metadata)) == metadata
    assert metadata.statistics[0].snapshot_id == metadata.statistics[0].blob_metadata[0].snapshot_id == ODD


@pytest.mark.parametrize(
    "call",
    [
        lambda table: table.append(pa.table({"id": [7]})),
        lambda table: table.set_properties({"a": "b"}),
        lambda table: table.maintenance.expire_snapshots(snapshot_ids=[table.metadata.snapshots[0].snapshot_id]),
        lambda table: table.incremental_append_scan(),
        lambda table: table.changelog_scan(),
    ],
)
def test_changes_and_increments_are_refused(place: str, call: Callable[[engine.Table], Any], tmp_path: Path) -> None:
    with pytest.warns(ContradictionWarning):
        table = engine.load_catalog(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path)).register_table("d.t", place)
    with pytest.raises(Unsupported, match=f"snapshot id {ODD}"):
        call(table)


@pytest.mark.parametrize("wrong", [1 << 64, -(1 << 63) - 1])
def test_what_no_long_holds_is_refused(place: str, wrong: int) -> None:
    text = Path(place).read_text().replace(str(ODD), str(wrong))
    with pytest.raises(CorruptTable, match=f"{wrong} is out of range"):
        decode_metadata(text.encode())


def test_other_numbers_stay_longs(place: str) -> None:
    document = json.loads(Path(place).read_text())
    document["snapshots"][0]["sequence-number"] = ODD
    with pytest.raises(CorruptTable, match=f"{ODD} is out of range"):
        decode_metadata(json.dumps(document).encode())
