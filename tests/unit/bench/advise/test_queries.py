from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import icebench
from icebench.bench.advise.queries import Query, logged_queries, parse_queries
from icebench.bench.errors import ConfigError
from tests.unit.bench.cli.test_main import exit_code

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("Day", pa.date32()),
        ("city", pa.string()),
        ("k", pa.int32()),
        ("address", pa.struct([("zip", pa.string())])),
        ("a.b", pa.int64()),
    ]
)


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    return icebench.load_catalog(str(tmp_path)).create_table("db.visits", SCHEMA)


def test_conditions_that_concern_the_table_alone_become_its_filter(table: icebench.Table) -> None:
    found = parse_queries(
        "select v.id, d.name from db.visits v join dim d on v.k = d.k and v.city = 'x' "
        "where v.day >= date '2024-01-01' + interval '30' day and d.year = 2000 and (v.id < 5 or v.id > 9)",
        table,
    )
    (query,) = found.queries
    assert query == Query(
        name="q1",
        filter="""("city" = 'x') and ("Day" >= CAST('2024-01-31' AS DATE)) and ("id" < 5 OR "id" > 9)""",
        columns=("id", "Day", "city", "k"),
        equalities=("city",),
        ranges=("Day", "id"),
        join_keys=("k",),
    )
    assert [each.reason for each in found.unused] == ["compares with another table"]


@pytest.mark.parametrize(
    ("sql", "filter", "columns"),
    [
        ("select * from visits", None, ("id", "Day", "city", "k", "address", "a.b")),
        ("select v.id from visits v join dim d using (K, year)", None, ("id", "k")),
        ("select d.*, v.k from visits v join dim d on v.k = d.k", None, ("k",)),
        ("select v.*, d.k from visits v join dim d on v.k = d.k", None, ("id", "Day", "city", "k", "address", "a.b")),
        ("select wh.db.visits.* from wh.db.visits", None, ("id", "Day", "city", "k", "address", "a.b")),
        ("select * except (id, k) from visits", None, ("id", "Day", "city", "k", "address", "a.b")),
        ("select *, 1 as one from visits", None, ("id", "Day", "city", "k", "address", "a.b")),
        ("select address.*, d.* from visits, dim d", None, ("address",)),
        ("select hash(v.*) from visits v, dim d", None, ("id", "Day", "city", "k", "address", "a.b")),
        ("select count(*) from visits where address.zip = '1'", "(\"address.zip\" = '1')", ("address",)),
        ('select v."a.b" from visits v where v."A.B" < 1', '("a.b" < 1)', ("a.b",)),
        (
            "with visits as (select 1 as id) select v.id from visits v join db.visits w on true where w.k = 1",
            '("k" = 1)',
            ("k",),
        ),
        ("insert into o select id from visits where city in ('a', 'b')", "(\"city\" IN ('a', 'b'))", ("id", "city")),
        ("select id from visits v left join dim d on d.k = v.k and v.id = 3 where v.k = 2", '("k" = 2)', ("id", "k")),
        (
            "select d.k from dim d left join visits v on d.k = v.k and v.id = 3 where v.city is null",
            '("id" = 3)',
            ("id", "city", "k"),
        ),
        ("select id from wh.db.visits where exists (select 1 from dim d where d.k = visits.k)", None, ("id", "k")),
        (
            "select d.id from dim d where exists (select 1 from visits where d.k > 3 and d.k = id and k = 2)",
            '("k" = 2)',
            ("id", "k"),
        ),
        (
            "select d.id from dim d where d.k in (select v.k from db.visits v where v.id = d.id and v.city = 'x')",
            "(\"city\" = 'x')",
            ("id", "city", "k"),
        ),
    ],
)
def test_what_is_read(table: icebench.Table, sql: str, filter: str | None, columns: tuple[str, ...]) -> None:
    (query,) = parse_queries(sql, table).queries
    assert (query.filter, query.columns) == (filter, columns)


