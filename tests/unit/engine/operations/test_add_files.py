"""Adding files by description: what a plan then finds, and what is refused."""

import math
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench.engine.commit import new_files
from icebench.engine.operations.staged_table import StagedTarget
from icebench.engine.operations.transaction import TableTransaction
from icebench.engine.plan import delete_targets as targets
from icebench.engine.runtime.local import available_threads
from icebench.engine.storage.local import LocalStore
from icebench.errors import AlreadyExists, Invalid, Unsupported, ValidationFailed


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    catalog = icebench.load_catalog(str(tmp_path))
    return catalog.create_table("db.t", pa.schema([pa.field("id", pa.int64())]))


def described(path: str, **more: object) -> icebench.DataFile:
    return icebench.DataFile(file_path=path, file_format="parquet", record_count=10, file_size_in_bytes=100, **more)  # type: ignore[arg-type]


def described_table(**columns: Any) -> pa.Table:
    one = {"file_path": ["a"], "file_format": ["parquet"], "record_count": [1], "file_size_in_bytes": [9]}
    return pa.table({**one, **columns})


def vectorless_delete(path: str, referenced: str | None) -> icebench.DataFile:
    return described(path, content=icebench.FileContent.POSITION_DELETES, referenced_data_file=referenced)


def test_files_that_do_not_exist_are_planned_with_their_deletes(table: icebench.Table) -> None:
    snapshot = table.add_files([described("/nowhere/a.parquet"), described("/nowhere/b.parquet")])
    assert snapshot.operation == "append"
    table.add_files([vectorless_delete("/nowhere/d.parquet", "/nowhere/b.parquet")])
    files = table.scan().plan().files.to_pylist()
    assert {f["file_path"]: [d["file_path"] for d in f["deletes"]] for f in files} == {
        "/nowhere/a.parquet": [],
        "/nowhere/b.parquet": ["/nowhere/d.parquet"],
    }


def test_version_3_takes_no_position_delete_files(table: icebench.Table) -> None:
    table.add_files([described("/nowhere/a.parquet")])
    table.add_files([vectorless_delete("/nowhere/before.parquet", "/nowhere/a.parquet")])
    table.upgrade_format(3)
    stored = {info.location for info in table.store.list(table.location)}
    with pytest.raises(Invalid, match=r"/nowhere/d.parquet: format version 3 takes no position-delete files"):
        table.add_files([vectorless_delete("/nowhere/d.parquet", "/nowhere/a.parquet")])
    assert {info.location for info in table.store.list(table.location)} == stored
    (file,) = table.scan().plan().files.to_pylist()
    assert [each["file_path"] for each in file["deletes"]] == ["/nowhere/before.parquet"]


def test_position_delete_files_are_refused_after_an_upgrade_meanwhile(tmp_path: Path, table: icebench.Table) -> None:
    table.add_files([described("/nowhere/a.parquet")])
    transaction = table.transaction()
    deletes = vectorless_delete("/nowhere/d.parquet", "/nowhere/a.parquet")
    transaction.add_files([described("/nowhere/b.parquet"), deletes])
    icebench.load_catalog(str(tmp_path)).load_table("db.t").upgrade_format(3)
    with pytest.raises(ValidationFailed, match="upgraded from format version 2 to 3"):
        transaction.commit()
    assert paths(table) == ["/nowhere/a.parquet"]


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_a_file_that_the_table_does_not_have_are_refused(table: icebench.Table, version: int) -> None:
    table.upgrade_format(version)
    table.add_files([described("/nowhere/a.parquet")])
    deletes = vectorless_delete("/nowhere/d", "/nowhere/b") if version == 2 else vector("/nowhere/d", "/nowhere/b")
    with pytest.raises(ValidationFailed, match="the table has no data file /nowhere/b"):
        table.add_files([deletes])
    table.add_files([described("/nowhere/b")])
    table.overwrite(table.scan().arrow_schema.empty_table())
    assert table.scan().count() == 0
    with pytest.raises(ValidationFailed, match="the table has no data file /nowhere/b"):
        table.add_files([deletes])
    table.add_files([described("file:///nowhere/b"), deletes])
    (file,) = table.scan().plan().files.to_pylist()
    assert [each["file_path"] for each in file["deletes"]] == ["/nowhere/d"]


