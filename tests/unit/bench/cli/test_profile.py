from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from rich.console import Console

import icebench
from icebench.bench.cli.maintain import maintain
from icebench.bench.report.profile import Place, fix_commands, profile_report, spark_sql
from icebench.bench.report.profile_console import profile_lines
from tests.unit.bench.cli.test_main import exit_code

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.int32())])


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    """Partitions of small files, some with deletes, and many columns."""
    more = [(f"extra_{n}", pa.int64()) for n in range(30)]
    schema = pa.schema([*SCHEMA, *more])
    made = icebench.load_catalog(str(tmp_path / "wh")).create_table(
        "db.t",
        schema,
        partition_spec=[("day", "identity")],
        properties={"format-version": "2", "read.split.open-file-cost": "10000000"},
    )
    for start in range(6):
        numbers = list(range(start * 10, start * 10 + 10))
        columns = {"id": numbers, "day": [n % 2 for n in numbers]}
        made.append(pa.table({**columns, **{name: numbers for name, _ in more}}, schema))
    made.delete("id = 7", mode="merge-on-read")
    return made


def test_a_table_in_a_catalog(table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("profile", tmp_path / "wh", "db.t") == 0
    text = capsys.readouterr().out
    assert len(text.splitlines()) <= 40
    assert text.startswith("db.t: 12 data files, ")
    assert f"icebench maintain rewrite-data-files {tmp_path / 'wh'} db.t" in text


def test_a_bare_metadata_file(table: icebench.Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("profile", table.metadata_location) == 0
    assert "icebench maintain rewrite-manifests CATALOG TABLE" in capsys.readouterr().out
    assert exit_code("profile", table.location) == 0
    assert exit_code("profile", table.location, "--warehouse", "w") == 2


def test_an_earlier_snapshot(table: icebench.Table, capsys: pytest.CaptureFixture[str]) -> None:
    first = table.snapshots[0].snapshot_id
    assert exit_code("profile", table.location, "--snapshot", first, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["snapshot_id"], found["files"]["files"], found["files"]["records"]) == (first, 2, 10)


def test_json_has_every_figure(table: icebench.Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("profile", table.location, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    profile = table.maintenance.profile()
    assert found["columns"] == json.loads(json.dumps(profile.to_dict()["columns"]))
    assert len(found["commands"]) == len(found["reasons"]) == len(profile.reasons)


def test_queries_mark_what_they_filter_by(
    table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked, page = tmp_path / "q.sql", tmp_path / "profile.html"
    asked.write_text("select id from t where extra_7 = 3; select id from t where day = 1 and extra_7 > 2;")
    options = (table.location, "--queries", asked)
    assert exit_code("profile", *options, "--json") == 0
    found = json.loads(capsys.readouterr().out)["filtered"]
    assert {name: share for name, share in found.items() if share} == {"extra_7": 1.0, "day": 0.5}
    assert exit_code("profile", *options) == 0
    text = capsys.readouterr().out
    assert re.search(r"a filter on day opens .*; 50% of the queries have one", " ".join(text.split()))
    first = text.index("filtered by")
    assert re.search(r"extra_7 .* 100%", text[first:])
    assert [line.split()[0] for line in text[first:].splitlines()[2:4]] == ["extra_7", "day"]
    assert exit_code("profile", *options, "--html", page) == 0
    assert page.read_text().count("filtered by") == 2
    asked.write_text("selct id; select id from t where extra_777 = 3; select id from t where day = 1")
    capsys.readouterr()
    assert exit_code("profile", *options, "--json", "--html", page) == 0
    captured = capsys.readouterr()
    assert str(page) in captured.err
    assert "not understood, not counted: q2: extra_777: the table has no such column" in captured.err
    assert [each[:3] for each in json.loads(captured.out)["not_understood"]] == ["q1:", "q2:"]
    assert json.loads(captured.out)["filtered"]["day"] == 1.0
    assert exit_code("profile", *options, "--html", page) == 0
    assert "q2: extra_777" in page.read_text()
    assert exit_code("profile", table.location) == 0
    assert "filtered by" not in capsys.readouterr().out


def test_the_page_stands_alone_and_shows_each_section(table: icebench.Table, tmp_path: Path) -> None:
    page = tmp_path / "profile.html"
    assert exit_code("profile", table.location, "--html", page) == 0
    text = page.read_text()
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)
    for key in ("files", "deletes", "partitions", "manifests", "overlap", "statistics"):
        assert f'<section id="{key}"' in text
    assert re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL).count("<svg") == 3
    assert "day=0" in text


def test_footers(table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path(table.inspect.data_files()["file_path"][0].as_py()).unlink()
    assert exit_code("profile", table.location, "--deep") == 0
    shown = capsys.readouterr().out
    assert "1 files are not as their manifest entries say" in shown
    assert "missing: " in shown
    page = tmp_path / "profile.html"
    assert exit_code("profile", table.location, "--deep", "--html", page) == 0
    assert "Files unlike their entries" in page.read_text()


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("lines", [20, 40])
def test_the_terminal_is_respected(table: icebench.Table, width: int, lines: int) -> None:
    console = Console(width=width, record=True, force_terminal=False, file=None, quiet=False)
    with console.capture() as captured:
        for part in profile_lines(table.maintenance.profile(), Place(), console, lines=lines):
            console.print(part)
    shown = captured.get().splitlines()
    assert len(shown) <= lines
    assert max(map(len, shown)) <= width
    assert "--json prints it" in " ".join(shown[-2:])


def test_every_command_is_one_that_icebench_has(table: icebench.Table, tmp_path: Path) -> None:
    place = Place(table="db.t", words=(str(tmp_path / "wh"), "db.t"))
    profile = table.maintenance.profile()
    found = [each for each in fix_commands(profile, place) if each.command]
    assert found
    for each in found:
        result = CliRunner().invoke(maintain, each.command.split()[2:], standalone_mode=False)
        assert result.exception is None, each.command
    after = icebench.load_table(table.location).maintenance.profile()
    assert {each.key for each in after.reasons}.isdisjoint({"small-files", "deletes", "manifests"})
    assert profile_report(after, place).findings


def test_spark_sql() -> None:
    arguments: dict[str, str | int | bool | tuple[str, ...]] = {"strategy": "sort", "rewrite_all": True}
    sort = "CALL system.rewrite_data_files(table => 'db.t', strategy => 'sort', options => map({}))"
    assert spark_sql("rewrite_data_files", arguments, Place(table="db.t")) == sort.format("'rewrite-all', 'true'")
    assert spark_sql("expire_snapshots", {}, Place(table="db.t")) == "CALL system.expire_snapshots(table => 'db.t')"
    assert (
        spark_sql("set_properties", {"a.b": "full"}, Place(table="t"))
        == "ALTER TABLE t SET TBLPROPERTIES ('a.b' = 'full')"
    )
    assert spark_sql("drop_partition_field", {"field": "x"}, Place(table="t")) == "ALTER TABLE t DROP PARTITION FIELD x"
    quoted = "ALTER TABLE db.`t-1` DROP PARTITION FIELD `x y`"
    assert spark_sql("drop_partition_field", {"field": "x y"}, Place(table="db.t-1")) == quoted
