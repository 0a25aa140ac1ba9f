"""A table partitioned by a transform of a newer writer is read, and its partitions shown, whatever their type."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icebench
from icebench.errors import CorruptTable, EngineError

IDS: dict[str, tuple[list[Any], pa.DataType, list[str | None]]] = {
    "int": ([1, 2, 2], pa.int32(), ["1", "2"]),
    "double": ([0.5, 2.0, 2.0], pa.float64(), ["0.5", "2"]),
    "string": (["a", "é", "é"], pa.string(), ["a", "é"]),
    "uuid": ([uuid.UUID(int=255)] * 3, pa.uuid(), ["000000000000000000000000000000ff"]),
    "nulls": ([None] * 3, pa.string(), [None]),
}


def with_transform(directory: Path, name: str, ids: list[Any], type_: pa.DataType) -> tuple[icebench.Table, Path]:
    """A table partitioned by `id`, whose metadata then has another transform."""
    data = pa.table({"id": pa.array(ids, type_), "v": [1, 2, 3]})
    table = icebench.load_catalog(f"{directory}/wh").create_table(
        "db.t", data.schema, partition_spec=[("id", "identity")]
    )
    table.append(data)
    place = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(place.read_text())
    for spec in metadata["partition-specs"]:
        spec["fields"][0]["transform"] = name
    place.write_text(json.dumps(metadata))
    return icebench.load_table(str(place)), place


@pytest.mark.parametrize("kind", IDS)
def test_rows_and_partitions(tmp_path: Path, kind: str) -> None:
    ids, type_, shown = IDS[kind]
    table, _ = with_transform(tmp_path, "hilbert[8]", ids, type_)
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [1, 2, 3]
    assert table.scan(filter="v > 1").count() == 2
    assert sorted({f["id"] for f in table.scan().plan().files["partition"].to_pylist()}, key=str) == shown
    for name in ("files", "entries", "partitions", "manifests"):
        assert getattr(table.inspect, name)().num_rows
    writable = icebench.load_catalog(f"{tmp_path}/wh").load_table("db.t")
    with pytest.raises(EngineError, match="hilbert"):
        writable.append(pa.table({"id": pa.array(ids, type_), "v": [1, 2, 3]}))


def test_partition_values_of_another_kind_are_reported(tmp_path: Path) -> None:
    ids, type_, _ = IDS["string"]
    table, place = with_transform(tmp_path, "bucket[4]", ids, type_)
    with pytest.raises(CorruptTable, match="byte strings are no values of int") as raised:
        table.scan().to_arrow()
    assert raised.value.location is not None
    assert raised.value.location.endswith(".avro")
    assert place.name.endswith(".json")
