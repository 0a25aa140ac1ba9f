"""Tables whose files are to be encrypted: nothing is written in the clear, and what is encrypted is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import encryption

import icebench
from icebench.engine.formats.opening import open_source
from icebench.engine.inspect.contents import Contents
from icebench.engine.storage.local import LocalStore
from icebench.engine.storage.memory import MemoryOutputFile, MemoryStore
from icebench.engine.write.data_files import write_data_files
from icebench.errors import Unsupported
from tests.unit.engine.write.metadata_for_writes import metadata_of

ROWS = pa.table({"id": pa.array(range(9), pa.int64()), "text": pa.array([f"secret {n}" for n in range(9)])})
KEY = {"encryption.key-id": "master-1"}


def stream(table: icebench.Table) -> None:
    changes = table.keyed_stream(["id"])
    changes.update(ROWS)
    changes.commit()


WRITES: dict[str, Callable[[icebench.Table, Path], object]] = {
    "append": lambda table, _: table.append(ROWS),
    "add-files": lambda table, home: table.add_files([str(home / "other.parquet")]),
    "overwrite": lambda table, _: table.overwrite(ROWS),
    "delete-rows": lambda table, _: table.delete("id = 3", mode="merge-on-read"),
    "delete-whole-files": lambda table, _: table.delete("id >= 0"),
    "rewrite-rows": lambda table, _: table.delete("id = 3", mode="copy-on-write"),
    "update": lambda table, _: table.update("id = 3", {"text": "x"}),
    "upsert": lambda table, _: table.upsert(ROWS, on=["id"]),
    "keyed-stream": lambda table, _: stream(table),
    "compact": lambda table, _: table.maintenance.rewrite_data_files(rewrite_all=True),
    "rewrite-manifests": lambda table, _: table.maintenance.rewrite_manifests(),
    "statistics": lambda table, _: table.maintenance.compute_table_stats(),
    "partition-statistics": lambda table, _: table.maintenance.compute_partition_stats(),
    "index": lambda table, _: table.maintenance.build_index("id"),
}


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    """A table with rows from before it was to be encrypted."""
    pq.write_table(ROWS, tmp_path / "other.parquet")
    made = icebench.load_catalog(str(tmp_path / "wh")).create_table(
        "db.t", ROWS.schema, partition_spec=[("id", "truncate[100]")], properties={"format-version": "3"}
    )
    made.append(ROWS)
    made.append(ROWS)
    return made


def files(home: Path) -> set[Path]:
    return {path for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", WRITES)
def test_nothing_is_written_in_the_clear(table: icebench.Table, tmp_path: Path, name: str) -> None:
    table.set_properties(KEY)
    before, version = files(tmp_path), table.metadata_location
    with pytest.raises(Unsupported, match=r"writing the encrypted table at .*encryption.key-id='master-1'"):
        WRITES[name](table, tmp_path)
    assert files(tmp_path) == before
    assert table.refresh().metadata_location == version


def test_no_data_file_is_begun() -> None:
    class Closed(MemoryStore):
        def open_output(self, location: str, *, overwrite: bool = False) -> MemoryOutputFile:
            raise AssertionError(location)

    with pytest.raises(Unsupported, match="encrypted"):
        write_data_files(ROWS, metadata=metadata_of(ROWS.schema, properties=KEY), store=Closed())


@pytest.mark.parametrize("name", WRITES)
def test_the_same_is_written_without_a_key(table: icebench.Table, tmp_path: Path, name: str) -> None:
    version = table.metadata_location
    WRITES[name](table, tmp_path)
    assert table.refresh().metadata_location != version


def test_a_new_table_with_a_key_takes_no_rows(tmp_path: Path) -> None:
    catalog = icebench.load_catalog(str(tmp_path))
    made = catalog.create_table("db.t", ROWS.schema, properties=KEY)
    with pytest.raises(Unsupported, match="encrypted"):
        made.append(ROWS)
    with (
        pytest.raises(Unsupported, match="encrypted"),
        catalog.create_table_transaction("db.u", ROWS.schema, properties=KEY) as transaction,
    ):
        transaction.append(ROWS)
    assert not list(tmp_path.rglob("*.parquet"))


def test_keys_of_a_table_say_so_too(table: icebench.Table) -> None:
    def edit(metadata: dict[str, Any]) -> None:
        metadata["encryption-keys"] = [{"key-id": "a", "encrypted-key-metadata": "eA=="}]

    changed(table, edit)
    assert table.refresh().scan().count() == 18
    with pytest.raises(Unsupported, match="it has encryption keys"):
        table.append(ROWS)


READS: dict[str, Callable[[icebench.Table], object]] = {
    "scan": lambda table: table.scan().to_arrow(),
    "count": lambda table: table.scan().count(),
    "manifests": lambda table: table.inspect.manifests(),
    "files": lambda table: table.inspect.files(),
    "orphans": lambda table: table.maintenance.remove_orphan_files(older_than="2999-01-01T00:00:00Z", dry_run=False),
}


@pytest.mark.parametrize("name", READS)
def test_an_encrypted_manifest_list_is_refused_by_name(table: icebench.Table, tmp_path: Path, name: str) -> None:
    def edit(metadata: dict[str, Any]) -> None:
        metadata["snapshots"][-1]["key-id"] = "a"

    changed(table, edit)
    before = files(tmp_path)
    with pytest.raises(Unsupported, match=r"the encrypted manifest list .*avro"):
        READS[name](table.refresh())
    assert files(tmp_path) == before


def test_an_encrypted_manifest_is_refused_by_name(table: icebench.Table) -> None:
    metadata, snapshot = table.metadata, table.metadata.current_snapshot
    assert snapshot is not None
    contents = Contents(metadata, LocalStore())
    (manifest, *_) = contents.manifests(snapshot)
    assert list(contents.entries(manifest, snapshot))
    with pytest.raises(Unsupported, match="the encrypted manifest "):
        list(contents.entries(replace(manifest, key_metadata=b"k"), snapshot))


def changed(table: icebench.Table, edit: Callable[[dict[str, Any]], None]) -> None:
    path = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(path.read_text())
    edit(metadata)
    path.write_text(json.dumps(metadata))


class Kms(encryption.KmsClient):  # type: ignore[misc]
    """Wraps keys in nothing."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return key_bytes.hex().encode()

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return bytes.fromhex(wrapped_key.decode())


def test_an_encrypted_parquet_file_is_refused_by_name(tmp_path: Path) -> None:
    properties = encryption.CryptoFactory(lambda _: Kms()).file_encryption_properties(
        encryption.KmsConnectionConfig(),
        encryption.EncryptionConfiguration(footer_key="f", column_keys={"c": ["text"]}),
    )
    file = tmp_path / "f.parquet"
    pq.write_table(ROWS, file, encryption_properties=properties)
    for size in (file.stat().st_size, None):
        with pytest.raises(Unsupported, match=r"the encrypted Parquet file .*f\.parquet"):
            open_source(LocalStore(), str(file), file_format="parquet", size_bytes=size)
