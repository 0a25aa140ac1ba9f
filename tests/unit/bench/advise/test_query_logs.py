"""Logs of queries: DuckDB's as it writes them, Trino's by the field names of its documentation, and damaged ones.

`tests/interop/test_query_logs.py` reads logs of Spark.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import icebench
from icebench.bench.advise.queries import Queries, read_queries
from icebench.bench.errors import ConfigError
from tests.unit.bench.cli.test_main import exit_code

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("city", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    made = icebench.load_catalog(str(tmp_path / "wh")).create_table("db.visits", SCHEMA)
    made.append(pa.table({"id": range(10), "day": [None] * 10, "city": ["x"] * 10}, schema=SCHEMA))
    return made


def asked(found: Queries) -> list[tuple[str | None, tuple[str, ...], float]]:
    return [(query.filter, query.columns, query.weight) for query in found.queries]


STATEMENTS = [
    "select city\nfrom visits -- of today; or 'so\nwhere id > 5 and city = 'a;b, \"c\"'",
    "with few as (select id from visits where id = 3)\nselect *\nfrom few",
    "select count(*) from other",
    "select city\nfrom visits -- again\nwhere id > 5 and city = 'a;b, \"c\"'",
    "select id from visits\nunion all\nselect id from other",
]
EXPECTED = [
    ('("city" = \'a;b, "c"\') and ("id" > 5)', ("id", "city"), 2.0),
    ('("id" = 3)', ("id",), 1.0),
    (None, ("id",), 1.0),
]


def played(connection: duckdb.DuckDBPyConnection) -> None:
    for statement in STATEMENTS:
        connection.execute(statement)


@pytest.fixture
def connection(table: icebench.Table) -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute("create table visits (id bigint, day date, city varchar); create table other (id bigint)")
    return made


def test_the_query_log_of_duckdb(table: icebench.Table, connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """Statements as they came, on lines of their own, with no semicolon between."""
    log = tmp_path / "queries.log"
    connection.execute(f"set log_query_path='{log}'")
    played(connection)
    connection.execute("set log_query_path=''")
    found = read_queries(log, table, dialect="duckdb")
    assert asked(found) == EXPECTED
    assert (found.unused, found.others) == ((), 2)  # other, and the setting


@pytest.mark.parametrize("storage", ["memory", "file"])
def test_the_logs_of_duckdb_as_csv(
    table: icebench.Table, connection: duckdb.DuckDBPyConnection, tmp_path: Path, storage: str
) -> None:
    """Other messages than queries do not count."""
    place = f", storage='file', storage_config={{'path': '{tmp_path}/logs'}}" if storage == "file" else ""
    connection.execute(f"call enable_logging(['QueryLog', 'FileSystem'], level='trace'{place})")
    (tmp_path / "some.csv").write_text("id\n1\n")
    connection.execute(f"select * from '{tmp_path}/some.csv'")  # opens a file, which is logged
    played(connection)
    log = tmp_path / "logs" / "duckdb_log_entries.csv"
    if storage == "memory":
        log = tmp_path / "log.csv"
        connection.execute(f"copy (select * from duckdb_logs) to '{log}'")
    connection.execute("call disable_logging()")
    with log.open(newline="") as file:
        types = [row["type"] for row in csv.DictReader(file)]
    assert "FileSystem" in types
    found = read_queries(log, table)
    assert asked(found) == EXPECTED
    assert (found.unused, found.others) == ((), types.count("QueryLog") - found.total_weight)


def test_scans_of_duckdb_that_name_the_place(table: icebench.Table, tmp_path: Path) -> None:
    script = tmp_path / "q.sql"
    metadata = table.metadata_location
    script.write_text(
        f"select id from iceberg_scan('{table.location}') where city = 'x'; "
        f"select s.id from iceberg_scan('{metadata}') s where s.city = 'y'; select id from iceberg_scan('/else');"
    )
    found = read_queries(script, table, dialect="duckdb")
    assert [query.filter for query in found.queries] == ["(\"city\" = 'x')", "(\"city\" = 'y')"]
    assert found.others == 1


def event(number: int, query: str, state: str = "FINISHED", **more: Any) -> dict[str, Any]:
    """An event of Trino's HTTP event listener, with the members that matter here."""
    return {
        "eventType": "QueryCompleted",
        "createTime": "2024-05-01T10:00:00Z",
        "context": {"user": "ann", "catalog": "lake", "schema": "db", "queryType": "SELECT"},
        "metadata": {"queryId": f"20240501_{number}", "query": query, "queryState": state, **more},
        "ioMetadata": {"inputs": []},
    }


