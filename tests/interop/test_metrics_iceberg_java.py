"""What our manifests say of the columns of a file, against what Iceberg Java's say of the same rows and properties.

A bound of ours holds for every value, by brute force. It is Java's to the byte, but for the differences named here.
"""

from __future__ import annotations

import json
import math
import struct
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

import icebench
from icebench.bench.setup_jars import is_cached
from icebench.engine.codec.metadata_json.partitioning import partition_spec_to_json
from icebench.engine.codec.metadata_json.schema import schema_to_json
from icebench.engine.columnar.scalars import from_arrow_array
from icebench.engine.columnar.schemas import child_fields, from_arrow_schema
from icebench.engine.formats.parquet.source import ParquetSource
from icebench.engine.inspect.contents import Contents
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import PrimitiveType
from icebench.engine.spec.values import decode_value
from icebench.engine.storage.local import LocalStore
from tests.interop.histories.language import Engine
from tests.interop.histories.places import Place, sql_place
from tests.interop.histories.rows_as_arrow import for_spark
from tests.interop.metrics_columns import SCHEMA, cycled, in_runs

pytestmark = [
    pytest.mark.skipif(not is_cached(), reason="Iceberg's Spark runtime is not in the Ivy cache"),
    pytest.mark.slow,
]

DEFAULT = "write.metadata.metrics.default"
COLUMN = "write.metadata.metrics.column."
INFERRED = "write.metadata.metrics.max-inferred-column-defaults"
SMALL_GROUPS = {
    "write.parquet.row-group-size-bytes": "8000",
    "write.parquet.row-group-check-min-record-count": "10",
    "write.parquet.row-group-check-max-record-count": "10",
}
CYCLED, IN_RUNS = 60, 400
TOP_LEVEL = sum(not child_fields(f.type) for f in SCHEMA)
"""Columns of the top level that are not nested."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """Args:
    properties: Of the table.
    version: Its format version.
    order: What the table is sorted by, in Spark's SQL.
    """

    properties: Mapping[str, str]
    version: int = 2
    order: str = ""

    @property
    def rows(self) -> pa.Table:
        return in_runs(IN_RUNS) if SMALL_GROUPS.items() <= self.properties.items() else cycled(CYCLED)


CASES = {
    "none": Case(properties={DEFAULT: "none"}, version=1),
    "counts": Case(properties={DEFAULT: "counts"}),
    "truncate(1)": Case(properties={DEFAULT: "truncate(1)"}, version=3),
    "truncate(16)": Case(properties={DEFAULT: "truncate(16)"}, version=1),
    "full": Case(properties={DEFAULT: "full"}),
    "small row groups": Case(properties={INFERRED: "1000", **SMALL_GROUPS}, version=3),
    "a limit among nested columns": Case(properties={INFERRED: str(TOP_LEVEL + 5)}),
    "a limit and an order": Case(properties={INFERRED: "10"}, order="text desc"),
    "columns of their own": Case(
        properties={
            DEFAULT: "counts",
            COLUMN + "text": "full",
            COLUMN + "raw": "truncate(3)",
            COLUMN + "id": "none",
            COLUMN + "day": "counts",
            COLUMN + "dec7": "TRUNCATE(4)",
            COLUMN + "struct.t": "truncate(2)",
            COLUMN + "deep.in.x": "none",
            COLUMN + "list.element": "none",
            COLUMN + "list_of_structs.element.x": "full",
            COLUMN + "map.value": "full",
        },
        version=3,
        order="day, text_order_of_utf16, raw_ff",
    ),
}

COUNTS = ("value_counts", "null_value_counts", "nan_value_counts")
BOUNDS = ("lower_bounds", "upper_bounds")

LOOSE_ZEROS = "zero"
"""Parquet's footers have a bound of zero as -0.0 below and +0.0 above (format, "Statistics"). Java finds the bounds of
floating point itself, and distinguishes the zeros; for us that would be one more pass, which no filter needs."""
LONG = ("text_long", "raw_long")
"""Footers that Arrow writes have no bounds of more than 4096 bytes; Java takes them before it writes the footer."""
WRONG_IN_JAVA = "uuid"
"""Java compares uuids as two signed longs where it puts row groups together (apache/iceberg issue 14216)."""
UNSORTED = 0
"""Java's sort order id of files that are not sorted. We leave the id out, which says the same (spec: "Sorting")."""


