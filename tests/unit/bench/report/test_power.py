"""The table of power results."""

from __future__ import annotations

from dataclasses import replace

from icebench.bench.records.record import Record
from icebench.bench.report.compare import Records
from icebench.bench.report.model import Table
from icebench.bench.report.power import power_tables

ROUNDS = (1.0, 1.02, 0.98, 1.01, 0.99, 1.0)


def record(engine: str, query: str, seconds: float, *, rounds: int = len(ROUNDS), layout: str = "l") -> Record:
    """Of a single query."""
    return Record(
        workload="w",
        layout=layout,
        engine=engine,
        engine_version="1",
        measurement="queries",
        case=query,
        metric="query_time",
        unit="s",
        samples=tuple(seconds * each for each in ROUNDS[:rounds]),
    )


def cells(table: Table) -> dict[str, list[str]]:
    """Texts by engine."""
    return {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}


def test_ratios_are_of_the_means_and_of_the_sums() -> None:
    records = Records(
        (
            record("icebench", "q1", 1.0),
            record("icebench", "q2", 8.0),
            record("iceberg-java", "q1", 2.0),
            record("iceberg-java", "q2", 4.0),
        )
    )
    (table,) = power_tables(records)
    assert table.title == "Power: all queries, relative to iceberg-java"
    found = cells(table)
    # The ratios are 0.5 and 2; the sums 9 and 6.
    assert found["icebench"] == ["2 of 2", "1.00x", "1.50x", "2.83 s", "9 s"]
    assert found["iceberg-java"] == ["2 of 2", "1", "1", "2.83 s", "6 s"]
    (detail,) = {row[3].detail for row in table.rows if row[0].text == "icebench"}
    low, high = (float(end.rstrip("x")) for end in detail.strip("[]").split(", "))
    assert low < 1.5 < high


def test_queries_that_an_engine_lacks_are_left_out_of_its_ratio() -> None:
    records = Records(
        (
            record("icebench", "q1", 1.0),
            record("icebench", "q2", 3.0),
            record("duckdb", "q1", 0.5),
            record("polars", "q2", 3.0),
            record("polars", "q3", 1.0),
        )
    )
    (table,) = power_tables(records)
    found = cells(table)
    assert table.title.endswith("relative to icebench")
    assert found["duckdb"][:3] == ["1 of 3", "0.50x", "0.50x"]
    assert found["polars"][:3] == ["2 of 3", "1.00x", "1.00x"]
    # There is no query that all have.
    assert {tuple(each[3:]) for each in found.values()} == {("-", "-")}


def test_sums_are_of_rounds_that_all_queries_have() -> None:
    records = Records(
        (
            record("iceberg-java", "q1", 1.0),
            record("iceberg-java", "q2", 1.0, rounds=1),
            record("icebench", "q1", 3.0),
            record("icebench", "q2", 1.0, rounds=2),
        )
    )
    (table,) = power_tables(records)
    assert cells(table)["icebench"][2] == "2x"


def test_one_engine_or_one_query_has_no_power() -> None:
    assert not list(power_tables(Records((record("a", "q1", 1.0), record("a", "q2", 1.0)))))
    assert not list(power_tables(Records((record("a", "q1", 1.0), record("b", "q1", 1.0)))))


def streams(engine: str, seconds: float) -> list[Record]:
    """Of four streams of six queries each."""
    time = replace(record(engine, "4 streams", seconds), metric="streams_time")
    asked = tuple(24 * 3600 / each for each in time.samples)
    return [time, replace(time, metric="throughput", unit="queries/h", samples=asked, summary={})]


def test_throughput_stands_beside_power() -> None:
    records = Records(
        (
            *(record(engine, query, 1.0) for engine in ("icebench", "iceberg-java", "duckdb") for query in ("a", "b")),
            *streams("icebench", 12.0),
            *streams("iceberg-java", 24.0),
        )
    )
    (table,) = power_tables(records)
    assert table.title == "Power: all queries, relative to iceberg-java; throughput"
    assert table.columns[-2:] == ("Time of 4 streams", "Throughput")
    found = cells(table)
    assert found["icebench"][-2:] == ["0.50x", "7.2 k queries/h"]
    assert found["iceberg-java"][-2:] == ["1", "3.6 k queries/h"]
    assert found["duckdb"][-2:] == ["-", "-"]
    # Streams are no query.
    assert {each[0] for each in found.values()} == {"2 of 2"}
    (detail,) = {row[-1].detail for row in table.rows if row[0].text == "icebench"}
    assert detail == "[7.06, 7.35]"


def test_throughput_without_that_of_the_reference() -> None:
    single = [record(engine, query, 1.0) for engine in ("iceberg-java", "duckdb") for query in ("a", "b")]
    (table,) = power_tables(Records((*single, *streams("duckdb", 24.0))))
    assert cells(table)["duckdb"][-2:] == ["-", "3.6 k queries/h"]


def test_one_engine_has_throughput() -> None:
    (table,) = power_tables(Records((record("icebench", "a", 1.0), *streams("icebench", 24.0))))
    assert cells(table) == {"icebench": ["1 of 1", "1", "1", "1 s", "1 s", "1", "3.6 k queries/h"]}
    assert not list(power_tables(Records(tuple(streams("icebench", 24.0)))))


def test_stability_is_what_queries_take_longer_after_maintenance() -> None:
    seconds = {"l": (1.0, 8.0), "3 refreshes": (2.0, 16.0), "3 refreshes, compacted": (1.0, 8.0)}
    records = [
        record(engine, query, each, layout=layout)
        for engine in ("icebench", "duckdb")
        for layout, both in seconds.items()
        for query, each in zip(("a", "b"), both, strict=True)
    ]
    more = (record("polars", "a", 1.0), record("polars", "a", 4.0, layout="3 refreshes"))
    *others, table = power_tables(Records((*records, *more)))
    assert [other.title for other in others] == [
        f"Power: all queries over {layout}, relative to icebench" for layout in seconds
    ]
    assert table.title == "Stability: all queries, relative to those over l"
    assert table.columns == ("Engine", "3 refreshes", "3 refreshes, compacted")
    assert cells(table) == {"icebench": ["2x", "1.00x"], "duckdb": ["2x", "1.00x"], "polars": ["4x", "-"]}


def test_one_set_of_tables_has_no_stability() -> None:
    found = power_tables(Records(tuple(record(engine, query, 1.0) for engine in "xy" for query in "ab")))
    assert [table.short for table in found] == ["power"]
