from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench.engine.read.plans import planned_files
from icebench.engine.spec.data_file import FileContent
from icebench.errors import CorruptTable, FileNotFound

ROWS = pa.table({"id": range(40)})


@pytest.fixture(params=[2, 3])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> icebench.Table:
    catalog = icebench.load_catalog(str(tmp_path))
    table = catalog.create_table("db.t", ROWS.schema, properties={"format-version": str(request.param)})
    for start in range(0, 40, 10):
        table.append(ROWS.slice(start, 10))
    for row in (3, 13, 23, 33):
        table.delete(f"id = {row}", "merge-on-read")
    for row in (4, 14):
        stream = table.keyed_stream(["id"])
        stream.delete(ROWS.slice(row, 1))
        stream.commit()
    return table


def places(table: icebench.Table, *contents: FileContent) -> list[str]:
    found = table.inspect.files()
    names = zip(found["content"].to_pylist(), found["file_path"].to_pylist(), strict=True)
    return sorted({path for content, path in names if content in {int(each) for each in contents}})


@pytest.mark.parametrize("seed", range(5))
def test_every_file_that_cannot_be_read_is_named_once(table: icebench.Table, seed: int) -> None:
    assert table.maintenance.examine_files().unreadable == ()
    rng = random.Random(seed)
    data = places(table, FileContent.DATA)
    deletes = places(table, FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES)
    assert (len(data), len(deletes)) == (4, 6)
    lost = {*rng.sample(data, 2), *rng.sample(deletes, 3)}
    for path in lost:
        if rng.random() < 0.5:
            Path(path).unlink()
        else:
            Path(path).write_bytes(Path(path).read_bytes()[:10])
    other = next(path for path in data if path not in lost)
    pq.write_table(pq.read_table(other), other, compression="none", use_dictionary=False)

    examined = icebench.load_table(table.metadata_location).maintenance.examine_files()
    assert all(isinstance(error, FileNotFound | CorruptTable) for error in examined.unreadable)
    assert sorted(next(path for path in lost if path in str(error)) for error in examined.unreadable) == sorted(lost)
    assert all("table" in str(error) and "snapshot" in str(error) for error in examined.unreadable)
    assert [each.location for each in examined.contradictions] == [other]
    with pytest.raises((FileNotFound, CorruptTable)):
        table.maintenance.contradictions()


def test_delete_files_of_no_data_file_are_opened_too(table: icebench.Table) -> None:
    """Scans open none of them; a rewrite of deletes does."""
    stream = table.keyed_stream(["id"])
    stream.delete(pa.table({"id": [1_000]}))  # within the bounds of no file
    stream.commit()
    table.maintenance.rewrite_data_files(where="id < 10", rewrite_all=True)
    assert table.maintenance.examine_files().unreadable == ()
    used = {each.file_path for file in planned_files(table.scan().plan()) for each in file.deletes}
    deletes = places(table, FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES)
    lost = [path for path in deletes if path not in used]
    assert lost
    for path in lost:
        Path(path).unlink()
    examined = icebench.load_table(table.metadata_location).maintenance.examine_files()
    assert sorted(next(path for path in lost if path in str(error)) for error in examined.unreadable) == lost


def test_without_a_manifest_nothing_is_known(table: icebench.Table) -> None:
    manifest = table.inspect.manifests()["path"].to_pylist()[0]
    Path(manifest).unlink()
    with pytest.raises(FileNotFound, match=Path(manifest).name):
        icebench.load_table(table.metadata_location).maintenance.examine_files()
