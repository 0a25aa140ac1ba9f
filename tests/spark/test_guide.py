"""The code of docs/guide/spark.md runs as it is written, in its order."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import icebench

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "spark.md"
FIRST = 1_577_750_400_000_000
"""2019-12-31."""
ROWS = pa.table(
    {
        "event_id": pa.array(range(100)),
        "user_id": pa.array([n % 10 for n in range(100)]),
        "ts": pa.array([FIRST + n * 3_600_000_000 for n in range(100)], pa.timestamp("us")),
        "country": ["DE", None] * 50,
    }
)


def test_the_page_runs_as_it_is_written(spark: SparkSession, tmp_path: Path) -> None:
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/wh/catalog.db", warehouse=f"{tmp_path}/wh")
    table, clicks, _ = (catalog.create_table(f"db.{name}", ROWS.schema) for name in ("events", "clicks", "copy"))
    for each in (table, clicks):
        each.append(ROWS)
    names = {"icebench": icebench, "spark": spark, "catalog": catalog, "table": table, "token": "t", "key": "k"}
    # Spark's processes have working directories of their own.
    page = PAGE.read_text().replace("sqlite:///wh", f"sqlite:///{tmp_path}/wh")
    page = page.replace('"wh"', f'"{tmp_path}/wh"').replace('"cp"', f'"{tmp_path}/cp"')
    for block in re.findall(r"^```py\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        exec(compile(block, str(PAGE), "exec"), names)
    for stream in spark.streams.active:
        try:
            stream.processAllAvailable()
        finally:
            stream.stop()
    for view in ("events", "clicks", "copy"):
        spark.catalog.dropTempView(view)
    # What is written last are rows of that user as they were.
    others = catalog.load_table("db.events").scan("user_id <> 7")
    assert sorted(set(others.to_arrow()["country"].to_pylist())) == ["DE", "XX"]
    assert others.narrowed("ts < '2020-01-01'").count() == 0
    assert catalog.load_table("db.copy").scan().to_arrow().sort_by("event_id") == ROWS
