"""Files that are whole and of another length, or with other counts, than the table's metadata say: read with a warning.
What may lack rows, or be another file, is refused."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench.engine.codec.avro.file import read_blocks, read_header
from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.commit.changes.row_delta import RowDelta
from icebench.engine.plan.manifests import ManifestSource
from icebench.engine.plan.scan import table_scan
from icebench.engine.read.plans import read_plan
from icebench.engine.runtime.counters import METADATA_CONTRADICTIONS, Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import DataFile, FileContent, FileFormat
from icebench.engine.spec.manifest import ManifestContent, ManifestFile
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.contradictions import Verify, VerifyingStore
from icebench.engine.storage.memory import MemoryStore
from icebench.errors import Contradiction, ContradictionWarning, CorruptTable, Invalid
from tests.fault.foreign_files import avro_file, orc_file
from tests.property.remote_planning import OtherProcesses

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
UNPACKED = {"write.parquet.compression-codec": "uncompressed", "commit.manifest-merge.enabled": "false"}


def rows(first: int, count: int = 100) -> pa.Table:
    return pa.table({"id": range(first, first + count), "name": [f"n{i}" for i in range(count)]}, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[icebench.Table]:
    catalog = icebench.load_catalog(f"{tmp_path}/wh")
    yield catalog.create_table("db.t", SCHEMA, properties=UNPACKED)
    catalog.close()


def opened(
    table: icebench.Table, verify: Verify = "warn", cache: icebench.ManifestCache | None = None
) -> icebench.Table:
    return icebench.load_table(table.metadata_location, verify=verify, cache=cache)


def ids(table: icebench.Table) -> list[int]:
    found: list[int] = table.scan().to_arrow()["id"].to_pylist()
    return sorted(found)


def assert_read_with_a_warning(table: icebench.Table, expected: Sequence[int], message: str, causes: int = 1) -> None:
    """The rows with one warning of each cause and a count; an error where that was asked for."""
    own, counters = opened(table), Counters()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert sorted(own.scan(counters=counters).to_arrow()["id"].to_pylist()) == list(expected)
        ids(own)
    assert [each.category for each in caught] == [ContradictionWarning] * causes
    assert any(message in str(each.message) for each in caught)
    assert counters[METADATA_CONTRADICTIONS] >= causes
    with pytest.raises(CorruptTable, match=message if causes == 1 else "."):
        ids(opened(table, "strict"))


def assert_refused(table: icebench.Table, message: str = ".") -> None:
    with pytest.raises(CorruptTable, match=message):
        ids(opened(table))


def data_file(table: icebench.Table, file_format: FileFormat, data: pa.Table, schema: Schema | None = None) -> bytes:
    """A data file with field ids, of the table's schema or another."""
    schema = schema or table.schema()
    if file_format == "parquet":
        sink = io.BytesIO()
        pq.write_table(data.cast(to_arrow_schema(schema)), sink, compression="none", use_dictionary=False)
        return sink.getvalue()
    return (orc_file if file_format == "orc" else avro_file)(
        data, schema, "uncompressed" if file_format == "orc" else "null"
    )


def add(
    table: icebench.Table,
    name: str,
    data: bytes,
    *,
    size: int,
    count: int = 100,
    **known: Any,
) -> None:
    """Add a file that the manifest gives this size and number of rows, and what else is known of it."""
    location = f"{table.location}/data/{name}"
    table.store.write(location, data)
    file_format: Any = name.rpartition(".")[2]
    file = DataFile(
        file_path=location,
        file_format=file_format,
        record_count=count,
        file_size_in_bytes=size,
        **known,
    )
    table.add_files([file])


def add_equality_deletes(
    table: icebench.Table, keys: list[int], file_format: FileFormat, *, count: int, size: int | None = None
) -> str:
    """Add a file of deleted ids that its entry gives this number of rows and size (None: its own); returns its path."""
    data = data_file(table, file_format, pa.table({"id": keys}), table.schema().select({1}))
    location = f"{table.location}/data/keys.{file_format}"
    table.store.write(location, data)
    deletes = DataFile(
        content=FileContent.EQUALITY_DELETES,
        file_path=location,
        file_format=file_format,
        record_count=count,
        file_size_in_bytes=len(data) if size is None else size,
        equality_ids=(1,),
    )
    table._change(RowDelta(delete_files=[deletes]))
    return location