TRINO = [
    event(1, "select city from lake.db.visits where id > 5", "QUEUED"),
    event(1, "select city from lake.db.visits where id > 5"),
    event(2, "select city from visits where id > 5"),
    event(3, "execute p using 3", preparedQuery="select id from visits where day = date '2024-05-01' and id = ?"),
    event(4, "show tables"),
    event(5, "selec id from visits"),
    event(6, "select approx_distinct(id) from other"),
]
OF_TRINO = [
    ('("id" > 5)', ("id", "city"), 2.0),
    ("(\"day\" = CAST('2024-05-01' AS DATE))", ("id", "day"), 1.0),
]


@pytest.mark.parametrize("packed", [False, True])
def test_events_of_trino(table: icebench.Table, tmp_path: Path, *, packed: bool) -> None:
    """A query that two events report counts once; what is no SQL is named."""
    lines = "\n".join([*map(json.dumps, TRINO), '{"metadata": 3}', '{"cut o']).encode()
    log = tmp_path / "events.jsonl"
    log.write_bytes(gzip.compress(lines) if packed else lines)
    found = read_queries(log, table)
    assert asked(found) == OF_TRINO
    assert found.others == 2
    assert [(each.query, each.text) for each in found.unused] == [
        ("q3", '"id" = ?'),
        ("q5", "selec id from visits"),
        ("q7", "{'metadata': 3}"),
        ("q8", '{"cut o'),
    ]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_exports_of_trinos_table_of_queries(table: icebench.Table, tmp_path: Path, form: str) -> None:
    rows = [
        {
            "query_id": each["metadata"]["queryId"],
            "state": "FINISHED",
            "user": "ann",
            "source": None,
            "query": each["metadata"].get("preparedQuery", each["metadata"]["query"]),
            "queued_time_ms": 1,
        }
        for each in TRINO
    ]
    log = tmp_path / f"queries.{form}"
    with log.open("w", encoding="utf-8", newline="") as file:
        if form == "csv":
            writer = csv.DictWriter(file, list(rows[0]), quoting=csv.QUOTE_ALL)
            writer.writeheader()
            writer.writerows(rows)
        else:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    assert asked(read_queries(log, table)) == OF_TRINO


def test_one_broken_statement_does_not_hide_the_others(table: icebench.Table, tmp_path: Path) -> None:
    script = tmp_path / "q.sql"
    script.write_text("select id from visits where (; -- weight: 3\nselect city from visits;\nselect 'open from visits")
    found = read_queries(script, table)
    assert asked(found) == [(None, ("city",), 3.0)]
    assert [each.reason.split(":")[0] for each in found.unused] == ["no SQL", "no SQL"]


def test_reports_of_scans_are_recognised(
    table: icebench.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "scans.jsonl"
    monkeypatch.setenv("ICEBENCH_SCAN_REPORTS", str(log))
    table.scan(filter="id = 3", columns=["city"]).plan()
    found = read_queries(log, table)
    assert [query.equalities for query in found.queries] == [("id",)]


def test_what_cannot_be_read_is_named(table: icebench.Table, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for data, message in (
        (b"\x82SNAPPY\0\0\0\0\1", "Snappy"),
        (b"ZV\1\0\x20\0\x30", "LZF"),
        (b"LZ4Block\x26\xff\0\0\0\xff\0\0\0", "cut off"),
        (b"\x28\xb5\x2f\xfd\0\0", "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (b'{"Event": "SparkListenerLogStart"}', "no query reads"),
    ):
        log.write_bytes(data)
        with pytest.raises(ConfigError, match=message):
            read_queries(log, table)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="without files of events"):
        read_queries(tmp_path / "empty", table)


def test_commands_take_logs(table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "events.jsonl"
    log.write_text("\n".join(map(json.dumps, TRINO)))
    assert exit_code("advise", table.location, "--queries", log, "--trials", "1", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["others"] == 2
    assert exit_code("advise", table.location, "--queries", log, "--trials", "1") == 0
    assert "2 statements that do not read the table" in capsys.readouterr().out
    assert exit_code("maintain", "columns", tmp_path / "wh", "db.visits", "--queries", log) == 1
    captured = capsys.readouterr()
    assert re.search(r"^id .* 100% +100%", captured.out, re.MULTILINE)
    assert "not understood: q5: selec id from visits: no SQL" in captured.err
