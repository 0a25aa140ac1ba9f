"""Scans in a session with DataFusion Comet, which is part of a session from its start.
`python -m tests.spark.comet_work FOLDER`"""

from __future__ import annotations

import datetime as dt
import gc
import math
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import icebench
from icebench.bench.engines.comet import with_comet
from icebench.bench.spark_session import spark_session
from icebench.engine.expressions.bound import BoundPredicate
from icebench.engine.spark.iceberg_tasks import iceberg_of
from icebench.engine.spark.native_scan import plan_to_dataframe
from icebench.engine.storage.local import LocalStore
from tests.property import table_model as model
from tests.property.test_read import filters
from tests.services.quick_spark import quick_settings
from tests.spark.deleted_tables import open_catalog, with_every_delete
from tests.spark.test_native_scan import same_bag

TASKS = "CometIcebergNativeScan"
FILES = "CometNativeScan"
STORE = LocalStore(durable=False)
FLAT = [f for f in model.NEW.fields if f.field_id in (model.D, model.S, model.K, model.F)]
EXAMPLES = 20


def physical(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def same_rows(frame: DataFrame, scan: icebench.Scan) -> bool:
    found = frame.toArrow()
    return found.sort_by("id").equals(scan.to_arrow().cast(found.schema).sort_by("id"))


def check_renamed_columns(spark: SparkSession, folder: Path) -> None:
    """Comet reads Spark's relations by name, whatever their session says of field ids."""
    rows = pa.table({"id": range(50), "s": [f"s{n}" for n in range(50)]})
    table = open_catalog(folder).create_table("db.renamed", rows.schema, properties={"format-version": "3"})
    table.append(rows)
    assert FILES in physical(table.scan().to_spark(spark))
    table.update_schema(lambda schema: schema.rename_column("s", "t"))
    table.append(rows.rename_columns(["id", "t"]).slice(0, 3))
    assert same_rows(table.scan().to_spark(spark), table.scan())
    assert FILES in physical(table.scan(columns=["id"]).to_spark(spark))
    table.delete("id % 10 = 1", "merge-on-read")
    frame = table.scan().to_spark(spark, native_deletes=True)
    assert TASKS in physical(frame), table.scan().explain(spark=spark)
    assert same_rows(frame, table.scan())
    assert TASKS not in physical(table.scan().to_spark(spark))
    assert same_rows(table.scan().to_spark(spark), table.scan())
    some = table.scan("t < 's3' or id > 40", columns=["id"])
    assert TASKS in physical(some.to_spark(spark, native_deletes=True)), some.explain(spark=spark)
    assert same_rows(some.to_spark(spark, native_deletes=True), some)


def check_partitions(spark: SparkSession, folder: Path) -> None:
    """Comet reads relations with partition columns, and prunes them by a join."""
    days = [n % 12 if n % 5 else None for n in range(120)]
    rows = pa.table({"id": range(120), "day": pa.array(days, pa.int32()), "s": [f"s{n % 3}" for n in range(120)]})
    table = open_catalog(folder).create_table(
        "db.by_day", rows.schema, partition_spec=[("day", "identity"), ("s", "identity")]
    )
    table.append(rows)
    frame = table.scan().to_spark(spark)
    assert FILES in physical(frame)
    assert same_rows(frame, table.scan())
    assert same_rows(frame.where("day is null and s = 's1'"), table.scan("day is null and s = 's1'"))
    dates = open_catalog(folder).create_table("db.dates", pa.schema([("day", pa.int32()), ("month", pa.int32())]))
    dates.append(pa.table({"day": pa.array(range(12), pa.int32()), "month": pa.array(range(12), pa.int32())}))
    joined = frame.join(dates.scan().to_spark(spark).where("month = 7"), "day").select(*rows.schema.names)
    assert "dynamicpruning" in physical(joined)
    assert same_rows(joined, table.scan("day = 7"))


def check_every_kind_of_delete(spark: SparkSession, folder: Path) -> None:
    table = with_every_delete(folder)
    frame = table.scan().to_spark(spark, native_deletes=True)
    assert TASKS in physical(frame), table.scan().explain(spark=spark)
    assert same_rows(frame, table.scan())
    assert TASKS not in physical(table.scan().to_spark(spark))
    assert same_rows(table.scan().to_spark(spark), table.scan())


def check_all_types(spark: SparkSession, folder: Path) -> None:
    moment = dt.datetime(2021, 3, 4, 5, 6, 7, 89, tzinfo=dt.UTC)
    columns: dict[str, tuple[pa.DataType, object]] = {
        "flag": (pa.bool_(), True),
        "i": (pa.int32(), -(2**31)),
        "l": (pa.int64(), 2**63 - 1),
        "f": (pa.float32(), -0.0),
        "d": (pa.float64(), math.nan),
        "short": (pa.decimal128(7, 2), Decimal("-12345.67")),
        "wide": (pa.decimal128(38, 3), Decimal("12345678901234567890123456789.012")),
        "day": (pa.date32(), dt.date(1500, 1, 2)),
        "t": (pa.timestamp("us"), moment.replace(tzinfo=None)),
        "tz": (pa.timestamp("us", tz="UTC"), moment),
        "s": (pa.string(), "\U0001f9ca"),
        "u": (pa.uuid(), uuid.UUID(int=5).bytes),
        "fix": (pa.binary(3), b"a\0b"),
        "b": (pa.binary(), b"\xff"),
    }
    arrays = {name: pa.array([value, value, None], type_) for name, (type_, value) in columns.items()}
    rows = pa.table({"id": pa.array([1, 2, 3]), **arrays})
    table = open_catalog(folder).create_table("db.types", rows.schema, properties={"format-version": "3"})
    table.append(rows)
    table.delete("id = 2", "merge-on-read")
    by_spark = repr(sorted(table.scan().to_spark(spark).collect()))
    for names in [["id"], *(["id", name] for name in columns), list(rows.schema.names)]:
        frame = table.scan(columns=names).to_spark(spark, native_deletes=True)
        assert TASKS in physical(frame), (names, table.scan(columns=names).explain(spark=spark))
        own = table.scan(columns=names).to_spark(spark)
        assert frame.schema == own.schema, names
        assert repr(sorted(frame.collect())) == repr(sorted(own.collect())), names
    assert repr(sorted(frame.collect())) == by_spark


def check_the_model(spark: SparkSession) -> None:
    """Evolved and partitioned tables with all kinds of deletes give the rows of the model."""
    seen: Counter[bool] = Counter()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,
    )
    @given(data=st.data(), residual=st.none() | filters())
    def check(data: st.DataObject, residual: BoundPredicate | None) -> None:
        with tempfile.TemporaryDirectory() as directory:
            new: Callable[[], model.ModelTable] = lambda: model.ModelTable(store=STORE, location=directory)  # noqa: E731
            is_native = data.draw(st.sampled_from([True, True, False]))
            table = data.draw(model.tables(new=new, equality=not is_native))
            filled = [place for place, written in enumerate(table.data) if written.rows]
            if is_native and filled:
                table.delete_positions({data.draw(st.sampled_from(filled)): [0]}, "file")
            columns = FLAT if is_native else list(model.NEW.fields)
            fields = data.draw(st.lists(st.sampled_from(columns), unique=True, min_size=1))
            projection = model.with_fields(model.NEW, fields)
            frame = plan_to_dataframe(spark, table.plan(projection, residual), STORE, native_deletes=is_native)
            seen[TASKS in physical(frame)] += 1
            found = model.given(projection, frame.toArrow().to_batches())
            assert same_bag(found, model.narrowed(table.expected(residual), projection))

    check()
    assert seen[True] > 2, seen


