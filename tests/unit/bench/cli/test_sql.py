from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv

import icebench
from icebench.bench.cli.rows import csv_text
from tests.unit.bench.cli.test_main import exit_code

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string()), ("n", pa.list_(pa.int64()))])
FAR = "<value out of range: 2147483647>"


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    """Three files, rows in order."""
    made = icebench.load_catalog(str(tmp_path / "wh")).create_table("db.t", SCHEMA)
    for first in (0, 10, 20):
        numbers = list(range(first, first + 10))
        made.append(pa.table({"id": numbers, "s": [f"a,{n}" for n in numbers], "n": [[n] for n in numbers]}, SCHEMA))
    return made


def test_rows_and_the_work_of_the_plan(table: icebench.Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("sql", "select count(*) as rows, max(s) as last from t where id > 25", table.location) == 0
    shown = capsys.readouterr().out
    assert shown.split("\n")[0].split() == ["rows", "last"]
    assert shown.split("\n")[1].split() == ["4", "a,29"]
    assert "files_planned 1," in shown
    assert "rows_decoded 10," in shown


def test_formats_for_programs(table: icebench.Table, capsys: pytest.CaptureFixture[str]) -> None:
    query = "select id, s, n, null as nothing from t where id in (3, 14) order by id"
    assert exit_code("sql", query, table.location, "--format", "json") == 0
    captured = capsys.readouterr()
    assert [json.loads(line)["id"] for line in captured.out.splitlines()] == [3, 14]
    assert "files_planned 2" in captured.err
    assert exit_code("sql", query, table.location, "--format", "csv") == 0
    assert capsys.readouterr().out == 'id,s,n,nothing\n3,"a,3",[3],\n14,"a,14",[14],\n'


@pytest.mark.parametrize(
    ("query", "csv", "last"),
    [
        ("select 1 as a, 2 as a, 3 as b", "a,a,b\n1,2,3\n", None),
        ("select map([1.5], ['x']) as m", 'm\n"{""1.5"": ""x""}"\n', {"m": {"1.5": "x"}}),
        ("select map([[1]], [2]) as m", 'm\n"[[[1], 2]]"\n', {"m": [[[1], 2]]}),
        ("select 'infinity'::date as d", f"d\n{FAR}\n", {"d": FAR}),
        (
            "select {'a': 'infinity'::date, 'b': 1} as d",
            f'd\n"{{""a"": ""{FAR}"", ""b"": 1}}"\n',
            {"d": {"a": FAR, "b": 1}},
        ),
        ("select ['infinity'::date, null] as d", f'd\n"[""{FAR}"", null]"\n', {"d": [FAR, None]}),
        ("select ['infinity'::date]::date[1] as d", f'd\n"[""{FAR}""]"\n', {"d": [FAR]}),
        ("select map([2], ['infinity'::date]) as d", f'd\n"{{""2"": ""{FAR}""}}"\n', {"d": {"2": FAR}}),
        ("select map([[2]], ['infinity'::date]) as d", f'd\n"[[[2], ""{FAR}""]]"\n', {"d": [[[2], FAR]]}),
        ("select 'nan'::float as d", "d\nnan\n", {"d": "NaN"}),
        ("select ['-inf'::double, 0.5] as d", 'd\n"[""-Infinity"", 0.5]"\n', {"d": ["-Infinity", 0.5]}),
    ],
)
def test_rows_that_python_does_not_hold(query: str, csv: str, last: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("sql", query, "--format", "csv") == 0
    assert capsys.readouterr().out == csv
    assert exit_code("sql", query, "--format", "json") == (2 if last is None else 0)
    captured = capsys.readouterr()
    if last is None:
        assert "two columns are named 'a'" in captured.err
    else:
        assert json.loads(captured.out) == last
    assert exit_code("sql", query) == 0
    assert len(capsys.readouterr().out.splitlines()[1].split()) >= len(csv.splitlines()[0].split(","))


def test_null_looks_like_no_other_value(capsys: pytest.CaptureFixture[str]) -> None:
    query = "select null a, '' b, 'NULL' c, map {'k': null} d, map([], []) e, {'a': null} f, [null, ''] g"
    assert exit_code("sql", query) == 0
    row = capsys.readouterr().out.splitlines()[1]
    assert row.split() == ["NULL", "'NULL'", '{"k":', "null}", "{}", '{"a":', "null}", "[null,", '""]']
    assert exit_code("sql", query, "--format", "csv") == 0
    # As PostgreSQL and DuckDB write it: nothing for null, two quotes for a text of no character.
    row = capsys.readouterr().out.splitlines()[1]
    assert row == ',"",NULL,"{""k"": null}",{},"{""a"": null}","[null, """"]"'
    assert exit_code("sql", "select unnest([null, '', 'b']) as a", "--format", "csv") == 0
    assert capsys.readouterr().out == 'a\n\n""\nb\n'


_TEXTS = st.none() | st.text(st.sampled_from('a,"\n\r NUL'), max_size=4)


@given(rows=st.lists(st.tuples(_TEXTS, _TEXTS), min_size=1, max_size=4), columns=st.integers(1, 2))
def test_others_read_csv_as_it_was(rows: list[tuple[str | None, ...]], columns: int) -> None:
    found = pa.table({str(at): pa.array([row[at] for row in rows], pa.string()) for at in range(columns)})
    read = csv.read_csv(
        io.BytesIO(csv_text(found, "QUERY").encode()),
        parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=csv.ConvertOptions(
            column_types=found.schema, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
        ),
    )
    assert read == found


def test_texts_do_not_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("sql", "select 'a' || chr(27) || '[31m' as a") == 0
    assert "a\\x1b[31m" in capsys.readouterr().out


def test_texts_for_programs_are_written_as_they_are(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A part of a hardware address is no emoji, and a tab stays one."""
    text = "00:ab:11 2001:db8:a:b:1 x:id:5\ta\r\nb"
    assert exit_code("sql", f"select '{text}' as a", "--format", "csv") == 0
    assert capfdbinary.readouterr().out.decode() == f'a\n"{text}"\n'
    assert exit_code("sql", f"select '{text}' as a", "--format", "json") == 0
    assert json.loads(capfdbinary.readouterr().out) == {"a": text}
    assert exit_code("sql", "select '00:ab:11' as a") == 0
    assert "00:ab:11" in capfdbinary.readouterr().out.decode()


def test_tables_by_names(table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    join = "select count(*) as c from one join two on one.id = two.id + 5"
    assert exit_code("sql", join, "one=db.t", "two=db.t", "--catalog", tmp_path / "wh", "--format", "csv") == 0
    assert capsys.readouterr().out == "c\n25\n"
    other = icebench.load_catalog(str(tmp_path / "wh")).create_table("other.t", SCHEMA)
    assert exit_code("sql", "select 1", table.location, other.location) == 2
    assert "are both 't'" in capsys.readouterr().err
    assert exit_code("sql", "select 7 as c") == 0
    assert "no table was read" in capsys.readouterr().out


def test_a_catalog_comes_before_names_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = f"sqlite:///{tmp_path}/c.db"
    catalog = icebench.load_catalog(database, warehouse=str(tmp_path / "wh"), name="mine")
    for name, values in (("shop.orders", [1, 2, 3]), ("shop.users", [2])):
        rows = pa.table({"id": values})
        catalog.create_table(name, rows.schema).append(rows)
    query = "select sum(o.id) s from shop.orders o join users u on o.id = u.id"
    for address in (database, f"{database}?timeout=5"):
        assert exit_code("sql", query, address, "shop.orders", "shop.users", "--format", "csv") == 0
        assert capsys.readouterr().out.split() == ["s", "2"]
    for name in ("shop.orders", "o"):
        assert exit_code("sql", f"select count(*) n from {name}", database, "o=shop.orders", "--format", "csv") == 0
        assert capsys.readouterr().out.split() == ["n", "3"]


def test_a_namespace_may_have_the_name_of_a_schema_of_duckdb(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    for number, name in enumerate(("main.a", "Main.b", "system.c", "temp.d")):
        catalog.create_table(name, pa.schema([("id", pa.int64())])).append(pa.table({"id": [number]}))

    def rows(query: str, *tables: str) -> list[str]:
        assert exit_code("sql", query, tmp_path / "wh", *tables, "--format", "csv") == 0
        return capsys.readouterr().out.split()[1:]

    assert rows("select main.a.id, b.id from main.a, b", "main.a", "Main.b") == ["0,1"]
    assert rows("select x.id, y.id from main.a as x, main.b as y", "x=main.a", "y=Main.b") == ["0,1"]
    assert rows("select c.id, d.id from c, d", "system.c", "temp.d") == ["2,3"]
    assert exit_code("sql", "from main.a", tmp_path / "wh", "main.a", "a=Main.b") == 2
    assert "main.a and Main.b are both 'a'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("selec", "syntax error"),
        ("", "not one select"),
        ("select 1; select 2", "not one select"),
        ("create table x as select 1", "not one select"),
        ("copy t to '/tmp/stolen.csv'", "not one select"),
        ("attach '/tmp/other.db'", "not one select"),
        ("set enable_external_access = true", "not one select"),
        ("select * from read_csv('/etc/hostname')", "disabled by configuration"),
        ("select * from '/etc/hostname'", "does not exist"),
        ("select * from table_that_is_not_there", "does not exist"),
        ("select * from shop.orders", "tables are named after the query"),
        ("select missing from t", "not found"),
        ("select error('own words')", "own words"),
        ("select union_value(k := 'infinity'::date)", "QUERY: values that cannot be shown"),
        ("select 1 from counters", "does not exist"),
        ("with recursive r as (select 1 as n union all select n from r) select error('stop') from r", "stop"),
    ],
)
def test_what_is_no_query_is_one_line(
    table: icebench.Table, query: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("sql", query, table.location) == 2
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 1
    assert reason in captured.err


def test_a_table_that_cannot_be_read_is_named(table: icebench.Table, capsys: pytest.CaptureFixture[str]) -> None:
    for file in table.scan().plan().files["file_path"].to_pylist():
        Path(file).unlink()
    assert exit_code("sql", "select * from t", table.location) == 2
    captured = capsys.readouterr().err
    assert len(captured.splitlines()) == 1
    assert ".parquet" in captured


@pytest.mark.parametrize("encoding", ["ascii", "iso8859-1"])
def test_what_an_encoding_lacks_is_escaped_but_not_in_csv(
    encoding: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = io.BytesIO()
    shown = io.TextIOWrapper(raw, encoding=encoding)
    monkeypatch.setattr(sys, "stdout", shown)
    query = "select '\u540d' as s"
    assert exit_code("sql", query) == 0
    assert exit_code("sql", query, "--format", "csv") == 2
    assert exit_code("sql", "select 1 as s", "--format", "csv") == 0
    shown.flush()
    printed = " ".join(raw.getvalue().decode().split())
    assert printed == r"s \u540d 1 row; no table was read s 1"
    assert rf"--format: the output is {encoding}, which lacks \u540d; set PYTHONUTF8=1" in capsys.readouterr().err
