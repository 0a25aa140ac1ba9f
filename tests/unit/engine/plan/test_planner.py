"""Which manifests are planned together; what comes of it is held by `tests/property/test_plan_files.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from icebench.bench.gate.cases.request_rounds import Rounds
from icebench.engine.plan import files_table, planner
from icebench.engine.plan.filtering import Filtered
from icebench.engine.plan.manifest_work import ManifestWork
from icebench.engine.plan.scan import table_scan
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.manifest import ManifestFile
from icebench.engine.spec.partitioning import UNPARTITIONED, PartitionField, PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import INT, FixedType, NestedField
from icebench.engine.spec.values import encode_value
from icebench.engine.storage.counting import CountingStore
from icebench.errors import CorruptTable
from tests.property.remote_planning import assert_same_elsewhere
from tests.property.table_builder import TableBuilder, added, data_file

SCHEMA = Schema((NestedField(field_id=1, name="a", type=INT),))
BY_A = PartitionSpec(
    (PartitionField(source_ids=(1,), field_id=1000, name="a", transform=Identity()),),
    1,
)


@pytest.fixture
def table() -> TableBuilder:
    """Thirteen manifests: eight of one file each, a long one, two of another spec, two of one file each."""
    builder = TableBuilder(SCHEMA, (UNPARTITIONED, BY_A))
    for number, files in enumerate([1] * 8 + [400] + [1, 1] + [1, 1]):
        spec_id = 1 if number in (9, 10) else 0
        bound = {1: encode_value(INT, number)}
        builder.add_manifest(
            [
                added(
                    data_file(
                        f"memory://t/{number}-{file}",
                        spec_id=spec_id,
                        partition=(number,) if spec_id else (),
                        lower_bounds=bound,
                        upper_bounds=bound,
                    )
                )
                for file in range(files)
            ],
            spec_id=spec_id,
            sequence_number=number + 1,
        )
    return builder


@pytest.mark.parametrize("filter", [None, "a >= 3 and a != 5", "a = 10", "a > 99"])
def test_small_manifests_are_planned_together_and_in_order(
    table: TableBuilder, filter: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    together: list[list[int]] = []
    alone: list[int] = []

    class Watched(ManifestWork):
        def filtered_together(self, manifests: Sequence[ManifestFile], keys: frozenset[int]) -> list[Filtered]:
            together.append([table.manifests.index(manifest) for manifest in manifests])
            return super().filtered_together(manifests, keys)

        def filtered(self, manifest: ManifestFile, *arguments: Any, **options: Any) -> Filtered:
            alone.append(table.manifests.index(manifest))
            return super().filtered(manifest, *arguments, **options)

    monkeypatch.setattr(planner, "ManifestWork", Watched)
    monkeypatch.setattr(planner, "_TOGETHER", 3)
    monkeypatch.setattr(
        planner, "_SMALL_BYTES", max(m.manifest_length for n, m in enumerate(table.manifests) if n != 8)
    )
    scan = table_scan(table.metadata(), table.store, filter=filter, runner=LocalRunner(2))
    plan = scan.plan()
    if filter is None:
        assert (together, alone) == ([[0, 1, 2], [3, 4, 5], [6, 7, 11], [12], [9, 10]], [8])
    expected = [
        n for n in range(13) if filter is None or {"a > 99": False, "a = 10": n == 10}.get(filter, n >= 3 and n != 5)
    ]
    found = [int(path.rpartition("/")[2].partition("-")[0]) for path in plan.files["file_path"].to_pylist()]
    assert list(dict.fromkeys(found)) == expected
    assert len(found) == len(expected) + (399 if 8 in expected else 0)
    assert_same_elsewhere(scan, plan)


def test_no_more_is_decoded_together_than_a_manifest_of_the_usual_size(
    table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = [manifest.manifest_length for manifest in table.manifests]
    places = [*range(8), 8, 11, 12]
    monkeypatch.setattr(planner, "_TOGETHER_BYTES", 2 * max(lengths[place] for place in places if place != 8))
    assert list(planner._groups(places, [lengths[place] for place in places])) == [
        [0, 1],
        [2, 3],
        [4, 5],
        [6, 7],
        [8],
        [11, 12],
    ]
    monkeypatch.setattr(planner, "_TOGETHER_BYTES", 1)
    assert table_scan(table.metadata(), table.store).plan().files.num_rows == 412


@pytest.mark.parametrize("most", [0, 1, 3])
def test_files_are_listed_as_each_manifest_alone(
    table: TableBuilder, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        target = f"memory://t/{number}-0"
        deletes = [replace(data_file(f"memory://t/d{number}"), content=FileContent.POSITION_DELETES)]
        if number % 2:
            deletes = [replace(each, referenced_data_file=target) for each in deletes]
        table.add_manifest([added(each) for each in deletes], sequence_number=20)
    together = table_scan(table.metadata(), table.store).plan().files
    assert [len(each) for each in together.column("deletes").to_pylist()[:8]] == [3, 4, 3, 4, 3, 3, 3, 3]
    monkeypatch.setattr(files_table, "_TOGETHER", most)
    assert table_scan(table.metadata(), table.store).plan().files.equals(together)


def test_a_manifest_with_wrong_partition_values_is_named_among_others() -> None:
    builder = TableBuilder(fixed_schema(3), (UNPARTITIONED, BY_A))
    for length in (3, 3, 4, 3):
        builder.schema = fixed_schema(length)
        builder.add_manifest(
            [added(data_file(f"memory://t/{length}", spec_id=1, partition=(b"a" * length,)))], spec_id=1
        )
    with pytest.raises(CorruptTable) as raised:
        table_scan(builder.metadata(), builder.store).plan()
    assert raised.value.location == builder.manifests[2].manifest_path


def fixed_schema(length: int) -> Schema:
    return Schema((NestedField(field_id=1, name="a", type=FixedType(length)),))


def test_manifests_are_read_at_the_same_time_however_small_and_large_ones_alternate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    builder = TableBuilder(SCHEMA)
    for number in range(20):
        builder.add_manifest([added(data_file(f"memory://t/{number}-{n}")) for n in range(1 if number % 2 else 50)])
    lengths = sorted(manifest.manifest_length for manifest in builder.manifests)
    assert lengths[9] < lengths[10]
    monkeypatch.setattr(planner, "_SMALL_BYTES", lengths[9])
    rounds = Rounds(threads=8)
    scan = table_scan(builder.metadata(), CountingStore(builder.store, rounds), runner=rounds)
    assert scan.plan().files.num_rows == 10 + 10 * 50
    # The list, then ten and ten manifests by eight threads.
    assert rounds.now == 1 + 2 + 2
