from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import icebench
from icebench.bench.advise.advice import Advice, Options, _row_bytes, advise, profile_of
from icebench.bench.advise.candidates import layout_of, search, todays_layout
from icebench.bench.advise.estimate import Estimate, Estimator
from icebench.bench.advise.planned import StoredColumns
from icebench.bench.advise.queries import Queries, Query, parse_queries
from icebench.bench.advise.sample import take_sample
from icebench.bench.advise.statements import icebench_commands, spark_statements
from icebench.bench.costs.object_store import LOCAL, SAME_REGION, Profile
from icebench.bench.errors import ConfigError
from icebench.bench.layouts.layout import ROW_GROUP_SIZE, TARGET_SIZE, Layout, Term
from icebench.bench.report.advice import evidence, headline
from tests.unit.bench.cli.test_main import exit_code

ROWS = 6_000
SQL = """-- weight: 3
select v from events where key = 77;
select v from events where day = 3 and key < 1000 and 1 = v + k"""


_CALL = (
    "CALL c.system.rewrite_data_files(table => 'db.t', strategy => 'sort', sort_order => 'day ASC NULLS FIRST', "
    "options => map('rewrite-all', 'true'))"
)


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    """Keys anywhere, in nine files."""
    rng = np.random.default_rng(5)
    rows = {
        "day": np.arange(ROWS) * 30 // ROWS,
        "key": rng.permutation(ROWS),
        "k": np.zeros(ROWS),
        "v": rng.random(ROWS),
    }
    made = icebench.load_catalog(str(tmp_path / "wh")).create_table(
        "db.events", pa.table(rows).schema, properties={TARGET_SIZE: "10000"}
    )
    made.append(pa.table(rows))
    return made


def _advised(table: icebench.Table, sql: str, **options: object) -> Advice:
    return advise(table, parse_queries(sql, table), Options(minimize="bytes", trials=1, **options))  # type: ignore[arg-type]


def test_the_advised_layout_is_what_the_table_then_is(table: icebench.Table) -> None:
    advice = _advised(table, SQL)
    best = advice.recommendations[0]
    assert best.confidence == "measured"
    assert best.gain > 0.5
    assert (
        repr(advice).splitlines()[1]
        == f"  {best.layout.name}: {100 * best.gain:.0f}% fewer bytes, confidence: measured"
    )
    assert f">{best.layout.name}</td>" in advice._repr_html_()
    assert advice.today == tuple(StoredColumns(table).reading(query) for query in advice.queries.queries)
    for command in icebench_commands(best.layout, todays_layout(table), table, ()):
        if command.startswith("table."):
            eval(command, {"table": table})
    order = {"sort_order": [term.column for term in best.layout.sort]} if best.layout.sort else {}
    curve = {f"{how}_by": own for how in ("zorder", "hilbert") if (own := getattr(best.layout, how))}
    strategy = "sort" if order else next(iter(curve), "binpack").removesuffix("_by")
    how: Any = {**order, **curve}
    table.maintenance.rewrite_data_files(strategy, rewrite_all=True, **how)  # type: ignore[arg-type]
    stored = StoredColumns(table)
    for effect in best.effects:
        assert effect.after.bytes_read == pytest.approx(stored.reading(effect.query).bytes_read, rel=0.2)
    assert _advised(table, SQL).cost == pytest.approx(best.after, rel=0.2)


