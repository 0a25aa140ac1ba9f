"""What metrics and partition values do not say, and what a filter may not conclude from that."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bounds import Evaluator
from icebench.engine.expressions.literal_intervals import TRUE
from icebench.engine.expressions.parse import parse
from icebench.engine.plan.pruning import SummaryStatistics
from icebench.engine.plan.scan import table_scan
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.manifest import ManifestFile, PartitionFieldSummary
from icebench.engine.spec.partitioning import UNPARTITIONED, PartitionSpec, partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import DOUBLE, INT, UUID, NestedField
from icebench.engine.spec.values import encode_value
from tests.property.table_builder import TableBuilder, added, data_file

SCHEMA = Schema(
    (
        NestedField(field_id=1, name="a", type=INT),
        NestedField(field_id=2, name="d", type=DOUBLE),
        NestedField(field_id=3, name="u", type=UUID),
    )
)
BY_D = partition_spec(SCHEMA, [("d", Identity())], spec_id=1)
LOW, HIGH = "00000000-0000-0000-0000-000000000001", "f0000000-0000-0000-0000-000000000001"


def is_planned(filter: str, *, spec: PartitionSpec = UNPARTITIONED, **file: Any) -> bool:
    """Whether a table's one data file is planned; its manifest list says nothing of its partition."""
    builder = TableBuilder(SCHEMA, (UNPARTITIONED, BY_D))
    builder.add_manifest([added(data_file("memory://t/a", spec_id=spec.spec_id, **file))], spec_id=spec.spec_id)
    plan = table_scan(builder.metadata(), builder.store, filter=filter, runner=LocalRunner(1)).plan()
    return plan.files.num_rows > 0


def metrics(column: int, low: float, high: float, **counts: int) -> dict[str, Any]:
    type_ = SCHEMA.primitive(column)
    bounds = [encode_value(type_, float(v) if type_ == DOUBLE else int(v)) for v in (low, high)]
    found = {"lower_bounds": {column: bounds[0]}, "upper_bounds": {column: bounds[1]}}
    return found | {name: {column: count} for name, count in counts.items()}


@pytest.mark.parametrize(
    ("filter", "file", "planned"),
    [
        ("a is null", {}, True),
        ("a is null", {"null_value_counts": {1: 0}}, False),
        ("a is null", {"null_value_counts": {1: -1}}, True),
        ("a is null", metrics(1, 5, 9, value_counts=10), True),  # nothing is said of nulls
        ("a = 7", metrics(1, 5, 9), True),
        ("a = 10", metrics(1, 5, 9), False),
        ("a = 7", {"null_value_counts": {1: 10}, "value_counts": {1: 10}}, False),
        ("a = 7", {"null_value_counts": {1: 10}}, False),  # as many as there are rows
        ("d > 100", metrics(2, 1, 2), True),  # NaN is above all numbers, and nothing is said of it
        ("d > 100", metrics(2, 1, 2, nan_value_counts=0), False),
        ("d is nan", metrics(2, 1, 2), True),
        ("d is nan", metrics(2, 1, 2, nan_value_counts=0), False),
        ("d is nan", {"null_value_counts": {2: 10}, "value_counts": {2: 10}}, False),
        ("d < 100", {"null_value_counts": {2: 4}, "value_counts": {2: 10}}, True),
        ("d < 100", {"null_value_counts": {2: 4}, "value_counts": {2: 10}, "nan_value_counts": {2: 6}}, False),
        ("d < 100", {"null_value_counts": {2: 10}, "value_counts": {2: 10}, "nan_value_counts": {2: 0}}, False),
    ],
)
def test_metrics(filter: str, file: dict[str, Any], *, planned: bool) -> None:
    assert is_planned(filter, **file) is planned


@pytest.mark.parametrize(
    ("filter", "value", "planned"),
    [
        ("d is null", None, True),
        ("d is null", 1.0, False),
        ("d is null", math.nan, False),
        ("d is nan", math.nan, True),
        ("d is nan", 1.0, False),
        ("d is nan", None, False),
        ("d > 100", math.nan, True),
        ("d < 100", math.nan, False),
        ("d = 1", 1.0, True),
        ("d = 1", None, False),
    ],
)
def test_partition_values(filter: str, value: float | None, *, planned: bool) -> None:
    assert is_planned(filter, spec=BY_D, partition=(value,)) is planned


def may_match(filter: str, summary: PartitionFieldSummary | None) -> bool:
    manifest = ManifestFile(
        manifest_path="m",
        manifest_length=1,
        partition_spec_id=1,
        added_snapshot_id=1,
        partitions=None if summary is None else (summary,),
    )
    column = filter.partition(" ")[0]
    spec = partition_spec(SCHEMA, [(column, Identity())], spec_id=1)
    outcomes = Evaluator(bind(parse(filter), SCHEMA)).outcomes(SummaryStatistics([manifest], spec, SCHEMA))
    return bool(outcomes[0] & TRUE)


BOUNDED = PartitionFieldSummary(
    contains_null=False,
    contains_nan=False,
    lower_bound=encode_value(DOUBLE, 1.0),
    upper_bound=encode_value(DOUBLE, 2.0),
)
UNBOUNDED = PartitionFieldSummary(contains_null=False)


@pytest.mark.parametrize(
    ("filter", "summary", "possible"),
    [
        ("d = 3", None, True),
        ("d = 3", BOUNDED, False),
        ("d < 1", BOUNDED, False),
        ("d > 3", replace(BOUNDED, contains_nan=True), True),
        ("d > 3", replace(BOUNDED, contains_nan=None), True),
        ("d > 3", BOUNDED, True),  # that there is no NaN is not believed
        ("d is null", BOUNDED, False),
        ("d is null", replace(BOUNDED, contains_null=True), True),
        ("d = 3", UNBOUNDED, True),  # neither bounds nor nulls: nothing is known
        ("d = 3", replace(UNBOUNDED, contains_null=True), False),
        ("d = 3", replace(UNBOUNDED, contains_nan=True), False),
    ],
)
def test_summaries(filter: str, summary: PartitionFieldSummary | None, *, possible: bool) -> None:
    assert may_match(filter, summary) is possible


def test_bounds_of_uuids_in_signed_order_are_not_believed() -> None:
    as_bytes = [bytes.fromhex(text.replace("-", "")) for text in (HIGH, LOW)]  # Java's lower bound is the negative one
    summary = PartitionFieldSummary(contains_null=False, lower_bound=as_bytes[0], upper_bound=as_bytes[1])
    for value in (LOW, HIGH, "ffffffff-0000-0000-0000-000000000000"):
        assert may_match(f"u = '{value}'", summary)
        assert is_planned(f"u = '{value}'", lower_bounds={3: as_bytes[0]}, upper_bounds={3: as_bytes[1]})
