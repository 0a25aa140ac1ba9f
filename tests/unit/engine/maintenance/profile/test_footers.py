"""Footers beside pyarrow's reading of them, and files that are not as their manifest entries say."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench.engine.formats.parquet.chunk_storage import chunk_storages
from icebench.engine.formats.parquet.footer_chunks import FooterChunks
from icebench.engine.maintenance.profile.figures import FooterFigures

ROWS = pa.schema([("id", pa.int64()), ("text", pa.string()), ("nested", pa.struct([("x", pa.float64())]))])


@pytest.fixture
def table(tmp_path: Path) -> Iterator[icebench.Table]:
    with closing(icebench.load_catalog(str(tmp_path))) as catalog:
        properties = {"write.parquet.row-group-size-bytes": "20000", "write.parquet.page-row-limit": "1000"}
        made = catalog.create_table("db.t", ROWS, properties=properties)
        for start in (0, 5_000, 10_000):
            made.append(rows(start, start + 5_000))
        yield made


def rows(start: int, stop: int) -> pa.Table:
    numbers = list(range(start, stop))
    columns = {"id": numbers, "text": [f"t{n % 7}" for n in numbers], "nested": [{"x": n / 2} for n in numbers]}
    return pa.table(columns, ROWS)


def footers(table: icebench.Table) -> FooterFigures:
    found = table.maintenance.profile(deep=True).footers
    assert found is not None
    return found


def paths(table: icebench.Table) -> list[str]:
    return sorted(table.inspect.data_files()["file_path"].to_pylist())


def test_footers_are_read_only_if_it_is_asked_for(table: icebench.Table) -> None:
    for path in paths(table):
        Path(path).unlink()
    assert table.maintenance.profile().footers is None
    assert footers(table).contradicting_files == 3


def test_storage_is_what_pyarrow_says(table: icebench.Table) -> None:
    found = footers(table)
    metadata = [pq.read_metadata(path) for path in paths(table)]
    groups = [each.row_group(i) for each in metadata for i in range(each.num_row_groups)]
    assert len(groups) > 3
    assert (found.files, found.row_groups) == (3, len(groups))
    assert found.row_group_rows.most == max(group.num_rows for group in groups)
    assert (found.chunks, found.contradictions) == (3 * len(groups), ())
    sizes = [sum(group.column(c).total_compressed_size for c in range(3)) for group in groups]
    assert (found.row_group_bytes.least, found.row_group_bytes.most) == (min(sizes), max(sizes))
    for leaf, name in enumerate(("id", "text", "nested.x")):
        chunks = [group.column(leaf) for group in groups]
        own = next(column for column in found.columns if column.name == name)
        assert own.chunks == len(chunks)
        assert own.compressed_bytes == sum(chunk.total_compressed_size for chunk in chunks)
        assert own.uncompressed_bytes == sum(chunk.total_uncompressed_size for chunk in chunks)
        assert own.codecs == Counter({"zstd": own.compressed_bytes})
        assert {each.upper() for each in own.encodings} <= {e for chunk in chunks for e in chunk.encodings}
    assert found.columns == tuple(sorted(found.columns, key=lambda column: -column.compressed_bytes))
    assert found.pages >= found.chunks


def test_renamed_columns_and_those_that_took_a_name(table: icebench.Table) -> None:
    """A column is one whatever its files call it, and is not another one that has its former name."""
    before = {each.field_id: each.compressed_bytes for each in footers(table).columns}
    table.update_schema(lambda update: update.drop_column("text").rename_column("id", "text"))
    table.update_schema(lambda update: update.rename_column("nested.x", "y").add_column("id", icebench.LONG))
    found = {each.field_id: (each.name, each.compressed_bytes) for each in footers(table).columns}
    assert found == {1: ("text", before[1]), 2: ("text", before[2]), 4: ("nested.y", before[4])}


def test_missing_and_foreign_files(table: icebench.Table) -> None:
    missing, foreign, changed = paths(table)
    Path(missing).unlink()
    Path(foreign).write_bytes(b"PAR1 no Parquet PAR1")
    pq.write_table(pq.read_table(changed).slice(0, 10), changed)
    found = footers(table)
    reported = {(each.file_path, each.what) for each in found.contradictions if each.file_path != changed}
    assert reported == {(missing, "missing"), (foreign, "unreadable")}
    assert {each.what for each in found.contradictions if each.file_path == changed} == {"size", "records"}
    assert found.contradicting_files == 3


def test_damaged_footers_are_errors(table: icebench.Table) -> None:
    data = Path(paths(table)[0]).read_bytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    whole = len(chunk_storages(footer))
    assert len(FooterChunks(footer, whole // 3, 3).storages()) == whole
    with pytest.raises(ValueError, match="does not have"):
        FooterChunks(footer, whole // 3, 2).storages()
    drawn = random.Random(7)
    failed = 0
    for _ in range(300):
        damaged = bytearray(footer)
        damaged[drawn.randrange(len(damaged))] = drawn.randrange(256)
        try:
            FooterChunks(bytes(damaged), whole // 3, 3).storages()
        except (IndexError, ValueError):
            failed += 1
    assert 0 < failed < 300


@pytest.mark.parametrize(("bound", "word"), [("lower_bounds", "below its lower"), ("upper_bounds", "above its upper")])
def test_bounds_that_leave_out_values(table: icebench.Table, tmp_path: Path, bound: str, word: str) -> None:
    catalog = icebench.load_catalog(str(tmp_path))
    copy = catalog.create_table("db.copy", ROWS)
    described = table.inspect.data_files().select(
        ["file_path", "file_format", "record_count", "file_size_in_bytes", "lower_bounds", "upper_bounds"]
    )
    wrong = []
    for row in described.to_pylist(maps_as_pydicts="strict"):
        bounds = {name: dict(row[name]) for name in ("lower_bounds", "upper_bounds")}
        bounds[bound][1] = (7_500).to_bytes(8, "little")
        wrong.append(
            icebench.DataFile(
                file_path=row["file_path"],
                file_format="parquet",
                record_count=row["record_count"],
                file_size_in_bytes=row["file_size_in_bytes"],
                lower_bounds=bounds["lower_bounds"],
                upper_bounds=bounds["upper_bounds"],
            )
        )
    copy.add_files(wrong)
    found = footers(copy)
    assert found.contradicting_files == 2  # of one file the bound is only wider than it need be
    assert {each.detail for each in found.contradictions} == {f"id: a row group reaches {word} bound"}