@dataclass
class Twins:
    """Tables of the same rows, one written by each engine."""

    case: Case
    rows: pa.Table
    tables: dict[str, icebench.Table] = field(default_factory=dict)

    def file(self, who: str) -> DataFile:
        """The one data file of a table."""
        table = self.tables[who]
        (entry,) = Contents(table.metadata, table.store).snapshot_entries(table.current_snapshot)
        return entry.data_file

    def metric_of(self, who: str, metric: str) -> dict[str, Any]:
        """What a map of the file's metrics says, by column."""
        names = self.tables[who].metadata.schema.name_of
        return {names[column]: value for column, value in getattr(self.file(who), metric).items()}


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = sql_place(spark, tmp_path_factory.mktemp("metrics"), "metrics_sql")
    yield made
    made.close()


@pytest.fixture(scope="module")
def frame_of(spark: SparkSession) -> Callable[[pa.Table], DataFrame]:
    """The rows in Spark, in one partition."""
    made: dict[int, DataFrame] = {}

    def frame(rows: pa.Table) -> DataFrame:
        if rows.num_rows not in made:
            made[rows.num_rows] = spark.createDataFrame(for_spark(rows)).coalesce(1)
        return made[rows.num_rows]

    return frame


@pytest.fixture(scope="module")
def twins_of(place: Place, frame_of: Callable[[pa.Table], DataFrame]) -> Callable[[str], Twins]:
    made: dict[str, Twins] = {}

    def twins(label: str) -> Twins:
        if label not in made:
            case = CASES[label]
            found = made[label] = Twins(case, case.rows)
            number = next(place.numbers)
            for who in ("ours", "java"):
                name = create(place, who, f"db.{who}{number}", case)
                if who == "java":
                    frame_of(found.rows).writeTo(f"{place.spark_catalog}.{name}").append()
                found.tables[who] = place.ours.load_table(name)
                if who == "ours":
                    found.tables[who].append(found.rows)
        return made[label]

    return twins


def create(place: Place, who: Engine, name: str, case: Case) -> str:
    schema, spec = from_arrow_schema(SCHEMA), PartitionSpec()
    texts = json.dumps(schema_to_json(schema)), json.dumps(partition_spec_to_json(spec))
    properties = {"format-version": str(case.version), "write.distribution-mode": "none", **case.properties}
    place.create(who, name, (schema, spec), texts, properties)
    if case.order:
        place.spark.sql(f"alter table {place.spark_catalog}.{name} write locally ordered by {case.order}")
    return name


@pytest.mark.parametrize("label", CASES)
def test_counts_are_those_of_java(label: str, twins_of: Callable[[str], Twins]) -> None:
    twins = twins_of(label)
    assert twins.file("ours").record_count == twins.file("java").record_count == twins.rows.num_rows
    for metric in COUNTS:
        assert twins.metric_of("ours", metric) == twins.metric_of("java", metric), metric
    assert set(twins.metric_of("ours", "column_sizes")) == set(twins.metric_of("java", "column_sizes"))
    assert all(size > 0 for size in twins.metric_of("ours", "column_sizes").values())


@pytest.mark.parametrize("label", CASES)
def test_bounds_hold_and_are_those_of_java(label: str, twins_of: Callable[[str], Twins]) -> None:
    twins = twins_of(label)
    schema = twins.tables["ours"].metadata.schema
    ours, java = ({m: twins.metric_of(who, m) for m in BOUNDS} for who in ("ours", "java"))
    for name, values in leaf_values(schema, twins.rows).items():
        type_ = schema.find(name).type
        assert isinstance(type_, PrimitiveType)
        keys = sorted(order_key(type_, v) for v in values if v is not None and v == v)  # noqa: PLR0124 - NaN
        for metric, low in zip(BOUNDS, (True, False), strict=True):
            mine, theirs = ours[metric].pop(name, None), java[metric].pop(name, None)
            if mine is not None:
                bound = order_key(type_, decode_value(type_, mine))
                assert bound <= keys[0] if low else bound >= keys[-1], (metric, name, mine)
            if mine != theirs:
                check_difference(twins, metric, name, values=keys, mine=mine, theirs=theirs)
    # Those inside lists and maps.
    assert not any(ours.values())
    assert not any(java.values())


def check_difference(
    twins: Twins, metric: str, name: str, *, values: list[Any], mine: bytes | None, theirs: bytes | None
) -> None:
    """Fail unless bounds differ in a way that is known."""
    low = metric == BOUNDS[0]
    what = (metric, name, mine, theirs)
    assert theirs is not None, what
    if name in LONG:
        assert mine is None, what
    elif name == WRONG_IN_JAVA:
        assert len(twins.file("java").split_offsets or ()) > 1, what
        assert theirs > values[0] if low else theirs < values[-1], what
    else:
        assert LOOSE_ZEROS in name, what
        assert mine is not None, what
        zeros = [struct.pack("<f" if len(mine) == 4 else "<d", zero) for zero in (-0.0, 0.0)]
        assert [mine, theirs] == (zeros if low else zeros[::-1]), what


