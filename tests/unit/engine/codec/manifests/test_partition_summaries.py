from __future__ import annotations

import math

from icebench.engine.codec.manifests.manifest_writer import entry_batches
from icebench.engine.codec.manifests.partition_summaries import PartitionSummaries
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.manifest import EntryStatus, ManifestEntry, PartitionFieldSummary
from icebench.engine.spec.types import DOUBLE, INT, STRING, NestedField, StructType
from icebench.engine.spec.values import Value, encode_value

TYPE = StructType(
    tuple(NestedField(field_id=1000 + n, name=f"p{n}", type=type_) for n, type_ in enumerate((INT, DOUBLE, STRING)))
)


def doubles(*values: float | None) -> PartitionFieldSummary:
    summaries = PartitionSummaries(TYPE)
    summaries.add([(1, value, "a") for value in values])
    return summaries.finish()[1]


def test_bounds_leave_out_null_and_nan_which_are_flagged() -> None:
    found = doubles(math.nan, 1.5, None, -2.5)
    assert (found.contains_null, found.contains_nan) == (True, True)
    assert (found.lower_bound, found.upper_bound) == (encode_value(DOUBLE, -2.5), encode_value(DOUBLE, 1.5))
    only = doubles(math.nan)
    assert (only.contains_null, only.contains_nan, only.lower_bound, only.upper_bound) == (False, True, None, None)


def test_negative_zero_is_below_zero() -> None:
    for values in ((0.0, -0.0), (-0.0, 0.0)):
        found = doubles(*values)
        assert (found.lower_bound, found.upper_bound) == (encode_value(DOUBLE, -0.0), encode_value(DOUBLE, 0.0))


def test_parts_are_joined_whichever_comes_first() -> None:
    parts: list[list[tuple[Value | None, ...]]] = [[(1, math.nan, None)], [(5, 2.0, "b"), (-3, 1.0, "a")]]
    for order in (parts, parts[::-1]):
        whole = PartitionSummaries(TYPE)
        for part in order:
            summaries = PartitionSummaries(TYPE)
            summaries.add(part)
            whole.merge(summaries)
        together = PartitionSummaries(TYPE)
        together.add([values for part in parts for values in part])
        assert whole.finish() == together.finish()
        assert [f.contains_null for f in whole.finish()] == [False, False, True]


def test_batches_hold_entries_of_one_spec_each_and_lose_none() -> None:
    entries = [
        ManifestEntry(
            status=EntryStatus.ADDED,
            data_file=DataFile(
                file_path=str(n), file_format="parquet", spec_id=n % 3, record_count=1, file_size_in_bytes=1
            ),
        )
        for n in range(10)
    ]
    batches = list(entry_batches(entries))
    assert all(len({entry.data_file.spec_id for entry in batch}) == 1 for batch in batches)
    found = [[entry.data_file.file_path for entry in batch] for batch in batches]
    assert sorted(found) == [["0", "3", "6", "9"], ["1", "4", "7"], ["2", "5", "8"]]
