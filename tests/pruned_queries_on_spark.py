"""Queries over views in one Spark session: by a view of `icebench.spark.register_view` as it is, by `prune_files`, and
by a view of Iceberg Java's. Ways are interleaved, answers are compared; medians are printed, in seconds by the clock
from the text of the query to its rows.

python -m tests.pruned_queries_on_spark [DAYS [ROUNDS]]
"""

from __future__ import annotations

import datetime as dt
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

import icebench
from icebench.bench.spark_session import SparkSettings, spark_session
from icebench.spark import prune_files, register_view

BEGIN = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
ROWS_OF_A_DAY = 1000
WARMUPS = 2


def rows_of(days: int) -> pa.Table:
    """Events in the order of their moments; their numbers grow with them."""
    count = days * ROWS_OF_A_DAY
    step = 86_400_000_000 // ROWS_OF_A_DAY
    moments = pa.array(np.arange(count) * step + int(BEGIN.timestamp()) * 1_000_000, pa.int64())
    moments = moments.cast(pa.timestamp("us", tz="UTC"))
    random = np.random.default_rng(1)
    user_ids = random.integers(0, 10_000, count)
    return pa.table({"at": moments, "day": moments.cast(pa.date32()), "id": np.arange(count), "user_id": user_ids})


def calendar_of(days: int) -> pa.Table:
    dates = [(BEGIN + dt.timedelta(days=day)).date() for day in range(days)]
    return pa.table({"day": dates, "month": [f"{date:%Y-%m}" for date in dates]})


def queries(days: int) -> dict[str, str]:
    day = (BEGIN + dt.timedelta(days=days // 2)).date()
    number = days // 3 * ROWS_OF_A_DAY
    return {
        "a day": f"select count(*), sum(user_id) from events where cast(at as date) = date '{day}'",
        "a month, of a join": "select name, count(*) from events join users using (user_id) where "
        f"at >= timestamp '{day} 00:00:00' and at < timestamp '{day}' + interval 30 days group by name order by name",
        "a month of a calendar, of a join": "select count(*), sum(user_id) from events join calendar using (day) "
        f"where month = '{day:%Y-%m}'",
        "the same, one file in ten with deletes": "select count(*), sum(user_id) from cleaned "
        f"join calendar using (day) where month = '{day:%Y-%m}'",
        "ten numbers": f"select * from events where id between {number} and {number + 9} order by id",
        "one user, whom nothing arranges": "select count(*), max(id) from events where user_id = 77",
        "all rows": "select count(*), sum(user_id) from events",
    }


def main() -> None:
    days = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Path(folder) / "warehouse"
        catalog = icebench.load_catalog(str(warehouse))
        rows = rows_of(days)
        events, cleaned = (
            catalog.create_table(f"db.{name}", rows.schema, partition_spec=[("at", "day")])
            for name in ("events", "cleaned")
        )
        events.append(rows)
        cleaned.append(rows)
        cleaned.delete("user_id = 77", "merge-on-read")
        names = pa.table({"user_id": range(10_000), "name": [f"group {n % 5}" for n in range(10_000)]})
        users = catalog.create_table("db.users", names.schema)
        users.append(names)
        dates = calendar_of(days)
        calendar = catalog.create_table("db.calendar", dates.schema)
        calendar.append(dates)
        spark = spark_session(SparkSettings(iceberg_warehouse=str(warehouse)))
        ours, java = spark.newSession(), spark.newSession()
        for name, table in (("events", events), ("cleaned", cleaned), ("users", users), ("calendar", calendar)):
            register_view(ours, name, table.scan())
            java.read.format("iceberg").load(table.metadata_location).createOrReplaceTempView(name)
        for what, text in queries(days).items():
            ways: dict[str, Callable[[], DataFrame]] = {
                "view": lambda text=text: ours.sql(text),  # type: ignore[misc]
                "prune_files": lambda text=text: prune_files(ours.sql(text)),  # type: ignore[misc]
                "iceberg-java": lambda text=text: java.sql(text),  # type: ignore[misc]
            }
            seconds: dict[str, list[float]] = {way: [] for way in ways}
            answers = set()
            for turn in range(WARMUPS + rounds):
                for way, make in ways.items():
                    began = time.perf_counter()
                    answers.add(repr(make().collect()))
                    if turn >= WARMUPS:
                        seconds[way].append(time.perf_counter() - began)
            if len(answers) > 1:
                raise AssertionError(f"{what}: {answers}")
            texts = [f"{way} {statistics.median(found):.2f}" for way, found in seconds.items()]
            sys.stdout.write(f"{what}: {', '.join(texts)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