def test_row_groups_count_today_and_then(tmp_path: Path) -> None:
    """One file of 400,000 unsorted rows: an order alone leaves one row group, which every query reads whole."""
    keys = np.random.default_rng(0).permutation(400_000)
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", pa.table({"key": keys, "v": keys}).schema)
    table.append(pa.table({"key": keys, "v": keys}))
    queries = parse_queries("select v from t where key between 5000 and 5100", table)
    best = advise(table, queries, Options(trials=3, sample_rows=40_000, profile=LOCAL)).recommendations[0]
    assert best.layout.sort == (Term(column="key"),)
    unsorted = StoredColumns(table).reading(queries.queries[0])
    table.maintenance.rewrite_data_files("sort", sort_order=["key"], rewrite_all=True)
    sorted_only = StoredColumns(table).reading(queries.queries[0])
    table.set_properties(dict(best.layout.properties))
    table.maintenance.rewrite_data_files("sort", sort_order=["key"], rewrite_all=True)
    now = StoredColumns(table).reading(queries.queries[0])
    assert (sorted_only.files, sorted_only.row_groups, now.files, now.row_groups) == (1, 1, 1, 1)
    assert now.bytes_read < 0.5 * sorted_only.bytes_read
    assert best.effects[0].before == unsorted
    assert best.effects[0].after.bytes_read == pytest.approx(now.bytes_read, rel=0.3)
    # The trial has the sample's share of the rows in each row group, too, and so as many row groups as the table.
    assert best.trial.readings[0].bytes_read < 0.6 * sum(best.trial.column_bytes.values())
    commands = icebench_commands(best.layout, todays_layout(table), table, ())
    assert commands[0] == f"table.set_properties({{{ROW_GROUP_SIZE!r}: {best.layout.properties[ROW_GROUP_SIZE]!r}}})"


def test_a_table_that_is_as_good_as_it_can_be_is_left_alone(table: icebench.Table) -> None:
    table.maintenance.rewrite_data_files("sort", sort_order=["key"], rewrite_all=True)
    one_file = parse_queries("select v from events where key between 3000 and 3010", table)
    none = advise(table, one_file, Options(trials=1))
    assert not none.recommendations
    assert repr(none).endswith("\n  today's layout is as good as any found")
    made = _advised(table, "select * from events; select v from events limit 10")
    assert not made.recommendations
    assert [query.name for query in made.queries.queries] == ["q1"]
    with pytest.raises(ConfigError, match="every query returns any rows up to a limit"):
        _advised(table, "select v from events limit 10")


