"""Cases that the property test of the rules does not reach: files that are wrong, and other spellings of paths."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from icebench.engine.plan.scan import table_scan
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.partitioning import UNPARTITIONED, PartitionField, PartitionSpec, partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import DOUBLE, INT, NestedField
from icebench.engine.spec.values import encode_value
from icebench.errors import CorruptTable
from tests.property.table_builder import TableBuilder, added, data_file

SCHEMA = Schema((NestedField(field_id=1, name="a", type=INT), NestedField(field_id=2, name="d", type=DOUBLE)))
BY_A = partition_spec(SCHEMA, [("a", Identity())], spec_id=1)
BY_D = PartitionSpec((PartitionField(source_ids=(2,), field_id=1001, name="d", transform=Identity()),), spec_id=2)


def positions(target: str | None, **more: Any) -> DataFile:
    return data_file("memory://t/x", content=FileContent.POSITION_DELETES, referenced_data_file=target, **more)


def vector(target: str | None, **more: Any) -> DataFile:
    place = {"content_offset": 4, "content_size_in_bytes": 40}
    return replace(positions(target, **(place | more)), file_format="puffin")


def planned(
    data: list[DataFile],
    deletes: list[DataFile],
    *,
    data_number: int = 1,
    number: int = 2,
    specs: Any = (UNPARTITIONED, BY_A, BY_D),
    filter: str | None = None,
) -> list[int]:
    """How many deletes each data file has."""
    builder = TableBuilder(SCHEMA, specs, format_version=3)
    for spec in specs:
        for files, sequence_number in ((data, data_number), (deletes, number)):
            own = [added(f) for f in files if f.spec_id == spec.spec_id]
            if own:
                builder.add_manifest(own, spec_id=spec.spec_id, sequence_number=sequence_number)
    plan = table_scan(builder.metadata(), builder.store, filter=filter, runner=LocalRunner(1)).plan()
    return [len(each) for each in plan.files["deletes"].to_pylist()]


@pytest.mark.parametrize(
    ("data", "target"),
    [
        ("/t/a", "file:/t/a"),
        ("file:///t/a", "/t/a"),
        ("s3a://b/t/a", "s3://b/t/a"),
        ("hdfs://host:8020/t/a", "/t/a"),
        ("/t/a", "hdfs://host/t/a"),
        ("abfss://c@h/t/a", "abfs://c@h/t/a"),
    ],
)
@pytest.mark.parametrize("delete", [positions, vector])
def test_other_spellings_of_one_place(data: str, target: str, delete: Any) -> None:
    assert planned([data_file(data), data_file("/t/other")], [delete(target)]) == [1, 0]


@pytest.mark.parametrize(("data", "target"), [("hdfs://one/t/a", "hdfs://two/t/a"), ("s3://a/t/a", "s3://b/t/a")])
def test_another_authority_is_not_guessed_at(data: str, target: str) -> None:
    with pytest.raises(CorruptTable, match="are they the same file"):
        planned([data_file(data)], [positions(target)])


def test_an_exact_path_wins_over_other_spellings() -> None:
    assert planned([data_file("s3://b/t/a"), data_file("s3a://b/t/a")], [positions("s3a://b/t/a")]) == [0, 1]


def test_a_vector_may_be_of_the_same_commit_but_not_older() -> None:
    assert planned([data_file("/t/a")], [vector("/t/a")], data_number=2, number=2) == [1]
    with pytest.raises(CorruptTable, match="lower sequence number"):
        planned([data_file("/t/a")], [vector("/t/a")], data_number=2, number=1)


@pytest.mark.parametrize(
    "wrong", [vector(None), vector("/t/a", content_offset=None), vector("/t/a", content_size_in_bytes=None)]
)
def test_vectors_without_their_fields(wrong: DataFile) -> None:
    with pytest.raises(CorruptTable, match="without referenced_data_file"):
        planned([data_file("/t/a")], [wrong])


@pytest.mark.parametrize("delete", [positions, vector])
def test_a_delete_of_a_file_in_another_partition(delete: Any) -> None:
    one = data_file("/t/a", spec_id=1, partition=(1,))
    assert planned([one], [delete("/t/a", spec_id=1, partition=(1,))]) == [1]
    for wrong in ({"spec_id": 1, "partition": (2,)}, {"spec_id": 1, "partition": (None,)}, {}):
        with pytest.raises(CorruptTable, match="another partition"):
            planned([one], [delete("/t/a", **wrong)])


def test_floats_are_partitions_by_their_bits() -> None:
    nan, other_nan = float("nan"), -float("nan")
    data = [data_file(f"/t/{i}", spec_id=2, partition=(v,)) for i, v in enumerate([0.0, -0.0, nan, None])]
    for value, expected in ((0.0, [1, 0, 0, 0]), (-0.0, [0, 1, 0, 0]), (other_nan, [0, 0, 1, 0]), (None, [0, 0, 0, 1])):
        assert planned(data, [positions(None, spec_id=2, partition=(value,))]) == expected


@pytest.mark.parametrize("partition", [(), (5,)], ids=["global", "of a partition"])
@pytest.mark.parametrize(
    ("delete", "of_older", "of_same", "of_newer"),
    [("equality", 1, 0, 0), ("positions of a file", 1, 1, 0), ("positions of a partition", 1, 1, 0)],
)
def test_sequence_numbers_say_which_data_files_are_older(
    delete: str, of_older: int, of_same: int, of_newer: int, partition: tuple[int, ...]
) -> None:
    """Rows of an equality delete's own commit came after it: a stream deletes a key and inserts it again."""
    where: dict[str, Any] = {"spec_id": 1 if partition else 0, "partition": partition}
    deletes = {
        "equality": data_file("d", content=FileContent.EQUALITY_DELETES, equality_ids=(1,), **where),
        "positions of a file": positions("/t/a", **where),
        "positions of a partition": positions(None, **where),
    }
    data = [data_file("/t/a", **where)]
    found = [planned(data, [deletes[delete]], data_number=own, number=5) for own in (4, 5, 6)]
    assert found == [[of_older], [of_same], [of_newer]]


