from __future__ import annotations

from dataclasses import replace

import pytest

from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.evolution import UpdateSpec
from icebench.engine.commit.changes.replace_partitions import ReplacePartitions
from icebench.engine.commit.changes.row_delta import RowDelta
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import ref_to
from icebench.engine.spec.transforms import Truncate
from icebench.errors import Invalid, ValidationFailed
from tests.unit.engine.commit.tables import BY_DAY, World, data_file, deletes_of, metadata, world

X, Y = data_file("x1", day="x"), data_file("y1", day="y")


def table() -> World:
    w = world(metadata(spec=BY_DAY))
    w.transaction().commit([Append(data_files=[X, Y])])
    return w


def test_partitions_of_the_new_files_are_replaced_deletes_too() -> None:
    w = table()
    watched = Validation(starting_snapshot_id=101, referenced=[ref_to(X)])
    w.transaction().commit([RowDelta(delete_files=[deletes_of(X, name="d")], validation=watched)])
    w.transaction().commit([ReplacePartitions(data_files=[data_file("x2", day="x")])])
    assert w.files() == {"x2": 3, "y1": 1}
    snapshot = w.metadata.snapshots[-1]
    assert snapshot.operation == "overwrite"
    assert snapshot.summary["replace-partitions"] == "true"
    assert snapshot.summary["total-delete-files"] == "0"


def test_a_null_partition_and_a_new_one() -> None:
    w = table()
    none = replace(data_file("n1", day="?"), partition=(None,))
    w.transaction().commit([ReplacePartitions(data_files=[none, data_file("z1", day="z")])])
    w.transaction().commit([ReplacePartitions(data_files=[replace(none, file_path="memory://wh/t/data/n2.parquet")])])
    assert w.files() == {"x1": 1, "y1": 1, "z1": 2, "n2": 3}


def test_an_unpartitioned_table_is_replaced_whole() -> None:
    w = world()
    w.transaction().commit([Append(data_files=[data_file("a"), data_file("b")])])
    w.transaction().commit([ReplacePartitions(data_files=[data_file("c")])])
    assert w.files() == {"c": 2}


def test_files_that_others_add_to_the_partition_fail_it_or_go() -> None:
    w = table()
    watched = Validation(starting_snapshot_id=101)
    strict = ReplacePartitions(data_files=[data_file("x2", day="x")], validation=watched)
    loose = ReplacePartitions(data_files=[data_file("x3", day="x")])
    w.transaction().commit([Append(data_files=[data_file("theirs", day="x")])])
    with pytest.raises(ValidationFailed, match="theirs"):
        w.transaction().commit([strict])
    w.transaction().commit([loose])
    assert w.files() == {"x3": 3, "y1": 1}


def test_other_partitions_do_not_matter() -> None:
    w = table()
    change = ReplacePartitions(data_files=[data_file("x2", day="x")], validation=Validation(starting_snapshot_id=101))
    w.committer.before = [lambda: w.transaction().commit([Append(data_files=[data_file("theirs", day="y")])])]
    w.transaction().commit([change])
    assert w.files() == {"x2": 3, "y1": 1, "theirs": 2}


def test_files_of_an_older_spec_with_the_same_values_stay() -> None:
    w = table()
    w.transaction().commit([UpdateSpec(lambda s: s.drop_field("day").add_field("day", Truncate(9), name="short"))])
    spec_id = w.metadata.default_spec_id
    assert spec_id == 1
    w.transaction().commit([ReplacePartitions(data_files=[replace(data_file("x2", day="x"), spec_id=spec_id)])])
    w.transaction().commit([ReplacePartitions(data_files=[replace(data_file("x3", day="x"), spec_id=spec_id)])])
    assert w.files() == {"x1": 1, "y1": 1, "x3": 3}


def test_files_of_another_spec_are_refused() -> None:
    w = table()
    w.transaction().commit([UpdateSpec(lambda s: s.drop_field("day"))])
    with pytest.raises(ValidationFailed, match="the partition spec changed"):
        w.transaction().commit([ReplacePartitions(data_files=[data_file("x2", day="x")])])
    with pytest.raises(Invalid, match="without rows"):
        ReplacePartitions()