@pytest.mark.parametrize("side", ["", "left", "right", "full", "semi", "left semi", "anti", "left anti"])
def test_a_condition_of_a_join_is_a_filter_where_no_answer_changes(table: icebench.Table, side: str) -> None:
    database = duckdb.connect()
    database.execute("create table visits as select a as id, b as k from range(4) x(a), range(4) y(b)")
    database.execute("create table dim as select c as k, 2000 + c as year from range(2, 6) z(c)")

    def answer(sql: str) -> list[str]:
        return sorted(map(repr, database.sql(sql).fetchall()))

    for sources in (f"visits v {side} join dim d", f"dim d {side} join visits v"):
        sql = f"select * from {sources} on v.k = d.k and v.id > 1 and d.year < 2004"
        (query,) = parse_queries(sql, table, dialect="spark").queries
        ours = sql.replace("left semi", "semi").replace("left anti", "anti")
        is_filter = answer(ours) == answer(ours.replace("visits v", "(from visits where id > 1) v"))
        assert query.filter == ('("id" > 1)' if is_filter else None)


@pytest.mark.parametrize(
    ("sql", "filter", "columns", "joins"),
    [
        ("delete from visits v where v.id = 3 and k in (select k from d)", '("id" = 3)', ("id", "k"), ("k",)),
        ("delete from visits using d where visits.k = d.k and id = 3", '("id" = 3)', ("id", "k"), ("k",)),
        ("update visits set k = id + 1 where city = 'x'", "(\"city\" = 'x')", ("id", "city", "k"), ()),
        ("update visits set k = 1", None, ("k",), ()),
        (
            "with e as (select * from d) update visits set k = e.x from e where id = e.id and city = 'x'",
            "(\"city\" = 'x')",
            ("id", "city", "k"),
            ("id",),
        ),
        (
            (
                "merge into visits v using (select k, x from d) s on v.k = s.k and v.id > 3 "
                "when matched and v.city = 'x' then update set day = s.x when matched then delete"
            ),
            '("id" > 3)',
            ("id", "Day", "city", "k"),
            ("k",),
        ),
        (
            (
                "merge into visits using d on visits.k = d.k and visits.id > 3 when matched then delete "
                "when not matched then insert (k, city) values (d.k, d.city)"
            ),
            '("id" > 3)',
            ("id", "k"),
            ("k",),
        ),
        (
            (
                "merge into visits using d on visits.k = d.k and visits.id > 3 when matched then delete "
                "when not matched by source and day < date '2024-01-01' then delete"
            ),
            None,
            ("id", "Day", "k"),
            (),
        ),
        (
            (
                "merge into other using visits v on v.k = other.k and v.id > 3 "
                "when not matched then insert values (v.city)"
            ),
            None,
            ("id", "city", "k"),
            (),
        ),
        (
            "merge into visits using d on visits.k = d.k when not matched then insert *",
            None,
            ("k",),
            ("k",),
        ),
        (
            "with e as (select k from visits where id = 3) delete from other where k in (select k from e)",
            '("id" = 3)',
            ("id", "k"),
            (),
        ),
        (
            "merge into other using visits on visits.k = other.k when not matched then insert *",
            None,
            ("id", "Day", "city", "k", "address", "a.b"),
            (),
        ),
    ],
)
def test_statements_that_change_rows_read_them(
    table: icebench.Table, sql: str, filter: str | None, columns: tuple[str, ...], joins: tuple[str, ...]
) -> None:
    found = parse_queries(sql, table, dialect="spark")
    (query,) = found.queries
    assert (query.filter, query.columns, query.join_keys) == (filter, columns, joins)
    assert not found.not_understood


@pytest.mark.parametrize(
    ("sql", "filter"),
    [
        ("select * from a left join visits v on a.id = v.id join b on v.k is null and v.id > 3", '("id" > 3)'),
        ("select * from visits v right join a on a.id = v.id join b on v.k is null and v.id > 3", '("id" > 3)'),
        ("select * from a join visits v on v.k is null left join b on a.id = b.id", '("k" IS NULL)'),
        ("select * from a left join visits v on a.id = v.id join b on a.k = b.k where v.k is null", None),
        ("select * from a left join visits v on v.k is null", '("k" IS NULL)'),
        ("select * from a left join visits v on a.id = v.id where v.k <=> null and v.id > 3", '("id" > 3)'),
        ("select * from a left join visits v on a.id = v.id where v.id is distinct from 4", None),
        ("select * from a left join visits v on a.id = v.id where if(v.id > 3, false, true)", None),
        ("select * from a left join visits v on a.id = v.id where case when v.id > 3 then false else true end", None),
        ("select * from a join visits v on a.id = v.id where v.k <=> 3", '("k" IS NOT DISTINCT FROM 3)'),
    ],
)
def test_conditions_on_rows_that_outer_joins_lack(table: icebench.Table, sql: str, filter: str | None) -> None:
    (query,) = parse_queries(sql, table, dialect="spark").queries
    assert query.filter == filter