def test_equal_tuples_of_two_specs_are_two_partitions() -> None:
    both = (UNPARTITIONED, BY_A, replace(BY_A, spec_id=3))
    data = [data_file(f"/t/{spec_id}", spec_id=spec_id, partition=(7,)) for spec_id in (1, 3)]
    for spec_id, expected in ((1, [1, 0]), (3, [0, 1])):
        assert planned(data, [positions(None, spec_id=spec_id, partition=(7,))], specs=both) == expected


def test_an_equality_delete_needs_columns() -> None:
    wrong = data_file("/t/x", content=FileContent.EQUALITY_DELETES, equality_ids=())
    with pytest.raises(CorruptTable, match="equality_ids"):
        planned([data_file("/t/a")], [wrong])


def test_the_same_delete_may_be_for_many_files() -> None:
    data = [data_file(f"/t/{i}") for i in range(50)]
    assert planned(data, [positions(None)]) == [1] * 50


def test_deletes_of_a_partition_and_of_one_file_add_up() -> None:
    data = [data_file(f"/t/{i}") for i in range(20)]
    deletes = [positions(None), positions("/t/3"), positions(None)]
    assert planned(data, deletes) == [2, 2, 2, 3] + [2] * 16


def equality(*ids: int, **more: Any) -> DataFile:
    return data_file("memory://t/x", content=FileContent.EQUALITY_DELETES, equality_ids=ids or (1,), **more)


@pytest.mark.parametrize(
    ("delete", "least"),
    [
        (equality(), 1),  # equality deletes, global or not, are for rows that are older
        (equality(spec_id=1, partition=(7,)), 1),
        (positions(None, spec_id=1, partition=(7,)), 0),  # position deletes for those of the same commit, too
        (positions("memory://t/a", spec_id=1, partition=(7,)), 0),
    ],
)
@pytest.mark.parametrize("later", [-1, 0, 1])
def test_deletes_apply_by_sequence_number(delete: DataFile, least: int, later: int) -> None:
    data = data_file("memory://t/a", spec_id=1, partition=(7,))
    assert planned([data], [delete], data_number=5, number=5 + later) == [int(later >= least)]


def test_another_spelling_is_of_the_file_that_it_spells() -> None:
    data = [data_file("memory://t/first"), data_file("s3a://b/t/a"), data_file("memory://t/last")]
    assert planned(data, [positions("s3://b/t/a")]) == [0, 1, 0]


@pytest.mark.parametrize("kind", ["null_value_counts", "nan_value_counts"])
@pytest.mark.parametrize("both", [True, False])
def test_keys_meet_in_null_and_in_nan(kind: str, *, both: bool) -> None:
    """Where the values of a key column cannot be equal, its nulls can, and its NaNs."""

    def side(low: float, *, with_some: bool) -> dict[str, Any]:
        counts = {name: {2: 0} for name in ("null_value_counts", "nan_value_counts")}
        counts[kind] = {2: int(with_some)}
        bound = {2: encode_value(DOUBLE, low)}
        return {"value_counts": {2: 10}, "lower_bounds": bound, "upper_bounds": bound, **counts}

    data = data_file("memory://t/a", **side(1.0, with_some=True))
    delete = equality(2, **side(9.0, with_some=both))
    assert planned([data], [delete]) == [int(both)]
    assert planned([data], [equality(2, **side(1.0, with_some=False))]) == [1]


@pytest.mark.parametrize("bound", ["lower_bounds", "upper_bounds"])
@pytest.mark.parametrize("key", [0, 5, 9])
def test_a_key_column_without_a_bound_may_hold_any_key_on_that_side(bound: str, key: int) -> None:
    counts: dict[str, Any] = {"value_counts": {1: 10}, "null_value_counts": {1: 0}}
    one = {1: encode_value(INT, key)}
    deletes = [equality(1, lower_bounds=one, upper_bounds=one, **counts)]
    for number, reaches in ((5, key <= 5 if bound == "upper_bounds" else key >= 5), (None, True)):
        known: dict[str, Any] = {} if number is None else {bound: {1: encode_value(INT, number)}}
        assert planned([data_file("memory://t/a", **known, **counts)], deletes) == [int(reaches)]


def test_what_a_delete_stores_of_columns_that_are_no_keys_does_not_matter() -> None:
    one = {column: encode_value(type_, 1) for column, type_ in ((1, INT), (2, DOUBLE))}
    own = {"lower_bounds": one, "upper_bounds": one, "value_counts": {1: 10, 2: 10}, "null_value_counts": {1: 0, 2: 0}}
    delete = equality(1, **own, nan_value_counts={2: 0})
    assert planned([data_file("memory://t/a")], [delete], filter="d > 5") == [1]
    assert planned([data_file("memory://t/a")], [delete], filter="a > 5") == [0]
