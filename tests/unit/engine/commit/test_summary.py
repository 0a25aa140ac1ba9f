from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from icebench.engine.codec.array_views import number_array
from icebench.engine.codec.manifests.data_file_columns import DataFileColumns
from icebench.engine.codec.manifests.partition_columns import DistinctColumn
from icebench.engine.codec.manifests.schema import FILE_SIZE_IN_BYTES, RECORD_COUNT
from icebench.engine.commit.summary import FileCounts, summarize
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.snapshots import Snapshot
from tests.unit.engine.commit.tables import BY_DAY, data_file, deletes_of, metadata

A = data_file("a", rows=10)
POSITIONS = deletes_of(A, rows=3)
EQUALITY = replace(POSITIONS, content=FileContent.EQUALITY_DELETES, equality_ids=(1,), record_count=4)
VECTOR = replace(POSITIONS, file_format="puffin", content_offset=4, content_size_in_bytes=7, file_size_in_bytes=900)


def snapshot(**summary: str) -> Snapshot:
    named = {name.replace("_", "-"): value for name, value in summary.items()}
    return Snapshot(snapshot_id=1, timestamp_ms=1, manifest_list="x", operation="append", summary=named)


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        (A, {"added-data-files": "1", "added-records": "10", "added-files-size": "100"}),
        (
            POSITIONS,
            {
                "added-delete-files": "1",
                "added-position-delete-files": "1",
                "added-position-deletes": "3",
                "added-files-size": "50",
            },
        ),
        (
            EQUALITY,
            {
                "added-delete-files": "1",
                "added-equality-delete-files": "1",
                "added-equality-deletes": "4",
                "added-files-size": "50",
            },
        ),
        (
            VECTOR,
            {"added-delete-files": "1", "added-dvs": "1", "added-position-deletes": "3", "added-files-size": "7"},
        ),
    ],
)
def test_each_kind_of_file(file: DataFile, counts: dict[str, str]) -> None:
    added = summarize(added=[FileCounts([file])], parent=snapshot())
    assert added == {**counts, "changed-partition-count": "1"}
    removed = summarize(added=[FileCounts()], removed=[FileCounts([file])], parent=snapshot())
    expected = {name.replace("added-", "removed-"): n for name, n in counts.items()}
    if file is A:
        expected = {"deleted-data-files": "1", "deleted-records": "10", "removed-files-size": "100"}
    assert removed == {**expected, "changed-partition-count": "1"}


def test_totals_go_on_from_the_parent() -> None:
    parent = snapshot(total_records="100", total_data_files="7", total_position_deletes="5", total_delete_files="2")
    made = summarize(
        added=[FileCounts([A, POSITIONS])], removed=[FileCounts([replace(A, record_count=30)])], parent=parent
    )
    assert made["total-records"] == "80"
    assert made["total-data-files"] == "7"
    assert made["total-position-deletes"] == "8"
    assert made["total-delete-files"] == "3"
    # What the parent did not say stays unsaid.
    assert "total-equality-deletes" not in made
    assert "total-files-size" not in made


@pytest.mark.parametrize("text", ["", "-3", "many", "1.5", "5", "٣0", "1" * 20, "1" * 5_000], ids=range(8))
def test_a_total_that_cannot_be_is_left_out(text: str) -> None:
    made = summarize(added=[FileCounts()], removed=[FileCounts([A])], parent=snapshot(total_records=text))
    assert "total-records" not in made


def test_a_first_snapshot_counts_from_zero() -> None:
    made = summarize(added=[FileCounts([A])], parent=None)
    assert made["total-records"] == "10"
    assert made["total-equality-deletes"] == "0"


def test_partitions_are_counted_with_their_spec() -> None:
    files = [
        data_file("a", day="mon"),
        data_file("b", day="mon"),
        data_file("c", day="tue"),
        replace(data_file("d", day="mon"), spec_id=1),
    ]
    assert summarize(added=[FileCounts(files)], parent=None)["changed-partition-count"] == "3"


def test_the_callers_entries_do_not_win() -> None:
    made = summarize(added=[FileCounts([A])], parent=None, properties={"batch": "7", "added-records": "999"})
    assert made["batch"] == "7"
    assert made["added-records"] == "10"


@pytest.mark.parametrize("limit", [0, 1, 2, 9])
def test_partitions_are_summed_up_where_they_are_few(limit: int) -> None:
    base = metadata(spec=BY_DAY, properties={"write.summary.partition-limit": str(limit)})
    added = [data_file("a", rows=1, day="mon"), data_file("b", rows=2, day="mon")]
    gone = [data_file("c", rows=4, day="mon"), data_file("d", rows=8, day="tue")]
    made = summarize(
        added=[FileCounts(added, partition_limit=limit)],
        removed=[FileCounts(gone, partition_limit=limit)],
        parent=None,
        base=base,
    )
    found = {name: text for name, text in made.items() if name.startswith("partition")}
    if limit < 2:
        assert not found
        return
    assert found == {
        "partition-summaries-included": "true",
        "partitions.day=mon": (
            "added-data-files=2,added-files-size=200,added-records=3,"
            "deleted-data-files=1,deleted-records=4,removed-files-size=100"
        ),
        "partitions.day=tue": "deleted-data-files=1,deleted-records=8,removed-files-size=100",
    }


def test_partitions_beyond_the_limit_leave_none() -> None:
    files = [data_file(day, day=day) for day in ("mon", "tue")]
    assert FileCounts(files, partition_limit=1).by_partition == {}
    assert len(FileCounts(files, partition_limit=2).by_partition) == 2


def test_files_as_columns_are_summed_up_as_files_are() -> None:
    days = ("mon", "tue")
    codes = np.array([0, 1, 0], np.int64)
    columns = {
        RECORD_COUNT: number_array(np.array([1, 2, 4])),
        FILE_SIZE_IN_BYTES: number_array(np.array([10, 20, 40])),
    }
    described = DataFileColumns(
        count=3, spec_id=0, content=FileContent.DATA, columns=columns, partition=(DistinctColumn(codes, days),)
    )
    files = [
        replace(data_file(str(row), rows=1 << row, day=days[code]), file_size_in_bytes=10 << row)
        for row, code in enumerate(codes)
    ]
    for limit in (1, 2):
        by_columns = FileCounts(partition_limit=limit)
        by_columns.add_columns(described)
        by_file = FileCounts(files, partition_limit=limit)
        totals = [
            {key: (*own[:2], own[2].entries("added")) for key, own in each.by_partition.items()}
            for each in (by_columns, by_file)
        ]
        assert totals[0] == totals[1]
        assert len(totals[0]) == (2 if limit == 2 else 0)