@pytest.mark.parametrize("label", CASES)
def test_row_groups_and_order_are_reported(label: str, twins_of: Callable[[str], Twins]) -> None:
    twins = twins_of(label)
    for who in ("ours", "java"):
        file = twins.file(who)
        with ParquetSource(LocalStore(), file.file_path) as source:
            groups = [source.offset(i) for i in range(len(source.row_groups))]
        assert list(file.split_offsets or ()) == groups, who
        assert (len(groups) > 5) == (label == "small row groups"), who
    ours, java = twins.file("ours").sort_order_id, twins.file("java").sort_order_id
    assert (UNSORTED if ours is None else ours) == java
    assert (ours is None) == (not twins.case.order)


def test_no_rows_make_no_file(
    place: Place, frame_of: Callable[[pa.Table], DataFrame], twins_of: Callable[[str], Twins]
) -> None:
    twins = twins_of("counts")
    twins.tables["ours"].append(twins.rows.slice(0, 0))
    frame_of(twins.rows).limit(0).writeTo(f"{place.spark_catalog}.{twins.tables['java'].name}").append()
    for table in twins.tables.values():
        assert table.refresh().inspect.files().num_rows == 1
        assert len(table.snapshots) == 2


def test_bounds_that_java_has_wrong_hide_no_rows(twins_of: Callable[[str], Twins]) -> None:
    twins = twins_of("small row groups")
    own = [value for value in twins.rows.column("uuid").to_pylist() if value is not None]
    for value in set(own):
        for who, table in twins.tables.items():
            found = table.scan(filter=f"uuid = '{value}'", columns=["id"]).to_arrow()
            assert found.num_rows == own.count(value), (who, value)


def test_bounds_of_sorted_uuids_that_java_has_wrong_hide_no_rows(place: Place) -> None:
    """Each row group's bounds are ordered by bytes, and Java puts those of the groups together as signed numbers: where
    the second of two groups begins below 0x80, the file's upper bound is that of the first."""
    schema = from_arrow_schema(pa.schema([pa.field("u", pa.uuid(), metadata={"PARQUET:field_id": "1"})]))
    texts = json.dumps(schema_to_json(schema)), json.dumps(partition_spec_to_json(PartitionSpec()))
    wrong = 0
    for rows in (600, 800, 1_000):
        name = f"db.uuids{rows}"
        place.create("java", name, (schema, PartitionSpec()), texts, {"format-version": "2", **SMALL_GROUPS})
        own = [uuid.UUID(int=(number << 128) // rows + 5) for number in range(rows)]
        place.spark.createDataFrame([(str(each),) for each in own], "u string").coalesce(1).writeTo(
            f"{place.spark_catalog}.{name}"
        ).append()
        table = place.ours.load_table(name)
        (entry,) = Contents(table.metadata, table.store).snapshot_entries(table.current_snapshot)
        wrong += entry.data_file.upper_bounds[1] < own[-1].bytes
        for number in (0, rows // 3, rows // 2 + 1, rows * 2 // 3, rows - 1):
            assert table.scan(f"u = '{own[number]}'").to_arrow().num_rows == 1, (rows, number)
            assert table.scan(f"u > '{own[number]}'").to_arrow().num_rows == rows - 1 - number, (rows, number)
            assert table.scan(f"u <= '{own[number]}'").to_arrow().num_rows == number + 1, (rows, number)
    assert wrong


def leaf_values(schema: Schema, rows: pa.Table) -> dict[str, list[Any]]:
    """The values of each column that is not inside a list or map, as the specification represents them."""
    found: dict[str, list[Any]] = {}

    def visit(name: str, values: pa.ChunkedArray) -> None:
        if pa.types.is_struct(values.type):
            for place, inner in enumerate(values.type):
                visit(f"{name}.{inner.name}", pc.struct_field(values, [place]))
        elif not child_fields(values.type):
            found[name] = from_arrow_array(schema.find(name).type, values)  # type: ignore[arg-type]

    for name in rows.column_names:
        visit(name, rows.column(name))
    return found


def order_key(type_: PrimitiveType, value: Any) -> Any:
    """What orders as the specification orders: text and uuids by bytes, -0.0 before +0.0."""
    match type_.name:
        case "string":
            return value.encode()
        case "uuid":
            return value.bytes
        case "float" | "double":
            return value, math.copysign(1, value)
        case _:
            return value