FORMATS: tuple[FileFormat, ...] = ("parquet", "orc", "avro")


class TestDataFiles:
    @pytest.mark.parametrize("file_format", FORMATS)
    @pytest.mark.parametrize("size", [0, 10, 3_000, 1 << 20, 1 << 30])
    def test_a_whole_file_of_another_size_is_read(
        self, table: icebench.Table, file_format: FileFormat, size: int
    ) -> None:
        add(table, f"a.{file_format}", data_file(table, file_format, rows(0)), size=size)
        add(table, f"b.{file_format}", data_file(table, file_format, rows(100)), size=size)
        assert_read_with_a_warning(table, range(200), f"bytes, and its manifest entry says {size}")

    def test_a_large_file_that_should_be_small_is_read_to_its_end(self, table: icebench.Table) -> None:
        data = data_file(table, "parquet", rows(0, 150_000))
        assert len(data) > 1 << 20
        add(table, "a.parquet", data, size=1000, count=150_000)
        assert_read_with_a_warning(table, range(150_000), "manifest entry says 1000")

    @pytest.mark.filterwarnings("ignore::icebench.engine.errors.ContradictionWarning")
    @pytest.mark.parametrize("file_format", FORMATS)
    @pytest.mark.parametrize("size", [0, 2_000, 20_000])
    @pytest.mark.parametrize("offsets", [None, (4, 900), (900, 1_500)])
    def test_tasks_have_all_rows_of_a_file_of_another_size(
        self, table: icebench.Table, file_format: FileFormat, size: int, offsets: tuple[int, ...] | None
    ) -> None:
        if file_format == "parquet":
            sink = io.BytesIO()
            data = rows(0, 1000).cast(to_arrow_schema(table.schema()))
            pq.write_table(data, sink, row_group_size=100, use_dictionary=False)
            content = sink.getvalue()
        else:
            content = data_file(table, file_format, rows(0, 1000))
        add(table, f"a.{file_format}", content, size=size, count=1000, split_offsets=offsets)
        plan = opened(table).scan().plan()
        for split_bytes in (700, 1 << 20):
            tasks = plan.tasks(split_bytes=split_bytes)
            found = [read_plan(plan, table.store, task=task).read_all() for task in tasks]
            assert sorted(pa.concat_tables(found)["id"].to_pylist()) == list(range(1000))

    @pytest.mark.parametrize("file_format", FORMATS)
    @pytest.mark.parametrize("count", [99, 101])
    def test_a_file_with_other_rows_is_refused(
        self, table: icebench.Table, file_format: FileFormat, count: int
    ) -> None:
        data = data_file(table, file_format, rows(0, count))
        add(table, f"a.{file_format}", data, size=len(data))
        assert_refused(table, f"{count} rows, where its manifest entry says 100")

    @pytest.mark.parametrize("file_format", FORMATS)
    @pytest.mark.parametrize("count", [-1, 0, 1, 99, 101])
    def test_filters_do_not_hide_another_number_of_rows(
        self, table: icebench.Table, file_format: FileFormat, count: int
    ) -> None:
        data = data_file(table, file_format, rows(0))
        counts = {"value_counts": {1: 100, 2: 100}, "null_value_counts": {1: 0, 2: 0}} if count >= 0 else {}
        add(table, f"a.{file_format}", data, size=len(data), count=count, **counts)
        own = opened(table)
        for filter in (None, "id >= 0", "id = 3", "name is not null", "name = 'n3' or id < 0"):
            with pytest.raises(CorruptTable, match=f"100 rows, where its manifest entry says {count}"):
                own.scan(filter).to_arrow()

    @pytest.mark.parametrize("file_format", FORMATS)
    def test_a_truncated_file_is_refused(self, table: icebench.Table, file_format: FileFormat) -> None:
        data = data_file(table, file_format, rows(0))
        end = len(data) // 2
        if file_format == "avro":  # at the end of a block, where nothing in the file shows it
            end = read_blocks(data, read_header(data))[0].end + 16
            assert end < len(data)
        add(table, f"a.{file_format}", data[:end], size=len(data))
        assert_refused(table)

    @pytest.mark.parametrize("file_format", ["parquet", "orc"])
    @pytest.mark.parametrize("cut", [0, 8])
    def test_a_file_with_bytes_cut_out_or_put_in_is_refused(
        self, table: icebench.Table, file_format: FileFormat, cut: int
    ) -> None:
        data = data_file(table, file_format, rows(0))
        changed = data[:40] + (b"" if cut else b"\0" * 8) + data[40 + cut :]
        add(table, f"a.{file_format}", changed, size=len(data))
        assert_refused(table, "its footer does not account for all of them")

    def test_a_file_of_another_table_is_refused(self, table: icebench.Table) -> None:
        other = table.schema().fields
        renamed = to_arrow_schema(table.schema()).empty_table().schema
        stranger = rows(0).cast(renamed).rename_columns(["number", "title"])
        fields = [f.with_name(n) for f, n in zip(renamed, ["number", "title"], strict=True)]
        sink = io.BytesIO()
        pq.write_table(stranger.cast(pa.schema(fields)), sink)
        assert len(other) == 2
        add(table, "a.parquet", sink.getvalue(), size=7)
        assert_refused(table, "no schema of the table has its column number")

    def test_a_renamed_column_is_not_another_tables(self, table: icebench.Table) -> None:
        add(table, "a.parquet", data_file(table, "parquet", rows(0)), size=7)
        table.update_schema(lambda schema: schema.rename_column("id", "number"))
        with pytest.warns(ContradictionWarning):
            assert sorted(opened(table).scan().to_arrow()["number"].to_pylist()) == list(range(100))

    def test_a_splice_never_gives_wrong_rows(self, table: icebench.Table) -> None:
        data = data_file(table, "parquet", rows(0))
        add(table, "a.parquet", data, size=len(data))
        for at in range(4, len(data) - 30, 31):
            spliced = data[:at] + data[at + 16 : at + 24] + data[at:]
            table.store.write(f"{table.location}/data/a.parquet", spliced, overwrite=True)
            with pytest.raises(CorruptTable):
                ids(opened(table))