def test_what_is_not_used_is_named(table: icebench.Table) -> None:
    found = parse_queries(
        "select id from visits where upper(city) = 'X' and id = 'no number' and k = id and k in (select k from d); "
        "select d.k from d left join visits v on d.k = v.k where v.id is null; "
        "truncate table visits; delete from visits; set x = 1",
        table,
    )
    reasons = [(each.query, each.reason.split(":")[0]) for each in found.unused]
    assert [query for query, _ in reasons] == ["q1", "q1", "q1", "q1", "q2", "q2", "q3", "q4"]
    expected = {"compares with a subquery", "is no query", "compares with another table"}
    assert {reason for _, reason in reasons} > expected | {"also finds rows that an outer join lacks"}
    assert [query.filter for query in found.queries] == [None, None]
    assert found.others == 1


def test_a_column_that_the_table_does_not_have_is_named(table: icebench.Table) -> None:
    found = parse_queries(
        "select id from visits where nope = 1 and k = 2; "
        "select d.k from dim d where exists (select 1 from visits where d.year = 3 and id = 1); "
        "select id from visits v join dim d on d.id = v.id where d.year = 1",
        table,
    )
    assert [(each.query, each.text, each.reason, each.is_understood) for each in found.unused] == [
        ("q1", "nope", "the table has no such column", False),
        ("q3", "d.id = v.id", "compares with another table", True),
    ]
    assert [(query.name, query.filter) for query in found.queries] == [("q2", '("id" = 1)'), ("q3", None)]


@pytest.mark.parametrize(
    ("sql", "unknown"),
    [
        ("select nope from visits", "nope"),
        ("select v.nope, d.other from visits v join dim d on v.k = d.k", "v.nope"),
        ("select id from visits order by nope, address.street", "nope, address.street"),
        ("select k as a, count(*) as n from visits group by a having n > 1 order by n", None),
        ("select _file, v._pos, v.* from db.visits v where v.tags.size = 1", None),
        ("select id from visits where k in (select year from dim)", None),
        ("select d.a, b from visits v join dim d on v.k = d.k", None),
        ("with t as (select id as x from visits) select x from t where x > 1", None),
    ],
)
def test_unknown_columns_and_those_of_other_tables(tmp_path: Path, sql: str, unknown: str | None) -> None:
    schema = pa.schema([*SCHEMA, ("tags", pa.map_(pa.string(), pa.int64()))])
    table = icebench.load_catalog(str(tmp_path)).create_table("db.visits", schema)
    found = parse_queries(f"select 1 as one from visits; {sql}", table)
    assert [each.text for each in found.not_understood] == ([] if unknown is None else [unknown])
    assert len(found.queries) == (2 if unknown is None else 1)
    if unknown is not None:
        with pytest.raises(ConfigError, match=f"q1: {unknown}: the table has no such column"):
            parse_queries(sql, table)


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("select id from visits natural left join dim", "NATURAL LEFT JOIN dim"),
        ("select x from (select id as x from visits) v natural join dim", "NATURAL JOIN dim"),
        ("select columns('i.*') from visits", "COLUMNS('i.*')"),
        ("select #3 from visits", "#3"),
        ("select id from visits order by #2", "#2"),
    ],
)
def test_queries_that_do_not_name_their_columns(table: icebench.Table, sql: str, shown: str) -> None:
    others = "select id from visits; select * from dim natural join other"
    found = parse_queries(f"{sql}; {others}", table, dialect="duckdb")
    assert [(each.query, each.text) for each in found.not_understood] == [("q1", shown)]
    assert [query.name for query in found.queries] == ["q2"]
    assert found.others == 1


