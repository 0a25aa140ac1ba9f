"""What opening a data file promises, whatever its format."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from icebench.engine.formats.opening import FORMATS, open_source
from icebench.engine.spec.name_mapping import MappedField, NameMapping
from icebench.engine.storage.local import LocalStore
from icebench.errors import FileNotFound, Unsupported

MAPPING = NameMapping((MappedField(names=("id",), field_id=1),))


def written(directory: Path, file_format: str) -> Path:
    path = directory / f"file.{file_format}"
    table = pa.table({"id": pa.array(range(10), pa.int64())})
    if file_format == "parquet":
        pq.write_table(table, path)
    elif file_format == "orc":
        orc.write_table(table, path)
    else:
        schema = {"type": "record", "name": "table", "fields": [{"name": "id", "type": "long"}]}
        with path.open("wb") as output:
            fastavro.writer(output, fastavro.parse_schema(schema), table.to_pylist())
    return path


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_file_knows_its_size_whatever_its_entry_says(tmp_path: Path, file_format: str) -> None:
    path = written(tmp_path, file_format)
    size = path.stat().st_size
    for stated in (size, size - 1, size + 1, 0, 1 << 40, None):
        with open_source(
            LocalStore(), str(path), file_format=file_format, name_mapping=MAPPING, size_bytes=stated
        ) as source:
            assert source.num_rows == 10
            assert source.size_bytes == size
            assert source.accounts_for_all_bytes


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_missing_file_is_reported_with_what_needs_it(tmp_path: Path, file_format: str) -> None:
    with pytest.raises(FileNotFound, match=r"table db\.t, snapshot 17"):
        open_source(LocalStore(), str(tmp_path / "gone"), file_format=file_format, needed_by="table db.t, snapshot 17")


def test_other_formats_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="reading lance files"):
        open_source(LocalStore(), str(tmp_path / "file"), file_format="lance")