class TestDeleteFiles:
    def rewritten(self, table: icebench.Table, change: Callable[[pa.Table], pa.Table]) -> None:
        """Replace the delete file by another."""
        (path,) = table.inspect.delete_files()["file_path"].to_pylist()
        sink = io.BytesIO()
        pq.write_table(change(pq.read_table(io.BytesIO(table.store.read(path)))), sink, compression="gzip")
        table.store.write(path, sink.getvalue(), overwrite=True)

    def test_one_of_another_size_is_applied(self, table: icebench.Table) -> None:
        table.append(rows(0))
        table.delete("id < 5", mode="merge-on-read")
        self.rewritten(table, lambda deletes: deletes)
        assert_read_with_a_warning(table, range(5, 100), "manifest entry says")

    @pytest.mark.parametrize("file_format", FORMATS)
    @pytest.mark.parametrize("size", [None, 10])
    def test_one_with_more_rows_is_applied(
        self, table: icebench.Table, file_format: FileFormat, size: int | None
    ) -> None:
        # Impala's: keys were put in by hand, the file is whole, and neither its size nor its rows were recorded.
        table.append(rows(0, 200))
        add_equality_deletes(table, [3, 150, 99], file_format, size=size, count=2)
        expected = [i for i in range(200) if i not in (3, 150, 99)]
        message = "a delete file with 3 rows, where its manifest entry says 2"
        assert_read_with_a_warning(table, expected, message, causes=1 if size is None else 2)
        assert {each.cause for each in opened(table).maintenance.examine_files().contradictions} == (
            {"number of deletes"} if size is None else {"number of deletes", "file size"}
        )

    def test_filters_do_not_hide_one_of_no_stated_rows(self, table: icebench.Table) -> None:
        table.append(rows(0))
        add_equality_deletes(table, [3, 99], "parquet", count=0)
        for filter in (None, "id >= 0", "name is not null"):
            with pytest.warns(ContradictionWarning, match="manifest entry says 0"):
                assert not {3, 99} & set(opened(table).scan(filter).to_arrow()["id"].to_pylist())

    def test_positions_beyond_the_stated_ones_are_applied(self, table: icebench.Table) -> None:
        table.append(rows(0))
        table.delete("id < 5", mode="merge-on-read")
        self.rewritten(table, lambda deletes: pa.concat_tables([deletes, deletes.slice(0, 1)]))
        assert_read_with_a_warning(table, range(5, 100), "manifest entry says", causes=2)

    @pytest.mark.parametrize("file_format", ["parquet", "orc"])
    def test_one_with_more_rows_that_is_not_whole_is_refused(
        self, table: icebench.Table, file_format: FileFormat
    ) -> None:
        table.append(rows(0))
        path = add_equality_deletes(table, [3, 50, 99], file_format, count=2)
        data = table.store.read(path)
        table.store.write(path, data[:4] + b"\0" + data[4:], overwrite=True)
        assert_refused(table)

    def test_equality_deletes_with_fewer_rows_are_refused(self, table: icebench.Table) -> None:
        table.append(rows(0))
        add_equality_deletes(table, [3, 50, 99], "parquet", count=4)
        assert_refused(table, "a delete file with 3 rows, where its manifest entry says 4")

    def test_a_vector_with_more_positions_is_refused(self, tmp_path: Path) -> None:
        # Iceberg Java refuses it, too.
        table = icebench.load_catalog(f"{tmp_path}/other").create_table(
            "db.v", SCHEMA, properties={**UNPACKED, "format-version": "3"}
        )
        table.append(rows(0))
        table.delete("id < 5", mode="merge-on-read")
        (listed,) = [m for m in manifests(table) if m.content == ManifestContent.DELETES]
        file = {"record_count": 4}
        rewrite(listed.manifest_path, lambda all_: [{**e, "data_file": {**e["data_file"], **file}} for e in all_])
        with_list(
            table, listed.manifest_path, added_rows_count=4, manifest_length=table.store.size(listed.manifest_path)
        )
        assert_refused(table, "has 5 positions|5")

    def test_rows_without_a_path_delete_nothing(self, table: icebench.Table) -> None:
        # Impala's test data have them.
        table.append(rows(0))
        table.delete("id < 5", mode="merge-on-read")
        nowhere = pa.table({"file_path": pa.nulls(2, pa.string()), "pos": [7, 8]})

        def change(deletes: pa.Table) -> pa.Table:
            fields = [f.with_nullable(True) for f in deletes.schema]
            parts = [deletes.slice(0, 3), nowhere, deletes.slice(3)]
            return pa.concat_tables([part.cast(pa.schema(fields)) for part in parts]).slice(0, 7)

        self.rewritten(table, change)
        assert_read_with_a_warning(table, range(5, 100), "2 rows without file_path", causes=3)

    @pytest.mark.filterwarnings("ignore::icebench.engine.errors.ContradictionWarning")
    def test_a_path_without_a_position_is_refused(self, table: icebench.Table) -> None:
        table.append(rows(0))
        table.delete("id < 5", mode="merge-on-read")

        def change(deletes: pa.Table) -> pa.Table:
            positions = pa.array([None, *deletes["pos"].to_pylist()[1:]], pa.int64())
            field = deletes.schema.field("pos").with_nullable(True)
            return deletes.set_column(deletes.schema.get_field_index("pos"), field, positions)

        self.rewritten(table, change)
        assert_refused(table, "a position-delete file with a path and no position")

    def test_one_with_fewer_rows_is_refused(self, table: icebench.Table) -> None:
        table.append(rows(0))
        table.delete("id < 5", mode="merge-on-read")
        self.rewritten(table, lambda deletes: deletes.slice(1))
        assert_refused(table, "a delete file with 4 rows, where its manifest entry says 5")


