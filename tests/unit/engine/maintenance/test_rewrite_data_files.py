"""`table.maintenance.rewrite_data_files`; random tables are in `tests/property/test_table_machine.py`."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

import icebench
from icebench.engine.maintenance import executor_groups, maintenance
from icebench.engine.maintenance import rewrite_data_files as operation
from icebench.engine.maintenance.executor_groups import ExecutorGroups
from icebench.engine.maintenance.file_groups import FileGroup
from icebench.engine.maintenance.rewrite_group import GroupRewrite, RewrittenGroup
from icebench.engine.write.partitioned import FanoutWriter
from icebench.errors import CommitStateUnknown, Invalid, StorageFailed, ValidationFailed

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("p", pa.string()), pa.field("x", pa.int32())])


def rows(start: int, count: int = 10) -> pa.Table:
    chance = random.Random(start)
    ids = range(start, start + count)
    return pa.table({"id": ids, "p": ["ab"[i % 2] for i in ids], "x": [chance.randrange(1000) for _ in ids]}, SCHEMA)


def filled(place: Path, version: int = 2, spec: tuple[str, ...] = (), **properties: str) -> icebench.Table:
    """Eight appends of ten rows."""
    table = icebench.load_catalog(str(place)).create_table(
        "db.t",
        SCHEMA,
        partition_spec=[(column, "identity") for column in spec],
        properties={"format-version": str(version), **properties},
    )
    for number in range(8):
        table.append(rows(10 * number))
    return table


def stored(table: icebench.Table) -> set[str]:
    return {info.location for info in table.store.list(f"{table.location}/data")}


def contents(table: icebench.Table) -> list[dict[str, Any]]:
    lineage = ["_row_id", "_last_updated_sequence_number"] if table.metadata.format_version == 3 else []
    found: list[dict[str, Any]] = table.scan(columns=["id", "p", "x", *lineage]).to_arrow().sort_by("id").to_pylist()
    return found


@pytest.mark.parametrize("version", [1, 2, 3])
def test_small_files_become_one_a_partition(tmp_path: Path, version: int) -> None:
    table = filled(tmp_path, version, ("p",))
    before = contents(table)
    old = table.inspect.files().to_pylist()
    reported: list[operation.Progress] = []
    done = table.maintenance.rewrite_data_files(snapshot_properties={"job": "7"}, progress=reported.append)
    assert (done.groups, done.rewritten_data_files, done.added_data_files, done.failed) == (2, 16, 2, ())
    assert done.rewritten_bytes == sum(file["file_size_in_bytes"] for file in old)
    assert done.added_bytes == sum(file["file_size_in_bytes"] for file in table.inspect.files().to_pylist())
    assert [(p.groups, p.groups_total, p.size_bytes_total) for p in reported] == [
        (1, 2, done.rewritten_bytes),
        (2, 2, done.rewritten_bytes),
    ]
    assert reported[-1].size_bytes == done.rewritten_bytes
    (snapshot,) = done.snapshots
    assert snapshot == table.current_snapshot
    assert (snapshot.operation, snapshot.summary["job"], snapshot.summary["total-records"]) == ("replace", "7", "80")
    assert contents(table) == before
    assert table.maintenance.rewrite_data_files() == operation.RewrittenDataFiles()


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_are_applied(tmp_path: Path, version: int) -> None:
    table = filled(tmp_path, version)
    table.delete("id in (3, 13, 23)", "merge-on-read")
    stream = table.keyed_stream(["id"])
    stream.delete(pa.table({"id": [44, 45]}))
    stream.commit()
    before = contents(table)
    assert len(before) == 75
    done = table.maintenance.rewrite_data_files(remove_dangling_deletes=True)
    assert (done.removed_delete_files, done.removed_dangling_deletes, len(done.snapshots)) == (3, 1, 2)
    assert contents(table) == before
    (file,) = table.inspect.files().to_pylist()
    assert (file["content"], file["record_count"]) == (0, 75)


def test_later_equality_deletes_apply_and_earlier_ones_do_not(tmp_path: Path) -> None:
    table = filled(tmp_path)
    other = icebench.load_catalog(str(tmp_path)).load_table("db.t")

    def meanwhile() -> None:
        stream = other.keyed_stream(["id"])
        stream.update(pa.table({"id": [5], "p": ["new"], "x": [0]}, SCHEMA))
        stream.commit()

    with before_the_commit(meanwhile):
        table.maintenance.rewrite_data_files()
    found = {row["id"]: row["p"] for row in contents(table)}
    assert (len(found), found[5]) == (80, "new")
    with before_the_commit(meanwhile), pytest.raises(ValidationFailed, match="may delete rows"):
        table.maintenance.rewrite_data_files(rewrite_all=True, use_starting_sequence_number=False)


@pytest.mark.parametrize("version", [2, 3])
def test_rows_that_move_to_another_spec_do_not_escape_equality_deletes(tmp_path: Path, version: int) -> None:
    """Equality deletes of a partition apply to files of its spec alone."""
    table = filled(tmp_path, version, ("p",))
    stream = icebench.load_catalog(str(tmp_path)).load_table("db.t").keyed_stream(["id", "p"])
    stream.delete(pa.table({"id": [5], "p": ["b"]}))
    table.update_spec(lambda spec: spec.drop_field("p").add_field("id", "bucket[2]"))
    before = [i for i in range(80) if i != 5]
    with before_the_commit(stream.commit), pytest.raises(ValidationFailed, match="may delete rows"):
        table.maintenance.rewrite_data_files(rewrite_all=True)
    assert [row["id"] for row in contents(table.refresh())] == before
    table.maintenance.rewrite_data_files(rewrite_all=True)
    assert [row["id"] for row in contents(table)] == before
    # Deletes of the new spec up to here did not apply to these rows, and do not now.
    last = table.metadata.last_sequence_number
    entries = table.inspect.entries().to_pylist()
    assert {e["sequence_number"] for e in entries if e["status"] == 1 and e["data_file"]["content"] == 0} == {last}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_rows_deleted_meanwhile_do_not_come_back(tmp_path: Path, version: int, mode: Any) -> None:
    table = filled(tmp_path, version)
    other = icebench.load_catalog(str(tmp_path)).load_table("db.t")
    before = stored(table)
    with before_the_commit(lambda: other.delete("id = 5", mode)), pytest.raises(ValidationFailed):
        table.maintenance.rewrite_data_files()
    assert [row["id"] for row in contents(table.refresh())] == [i for i in range(80) if i != 5]
    assert not {path for path in stored(table) - before if "00000-0-" in path and "deletes" not in path} - {
        file["file_path"] for file in table.inspect.all_files().to_pylist()
    }


def test_an_upgrade_meanwhile_fails_it(tmp_path: Path) -> None:
    table = filled(tmp_path)
    other = icebench.load_catalog(str(tmp_path)).load_table("db.t")

    def meanwhile() -> None:
        other.upgrade_format(3)
        other.append(rows(80))

    with before_the_commit(meanwhile), pytest.raises(ValidationFailed, match="was upgraded from format version 2"):
        table.maintenance.rewrite_data_files()
    table.refresh()
    before = contents(table)
    assert None not in [row["_row_id"] for row in before]
    table.maintenance.rewrite_data_files()
    assert contents(table) == before


def test_rows_deleted_before_another_group_was_committed_do_not_come_back(tmp_path: Path) -> None:
    table = filled(tmp_path, spec=("p",))
    other = icebench.load_catalog(str(tmp_path)).load_table("db.t")
    with before_the_commit(lambda: other.delete("id = 5", "merge-on-read")):
        done = table.maintenance.rewrite_data_files(partial_progress=True)
    assert (done.groups, len(done.failed)) == (1, 1)
    assert isinstance(done.failed[0].error, ValidationFailed)
    assert [row["id"] for row in contents(table.refresh())] == [i for i in range(80) if i != 5]


@pytest.mark.parametrize("starting", [True, False])
def test_the_number_of_new_files(tmp_path: Path, starting: bool) -> None:
    table = filled(tmp_path)
    table.maintenance.rewrite_data_files(use_starting_sequence_number=starting)
    live = [e["sequence_number"] for e in table.inspect.entries().to_pylist() if e["status"] != 2]
    assert live == [8 if starting else 9]


def test_deletes_of_rows_that_a_filter_leaves_out_are_applied(tmp_path: Path) -> None:
    table = filled(tmp_path)
    stream = table.keyed_stream(["id"])
    stream.delete(pa.table({"id": [15]}))
    stream.commit()
    done = table.maintenance.rewrite_data_files(where="id < 12", min_input_files=2)
    assert done.rewritten_data_files == 2
    assert [row["id"] for row in contents(table)] == [i for i in range(80) if i != 15]


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_in_use_are_not_taken_for_dangling(tmp_path: Path, version: int) -> None:
    table = filled(tmp_path, version)
    # One Puffin file has the vectors of all in version 3; one of its data files is written again, the others stay.
    table.delete("id in (3, 13, 23)", "merge-on-read")
    before = contents(table)
    done = table.maintenance.rewrite_data_files(where="id < 10", rewrite_all=True, remove_dangling_deletes=True)
    assert (done.rewritten_data_files, done.removed_delete_files, done.removed_dangling_deletes) == (1, 1, 0)
    assert contents(table) == before
    assert table.inspect.delete_files().num_rows == 2


def test_that_dangling_deletes_stay_does_not_undo_a_rewrite(tmp_path: Path) -> None:
    table = filled(tmp_path)
    with patch.object(operation, "remove_dangling_deletes", side_effect=StorageFailed("no room")):
        done = table.maintenance.rewrite_data_files(remove_dangling_deletes=True)
        assert (len(done.snapshots), str(done.dangling_error)) == (1, "no room")
        with pytest.raises(StorageFailed, match="no room"):
            table.maintenance.rewrite_data_files(remove_dangling_deletes=True)


def test_rows_added_meanwhile_stay(tmp_path: Path) -> None:
    table = filled(tmp_path)
    other = icebench.load_catalog(str(tmp_path)).load_table("db.t")
    with before_the_commit(lambda: other.append(rows(80))):
        table.maintenance.rewrite_data_files()
    assert [row["id"] for row in contents(table)] == list(range(90))


class before_the_commit:  # noqa: N801 - reads as a clause
    """Something that another writer does after the rows were read."""

    def __init__(self, action: Callable[[], object]) -> None:
        real = operation._Run._commit

        def commit(run: operation._Run, batch: list[RewrittenGroup]) -> None:
            action()
            real(run, batch)

        self._patch = patch.object(operation._Run, "_commit", commit)

    def __enter__(self) -> None:
        self._patch.start()

    def __exit__(self, *_: object) -> None:
        self._patch.stop()


class TestProgressInParts:
    def test_a_commit_for_so_many_groups(self, tmp_path: Path) -> None:
        table = filled(tmp_path, 3, ("p", "x"))
        before = contents(table)
        groups = len({row["x"] for row in before})
        done = table.maintenance.rewrite_data_files(
            rewrite_all=True, partial_progress=True, partial_progress_max_commits=4, max_concurrent_groups=3
        )
        assert (len(done.snapshots), done.groups >= groups) == (4, True)
        assert contents(table) == before

    def test_a_group_that_fails_leaves_the_others(self, tmp_path: Path) -> None:
        table = filled(tmp_path, 2, ("p",))
        before = contents(table)
        with failing_group(0):
            done = table.maintenance.rewrite_data_files(partial_progress=True)
        (failed,) = done.failed
        assert (done.groups, len(failed.file_paths), str(failed.error)) == (1, 8, "no room")
        assert contents(table) == before
        assert len(table.inspect.files()) == 9

    def test_a_failed_job_removes_its_own_files_alone(self, tmp_path: Path) -> None:
        """Those of the jobs before are committed."""
        table = filled(tmp_path, 2, ("p",), **{"write.object-storage.enabled": "true"})
        before = contents(table)
        jobs = 0

        def run_job(task: Callable[[FileGroup, int], bytes], groups: Sequence[FileGroup]) -> list[pa.Buffer]:
            nonlocal jobs
            jobs += 1
            answers = [pa.py_buffer(task(group, 0)) for group in groups]
            if jobs == 2:
                raise KeyboardInterrupt
            return answers

        executors = ExecutorGroups(run_job, 1)
        with (
            patch.object(executor_groups, "_WAVES", 1),
            patch.object(maintenance, "_executors", lambda _: executors),
            patch.object(maintenance, "_fit_executors"),
            pytest.raises(KeyboardInterrupt),
        ):
            table.maintenance.rewrite_data_files(partial_progress=True, spark=object())
        assert jobs == 2
        assert contents(table.refresh()) == before
        written = set(table.inspect.all_files()["file_path"].to_pylist())
        assert written == stored(table)

    @pytest.mark.parametrize("concurrent", [1, 2])
    def test_without_it_nothing_is_changed(self, tmp_path: Path, concurrent: int) -> None:
        table = filled(tmp_path, 2, ("p",))
        before, files = table.metadata_location, stored(table)
        with failing_group(1), pytest.raises(StorageFailed, match="no room"):
            table.maintenance.rewrite_data_files(max_concurrent_groups=concurrent)
        assert (table.refresh().metadata_location, stored(table)) == (before, files)

    def test_a_conflict_is_of_its_groups_alone(self, tmp_path: Path) -> None:
        table = filled(tmp_path, 2, ("p",))
        other = icebench.load_catalog(str(tmp_path)).load_table("db.t")
        commits: list[int] = []

        def meanwhile() -> None:
            if not commits:
                other.delete("id = 0", "merge-on-read")
            commits.append(1)

        with before_the_commit(meanwhile):
            done = table.maintenance.rewrite_data_files(partial_progress=True, max_concurrent_groups=1)
        assert (done.groups, len(done.failed), len(contents(table))) == (1, 1, 79)

    def test_a_commit_of_unknown_outcome_is_no_failed_group(self, tmp_path: Path) -> None:
        table = filled(tmp_path, 2, ("p",))
        real = operation._Run._commit

        def commit(run: operation._Run, batch: list[RewrittenGroup]) -> None:
            with patch.object(type(run._table), "commit", side_effect=CommitStateUnknown("reset")):
                real(run, batch)

        with patch.object(operation._Run, "_commit", commit), pytest.raises(CommitStateUnknown, match="reset"):
            table.maintenance.rewrite_data_files(partial_progress=True)

    def test_all_groups_have_the_number_of_the_plan(self, tmp_path: Path) -> None:
        table = filled(tmp_path, 2, ("p",))
        stream = icebench.load_catalog(str(tmp_path)).load_table("db.t").keyed_stream(["id", "p"])
        commits: list[int] = []

        def meanwhile() -> None:
            if not commits:
                stream.delete(pa.table({"id": [4, 5], "p": ["a", "b"]}))
                stream.commit()
            commits.append(1)

        # The delete is newer than the plan, and older than the commit before that of the second group.
        with before_the_commit(meanwhile):
            done = table.maintenance.rewrite_data_files(partial_progress=True, max_concurrent_groups=1)
        assert (done.groups, len(done.snapshots)) == (2, 2)
        assert [row["id"] for row in contents(table)] == [n for n in range(80) if n not in (4, 5)]


class failing_group:  # noqa: N801 - reads as a clause
    """Storage that has no room for one of the groups."""

    def __init__(self, number: int) -> None:
        real = GroupRewrite.__call__

        def call(work: GroupRewrite, group: Any) -> RewrittenGroup:
            if group.number == number:
                return RewrittenGroup(group=group, error=StorageFailed("no room"))
            return real(work, group)

        self._patch = patch.object(GroupRewrite, "__call__", call)

    def __enter__(self) -> None:
        self._patch.start()

    def __exit__(self, *_: object) -> None:
        self._patch.stop()


SMALL = {"write.parquet.row-group-size-bytes": "2000"}


class TestOrder:
    @pytest.mark.parametrize("memory", [1 << 30, 5_000])
    @pytest.mark.parametrize(("how", "by"), [(how, ["x", "id"]) for how in ("sort", "zorder", "hilbert")])
    def test_fewer_files_are_planned(self, tmp_path: Path, how: Any, by: list[str], memory: int) -> None:
        table = icebench.load_catalog(str(tmp_path)).create_table("db.t", SCHEMA, properties=SMALL)
        chance = random.Random(0)
        for _ in range(10):
            ids = [chance.randrange(10**6) for _ in range(1000)]
            table.append(pa.table({"id": ids, "p": ["a"] * 1000, "x": [chance.randrange(1000) for _ in ids]}, SCHEMA))
        filters = ["x < 100", "id < 100000", "x between 400 and 500 and id < 300000"]
        before = table.scan().to_arrow().sort_by([("id", "ascending"), ("x", "ascending")])
        sizes = {"target_file_size_bytes": 5_000, "rewrite_all": True, "sort_memory_bytes": memory}
        table.maintenance.rewrite_data_files(**sizes)  # type: ignore[arg-type]
        unordered = [table.scan(each).plan().files.num_rows for each in filters]
        chosen = {"sort_order" if how == "sort" else f"{how}_by": by}
        table.maintenance.rewrite_data_files(how, **chosen, **sizes)  # type: ignore[arg-type]
        ordered = [table.scan(each).plan().files.num_rows for each in filters]
        assert table.scan().to_arrow().sort_by([("id", "ascending"), ("x", "ascending")]) == before
        assert ordered[0] < unordered[0] * 0.6
        if how != "sort":
            assert ordered[1] < unordered[1] * 0.6
            assert ordered[2] < unordered[2] * 0.6
        else:
            found = table.scan().to_arrow()
            assert found == found.sort_by([("x", "ascending"), ("id", "ascending")])
        assert not any("_sorting" in path for path in stored(table))

    def test_the_tables_own_order_is_recorded(self, tmp_path: Path) -> None:
        table = filled(tmp_path)
        with pytest.raises(Invalid, match="no sort order"):
            table.maintenance.rewrite_data_files("sort")
        field = icebench.SortField(source_ids=(3,), transform=icebench.parse_transform("identity"), direction="desc")
        table.replace_sort_order(icebench.SortOrder((field,), 1))
        table.maintenance.rewrite_data_files("sort")
        plan = table.scan().plan()
        assert plan.files["sort_order_id"].to_pylist() == [table.sort_order.order_id]
        found = table.scan().to_arrow()["x"].to_pylist()
        assert found == sorted(found, reverse=True)

    def test_another_order_is_not_recorded_as_the_tables(self, tmp_path: Path) -> None:
        table = filled(tmp_path)
        field = icebench.SortField(source_ids=(3,), transform=icebench.parse_transform("identity"), direction="desc")
        table.replace_sort_order(icebench.SortOrder((field,), 1))
        table.maintenance.rewrite_data_files("sort", sort_order=["id"])
        assert table.scan().plan().files["sort_order_id"].to_pylist() != [table.sort_order.order_id]
        assert table.scan().to_arrow()["id"].to_pylist() == list(range(80))

    def test_columns_that_there_are_not(self, tmp_path: Path) -> None:
        table = filled(tmp_path)
        with pytest.raises(Invalid, match="no column 'nope'"):
            table.maintenance.rewrite_data_files("zorder", zorder_by=["nope"])
        with pytest.raises(Invalid, match="twice"):
            table.maintenance.rewrite_data_files("zorder", zorder_by=["x", "x"])
        with pytest.raises(Invalid, match="hilbert_by names a column twice"):
            table.maintenance.rewrite_data_files("hilbert", hilbert_by=["x", "x"])


def test_only_files_that_may_match(tmp_path: Path) -> None:
    table = filled(tmp_path)
    done = table.maintenance.rewrite_data_files(where="id < 25", min_input_files=3)
    assert (done.rewritten_data_files, len(table.inspect.files())) == (3, 6)
    assert [row["id"] for row in contents(table)] == list(range(80))


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_rows_that_the_filter_leaves_out_are_applied_too(tmp_path: Path, version: int) -> None:
    table = filled(tmp_path, version)
    table.delete("id = 28", "merge-on-read")
    stream = table.keyed_stream(["id"])
    stream.delete(pa.table({"id": [29, 79]}))
    stream.commit()
    before = contents(table)
    # The file that the filter chooses by its first rows has deleted ones further on.
    table.maintenance.rewrite_data_files(where="id < 22", min_input_files=1, rewrite_all=True)
    assert contents(table) == before
    assert [row["id"] for row in before] == [n for n in range(80) if n not in (28, 29, 79)]


def test_older_specs_and_schemas_become_the_current(tmp_path: Path) -> None:
    table = filled(tmp_path, 3)
    table.delete("id = 7", "merge-on-read")
    table.update_spec(lambda s: s.add_field("p", icebench.parse_transform("identity")))
    table.update_schema(lambda s: s.drop_column("x"))
    table.update_schema(lambda s: s.add_column("y", icebench.LONG, default=9))
    lineage = ["id", "p", "y", "_row_id", "_last_updated_sequence_number"]
    before = table.scan(columns=lineage).to_arrow().sort_by("id")
    done = table.maintenance.rewrite_data_files(output_spec_id=0)
    assert (done.rewritten_data_files, done.added_data_files) == (8, 1)
    done = table.maintenance.rewrite_data_files(rewrite_all=True)
    assert (done.rewritten_data_files, done.added_data_files) == (1, 2)
    assert table.scan(columns=lineage).to_arrow().sort_by("id") == before
    assert {file["spec_id"] for file in table.inspect.files().to_pylist()} == {table.spec.spec_id}
    with pytest.raises(Invalid, match="no partition spec 9"):
        table.maintenance.rewrite_data_files(output_spec_id=9)


def test_a_branch(tmp_path: Path) -> None:
    table = filled(tmp_path)
    table.create_branch("audit")
    table.delete("id < 40", "copy-on-write", branch="audit")
    done = table.maintenance.rewrite_data_files(branch="audit", min_input_files=2)
    assert done.rewritten_data_files == 4
    assert table.scan(ref="audit").count() == 40
    assert (len(contents(table)), len(table.inspect.files())) == (80, 8)


def test_large_files_are_taken_apart(tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", SCHEMA)
    table.append(rows(0, 50_000))
    (size,) = table.scan().plan().files["file_size_in_bytes"].to_pylist()
    done = table.maintenance.rewrite_data_files(target_file_size_bytes=size // 4)
    assert done.added_data_files in (4, 5)
    sizes = table.scan().plan().files["file_size_in_bytes"].to_pylist()
    assert max(sizes) < size * 0.45
    assert table.scan().count() == 50_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": "spiral"}, "none of binpack, sort, zorder, hilbert"),
        ({"sort_order": ["id"]}, "takes no sort order"),
        ({"strategy": "zorder"}, "zorder_by"),
        ({"zorder_by": ["id"]}, "zorder_by"),
        ({"strategy": "hilbert"}, "hilbert_by"),
        ({"strategy": "zorder", "zorder_by": ["id"], "hilbert_by": ["id"]}, "hilbert_by"),
        ({"max_concurrent_groups": 0}, "max_concurrent_groups must be positive"),
        ({"compression_factor": 2}, "no option 'compression_factor'; there are: delete_file_threshold"),
        ({"target_file_size_bytes": -1}, "must rise"),
    ],
)
def test_what_is_no_option(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", SCHEMA)
    with pytest.raises(Invalid, match=message):
        table.maintenance.rewrite_data_files(**arguments)


def test_nothing_is_left_of_a_sort_that_fails(tmp_path: Path) -> None:
    table = filled(tmp_path)
    files = stored(table)
    real = FanoutWriter.finish

    def finish(writer: Any) -> None:
        if writer._spec.is_unpartitioned:
            raise StorageFailed("no room")
        real(writer)

    with patch.object(FanoutWriter, "finish", finish), pytest.raises(StorageFailed):
        table.maintenance.rewrite_data_files("sort", sort_order=["x"], sort_memory_bytes=1000)
    assert stored(table) == files


EVERY_TYPE: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "id": (pa.int64(), lambda r: r.randrange(-(10**9), 10**9)),
    "flag": (pa.bool_(), lambda r: r.random() < 0.5),
    "small": (pa.int32(), lambda r: r.randrange(-9, 9)),
    "float": (pa.float32(), lambda r: r.choice([float("nan"), -0.0, 0.0, 1.5, float("-inf")])),
    "double": (pa.float64(), lambda r: r.gauss(0, 1e9)),
    "d9": (pa.decimal128(9, 2), lambda r: Decimal(r.randrange(-(10**8), 10**8)).scaleb(-2)),
    "d38": (pa.decimal128(38, 10), lambda r: Decimal(r.randrange(-(10**37), 10**37)).scaleb(-10)),
    "day": (pa.date32(), lambda r: dt.date(2000, 1, 1) + dt.timedelta(r.randrange(-20_000, 20_000))),
    "time": (pa.time64("us"), lambda r: dt.time(r.randrange(24), r.randrange(60))),
    "at": (pa.timestamp("us"), lambda r: r.randrange(10**15)),
    "ns": (pa.timestamp("ns", "UTC"), lambda r: r.randrange(10**18)),
    "text": (pa.string(), lambda r: r.choice(["", "common-beginning-", "\U0001f9ca"]) + str(r.randrange(9))),
    "bytes": (pa.binary(), lambda r: r.randbytes(r.randrange(4))),
    "fixed": (pa.binary(5), lambda r: r.randbytes(5)),
    "uuid": (pa.uuid(), lambda r: r.randbytes(16)),
}
NESTED: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "s": (pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.list_(pa.string()))]), lambda r: {"a": 1, "b": ["x"]}),
    "m": (pa.map_(pa.string(), pa.int64()), lambda r: [("k", r.randrange(9))]),
    "l": (pa.list_(pa.struct([pa.field("x", pa.int64())])), lambda r: [{"x": 1}, None]),
}


SPILLS = 9_000


@pytest.mark.parametrize("memory", [SPILLS, 1 << 30])
def test_rows_of_every_type_are_sorted_by_every_type(tmp_path: Path, memory: int) -> None:
    columns = {**EVERY_TYPE, **NESTED}
    schema = pa.schema([pa.field(name, type_) for name, (type_, _) in columns.items()])
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", schema, properties={"format-version": "3"})
    chance = random.Random(3)
    for _ in range(2):
        arrays = [
            pa.array([None if chance.random() < 0.1 else make(chance) for _ in range(20)], type_)
            for type_, make in columns.values()
        ]
        table.append(pa.Table.from_arrays(arrays, schema=schema))
    lineage = [*columns, "_row_id", "_last_updated_sequence_number"]

    def bag() -> list[str]:
        return sorted(map(str, table.scan(columns=lineage).to_arrow().to_pylist()))

    before = bag()
    for name in [*EVERY_TYPE, "s.a"] if memory > SPILLS else ["d38", "text", "uuid"]:
        table.maintenance.rewrite_data_files("sort", sort_order=[name], rewrite_all=True, sort_memory_bytes=memory)
        assert bag() == before, name
        if name not in {"float", "s.a", "uuid"}:
            column = table.scan(columns=[name]).to_arrow()
            count = column[name].null_count
            assert column[:count][name].null_count == count
            assert column[count:] == column[count:].sort_by(name), name
    for names in (list(EVERY_TYPE), ["uuid", "s.a"]):
        table.maintenance.rewrite_data_files("zorder", zorder_by=names, rewrite_all=True, sort_memory_bytes=memory)
        assert bag() == before, names
    with pytest.raises(Invalid):
        table.maintenance.rewrite_data_files("zorder", zorder_by=["s"])
