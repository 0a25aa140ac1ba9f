import gzip
import json
from pathlib import Path

import pytest

from icebench.bench.errors import ConfigError, DatasetFailed
from icebench.bench.truth.metadata import TableJson, filesystem, load_table_json, metadata_file
from tests.unit.bench.execution.scripted import small_table

METADATA = {"format-version": 2, "location": "/t"}


def table_folder(tmp_path: Path, *names: str) -> Path:
    folder = tmp_path / "t" / "metadata"
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(json.dumps(METADATA))
    return folder


@pytest.mark.parametrize(
    ("names", "newest"),
    [
        (("v1.metadata.json", "v2.metadata.json", "v10.metadata.json"), "v10.metadata.json"),
        (("00000-a.metadata.json", "00002-b.metadata.json"), "00002-b.metadata.json"),
        (("00001-a.gz.metadata.json",), "00001-a.gz.metadata.json"),
        (("v3.metadata.json.gz", "v2.metadata.json"), "v3.metadata.json.gz"),
    ],
)
def test_the_highest_version_is_the_newest(tmp_path: Path, names: tuple[str, ...], newest: str) -> None:
    folder = table_folder(tmp_path, *names)
    assert metadata_file(str(folder.parent)) == str(folder / newest)
    assert metadata_file(f"{folder.parent}/") == str(folder / newest)
    assert metadata_file(str(folder)) == str(folder / newest)
    assert metadata_file(f"file://{folder.parent}") == f"file://{folder}/{newest}"
    assert metadata_file(str(folder / names[0])) == str(folder / names[0])


@pytest.mark.parametrize("name", ["tä ble", "a%20b", "a?b#c", "a+b"])
@pytest.mark.parametrize("scheme", ["", "file:", "file://", "file://localhost"])
def test_locations_are_not_percent_encoded(tmp_path: Path, name: str, scheme: str) -> None:
    folder = table_folder(tmp_path / name, "v1.metadata.json", "v2.metadata.json")
    location = f"{scheme}{folder}/v2.metadata.json"
    assert metadata_file(f"{scheme}{folder.parent}") == location
    assert load_table_json(location).location == location


def test_a_file_of_another_host_is_refused() -> None:
    with pytest.raises(DatasetFailed, match="names the host 'there'"):
        metadata_file("file://there/t")


def test_the_path_of_an_object_is_not_percent_encoded() -> None:
    system, path = filesystem("gs://bucket/a b/%20/ä")
    assert (system.type_name, path) == ("gcs", "bucket/a b/%20/ä")


@pytest.mark.parametrize("hint", ["1", "v1.metadata.json", "1\n"])
def test_a_version_hint_wins(tmp_path: Path, hint: str) -> None:
    folder = table_folder(tmp_path, "v1.metadata.json", "v2.metadata.json")
    (folder / "version-hint.text").write_text(hint)
    assert metadata_file(str(folder.parent)) == str(folder / "v1.metadata.json")


def test_a_hint_to_a_file_that_is_gone_is_no_hint(tmp_path: Path) -> None:
    folder = table_folder(tmp_path, "v2.metadata.json")
    (folder / "version-hint.text").write_text("1")
    assert metadata_file(str(folder.parent)) == str(folder / "v2.metadata.json")


def test_what_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such table"):
        load_table_json(str(tmp_path / "nothing"))
    with pytest.raises(ConfigError, match="not an Iceberg table"):
        load_table_json(str(tmp_path))
    for content in (b"{}", b"[1]", b"no json", b"\x1f\x8bno gzip"):
        (tmp_path / "v1.metadata.json").write_bytes(content)
        with pytest.raises(DatasetFailed, match="is not table metadata"):
            load_table_json(str(tmp_path / "v1.metadata.json"))


def test_compressed_metadata(tmp_path: Path) -> None:
    path = tmp_path / "v1.gz.metadata.json"
    path.write_bytes(gzip.compress(json.dumps(METADATA).encode()))
    assert load_table_json(str(path)).values == METADATA


def test_a_real_table(tmp_path: Path) -> None:
    table = load_table_json(small_table(tmp_path, partitioned=True))
    assert [column.name for column in table.columns] == ["id", "day", "price", "name", "moment"]
    assert [column.type for column in table.columns] == ["long", "date", "decimal(7, 2)", "string", "timestamp"]
    assert table.partition_columns == ("day", "name")
    assert table.sort_columns == ()
    assert table.snapshot is not None


def test_version_1_keeps_its_schema_and_spec_at_the_top() -> None:
    nested = {"type": "struct", "fields": []}
    table = TableJson(
        "v1",
        {
            "schema": {
                "fields": [
                    {"id": 1, "name": "a", "type": "int", "required": False},
                    {"id": 2, "name": "b", "type": nested, "required": False},
                ]
            },
            "partition-spec": [{"source-id": 1, "transform": "identity", "name": "a"}],
            "sort-orders": [{"order-id": 0, "fields": []}],
        },
    )
    assert [column.type for column in table.columns] == ["int", "nested"]
    assert table.partition_columns == ("a",)
    assert table.snapshot is None
