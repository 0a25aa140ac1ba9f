"""What opening a data file promises, whatever its format."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from engine.errors import CorruptTable, FileNotFound, Unsupported
from engine.formats.opening import FORMATS, open_source
from engine.spec.name_mapping import MappedField, NameMapping
from engine.storage.local import LocalStore

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
def test_a_file_has_the_size_that_its_entry_says(tmp_path: Path, file_format: str) -> None:
    path = written(tmp_path, file_format)
    size = path.stat().st_size
    with open_source(LocalStore(), str(path), file_format=file_format, name_mapping=MAPPING, size_bytes=size) as source:
        assert source.num_rows == 10
    with pytest.raises(CorruptTable, match=f"has {size} bytes, and its manifest entry says {size - 1}"):
        open_source(LocalStore(), str(path), file_format=file_format, name_mapping=MAPPING, size_bytes=size - 1)


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_missing_file_is_told_with_what_needs_it(tmp_path: Path, file_format: str) -> None:
    with pytest.raises(FileNotFound, match=r"table db\.t, snapshot 17"):
        open_source(LocalStore(), str(tmp_path / "gone"), file_format=file_format, needed_by="table db.t, snapshot 17")


def test_other_formats_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="reading lance files"):
        open_source(LocalStore(), str(tmp_path / "file"), file_format="lance")