def test_a_key_of_a_map_reads_the_map(tmp_path: Path) -> None:
    schema = pa.schema([*SCHEMA, ("tags", pa.map_(pa.string(), pa.int64()))])
    table = icebench.load_catalog(str(tmp_path)).create_table("db.visits", schema)
    (query,) = parse_queries("select id from visits where tags.size = 1", table).queries
    assert query.columns == ("id", "tags")


def test_statements_that_sqlglot_takes_for_commands(table: icebench.Table) -> None:
    found = parse_queries(
        "create table x as select id frm visits; explain select nope from visits; vacuum visits; selct id; checkpoint; "
        "create table x as select id frm other; select id from visits",
        table,
    )
    assert [each.query for each in found.not_understood] == ["q1", "q4"]
    assert found.others == 4


@pytest.mark.parametrize(
    "sql",
    [
        "pivot visits on city using sum(k)",
        "unpivot visits on city, k into name n value v",
        "create table x as pivot visits on city using sum(k)",
        "select * from (pivot visits on city using sum(k))",
        "with p as (pivot visits on city using sum(k)) select * from p",
        "with p as (unpivot visits on k into name n value v) select id from p",
        "select count(*) from visits v join (pivot other on year using sum(x)) p on true",
        "select count(*) from visits join (pivot visits on city using sum(k)) p on true",
        "copy visits to 'x.csv'",
        "copy visits (id, k) to 'x.csv'",
        "explain analyze select k from visits",
        "explain (analyze) select k from visits",
        "create table x like visits",
        "analyze table visits compute statistics for columns k",
        "cache table visits",
        "delete from other using visits",
    ],
)
def test_statements_of_which_it_is_not_known_what_they_read(table: icebench.Table, sql: str) -> None:
    found = parse_queries(f"select id from visits; {sql}; {sql.replace('visits', 'another')}", table, dialect="duckdb")
    assert [each.query for each in found.not_understood] == ["q2"]
    assert [query.name for query in found.queries] == ["q1"]


@pytest.mark.parametrize(
    "sql",
    [
        "describe visits",
        "drop table visits",
        "alter table visits add column x int",
        "comment on table visits is 'x'",
        "create table visits (id int)",
        "insert into visits values (1)",
        "copy visits from 'x.csv'",
        "analyze visits",
        "delete from visits",
    ],
)
def test_statements_that_read_no_rows(table: icebench.Table, sql: str) -> None:
    found = parse_queries(f"select id from visits; {sql}", table, dialect="duckdb")
    assert [(each.query, each.reason, each.is_understood) for each in found.unused] == [("q2", "is no query", True)]
    assert [query.name for query in found.queries] == ["q1"]


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("delete from visits returning city", ("city",)),
        ("update visits set k = 1 returning city", ("city", "k")),
        (
            "with e as (select k from visits), f as (select id from visits) insert into x select k from e, f",
            ("id", "k"),
        ),
        ("select id from visits pivot (sum(k) for city in ('a'))", ("id", "Day", "city", "k", "address", "a.b")),
        ("with recursive r as (select id from visits union all select v.k from r, visits v) from r", ("id", "k")),
        ("with visits as (select k as id from db.visits) select id from visits", ("k",)),
        ("select * from (visits v join dim d on v.k = d.k)", ("id", "Day", "city", "k", "address", "a.b")),
    ],
)
def test_columns_of_all_scans_of_a_statement(table: icebench.Table, sql: str, columns: tuple[str, ...]) -> None:
    found = parse_queries(sql, table)
    assert not found.not_understood
    assert {column for query in found.queries for column in query.columns} == set(columns)


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select id from visits qualify row_number() over (partition by city order by k) = 1", ("id", "city", "k")),
        ("select id from visits qualify count(*) over (partition by k) = 1", ("id", "k")),
        ("select id, row_number() over (order by city) as n from visits qualify n = 1", ("id", "city")),
        ("select id from visits group by id having max(k) > 1", ("id", "k")),
        ("select city as n, count(*) as c from visits group by n having c > 1", ("city",)),
    ],
)
def test_columns_that_are_read_after_groups_and_windows(
    table: icebench.Table, sql: str, columns: tuple[str, ...]
) -> None:
    found = parse_queries(sql, table, dialect="duckdb")
    assert [query.columns for query in found.queries] == [columns]
    assert not found.not_understood


