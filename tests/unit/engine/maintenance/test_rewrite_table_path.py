"""What a rewrite of locations stages and lists.

`tests/property/test_table_machine.py` holds copies to the rows of random tables, `tests/interop/` to Iceberg Java's.
"""

from __future__ import annotations

import gzip
import shutil
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import deflate
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from isal import igzip_lib

import icebench
from icebench.engine.codec.avro.file import read_blocks, read_header
from icebench.engine.codec.block_codecs import Inflater
from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.codec.puffin.file import read_footer
from icebench.engine.deletes.files import DeleteFile
from icebench.engine.deletes.positions import positions_by_path
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.manifest import EntryStatus, ManifestEntry
from icebench.engine.spec.metadata_columns import DELETE_FILE_PATH_ID
from icebench.errors import AlreadyExists, Invalid, Unsupported
from tests.property.table_copies import read_list, rewrite_and_copy
from tests.unit.bench.cli.test_main import exit_code
from tests.unit.engine.maintenance.test_rewrite_deletes import before_commit
from tests.unit.engine.test_contradictions import rewrite

COLUMNS = pa.schema([("id", pa.int64()), ("part", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[icebench.Catalog]:
    opened = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/wh")
    yield opened
    opened.close()


def filled(catalog: icebench.Catalog, properties: Mapping[str, str] | None = None) -> icebench.Table:
    """Two files in each of two partitions, with deletes in one of them."""
    table = catalog.create_table("db.table", COLUMNS, partition_spec=[("part", "identity")], properties=properties)
    for start in (0, 10):
        table.append(pa.table({"id": range(start, start + 10), "part": ["a", "b"] * 5}))
    table.delete("id in (2, 3, 12)", mode="merge-on-read")
    return table


def ids(table: icebench.Table, **which: Any) -> list[int]:
    return sorted(table.scan(**which).to_arrow()["id"].to_pylist())


LIVE = [i for i in range(20) if i not in (2, 3, 12)]


def copied(table: icebench.Table, target: Path, **versions: Any) -> icebench.Table:
    """The copy, read strictly where it says its files are, with nothing left at the old place."""
    done = rewrite_and_copy(table, str(target), f"{target}.staging", **versions)
    shutil.rmtree(table.location)
    (newest,) = target.rglob(done.latest_version)
    return icebench.load_table(str(newest), relocate={}, verify="strict")


def deletes(table: icebench.Table) -> list[ManifestEntry]:
    paths = table.inspect.manifests()["path"].to_pylist()
    entries = [each for path in paths for each in decode_entries(table.store.read(path))]
    return [each for each in entries if each.data_file.content]


@pytest.mark.parametrize("format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_position_deletes_name_the_new_files(
    catalog: icebench.Catalog, tmp_path: Path, format: str, granularity: str
) -> None:
    """In the file, in its bounds, and in its entry, whose size is that of the new file."""
    own = {"write.delete.format.default": format, "write.delete.granularity": granularity}
    old = filled(catalog, own)
    before = deletes(old)
    table = copied(old, tmp_path / "a much longer name of a directory" / "t")
    assert ids(table) == LIVE
    assert len(deletes(table)) == len(before)
    for entry, former in zip(deletes(table), before, strict=True):
        file = entry.data_file
        assert file.file_format == format
        assert file.file_size_in_bytes == Path(file.file_path).stat().st_size != former.data_file.file_size_in_bytes
        assert file.split_offsets is None
        paths = sorted(positions_by_path(DeleteFile.of(entry), table.store))
        assert all(path.startswith(table.location) and Path(path).exists() for path in paths)
        assert file.lower_bounds[DELETE_FILE_PATH_ID].decode() == paths[0]
        assert file.upper_bounds[DELETE_FILE_PATH_ID].decode() == paths[-1]
        assert file.referenced_data_file == (paths[0] if len(paths) == 1 else None)
        assert set(file.lower_bounds) == set(former.data_file.lower_bounds)
        assert _rest(file) == _rest(former.data_file)
        assert (entry.status, entry.snapshot_id) == (former.status, former.snapshot_id)
        assert (entry.sequence_number, entry.file_sequence_number) == (
            former.sequence_number,
            former.file_sequence_number,
        )


def test_deletion_vectors_name_the_new_files(catalog: icebench.Catalog, tmp_path: Path) -> None:
    """In their entries, and in the footer of the Puffin file, which nothing needs and other readers may look at."""
    table = copied(filled(catalog, {"format-version": "3"}), tmp_path / "copy")
    assert ids(table) == LIVE
    for entry in deletes(table):
        file = entry.data_file
        data = Path(file.file_path).read_bytes()
        assert file.file_size_in_bytes == len(data)
        (blob,) = (b for b in read_footer(data).blobs if b.offset == file.content_offset)
        assert blob.properties["referenced-data-file"] == file.referenced_data_file
        assert Path(file.referenced_data_file or "").exists()


def _rest(file: DataFile) -> tuple[object, ...]:
    return file.content, file.partition, file.record_count, file.value_counts, file.spec_id, file.sort_order_id


def test_bounds_that_may_not_keep_their_order_are_left_out(catalog: icebench.Catalog, tmp_path: Path) -> None:
    """A bound that was cut within the prefix, or that spells it otherwise."""
    table = filled(catalog, {"write.delete.granularity": "partition"})

    def cut(entry: dict[str, Any], lower: bytes) -> dict[str, Any]:
        file = entry["data_file"]
        for bound in file["lower_bounds"]:
            if bound["key"] == DELETE_FILE_PATH_ID:
                bound["value"] = lower if file["partition"]["part"] == "a" else b"file:" + bound["value"]
        return entry

    manifest = next(m for m in table.inspect.manifests().to_pylist() if m["content"] == 1)["path"]
    rewrite(manifest, lambda entries: [cut(e, table.location[:9].encode()) for e in entries])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", icebench.errors.ContradictionWarning)
        moved = copied(table, tmp_path / "copy")
    assert [len(each.data_file.lower_bounds) for each in deletes(moved)] == [1, 1]
    assert [len(each.data_file.upper_bounds) for each in deletes(moved)] == [1, 1]
    assert ids(moved) == LIVE


def test_files_keep_the_sequence_numbers_that_they_state(catalog: icebench.Catalog, tmp_path: Path) -> None:
    """Rewritten data files are older than equality deletes that came meanwhile: if they inherited, rows came back."""
    table = catalog.create_table("db.table", COLUMNS)
    table.append(pa.table({"id": range(5), "part": ["a"] * 5}))
    other = catalog.load_table("db.table")

    def delete_meanwhile() -> None:
        stream = other.keyed_stream(["id"])
        stream.delete(pa.table({"id": [3]}))
        stream.commit()

    with before_commit(delete_meanwhile):
        table.maintenance.rewrite_data_files(rewrite_all=True)
    assert ids(copied(table.refresh(), tmp_path / "copy")) == [0, 1, 2, 4]


def test_indexes_and_statistics_go_with_the_table(catalog: icebench.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("db.table", COLUMNS, partition_spec=[("part", "identity")])
    for start in (0, 1):
        table.append(pa.table({"id": range(start, 10, 2), "part": ["a"] * 5}))
    table.maintenance.compute_table_stats(["part"])
    table.maintenance.compute_partition_stats()
    table.maintenance.build_index("id")
    moved = copied(table.refresh(), tmp_path / "copy")
    plan = moved.scan(filter="id = 7").plan()
    assert (plan.files.num_rows, plan.counters["entries_skipped_by_index"]) == (1, 1)
    columns = {column.name: column.distinct_values for column in moved.maintenance.profile().columns}
    assert columns["part"] == 1
    (file,) = moved.metadata.statistics
    assert file.file_size_in_bytes == Path(file.statistics_path).stat().st_size
    assert file.statistics_path.startswith(moved.location)
    (partitions,) = moved.metadata.partition_statistics
    assert pq.read_table(partitions.statistics_path).num_rows == 1


def test_statistics_that_expired_are_not_listed(catalog: icebench.Catalog, tmp_path: Path) -> None:
    """Earlier versions refer to them still."""
    table = filled(catalog)
    table.maintenance.compute_partition_stats()
    table.maintenance.build_index("id")
    table.append(pa.table({"id": [99], "part": ["a"]}))
    table.maintenance.compute_partition_stats()
    table.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z")
    moved = copied(table.refresh(), tmp_path / "copy")
    assert ids(moved) == [*LIVE, 99]
    assert len(list(Path(moved.location).glob("metadata/*partition*"))) == 1


def test_prefixes_are_whole_segments(catalog: icebench.Catalog, tmp_path: Path) -> None:
    """`/a/t` is no prefix of `/a/t2`, and what is elsewhere is named; nothing stays staged."""
    table = filled(catalog)
    for prefix in (table.location[:-1], f"{table.location}/data", "/nowhere"):
        with pytest.raises(Invalid, match=r"not below the source prefix"):
            table.maintenance.rewrite_table_path(prefix, "/new", staging_location=f"{tmp_path}/staging")
    elsewhere = tmp_path / f"{Path(table.location).name}2" / "strange.parquet"
    elsewhere.parent.mkdir()
    pq.write_table(pa.table({"id": [50], "part": ["a"]}), elsewhere)
    table.add_files([str(elsewhere)])
    with pytest.raises(Invalid, match=f"not below the source prefix .*: {elsewhere}"):
        table.maintenance.rewrite_table_path(table.location, "/new", staging_location=f"{tmp_path}/staging")
    assert not [path for path in (tmp_path / "staging").rglob("*") if path.is_file()]
    # All of it lies below a common directory.
    done = table.maintenance.rewrite_table_path(str(tmp_path), "/new/", staging_location=f"{tmp_path}/staging")
    assert read_list(done)[str(elsewhere)] == f"/new/{elsewhere.relative_to(tmp_path)}"


def test_properties_move_with_the_table(catalog: icebench.Catalog, tmp_path: Path) -> None:
    table = filled(catalog)
    data = f"{table.location}/rows"
    table.set_properties({"write.data.path": data, "write.metadata.path": f"{table.location}/about"})
    table.append(pa.table({"id": [77], "part": ["a"]}))
    moved = copied(table, tmp_path / "copy")
    assert moved.properties["write.data.path"] == f"{tmp_path}/copy/rows"
    assert ids(moved) == [*LIVE, 77]


def test_a_property_elsewhere_is_named(catalog: icebench.Catalog) -> None:
    table = filled(catalog)
    table.set_properties({"write.data.path": "/other/place"})
    with pytest.raises(Invalid, match="/other/place is not below"):
        table.maintenance.rewrite_table_path(table.location, "/new")
    left = [path for path in Path(table.location).rglob("*staging*/*/*") if path.is_file()]
    assert left == []


def test_versions_are_staged_as_asked_for(catalog: icebench.Catalog, tmp_path: Path) -> None:
    table = filled(catalog)
    names = [Path(each.metadata_file).name for each in table.metadata.metadata_log]
    done = rewrite_and_copy(table, f"{tmp_path}/copy", f"{tmp_path}/staging", end_version=names[-1])
    assert done.latest_version == names[-1]
    older = icebench.load_table(f"{tmp_path}/copy/metadata/{names[-1]}", relocate={})
    assert ids(older) == list(range(20))
    rest = rewrite_and_copy(table, f"{tmp_path}/copy", f"{tmp_path}/staging", start_version=names[-1])
    assert rest.rewritten_delete_files == 3  # one for each data file with deleted rows
    newest = table.metadata_location
    # A metadata file, a manifest list, two manifests of which one lists deletes, and the deletes.
    assert rest.listed_files == 2 + rest.rewritten_manifests + rest.rewritten_delete_files
    table.append(pa.table({"id": [99], "part": ["a"]}))
    last = rewrite_and_copy(table, f"{tmp_path}/copy", f"{tmp_path}/staging", start_version=newest)
    assert (last.listed_files, last.rewritten_manifests, last.rewritten_delete_files) == (4, 1, 0)
    for name in ("start_version", "end_version"):
        with pytest.raises(Invalid, match="v99"):
            rewrite_and_copy(table, "/new", f"{tmp_path}/staging", **{name: "v99.metadata.json"})
    with pytest.raises(Invalid, match="no version"):  # later than the end
        table.maintenance.rewrite_table_path(
            table.location, "/new", start_version=Path(newest).name, end_version=names[1]
        )


def test_manifests_that_were_rewritten_list_no_file_again(catalog: icebench.Catalog, tmp_path: Path) -> None:
    table = filled(catalog)
    start = rewrite_and_copy(table, f"{tmp_path}/copy", f"{tmp_path}/staging").latest_version
    table.maintenance.rewrite_manifests()
    done = rewrite_and_copy(table, f"{tmp_path}/copy", f"{tmp_path}/staging", start_version=start)
    assert done.rewritten_delete_files == 0
    assert done.listed_files == done.rewritten_manifests + 2


def test_a_later_part_states_the_lengths_that_earlier_parts_have(catalog: icebench.Catalog, tmp_path: Path) -> None:
    """Also of a manifest that lists a delete file as deleted, once no other lists it as live; and with other codecs."""
    table = filled(catalog)
    table.maintenance.rewrite_manifests()
    table.delete("id = 4", mode="merge-on-read")  # takes over the positions of a delete file
    listed = [(entry.status, entry.data_file.file_path) for entry in deletes(table)]
    assert EntryStatus.DELETED in dict(listed)
    start = rewrite_and_copy(table, f"{tmp_path}/copy", f"{tmp_path}/staging").latest_version
    table.set_properties({"write.manifest.compression-codec": "zstd", "write.delete.parquet.compression-codec": "gzip"})
    table.append(pa.table({"id": [99], "part": ["a"]}))
    moved = copied(table, tmp_path / "copy", start_version=start)
    assert ids(moved) == [i for i in [*LIVE, 99] if i != 4]


def test_manifests_are_compressed_alike_on_all_processors(catalog: icebench.Catalog, tmp_path: Path) -> None:
    """By libdeflate, where other writes use igzip."""
    table = filled(catalog)
    moved = copied(table, tmp_path / "copy")
    for path in moved.inspect.manifests()["path"].to_pylist():
        data = moved.store.read(path)
        for block in read_blocks(data, header := read_header(data)):
            packed = data[block.start : block.end]
            plain = Inflater(header.codec, 1 << 20)(packed)
            assert packed == deflate.deflate_compress(plain, 6) != igzip_lib.compress(plain, 1, igzip_lib.COMP_DEFLATE)


def test_what_expired_in_between_is_not_needed(catalog: icebench.Catalog, tmp_path: Path) -> None:
    table = filled(catalog)
    start = rewrite_and_copy(table, f"{tmp_path}/copy", f"{tmp_path}/staging").latest_version
    table.maintenance.rewrite_data_files(rewrite_all=True)
    table.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z")
    moved = copied(table.refresh(), tmp_path / "copy", start_version=start)
    assert ids(moved) == LIVE


def test_statistics_files_have_the_sizes_that_later_parts_state(catalog: icebench.Catalog, tmp_path: Path) -> None:
    """Also of a snapshot whose index is not the column's newest any more."""
    table, start = filled(catalog), None
    for day in range(3):
        table.append(pa.table({"id": [100 + day], "part": ["a"]}))
        table.maintenance.compute_table_stats()
        table.maintenance.build_index("id", kind="values")
        if day < 2:
            done = rewrite_and_copy(table, f"{tmp_path}/copy", f"{tmp_path}/staging{day}", start_version=start)
            start = done.latest_version
    moved = copied(table, tmp_path / "copy", start_version=start)
    stated = {file.statistics_path: file.file_size_in_bytes for file in moved.metadata.statistics}
    assert len(stated) == 3
    assert {path: moved.store.size(path) for path in stated} == stated
    assert moved.scan("id = 101").plan().files.num_rows == 1


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_metadata_files_stay_compressed(catalog: icebench.Catalog, tmp_path: Path, codec: str) -> None:
    table = filled(catalog, {"write.metadata.compression-codec": codec})
    moved = copied(table, tmp_path / "copy")
    data = Path(moved.metadata_location).read_bytes()
    assert (data[:2] == gzip.compress(b"")[:2]) == (codec == "gzip")


def test_a_table_that_was_moved_is_made_at_home(catalog: icebench.Catalog, tmp_path: Path) -> None:
    """Its files are read where they are and listed there, though the metadata name another place."""
    table = filled(catalog, {"format-version": "3"})
    old, there = table.location, f"{tmp_path}/there"
    shutil.move(old, there)
    moved = icebench.load_table(there, relocate={old: there})
    with pytest.raises(Unsupported, match="read from"):
        moved.maintenance.rewrite_table_path(old, f"{tmp_path}/home")
    done = moved.maintenance.rewrite_table_path(old, there, staging_location=f"{tmp_path}/staging")
    copies = read_list(done)
    stay = [source for source, target in copies.items() if source == target]
    assert len(stay) == 4  # the data files
    for source, target in copies.items():
        if source != target:
            shutil.copyfile(source, target)
    assert ids(icebench.load_table(there, relocate={}, verify="strict")) == LIVE


def test_the_list_is_plain_where_names_are(catalog: icebench.Catalog, tmp_path: Path) -> None:
    """As Iceberg Java writes it; a name with a comma is quoted, so that each line has two."""
    table = filled(catalog)
    plain = table.maintenance.rewrite_table_path(table.location, "/new", staging_location=f"{tmp_path}/plain")
    assert plain.file_list_location == f"{tmp_path}/plain/file-list"
    assert '"' not in Path(plain.file_list_location).read_text()
    quoted = table.maintenance.rewrite_table_path(table.location, "/a, b", staging_location=f"{tmp_path}/quoted")
    assert all(target.startswith("/a, b/") for target in read_list(quoted).values())
    targets = [line.split(",")[1].rpartition("/")[2] for line in Path(plain.file_list_location).read_text().split()]
    assert targets[-1] == plain.latest_version
    none = table.maintenance.rewrite_table_path(
        table.location, "/new", staging_location=f"{tmp_path}/none", create_file_list=False
    )
    assert none.file_list_location is None
    assert not (tmp_path / "none" / "file-list").exists()


def test_files_of_another_rewrite_are_not_replaced(catalog: icebench.Catalog, tmp_path: Path) -> None:
    table = filled(catalog)
    staging = f"{tmp_path}/staging"
    first = read_list(table.maintenance.rewrite_table_path(table.location, "/new", staging_location=staging))
    with pytest.raises(AlreadyExists):
        table.maintenance.rewrite_table_path(table.location, "/new", staging_location=staging)
    assert all(Path(source).exists() for source in first)
    with pytest.raises(AlreadyExists):  # the table's own files
        table.maintenance.rewrite_table_path(table.location, "/new", staging_location=table.location)
    assert ids(table) == LIVE


@pytest.mark.parametrize(("source", "target"), [("", "/b"), ("/", "/b"), ("/a", ""), ("/a", "//a/"), ("/a", "/a")])
def test_prefixes_that_say_nothing_are_refused(catalog: icebench.Catalog, source: str, target: str) -> None:
    with pytest.raises(Invalid, match="prefix"):
        filled(catalog).maintenance.rewrite_table_path(source, target)


def test_the_command_line_says_where_the_list_is(
    catalog: icebench.Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = filled(catalog)
    prefixes = ["--source-prefix", table.location, "--target-prefix", "s3://bucket/t"]
    for number, names in enumerate([[f"sqlite:///{tmp_path}/catalog.db", "db.table"], [table.location]]):
        staging = f"{tmp_path}/staging{number}"
        command = ["maintain", "rewrite-table-path", *names, *prefixes, "--staging-location", staging]
        assert exit_code(*command) == 0
        out = capsys.readouterr().out
        assert f"{staging}/file-list" in out
        assert "s3://bucket/t/metadata/" in Path(f"{staging}/file-list").read_text()
    assert exit_code("maintain", "expire-snapshots", table.location) == 2