def check_lifetime(spark: SparkSession, folder: Path) -> None:
    """A task set stays while what was derived of its DataFrame is in use, and no longer than the next scan."""
    iceberg = iceberg_of(spark)
    assert iceberg is not None
    rows = pa.table({"id": range(100)})
    table = open_catalog(folder).create_table("db.lived", rows.schema, properties={"format-version": "3"})
    table.append(rows)
    table.delete("id < 10", "merge-on-read")
    before = set(iceberg.staged)
    derived = table.scan().to_spark(spark, native_deletes=True).where("id < 20")
    (kept,) = iceberg.staged.keys() - before
    for _ in range(10):
        table.scan().to_spark(spark, native_deletes=True)
    for _ in range(300):  # PySpark lets go of Java's objects a little later
        gc.collect()
        iceberg.jvm.java.lang.System.gc()
        if iceberg.alive.size() <= 2:
            break
        time.sleep(0.1)
    table.scan().to_spark(spark, native_deletes=True)
    assert len(iceberg.staged) <= 3
    assert kept in iceberg.staged
    assert derived.count() == 10


def main(folder: Path) -> None:
    spark = spark_session(with_comet(quick_settings(folder / "wh", memory="1g")))
    check_partitions(spark, folder / "partitions")
    check_renamed_columns(spark, folder / "renamed")
    check_every_kind_of_delete(spark, folder / "every")
    check_all_types(spark, folder / "types")
    check_lifetime(spark, folder / "lifetime")
    check_the_model(spark)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
