"""TPC-DS over tables of this engine, by Spark and by DuckDB, against DuckDB over tables of its own.

The campaign goes through all queries, formats and histories, in parts that resume: see
`tests.interop.tpcds.progress`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Timer

import duckdb
import pytest
from pyspark.sql import SparkSession

import icebench
from icebench.bench.engines.duckdb_queries import configure
from icebench.bench.truth.queries import Query
from icebench.bench.truth.query_answers import Row
from tests.interop.tpcds.histories import FORMATS, HISTORIES, write_table
from tests.interop.tpcds.progress import ENGINES, Progress, kept_table
from tests.interop.tpcds.queries import TABLES, Reference

SMALL, FULL = 0.01, 0.1
"""The scale of the usual run and that of the campaign."""
SOME = (26, 40, 46, 51, 53, 67, 76, 79, 97, 98)
"""Joins (outer ones in 40 and 97), decimals, dates (40, 98), nulls (76), averages (26), a rollup (67) and windows (51,
53, 67, 98), all with rows at the small scale."""
PATIENCE_SECONDS = 60
EVENTFUL = frozenset({"store_sales", "catalog_sales", "item", "customer"})
"""The tables of the usual run that have a history; the others are appended to once. All are Parquet."""

Ask = Callable[[Query], list[Row]]
reference = cache(Reference)


def ask_duckdb(tables: Iterable[icebench.Table]) -> Ask:
    """By views of `Scan.to_duckdb`.

    DuckDB knows no cardinalities of Arrow sources, and joins those of two queries (64, 85) in an order that takes hours
    and all memory. What takes long is asked again, of the scans' rows in tables of its own.
    """
    by_name = {table.name.rpartition(".")[2]: table for table in tables}
    views, copies = duckdb.connect(), duckdb.connect()
    configure(views)
    configure(copies)
    for name, table in by_name.items():
        table.scan().to_duckdb(views).create_view(name)

    def ask(query: Query) -> list[Row]:
        patience = Timer(PATIENCE_SECONDS, views.interrupt)
        patience.start()
        try:
            return views.execute(query.in_dialect("duckdb")).fetchall()
        except duckdb.InterruptException:
            pass
        finally:
            patience.cancel()
        for name in query.tables:
            rows = by_name[name].scan().to_batches()  # noqa: F841 - DuckDB's source
            copies.execute(f"CREATE TABLE IF NOT EXISTS {name} AS FROM rows")
        return copies.execute(query.in_dialect("duckdb")).fetchall()

    return ask


@contextmanager
def ask_spark(spark: SparkSession, tables: Iterable[icebench.Table], catalog: Path) -> Iterator[Ask]:
    """Parquet by `Scan.to_spark`, other formats by the data source, which reads a table whole in any case: once."""
    icebench.spark.register(spark)
    views = []
    for table in tables:
        name = table.name.rpartition(".")[2]
        if table.properties["write.format.default"] == "parquet":
            frame = table.scan().to_spark(spark)
        else:
            frame = spark.read.format("icebench").option("catalog", str(catalog)).load(table.name).cache()
        frame.createOrReplaceTempView(name)
        views.append((name, frame))
    try:
        yield lambda query: [tuple(row) for row in spark.sql(query.in_dialect("spark")).collect()]
    finally:
        for name, frame in views:
            frame.unpersist()
            spark.catalog.dropTempView(name)


@contextmanager
def asking(request: pytest.FixtureRequest, name: str, tables: Iterable[icebench.Table], catalog: Path) -> Iterator[Ask]:
    if name == "duckdb":
        yield ask_duckdb(tables)
    else:
        with ask_spark(request.getfixturevalue("spark"), tables, catalog) as ask:
            yield ask


# The usual run.


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tpcds")


@pytest.fixture(scope="module")
def tables(warehouse: Path) -> list[icebench.Table]:
    source = reference(SMALL)
    catalog = icebench.load_catalog(str(warehouse))
    needed = sorted({name for number in SOME for name in source.queries[number].tables})
    histories = {name: "short" if name in EVENTFUL else "plain" for name in needed}
    return [
        write_table(catalog, name, source.rows(name), history=history, file_format="parquet")
        for name, history in histories.items()
    ]


def wrong(ask: Ask) -> dict[int, str]:
    source = reference(SMALL)
    found = {number: source.answer(number).fault_of(ask(source.queries[number])) for number in SOME}
    return {number: difference for number, difference in found.items() if difference is not None}


def test_every_one_of_the_queries_has_rows() -> None:
    assert all(reference(SMALL).answer(number).ranked for number in SOME)


def test_duckdb_answers_ten_queries(tables: list[icebench.Table]) -> None:
    assert wrong(ask_duckdb(tables)) == {}


@pytest.mark.spark
def test_spark_answers_ten_queries(spark: SparkSession, warehouse: Path, tables: list[icebench.Table]) -> None:
    with ask_spark(spark, tables, warehouse) as ask:
        assert wrong(ask) == {}


# The campaign.


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("history", [history for history in HISTORIES if history not in {"short", "plain"}])
@pytest.mark.parametrize("file_format", FORMATS)
def test_all_answers(request: pytest.FixtureRequest, file_format: str, history: str, name: str) -> None:
    source = reference(FULL)
    progress = Progress.of(FULL, file_format, history, name)

    def write(catalog: icebench.Catalog, table: str) -> icebench.Table:
        return write_table(catalog, table, source.rows(table), history=history, file_format=file_format)

    tables = [kept_table(progress.warehouse, table, write) for table in TABLES]
    with asking(request, name, tables, progress.warehouse) as ask:
        for number, query in source.queries.items():
            if number not in progress.right:
                progress.record(number, source.answer(number).fault_of(ask(query)))
    assert progress.wrong == {}
    assert len(progress.right) == 99