@pytest.mark.parametrize(("values", "is_one"), [([math.nan] * 4, True), ([0.0, 0.0, -0.0, -0.0], False)])
def test_a_partition_of_floats_is_one_of_equal_bits(tmp_path: Path, values: list[float], is_one: bool) -> None:
    catalog = icebench.load_catalog(str(tmp_path))
    data = pa.table({"f": values})
    table = catalog.create_table("db.t", data.schema, partition_spec=[("f", "identity")])
    pq.write_table(data, tmp_path / "f.parquet", row_group_size=2)
    if is_one:
        table.add_files([f"{tmp_path}/f.parquet"])
        assert table.scan().count() == 4
    else:
        with pytest.raises(Invalid, match="several partitions"):
            table.add_files([f"{tmp_path}/f.parquet"])


def test_vectors_are_added_while_another_commit_gives_ids_to_the_rows(tmp_path: Path, table: icebench.Table) -> None:
    table.add_files([described("/nowhere/a.parquet")])
    table.upgrade_format(3)
    transaction = table.transaction()
    transaction.add_files([described("/nowhere/b.parquet"), vector("/nowhere/p", "/nowhere/a.parquet")])
    icebench.load_catalog(str(tmp_path)).load_table("db.t").add_files([described("/nowhere/c.parquet")])
    transaction.commit()
    assert paths(table) == [f"/nowhere/{name}.parquet" for name in "abc"]


def test_equality_deletes_concern_files_that_were_there_before(table: icebench.Table) -> None:
    table.add_files([described("/nowhere/a.parquet")])
    table.add_files([described("/nowhere/e.parquet", content=icebench.FileContent.EQUALITY_DELETES, equality_ids=(1,))])
    table.add_files([described("/nowhere/b.parquet")])
    files = table.scan().plan().files.to_pylist()
    assert {f["file_path"]: len(f["deletes"]) for f in files} == {"/nowhere/a.parquet": 1, "/nowhere/b.parquet": 0}


Form = Callable[[list[icebench.DataFile]], Any]


def as_table(files: list[icebench.DataFile]) -> pa.Table:
    columns = ("file_path", "file_format", "record_count", "file_size_in_bytes")
    return pa.table({name: [getattr(file, name) for file in files] for name in columns})


def as_stream(files: list[icebench.DataFile]) -> pa.RecordBatchReader:
    return as_table(files).to_reader(max_chunksize=1)


FORMS: list[Form] = [list, iter, as_table, as_stream]


def paths(table: icebench.Table) -> list[str]:
    return sorted(table.refresh().inspect.data_files()["file_path"].to_pylist())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("again", ["/nowhere/b", "file:/nowhere/b", "file:///nowhere/b"])