def manifests(table: icebench.Table) -> list[ManifestFile]:
    snapshot = table.current_snapshot
    assert snapshot is not None
    return list(ManifestSource(store=table.store, runner=LocalRunner(1)).manifests_of(snapshot))


def rewrite(path: str, change: Callable[[list[Any]], list[Any]]) -> None:
    """Write a local Avro file again, with other records."""
    reader = fastavro.reader(io.BytesIO(Path(path).read_bytes()))
    records, schema = list(reader), reader.writer_schema
    assert schema is not None
    metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    sink = io.BytesIO()
    fastavro.writer(sink, schema, change(records), codec="null", metadata=metadata, sync_interval=1)
    Path(path).write_bytes(sink.getvalue())


def with_list(table: icebench.Table, _path: str | None = None, /, **wrong: object) -> None:
    """Let the manifest list say something else of a manifest; the first by default."""
    snapshot = table.current_snapshot
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    chosen = _path or manifests(table)[0].manifest_path
    rewrite(snapshot.manifest_list, lambda all_: [m | wrong if m["manifest_path"] == chosen else m for m in all_])


class TestManifests:
    @pytest.fixture
    def filled(self, table: icebench.Table) -> icebench.Table:
        for first in range(3):
            table.add_files(
                [
                    DataFile(
                        file_path=self.stored(table, first * 200 + part * 100),
                        file_format="parquet",
                        record_count=100,
                        file_size_in_bytes=table.store.size(
                            f"{table.location}/data/{first * 200 + part * 100}.parquet"
                        ),
                    )
                    for part in range(2)
                ]
            )
        return table

    def stored(self, table: icebench.Table, first: int) -> str:
        location = f"{table.location}/data/{first}.parquet"
        table.store.write(location, data_file(table, "parquet", rows(first)))
        return location

    @pytest.mark.parametrize("size", [0, 1, 1 << 40])
    def test_one_of_another_length_with_all_its_entries_is_read(self, filled: icebench.Table, size: int) -> None:
        with_list(filled, manifest_length=size)
        assert_read_with_a_warning(filled, range(600), f"bytes, and its manifest list says {size}")

    def test_one_written_again_is_read(self, filled: icebench.Table) -> None:
        rewrite(manifests(filled)[0].manifest_path, lambda entries: entries)
        assert_read_with_a_warning(filled, range(600), "its manifest list says")

    @pytest.mark.parametrize(
        "wrong",
        [
            {"added_files_count": 1},
            {"added_files_count": 5, "added_rows_count": 7},
            {"added_files_count": 0, "existing_files_count": 2, "added_rows_count": 0, "existing_rows_count": 200},
            {"added_files_count": 1, "added_snapshot_id": 5},
            {"added_files_count": 1, "added_rows_count": 100, "added_snapshot_id": 5, "sequence_number": 1},
        ],
    )
    def test_one_of_the_right_length_is_read_whatever_the_list_counts(
        self, filled: icebench.Table, wrong: dict[str, Any]
    ) -> None:
        with_list(filled, **wrong)
        assert_read_with_a_warning(filled, range(600), "its manifest list says")

    @pytest.mark.parametrize(
        "wrong",
        [
            {"added_files_count": 1, "deleted_files_count": 1},
            {"added_rows_count": 199},
            {"manifest_length": 1, "added_files_count": 1},
            {"manifest_length": 1, "added_rows_count": 199},
            {"manifest_length": 1, "added_snapshot_id": 5},
            {"added_files_count": 3, "added_snapshot_id": 5},
            {
                "added_files_count": 0,
                "existing_files_count": 2,
                "added_rows_count": 0,
                "existing_rows_count": 200,
                "added_snapshot_id": 5,
            },
        ],
    )
    def test_one_whose_entries_may_be_damaged_or_anothers_is_refused(
        self, filled: icebench.Table, wrong: dict[str, Any]
    ) -> None:
        with_list(filled, **wrong)
        assert_refused(filled, "its manifest list says")

    def test_one_cut_off_after_an_entry_is_refused(self, filled: icebench.Table) -> None:
        path = manifests(filled)[0].manifest_path
        rewrite(path, lambda entries: entries)
        length = filled.store.size(path)
        with_list(filled, manifest_length=length)
        assert ids(opened(filled, "strict")) == list(range(600))
        data = filled.store.read(path)
        filled.store.write(path, data[: read_blocks(data, read_header(data))[0].end + 16], overwrite=True)
        assert_refused(filled, f"bytes, and its manifest list says {length}")

    def test_one_of_another_length_without_counts_is_refused(self, filled: icebench.Table) -> None:
        (path,) = (manifests(filled)[0].manifest_path,)
        listed = replace(manifests(filled)[0], manifest_length=1, deleted_files_count=None)
        with pytest.raises(CorruptTable, match="its manifest list says 1"):
            ManifestSource(store=filled.store, runner=LocalRunner(1)).columns(listed, frozenset())
        assert path == listed.manifest_path

    def test_another_manifest_in_its_place_is_refused(self, filled: icebench.Table) -> None:
        first, second, _ = manifests(filled)
        filled.store.write(first.manifest_path, filled.store.read(second.manifest_path), overwrite=True)
        with_list(filled, manifest_length=1)
        assert_refused(filled, "its manifest list says 1")

    @pytest.mark.parametrize("on_disk", [False, True])
    def test_a_cache_keeps_what_is_wrong(self, filled: icebench.Table, tmp_path: Path, on_disk: bool) -> None:
        with_list(filled, manifest_length=1)

        def cache() -> icebench.ManifestCache:
            return icebench.ManifestCache(directory=str(tmp_path / "cache") if on_disk else None)

        shared = cache()
        with pytest.warns(ContradictionWarning):
            assert ids(opened(filled, cache=shared)) == list(range(600))
        for each in (shared, cache() if on_disk else shared):
            with pytest.raises(CorruptTable, match="its manifest list says 1"):
                ids(opened(filled, "strict", each))

    def test_a_table_that_is_changed_reports_it_too(self, filled: icebench.Table) -> None:
        with_list(filled, manifest_length=1)
        with pytest.warns(ContradictionWarning, match=r"\(table db\.t; "):
            filled.delete("id = 0 or id = 599", mode="copy-on-write")
        assert ids(opened(filled, "strict")) == list(range(1, 599))

    def test_metadata_tables_report_it(self, filled: icebench.Table) -> None:
        with_list(filled, manifest_length=1)
        with pytest.warns(ContradictionWarning):
            assert opened(filled).inspect.files().num_rows == 6
        with pytest.raises(CorruptTable, match="its manifest list says 1"):
            opened(filled, "strict").inspect.files()

    def test_executors_report_to_the_planning_process(self, filled: icebench.Table) -> None:
        with_list(filled, manifest_length=1)
        reported: list[Contradiction] = []
        scan = replace(table_scan(filled.metadata, _Listening(filled.store, reported)), executors=OtherProcesses())
        assert scan.plan().files.num_rows == 6
        assert [each.location for each in reported] == [manifests(filled)[0].manifest_path]


class _Listening(VerifyingStore):
    def __init__(self, inner: Any, reported: list[Contradiction]) -> None:
        super().__init__(inner, "t")
        self._heard = reported

    def report(self, contradiction: Contradiction) -> None:
        self._heard.append(contradiction)


def test_a_third_way_is_refused(table: icebench.Table) -> None:
    with pytest.raises(Invalid, match="verify='lax' is neither 'warn' nor 'strict'"):
        icebench.load_table(table.metadata_location, verify="lax")  # type: ignore[arg-type]


def test_each_cause_is_reported_once_a_table() -> None:
    store = VerifyingStore(MemoryStore(), "db.t")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for cause, name in (("file size", "a"), ("file size", "b"), ("manifest length", "m")):
            store.report(Contradiction(cause, name, "is odd"))
    assert [str(each.message).partition(":")[0] for each in caught] == ["a", "m"]