def test_reported_scans_of_columns_that_are_gone(table: icebench.Table) -> None:
    lines = [
        json.dumps({"location": table.location, "filter": filter, "columns": columns})
        for filter, columns in (("gone = 3", ["id"]), ("true", ["id", "gone"]), ("true", ["address.zip"]))
    ]
    found = logged_queries(lines, table)
    assert [(each.query, each.text) for each in found.not_understood] == [("s1", "gone"), ("s2", "gone")]
    assert [query.name for query in found.queries] == ["s3"]
    with pytest.raises(ConfigError, match="s1: gone: the table has no such column"):
        logged_queries(lines[:1], table)


def test_weights(table: icebench.Table) -> None:
    found = parse_queries(
        "-- weight: 5\nselect id from visits where k = 1;\nselect id from visits where k = 2;\n"
        "select id from visits as v where v.k = 2;\n/* weight 2.5 */\nselect 1 from visits where k = 3;",
        table,
    )
    assert [(query.name, query.weight) for query in found.queries] == [("q1", 5.0), ("q2", 2.0), ("q4", 2.5)]
    assert found.total_weight == 9.5
    found = parse_queries("-- weight: 0\nselect id from visits where k = 1; select id from visits where k = 2", table)
    assert [(query.name, found.others) for query in found.queries] == [("q2", 0)]
    with pytest.raises(ConfigError, match=r"all queries that read a table 'db\.visits' have weight 0"):
        parse_queries("select id from visits -- weight: 0", table)


@pytest.mark.parametrize(
    ("text", "weight"),
    [("1,000", 1000), ("1_000", 1000), ("1e3", 1000), (".5", 0.5), ("2.5e-1", 0.25), ("3, each hour", 3), ("7;", 7)],
)
def test_weights_are_read_whole(table: icebench.Table, text: str, weight: float) -> None:
    (query,) = parse_queries(f"/* weight: {text} */ select id from visits where k = 1", table).queries
    assert query.weight == weight


@pytest.mark.parametrize("text", ["-1", "2k", "1,00", "1e999", "5%"])
def test_a_query_whose_weight_is_no_number_is_left_out(table: icebench.Table, text: str) -> None:
    sql = f"select id from visits where k = 1; /* weight = {text} */ select id from visits where k = 2"
    found = parse_queries(sql, table)
    assert [query.name for query in found.queries] == ["q1"]
    (left,) = found.not_understood
    assert str(left) == f"q2: weight = {text}: the weight is not a positive number or 0"


def test_words_on_weights_are_no_weights(table: icebench.Table) -> None:
    found = parse_queries("/* those of weight 2kg, weight: in grams */ select id from visits where k = 1", table)
    assert [query.weight for query in found.queries] == [1.0]


@pytest.mark.parametrize(
    ("sql", "is_preview"),
    [
        ("select * from visits limit 10", True),
        ("select k + 1 from (select id, k from (select * from visits) y) x limit 10", True),
        ("select k from (select * from visits limit 10) where k = 3", True),
        ("select k from (select * from visits) x where k = 3 limit 10", False),
        ("select * from visits where id = 3 limit 10", False),
        ("select * from visits order by id limit 10", False),
        ("select distinct city from visits limit 10", False),
        ("select city, count(*) from visits group by city limit 10", False),
        ("select max(k) from visits limit 1", False),
        ("select v.id from visits v join dim d on v.k = d.k limit 1", False),
        ("select row_number() over (order by k) from visits limit 1", False),
        ("select d.id from dim d where exists (select 1 from visits v where v.k = d.k) limit 1", False),
        ("select * from visits", False),
    ],
)
def test_queries_of_any_rows_up_to_a_limit(table: icebench.Table, sql: str, is_preview: bool) -> None:
    found = parse_queries(sql, table)
    assert [query.is_preview for query in found.queries] == [is_preview]
    assert ("returns any rows up to a limit" in [each.reason for each in found.unused]) == is_preview