def test_a_file_that_is_there_already_is_refused(table: icebench.Table, form: Form, again: str) -> None:
    table.add_files(form([described("/nowhere/a"), described("/nowhere/b")]))
    before = table.metadata_location, {info.location for info in table.store.list(table.location)}
    with pytest.raises(AlreadyExists, match="/nowhere/b: the table lists this file already"):
        table.add_files(form([described("/nowhere/c"), described(again)]))
    assert (table.metadata_location, {info.location for info in table.store.list(table.location)}) == before
    table.add_files(form([described("s3://nowhere/b"), described("/nowhere/B")]))
    assert paths(table) == ["/nowhere/B", "/nowhere/a", "/nowhere/b", "s3://nowhere/b"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("again", ["/nowhere/a", "file:/nowhere/a"])
def test_a_file_that_is_given_twice_is_refused(table: icebench.Table, form: Form, again: str) -> None:
    with pytest.raises(Invalid, match=r"/nowhere/a: this file, or .*, is given twice"):
        table.add_files(form([described("/nowhere/a"), described("/nowhere/b"), described(again)]))
    assert table.refresh().current_snapshot is None


@pytest.mark.parametrize("form", FORMS)
def test_files_that_went_may_come_again(table: icebench.Table, form: Form) -> None:
    table.add_files(form([described("/nowhere/a"), described("/nowhere/b")]))
    table.delete("true", "copy-on-write")
    table.add_files(form([described("/nowhere/a")]))
    table.create_branch("other")
    table.add_files(form([described("/nowhere/b")]), branch="other")
    table.add_files(form([described("/nowhere/b")]))
    assert paths(table) == ["/nowhere/a", "/nowhere/b"]


@pytest.mark.parametrize("form", FORMS)
def test_unchecked_files_come_as_often_as_they_are_given(table: icebench.Table, form: Form) -> None:
    for _ in range(2):
        table.add_files(form([described("/nowhere/a")]), check_duplicate_files=False)
    assert paths(table) == ["/nowhere/a", "/nowhere/a"]


def test_a_file_that_the_same_transaction_added_is_refused(table: icebench.Table) -> None:
    with table.transaction() as transaction:
        transaction.add_files([described("/nowhere/a")])
        with pytest.raises(AlreadyExists, match="/nowhere/a"):
            transaction.add_files([described("/nowhere/a")])
        transaction.add_files([described("/nowhere/b")])
    assert paths(table) == ["/nowhere/a", "/nowhere/b"]


def test_a_file_that_another_commit_adds_meanwhile_is_refused(tmp_path: Path, table: icebench.Table) -> None:
    other = icebench.load_catalog(str(tmp_path)).load_table("db.t")
    table.add_files([described("/nowhere/old")])
    transaction = table.transaction()
    transaction.add_files([described("/nowhere/a"), described("/nowhere/b")])
    other.add_files([described("/nowhere/c")])
    other.add_files([described("file:///nowhere/b")])
    with pytest.raises(AlreadyExists, match="/nowhere/b"):
        transaction.commit()
    assert paths(table) == ["/nowhere/c", "/nowhere/old", "file:///nowhere/b"]


def test_manifests_are_looked_at_once_and_not_at_all_by_appends(tmp_path: Path, table: icebench.Table) -> None:
    other = icebench.load_catalog(str(tmp_path)).load_table("db.t")
    for name in "abc":
        table.add_files([described(f"/nowhere/{name}")])
    read: list[str] = []

    class Reads(LocalStore):
        def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
            read.append(location.rpartition("/")[2])
            return super().read(location, offset, length)

    def manifests() -> int:
        count = sum(1 for name in read if not name.startswith("snap-") and name.endswith(".avro"))
        read.clear()
        return count

    watched = replace(table._target(None), store=Reads())
    transaction = TableTransaction(StagedTarget.of(watched))
    transaction.add_files([described("/nowhere/d")])
    assert manifests() == 3
    other.add_files([described("/nowhere/e")])
    transaction.commit()
    assert manifests() == 1
    TableTransaction(StagedTarget.of(watched)).append(pa.table({"id": [1]}))
    assert manifests() == 0
    TableTransaction(StagedTarget.of(watched)).add_files([described("/nowhere/f")], check_duplicate_files=False)
    assert manifests() == 0


@pytest.mark.parametrize("same", ["hash", "nothing"])
def test_files_of_equal_hashes_are_distinguished(
    table: icebench.Table, monkeypatch: pytest.MonkeyPatch, same: str
) -> None:
    def hashes(offsets: Any, data: Any) -> Any:
        del data
        return np.full(len(offsets) - 1, 7, np.uint64)

    if same == "hash":
        monkeypatch.setattr(new_files, "hash_locations", hashes)
        monkeypatch.setattr(targets, "hash_locations", hashes)
    table.add_files([described("/nowhere/a"), described("/nowhere/b")])
    table.add_files([described("/nowhere/c"), described("/nowhere/d")])
    assert paths(table) == [f"/nowhere/{name}" for name in "abcd"]
    with pytest.raises(AlreadyExists, match="/nowhere/b"):
        table.add_files([described("/nowhere/e"), described("/nowhere/b")])


def vector(puffin: str, referenced: str, offset: int = 4) -> icebench.DataFile:
    return icebench.DataFile(
        content=icebench.FileContent.POSITION_DELETES,
        file_path=puffin,
        file_format="puffin",
        record_count=1,
        file_size_in_bytes=100,
        referenced_data_file=referenced,
        content_offset=offset,
        content_size_in_bytes=10,
    )


def test_delete_files_and_vectors_are_there_once(tmp_path: Path) -> None:
    catalog = icebench.load_catalog(str(tmp_path))
    rows = pa.schema([pa.field("id", pa.int64())])
    made = catalog.create_table("db.v2", rows, properties={"format-version": "2"})
    made.add_files([described("/nowhere/a"), described("/nowhere/b")])
    made.add_files([vectorless_delete("/nowhere/d", "/nowhere/a"), vectorless_delete("/nowhere/e", "/nowhere/a")])
    with pytest.raises(AlreadyExists, match="/nowhere/e: the table has this delete file"):
        made.add_files([vectorless_delete("/nowhere/e", "/nowhere/b")])
    made = catalog.create_table("db.v3", rows, properties={"format-version": "3"})
    made.add_files([described("/nowhere/a"), described("/nowhere/b"), described("/nowhere/c")])
    made.add_files([vector("/nowhere/p", "/nowhere/a", 4), vector("/nowhere/p", "/nowhere/b", 20)])
    with pytest.raises(AlreadyExists, match=r"/nowhere/b: .* a deletion vector of this data file"):
        made.add_files([vector("/nowhere/q", "/nowhere/b")])
    with pytest.raises(Invalid, match=r"/nowhere/c: .* given twice"):
        made.add_files([vector("/nowhere/q", "/nowhere/c", 4), vector("/nowhere/q", "/nowhere/c", 20)])
    made.add_files([vector("/nowhere/q", "/nowhere/c")])
    assert made.scan().plan().files.num_rows == 3


def test_bounds_prune(table: icebench.Table) -> None:
    counts = {"value_counts": {1: 10}, "null_value_counts": {1: 0}}
    low = described("/nowhere/low", lower_bounds={1: b"\0" * 8}, upper_bounds={1: (9).to_bytes(8, "little")}, **counts)
    high = described(
        "/nowhere/high",
        lower_bounds={1: (10).to_bytes(8, "little")},
        upper_bounds={1: (19).to_bytes(8, "little")},
        **counts,
    )
    table.add_files([low, high])
    assert table.scan(filter="id = 12").plan().files.column("file_path").to_pylist() == ["/nowhere/high"]


def test_nothing_to_add_is_refused(table: icebench.Table) -> None:
    with pytest.raises(Invalid, match="no files"):
        table.add_files([])


def test_position_deletes_must_name_their_data_file(table: icebench.Table) -> None:
    with pytest.raises(Unsupported, match="do not name their one data file"):
        table.add_files([vectorless_delete("/nowhere/d.parquet", None)])


def test_a_read_only_table_takes_no_files(table: icebench.Table) -> None:
    with pytest.raises(Unsupported, match="read-only"):
        icebench.load_table(table.metadata_location).add_files([described("/nowhere/a.parquet")])


def test_files_as_the_rows_of_a_table(table: icebench.Table) -> None:
    """What one table says of its files is what another takes."""
    table.add_files([described(f"/nowhere/{n}.parquet", value_counts={1: n}) for n in range(5)])
    catalog = icebench.load_catalog(table.location.removesuffix("/db/t"))
    other = catalog.create_table("db.other", table.schema())
    snapshot = other.add_files(table.inspect.data_files())
    assert snapshot.operation == "append"
    assert snapshot.summary["added-data-files"] == "5"
    assert other.inspect.data_files() == table.inspect.data_files()
    fewest = table.inspect.data_files().select(["file_path", "file_format", "record_count", "file_size_in_bytes"])
    other.add_files(fewest.to_reader(), check_duplicate_files=False)
    assert other.inspect.data_files().num_rows == 10


def test_files_from_an_iterator_are_taken_as_they_come(table: icebench.Table) -> None:
    """Manifests are written while files come, so that few are in memory."""
    alive: list[weakref.ref[object]] = []
    most = 0

    def files() -> Iterator[icebench.DataFile]:
        nonlocal most
        for n in range(6_000):
            counts = Counts({1: n})
            alive.append(weakref.ref(counts))
            yield described(f"/nowhere/{n}.parquet", value_counts=counts)
            if n % 500 == 0:
                most = max(most, sum(each() is not None for each in alive))

    snapshot = table.add_files(files())
    assert snapshot.summary["added-data-files"] == "6000"
    assert table.scan().plan().files.num_rows == 6_000
    # A part of 1,024 files that is filled, and two in the making for each thread.
    assert most <= 1_024 * (2 * available_threads() + 2)
    assert not any(each() is not None for each in alive)


class Counts(dict[int, int]):
    """A mapping that can be referred to weakly."""


@pytest.mark.parametrize(
    ("files", "error", "reason"),
    [
        (pa.table({"file_path": ["a"]}), Invalid, "needs the column 'file_format'"),
        (described_table(extra=[1]), Invalid, "no column 'extra'"),
        (described_table(record_count=["many"]), Invalid, "record_count"),
        (described_table(record_count=pa.array([None], pa.int64())), Invalid, "record_count"),
        (described_table(file_format=["csv"]), Invalid, "'CSV'"),
        (described_table(spec_id=[7]), Invalid, "partition spec 7"),
        (described_table(content=[1]), Unsupported, "delete files described by column"),
        (described_table().slice(0, 0), Invalid, "no files"),
        (iter([]), Invalid, "no files"),
        (iter([described("e", content=icebench.FileContent.EQUALITY_DELETES)]), Unsupported, "delete files from an"),
    ],
)
def test_what_is_refused_leaves_nothing(table: icebench.Table, files: Any, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        table.add_files(files)
    assert table.refresh().current_snapshot is None
    assert not list(Path(table.location).rglob("*.avro"))


def test_ids_of_columns_and_of_partition_fields_do_not_meet(tmp_path: Path) -> None:
    """Partition fields are numbered from 1000, and a wide table has columns of the same numbers (iceberg#6368)."""
    names = [f"c{n}" for n in range(1, 10_001)]
    schema = pa.schema([pa.field(name, pa.int64()) for name in names])
    table = icebench.load_catalog(str(tmp_path)).create_table(
        "db.wide", schema, partition_spec=[("c1", "identity"), ("c2", "identity")]
    )
    assert [f.field_id for f in table.spec.fields] == [1000, 1001]
    assert table.schema().id_of["c1000"] == 1000
    assert table.schema().id_of["c10000"] == 10_000

    def one(path: str, key: tuple[int, int], values: dict[int, int]) -> icebench.DataFile:
        bounds = {column: value.to_bytes(8, "little") for column, value in values.items()}
        counts = dict.fromkeys(values, 10)
        return described(
            path,
            partition=key,
            lower_bounds=bounds,
            upper_bounds=bounds,
            value_counts=counts,
            null_value_counts=dict.fromkeys(values, 0),
        )

    table.add_files([one("/a", (1, 5), {1000: 70, 1001: 80, 9_999: 90}), one("/b", (2, 6), {1000: 71, 1001: 81})])
    for text, expected in {
        "c1 = 1": ["/a"],
        "c2 = 6": ["/b"],
        "c1000 = 70": ["/a"],
        "c1000 = 1": [],
        "c1001 = 81": ["/b"],
        "c1001 = 5": [],
        "c9999 = 90": ["/a", "/b"],
        "c9999 = 91": ["/b"],
        "c1 = 1 and c1000 = 71": [],
    }.items():
        assert table.scan(filter=text).plan().files.column("file_path").to_pylist() == expected, text
    widened = table.inspect.data_files().select(["partition", "lower_bounds"]).to_pylist(maps_as_pydicts="strict")
    assert [row["partition"] for row in widened] == [{"c1": 1, "c2": 5}, {"c1": 2, "c2": 6}]
    assert sorted(widened[0]["lower_bounds"]) == [1000, 1001, 9_999]
    table.update_schema(lambda schema: schema.add_column("late", icebench.LONG))
    assert table.schema().id_of["late"] == 10_001


@pytest.mark.parametrize("described", ["columns", "objects"])
def test_files_of_another_table_are_numbered_anew(tmp_path: Path, described: str) -> None:
    """Their row ids in the other table may be taken here (spec, "First Row ID Inheritance")."""
    catalog = icebench.load_catalog(str(tmp_path))
    rows = pa.table({"x": [1, 2, 3]})
    mine, theirs = (
        catalog.create_table(f"db.{name}", rows.schema, properties={"format-version": "3"}) for name in ("a", "b")
    )
    for each in (mine, theirs):
        each.append(rows)
    if described == "columns":
        mine.add_files(theirs.inspect.data_files())
    else:
        (row,) = theirs.inspect.data_files().to_pylist()
        facts = {name: row[name] for name in ("file_path", "record_count", "file_size_in_bytes", "first_row_id")}
        mine.add_files([icebench.DataFile(file_format="parquet", **facts)])
    mine.append(rows)
    assert sorted(mine.scan(columns=["_row_id"]).to_arrow()["_row_id"].to_pylist()) == list(range(9))