def test_a_sample_predicts_what_the_whole_table_reads(table: icebench.Table) -> None:
    """Files of thirty rows in place of six hundred: bounds lack a fifteenth of their range, and rare rows."""
    filters = ["key between 100 and 900", "day = 3", "v < 0.1", "key > 5900 and v > 0.9"]
    queries = [Query(name=text, filter=text, columns=("v",)) for text in filters]
    whole = Estimator(take_sample(table, rows=ROWS, read_bytes=1 << 30), queries)
    samples = [take_sample(table, rows=ROWS // 20, read_bytes=1 << 30, seed=seed) for seed in range(8)]
    for layout in (layout_of((), {"sort": ("key",)}), layout_of((), {}), layout_of((), {"hilbert": ("key", "v")})):
        truth = whole.estimate(layout, corrected=True)
        assert not truth.spread.any()
        raw, corrected = (
            np.mean([Estimator(s, queries).estimate(layout, corrected=own).shares for s in samples], axis=0)
            for own in (False, True)
        )
        off, off_before = (np.abs(found - truth.shares).mean() for found in (corrected, raw))
        assert off < 0.14, layout.name
        assert off < max(0.75 * off_before, 0.04), layout.name


def test_samples_are_of_all_files_and_keep_their_order(table: icebench.Table) -> None:
    sample = take_sample(table, rows=500, read_bytes=1 << 30)
    assert 400 < sample.rows.num_rows < 600
    assert sample.table_rows == ROWS
    assert sample.rows["day"].to_pylist() == sorted(sample.rows["day"].to_pylist())
    assert set(sample.rows["day"].to_pylist()) == set(range(30))
    few = take_sample(table, rows=ROWS, read_bytes=30_000)
    assert few.files_read in (2, 3)
    assert few.table_rows == pytest.approx(ROWS)
    table.delete("day < 15", mode="merge-on-read")
    assert take_sample(table, rows=ROWS, read_bytes=1 << 30).table_rows == ROWS / 2


def test_files_of_unequal_size_do_not_count_as_deleted_rows(tmp_path: Path) -> None:
    """Of three large files in ten, samples have more or fewer than that share."""
    made = icebench.load_catalog(str(tmp_path)).create_table("db.t", pa.schema([("v", pa.float64())]))
    rng = np.random.default_rng(5)
    for place in range(10):
        made.append(pa.table({"v": rng.random(2_100 if place % 4 == 0 else 100)}))
    mean = StoredColumns(made).sizes.mean()
    for deleted, error in (("v < 0", 0.0), ("v < 0.4", 0.25)):
        made.delete(deleted, mode="merge-on-read")
        live = made.scan().count()
        for files in (1, 4, 5, 10):
            sample = take_sample(made, rows=50, read_bytes=int(files * mean) + 10)
            assert sample.files_read == files
            assert sample.table_rows == pytest.approx(live, rel=error)
            assert sample.rows.num_rows <= 50


def test_a_sample_of_a_table_with_deletes_predicts_what_a_rewrite_leaves(table: icebench.Table) -> None:
    """Rewriting writes no deleted rows: files, bytes and what queries read are of the live ones."""
    table.delete("day >= 8", mode="merge-on-read")
    live = table.scan().count()
    queries = [Query(name="all", columns=("v",))]
    estimator = Estimator(take_sample(table, rows=ROWS // 10, read_bytes=1 << 30), queries)
    assert not estimator.sample.is_whole
    layout = layout_of((), {"sort": ("key",)})
    expected = estimator.estimate(layout, corrected=True)
    (reading,) = estimator.readings(expected)
    table.maintenance.rewrite_data_files("sort", sort_order=["key"], rewrite_all=True)
    stored = StoredColumns(table)
    assert stored.records.sum() == live < ROWS / 3
    assert estimator.data_bytes(expected) == pytest.approx(stored.sizes.sum(), rel=0.3)
    assert expected.all_files == pytest.approx(len(stored.sizes), abs=1)
    now = stored.reading(queries[0])
    assert (reading.bytes_read, reading.values) == pytest.approx((now.bytes_read, now.values), rel=0.3)


def test_widths_that_no_transform_has_are_not_tried(tmp_path: Path) -> None:
    """Hashes, microseconds: a part of their range is wider than truncate takes."""
    wide = {"int": (1 << 31) - 1, "long": (1 << 63) - 1}
    for name, most in wide.items():
        keys = pa.array([-most, *range(500), most], pa.int32() if name == "int" else pa.int64())
        rows = pa.table({"key": keys, "v": np.arange(502.0)})
        made = icebench.load_catalog(str(tmp_path)).create_table(f"db.{name}", rows.schema)
        made.append(rows)
        queries = parse_queries("select v from t where key = 5; select v from t where key > 7", made, name="t")
        assert advise(made, queries, Options(minimize="bytes", trials=1)).tried > 1


def test_deletes_count_as_bytes_that_a_query_reads(table: icebench.Table) -> None:
    query = Query(name="q", filter="day = 3", columns=("v",))
    before = StoredColumns(table).reading(query)
    table.delete("key < 100", mode="merge-on-read")
    after = StoredColumns(table).reading(query)
    assert (before.delete_files, before.files) == (0, after.files)
    assert after.delete_files > 0
    assert after.bytes_read > before.bytes_read


def test_of_a_puffin_file_a_query_reads_the_vectors_of_its_data_files(table: icebench.Table) -> None:
    table.upgrade_format(3)
    queries = [Query(name="all", columns=("v",)), *(Query(name=d, filter=f"day = {d}", columns=("v",)) for d in "049")]
    before = [StoredColumns(table).reading(query) for query in queries]
    table.delete("key % 4 < 2", mode="merge-on-read")
    after = [StoredColumns(table).reading(query) for query in queries]
    vectors = table.inspect.delete_files()
    assert len(set(vectors["file_path"].to_pylist())) == 1
    assert vectors.num_rows == before[0].files > 4
    read = [now.bytes_read - then.bytes_read for now, then in zip(after, before, strict=True)]
    sizes = vectors["content_size_in_bytes"].to_pylist()
    assert read[0] == pytest.approx(sum(sizes))
    for own, now in zip(read[1:], after[1:], strict=True):
        assert min(sizes) * now.files - 1 <= own <= max(sizes) * now.files + 1
    assert [now.delete_files for now in after] == [1, 1, 1, 1]


def test_the_search_finds_what_trying_everything_finds(table: icebench.Table) -> None:
    queries = parse_queries("select v from events where day = 3; select v from events where key = 5", table).queries
    estimator = Estimator(take_sample(table, rows=ROWS, read_bytes=1 << 30), queries)

    def score(estimate: Estimate) -> float:
        return float(estimate.shares.sum())

    best = search(estimator, queries, todays_layout(table), score, counts_files=False)[0]
    curves = [layout_of((), {how: ("day", "key")}) for how in ("zorder", "hilbert", "sort")]
    assert score(best) <= min(score(estimator.estimate(layout)) for layout in curves)
    assert score(best) < 0.5 * score(estimator.estimate(layout_of((), {})))


def test_text_that_is_ready_to_run(table: icebench.Table) -> None:
    today = Layout(name="t", partition=(Term(column="day"),))
    layout = Layout(
        name="l",
        partition=(Term(column="key", transform="bucket[8]"),),
        sort=(Term(column="day"),),
        properties={TARGET_SIZE: "1000"},
    )
    assert spark_statements(layout, today, "c.db.t") == [
        "ALTER TABLE c.db.t DROP PARTITION FIELD day",
        "ALTER TABLE c.db.t ADD PARTITION FIELD bucket(8, key)",
        "ALTER TABLE c.db.t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY day",
        f"ALTER TABLE c.db.t SET TBLPROPERTIES ('{TARGET_SIZE}' = '1000')",
        _CALL,
    ]
    curve = layout_of((), {"zorder": ("day", "key")})
    assert spark_statements(curve, Layout(name="t"), "db.t")[-1].count("zorder(day, key)") == 1
    odd = layout_of((Term(column="event-id", transform="bucket[4]"),), {"sort": ("a.2nd day", "`")})
    assert spark_statements(odd, Layout(name="t", partition=(Term(column="é"),)), "c.my db.t-1") == [
        "ALTER TABLE c.`my db`.`t-1` DROP PARTITION FIELD `é`",
        "ALTER TABLE c.`my db`.`t-1` ADD PARTITION FIELD bucket(4, `event-id`)",
        "ALTER TABLE c.`my db`.`t-1` WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY a.`2nd day`, ````",
        (
            "CALL c.system.rewrite_data_files(table => '`my db`.`t-1`', strategy => 'sort', sort_order => "
            "'a.`2nd day` ASC NULLS FIRST, ```` ASC NULLS FIRST', options => map('rewrite-all', 'true'))"
        ),
    ]
    ordered = Layout(name="t", sort=(Term(column="key"),))
    unordered = {
        how: spark_statements(layout_of((), {how: ("day", "b-c")}), ordered, "t") for how in ("zorder", "hilbert")
    }
    assert all(found[0] == "ALTER TABLE t WRITE UNORDERED" for found in unordered.values())
    assert "zorder(day, `b-c`)" in unordered["hilbert"][1]
    assert spark_statements(layout_of((), {}), ordered, "t")[0] == "ALTER TABLE t WRITE UNORDERED"
    partitioned = spark_statements(layout_of((Term(column="day"),), {}), ordered, "t")
    assert partitioned[1] == "ALTER TABLE t WRITE DISTRIBUTED BY PARTITION UNORDERED"
    table.update_spec(lambda spec: spec.add_field("day", "identity"))
    *python, command = icebench_commands(layout, todays_layout(table), table, ("wh", "db.t"))
    assert "spec.drop_field('day')" in python[0]
    assert command.endswith("rewrite-data-files wh db.t --rewrite-all --sort-by day --target-file-size-bytes 1000")


def test_the_command(table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "q.sql"
    script.write_text(SQL)
    opened = ("advise", tmp_path / "wh", "db.events", "--trials", 1)
    assert exit_code(*opened) == 2
    capsys.readouterr()
    page = tmp_path / "page.html"
    assert exit_code(*opened, "--queries", script, "--minimize", "bytes", "--json", "--html", page) == 0
    found = json.loads(capsys.readouterr().out)
    best = found["recommendations"][0]
    assert best["after"] < best["before"] == found["cost"]
    assert [left["reason"][:21] for left in found["unused"]] == ["no statistics answer "]
    assert "What may be chosen" in page.read_text()
    assert exit_code(*opened, "--queries", script, "--profile", "cross-region", "--lines", 14) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) <= 14
    assert shown[0].endswith("modelled for S3, cross region")
    assert shown[1].startswith("reads: ")
    assert "as measured on this machine (±" in shown[1]
    assert "not used: q2: " in shown[2]
    script.write_text(f"select v from events where nope = 77; {SQL}")
    assert exit_code(*opened, "--queries", script, "--minimize", "bytes") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].endswith("modelled for local files")
    assert "not understood, left out: q1: nope: the table has no such column" in shown[2]
    assert exit_code(*opened, "--queries", script, "--minimize", "bytes", "--json") == 0
    broken = json.loads(capsys.readouterr().out)
    assert (broken["cost"], len(broken["queries"])) == (found["cost"], 2)


def test_where_a_table_is() -> None:
    def at(location: str) -> Profile:
        return profile_of(SimpleNamespace(location=location))  # type: ignore[arg-type]

    assert at("/wh/db/t") == at("file:/wh/db/t") == at("file:///wh/db/t") == at("C:/wh/t") == LOCAL
    assert at("s3://b/t") == at("gs://b/t") == at("abfss://c@a/t") == SAME_REGION


def test_layouts_that_are_much_the_same(table: icebench.Table) -> None:
    made = advise(table, parse_queries(SQL, table), Options(minimize="bytes", trials=3))
    best = replace(made.recommendations[0], after=100.0, worst=102.0)
    same = replace(best, after=104.9, worst=150.0, is_best=False, rewrite=replace(best.rewrite, seconds=0.25))
    other = replace(same, after=105.1)
    shown = replace(made, recommendations=(best, same, other))
    first, second, third = ("\n".join(evidence(each, shown)) for each in shown.recommendations)
    assert "Much the same for queries, and rewritten or stored for less: 2\n" in f"{first}\n"
    assert "Much the same as 1 for queries: rewrite 250 ms in place of " in second
    assert "Much the same" not in third
    assert other.is_much_like(replace(best, worst=106.0))


def test_the_headline_says_what_becomes_of_files(table: icebench.Table) -> None:
    made = advise(table, parse_queries(SQL, table), Options(minimize="bytes", trials=1))
    each = replace(made.recommendations[0], layout=layout_of((), {}), files=2.2)
    assert headline(each, made).startswith(f"compaction; {made.files} files become 2: a query takes ")


@pytest.mark.parametrize(
    ("trial", "baseline", "unsampled", "expected"),
    [
        (3.0, 3.0, 1.0, 1.0),  # in the same order: gaps are all that the sample adds
        (4.0, 3.0, 1.0, 3.0),
        (5.0, 3.0, 1.0, 5.0),  # without order, gaps add nothing
        (8.0, 3.0, 1.0, 8.0),
        (1.5, 3.0, 1.0, 0.5),  # in a better order
        (3.0, 2.0, 2.4, 3.6),  # larger files have another encoding
    ],
)
def test_bytes_of_a_row(trial: float, baseline: float, unsampled: float, expected: float) -> None:
    assert _row_bytes(trial, baseline, unsampled) == pytest.approx(expected)


def test_weights_are_of_all_queries() -> None:
    assert Queries(queries=(Query(name="a", weight=2.0), Query(name="b"))).total_weight == 3.0