@pytest.mark.parametrize(
    ("name", "read"),
    [
        (None, ["1", "2", "3", "4"]),
        ("visits", ["1", "2", "3", "4", "5", "6"]),
        ("wh.db.visits", ["1", "2", "3"]),
        ("v2.DB.visits", ["1", "2", "4"]),
    ],
)
def test_tables_of_other_namespaces_are_others(table: icebench.Table, name: str | None, read: list[str]) -> None:
    called = ["visits", "db.Visits", "wh.db.visits", "v2.db.visits", "staging.visits", "b.visits", "other_visits"]
    sql = ";".join(f"select id from {each} where id = {number}" for number, each in enumerate(called, 1))
    found = parse_queries(sql, table, name=name)
    assert [query.name for query in found.queries] == [f"q{each}" for each in read]
    assert found.others == len(called) - len(read)


def test_what_is_refused(table: icebench.Table) -> None:
    with pytest.raises(ConfigError, match="no SQL"):
        parse_queries("select from where (", table)
    with pytest.raises(ConfigError, match="no query reads"):
        parse_queries("select 1 from other", table)


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "null",
        "{",
        '{"location": 1}',
        '{"location": "x", "filter": "id <", "columns": []}',
        '{"location": "x", "filter": "true", "columns": 3}',
        '{"location": "x", "filter": "true", "columns": null}',
    ],
)
def test_a_line_that_reports_no_scan_is_named(table: icebench.Table, line: str) -> None:
    with pytest.raises(ConfigError, match="line 1 reports no scan"):
        logged_queries([line.replace('"x"', json.dumps(table.location))], table)


def test_a_log_that_is_no_text_is_refused(
    table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "scans.jsonl"
    log.write_bytes('{"location": "caf\u00e9"}'.encode("latin-1"))
    for command in (["advise"], ["maintain", "columns"]):
        assert exit_code(*command, table.location, "--scans", log) == 2
        assert f"icebench: {log}: cannot be read: 'utf-8' codec" in capsys.readouterr().err


def test_filters_with_bytes_are_read(tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", pa.schema([("b", pa.binary())]))
    line = json.dumps({"location": table.location, "filter": str(table.scan("b = X'00fF'").filter), "columns": ["b"]})
    (query,) = logged_queries([line], table).queries
    assert query.filter is not None
    assert table.scan(query.filter).filter == table.scan("b = X'00fF'").filter
    line = json.dumps({"location": table.location, "filter": "b = X'' or length(b) = 1", "columns": ["b"]})
    assert [each.text for each in logged_queries([line], table).unused] == ["LENGTH(b) = 1 OR b = x''"]


def test_scans_that_the_engine_has_reported(
    table: icebench.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "scans.jsonl"
    table.append(pa.table({"id": [1, 2], "city": ["a", "it's"]}))
    monkeypatch.setenv("ICEBENCH_SCAN_REPORTS", str(log))
    for _ in range(3):
        assert table.scan("id < 2 and city in ('a', 'it''s')", columns=["k"]).count() == 1
    table.scan("Day >= date '2024-01-01' or Day is null").plan()
    table.scan().to_arrow()
    icebench.load_catalog(str(tmp_path)).create_table("db.other", SCHEMA).scan("id = 1").plan()
    monkeypatch.delenv("ICEBENCH_SCAN_REPORTS")
    table.scan("id = 9").plan()
    lines = log.read_text().splitlines()
    assert json.loads(lines[0])["counters"]["files_planned"] == 1
    found = logged_queries(lines, table)
    assert [(query.name, query.weight) for query in found.queries] == [("s1", 3.0), ("s4", 1.0), ("s5", 1.0)]
    first, second, third = found.queries
    assert first.columns == ("id", "city", "k")
    assert (first.equalities, first.ranges, second.ranges) == (("city",), ("id",), ("Day",))
    assert table.scan(first.filter).count() == 1
    assert (third.filter, third.columns) == (None, ("id", "Day", "city", "k", "address", "a.b"))
    with pytest.raises(ConfigError, match="line 2 reports no scan"):
        logged_queries([lines[0], "{}"], table)
    with pytest.raises(ConfigError, match="no scan is of the table"):
        logged_queries(lines[5:], table)
    monkeypatch.setenv("ICEBENCH_SCAN_REPORTS", str(tmp_path))
    with pytest.raises(icebench.errors.StorageFailed):
        table.scan().plan()
