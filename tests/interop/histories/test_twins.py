"""Two tables, one changed by our engine alone and one by Iceberg Java alone, in the same way: the snapshots of both say
the same of what they did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

import icebench
from icebench.bench.setup_jars import is_cached
from icebench.engine.spec.snapshots import Snapshot
from tests.interop.histories.filters import col
from tests.interop.histories.language import (
    Append,
    Change,
    Delete,
    History,
    Overwrite,
    OverwritePartitions,
    Update,
    Upsert,
)
from tests.interop.histories.model import check_rows
from tests.interop.histories.playing import Play
from tests.interop.histories.shapes import ON_READ, ON_WRITE, PLAIN, rows

pytestmark = [
    pytest.mark.skipif(not is_cached(), reason="Iceberg's Spark runtime is not in the Ivy cache"),
    pytest.mark.soak,
]

CHANGES: Sequence[Change] = [
    Append(rows(0, 20)),
    Append(rows(20, 28)),
    Delete(col("id") == 1),
    Delete((col("id") == 1) | (col("id") == 2) | (col("id") == 22)),
    Delete(col("p") == "b"),
    Update(col("id").isin(4, 6), {"n": -1}),
    Update(col("id") == 4, {"p": "ccc"}),
    Upsert([{"id": 8, "p": "a", "n": 1}, {"id": 100, "p": "a", "n": 2}, {"id": 101, "p": "new", "n": 3}]),
    OverwritePartitions([{"id": 200, "p": "a", "n": 4}, {"id": 201, "p": "other", "n": 5}], by=lambda row: row["p"]),
    Overwrite([{"id": 300, "p": "ccc", "n": 6}], col("p") == "ccc"),
    Overwrite([{"id": 301, "p": "z", "n": 7}]),
]

SIZES = ("added-files-size", "removed-files-size", "total-files-size")


def account(snapshot: Snapshot) -> Mapping[str, object]:
    """What a snapshot says of itself, without sizes (writers compress differently) and without names."""
    counted = {name: int(text) for name, text in snapshot.summary.items() if text.isdecimal() and name not in SIZES}
    counted = {name: number for name, number in counted.items() if number and name.startswith(COUNTED)}
    return {"operation": snapshot.operation, **counted}


def account_on_read(snapshot: Snapshot) -> Mapping[str, object]:
    """The same of a merge-on-read change, where files differ by choice: we take a data file out of the table, with its
    deletes, once no row of it is left. What must be the same is the rows."""
    counted = account(snapshot)
    return {
        "operation": counted["operation"],
        "added-records": counted.get("added-records"),
        "live": int(snapshot.summary["total-records"]) - int(snapshot.summary["total-position-deletes"]),
    }


COUNTED = ("added-", "deleted-", "removed-", "total-", "changed-", "replace-")


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("mode", ["on write", "on read"])
def test_snapshots_say_the_same(version: int, mode: str, place_of) -> None:
    if version == 1 and mode == "on read":
        pytest.skip("format version 1 has no delete files")
    properties = ON_READ if mode == "on read" else ON_WRITE
    twins: dict[str, Play] = {}
    for who in ("ours", "java"):
        history = History(
            name=who, columns=PLAIN, partition=[("p", "identity")], steps=[], properties=properties, coda=()
        )
        twins[who] = Play(history, version, place_of("sql"))
    for change in CHANGES:
        found = {}
        for who, play in twins.items():
            play.actors[who].perform(change)  # type: ignore[index]
            found[who] = head_of(play.table)
        summary = account if mode == "on write" else account_on_read
        assert summary(found["ours"]) == summary(found["java"]), change
        check_rows(twins["ours"].table.scan().to_arrow().to_pylist(), twins["java"].table.scan().to_arrow().to_pylist())


DELETES: Sequence[Change] = [
    Append(rows(0, 20)),
    Append(rows(20, 40)),
    *(Delete(col("id") == i) for i in (1, 5, 21, 9)),
    Delete((col("id") == 2) | (col("id") == 25)),
    Update(col("id") == 17, {"n": -1}),
    Delete(col("id") == 6),
]
"""No data file loses its last row."""


@pytest.mark.parametrize("version", [2, 3])
def test_position_deletes_of_a_data_file_are_merged_alike(version: int, place_of) -> None:
    twins: dict[str, Play] = {}
    for who in ("ours", "java"):
        history = History(name=who, columns=PLAIN, partition=[("p", "identity")], steps=[], properties=ON_READ, coda=())
        twins[who] = Play(history, version, place_of("sql"))
    for change in DELETES:
        found = {}
        for who, play in twins.items():
            play.actors[who].perform(change)  # type: ignore[index]
            found[who] = account(head_of(play.table))
        assert found["ours"] == found["java"], change


def head_of(table: icebench.Table) -> Snapshot:
    head = table.refresh().current_snapshot
    assert head is not None
    return head
