"""What `repr` and notebooks show: a few lines, without I/O, without secrets, whatever the table's names hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

import icebench
from icebench.engine.commit.committer import TableState
from icebench.engine.display import (
    MOST_LINES,
    MOST_ROWS,
    address_text,
    count_text,
    html_bars,
    html_table,
    printable,
    size_text,
    some_lines,
)
from icebench.engine.inspect.inspector import TABLES
from icebench.engine.plan.plan_text import BY_METRICS, BY_SUMMARY, NOT_LIVE, funnel
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.snapshots import Snapshot, instant_text
from icebench.engine.table import Table

SECRET = "zq9f8e7d6c"
HOSTILE = "<b>\"x'&\n\x1b[31m\u202e" + "long" * 100


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    catalog = icebench.load_catalog(str(tmp_path))
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.date32()), ("name", pa.string())])
    made = catalog.create_table("db.t", schema, partition_spec=[("day", "month")], sort_order=["id"])
    for start in (0, 10, 20):
        made.append(pa.table({"id": [start, start + 1], "day": [start, start + 1], "name": ["a", "b"]}, schema))
    return made


def html_of(thing: object) -> str:
    markup: str = thing._repr_html_()  # type: ignore[attr-defined]
    ET.fromstring(f"<div>{markup}</div>")  # well-formed: nothing of a table is taken for markup
    return markup


class TestTexts:
    def test_tables_say_what_a_person_asks_first(self, table: icebench.Table) -> None:
        first, *lines = repr(table).splitlines()
        assert first.startswith("Table(db.t, format 2, 6 rows, 3 data files, ")
        assert lines[:3] == [
            "  3 columns: id long, day date, name string",
            "  partitioned by: month(day)",
            "  sorted by: id asc nulls-first",
        ]
        assert str(table.current_snapshot.snapshot_id) in lines[3]  # type: ignore[union-attr]
        assert table.metadata_location in lines[-1]
        assert len(lines) == 5
        assert "partitioned by" in html_of(table)

    def test_a_table_without_snapshots_and_one_with_refs(self, table: icebench.Table) -> None:
        table.create_tag("a-tag")
        assert "  refs: tag a-tag" in repr(table).splitlines()
        empty = icebench.load_catalog(table.location).create_table("e.e", table.schema())
        assert repr(empty).startswith("Table(e.e, format 2, no snapshot)\n  3 columns: ")
        html_of(empty)

    def test_schemas_specs_orders_and_snapshots(self, table: icebench.Table) -> None:
        assert repr(table.schema()) == "Schema(0, 3 columns)\n  1: id long required\n  2: day date\n  3: name string"
        assert repr(table.spec) == "PartitionSpec(0, day_month = month(2))"
        assert repr(icebench.UNPARTITIONED) == "PartitionSpec(0, unpartitioned)"
        assert repr(table.sort_order) == "SortOrder(1, identity(1) asc nulls-first)"
        assert repr(icebench.UNSORTED) == "SortOrder(0, unsorted)"
        last = table.current_snapshot
        assert last is not None
        assert repr(last).startswith(f"Snapshot({last.snapshot_id}, append, ")
        assert ", +2 rows, +1 data file, 6 rows, 3 data files, " in repr(last)
        table.delete("id = 20", "copy-on-write")
        assert ", +1 row, -2 rows, +1 data file, -1 data file, 5 rows" in repr(table.current_snapshot)
        for each in (table.schema(), table.spec, last):
            html_of(each)

    def test_identifiers_are_marked(self) -> None:
        field = icebench.NestedField(field_id=1, name="id", type=icebench.LONG, required=True)
        assert repr(icebench.Schema((field,), 4, frozenset({1}))).endswith("\n  1: id long required identifier")

    def test_a_scan_says_its_size_once_planned(self, table: icebench.Table) -> None:
        scan = table.scan("id > 11", columns=["id"], limit=7)
        assert repr(scan) == "Scan(db.t, filter: id > 11, columns: id, limit: 7)"
        plan = scan.plan()
        size = size_text(plan.size_in_bytes)
        assert repr(scan) == f"Scan(db.t, filter: id > 11, columns: id, limit: 7, 1 of 3 files, {size})"
        assert plan.size_in_bytes == plan.files["file_size_in_bytes"][0].as_py()
        assert plan.record_count == 2
        html_of(scan)

    def test_changelogs_and_what_hangs_on_a_table(self, table: icebench.Table) -> None:
        first, *_, last = (snapshot.snapshot_id for snapshot in table.snapshots)
        scan = table.changelog_scan(first, filter="id > 3", net_changes=True)
        assert repr(scan).startswith("ChangelogScan(db.t, 2 snapshots, ")
        assert repr(scan).endswith(f" to {last}, filter: id > 3, net changes)")
        assert repr(table.changelog_scan(last, last)) == "ChangelogScan(db.t, 0 snapshots, filter: true)"
        assert repr(table.maintenance) == "Maintenance(db.t)"
        assert repr(table.inspect).endswith(".metadata.json: " + ", ".join(TABLES) + ")")
        assert len(repr(table.inspect)) < 500

    def test_a_plan_is_a_funnel(self, table: icebench.Table) -> None:
        table.append(pa.table({"id": [30, 40], "day": [0, 1000], "name": ["a", "b"]}, table.scan().arrow_schema))
        table.delete("id = 40", "copy-on-write")
        plan = table.scan("id > 20 and day >= date '1970-01-01'").plan()
        lines = repr(plan).splitlines()
        assert lines[0].endswith(f", 2 files, {size_text(plan.size_in_bytes)}, 3 rows)")
        assert lines[1:] == [
            "  manifests: 4 of 4",
            f"  entries: 2 of 5; skipped 2 by {BY_METRICS}, 1 by {NOT_LIVE}",
        ]
        assert BY_METRICS in html_of(plan)
        none = table.scan("day > date '2000-01-01'").plan()
        assert f"  manifests: 0 of 4; skipped 4 by {BY_SUMMARY}" in repr(none).splitlines()
        html_of(none)

    def test_a_profile_names_the_costliest_problems(self, table: icebench.Table) -> None:
        profile = table.maintenance.profile()
        first, *problems = repr(profile).splitlines()
        assert first.startswith("TableProfile(db.t, format 2, 6 rows, 3 data files, ")
        assert len(problems) == len(profile.reasons) > 0
        assert profile.reasons[0].action in problems[0]
        assert "Data files by size" in html_of(profile)


def test_funnels_add_up(table: icebench.Table) -> None:
    table.delete("id in (0, 21)", "merge-on-read")
    for filter in (None, "id = 0", "id > 10", "name = 'zz'", "day < date '1970-01-12' and id > 5"):
        for stage in funnel(table.scan(filter).plan().counters):
            assert stage.had == stage.left + sum(stage.pruned.values()), (filter, stage)


class Untouchable:
    """A store that nothing may ask anything of."""

    def __getattr__(self, name: str) -> Callable[..., object]:
        raise AssertionError(f"{name} of the store was used")


def test_nothing_is_read_to_be_shown(table: icebench.Table) -> None:
    state = TableState(metadata=table.metadata, metadata_location=table.metadata_location)
    unread = Table(("db", "t"), state, Untouchable(), None)  # type: ignore[arg-type]
    assert repr(unread) == repr(table)
    html_of(unread)
    assert "not there" in repr(unread.scan("id > 3", columns=["not there"], runner=LocalRunner()))


def test_names_of_a_table_can_do_no_harm(table: icebench.Table) -> None:
    fields = [
        icebench.NestedField(field_id=i, name=f"{HOSTILE}{i}", type=icebench.STRING, doc=HOSTILE) for i in range(1, 500)
    ]
    catalog = icebench.load_catalog(table.location)
    made = catalog.create_table("h.t", icebench.Schema(tuple(fields)), partition_spec=[(f"{HOSTILE}7", "bucket[2]")])
    for thing in (made, made.schema(), made.spec, made.scan(icebench.col(f"{HOSTILE}1") == HOSTILE)):
        text = repr(thing)
        assert all(line.isprintable() and len(line) < 500 for line in text.splitlines())
        assert len(text.splitlines()) <= MOST_LINES + 1
        html_of(thing)
    assert repr(made.schema()).endswith("... 480 more")


def test_no_secret_is_shown(table: icebench.Table, tmp_path: Path) -> None:
    table.set_properties({"s3.secret-access-key": SECRET, "x.token": SECRET})
    table.append(table.scan().to_arrow(), snapshot_properties={"token": SECRET})
    things: list[object] = [table, table.current_snapshot, table.scan(), table.scan().plan()]
    things.append(table.maintenance.profile())
    properties = {"s3.secret-access-key": SECRET, "s3.session-token": SECRET, "token": SECRET}
    storage = {name: value for name, value in properties.items() if name.startswith("s3.")}
    things.append(icebench.load_catalog(str(tmp_path), properties=storage))
    for address in (
        f"postgresql+psycopg://ann:{SECRET}@h/db",
        f"postgresql+psycopg://ann:{SECRET[:5]}/?{SECRET}@h/db",
        f"postgresql+psycopg://h/db?sslpassword={SECRET}&x={SECRET}",
        f"https://{SECRET}@host/api?token={SECRET}#{SECRET}",
    ):
        assert SECRET not in address_text(address)
        assert SECRET[:5] not in address_text(address)
        things.append(icebench.Catalog(Named(), address=address))  # type: ignore[arg-type]
    for thing in things:
        assert SECRET not in repr(thing)
        assert SECRET not in getattr(thing, "_repr_html_", str)()


class Named:
    name = "lake"


def test_a_catalog_says_where_it_is(tmp_path: Path) -> None:
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path), name="lake")
    assert repr(catalog) == f"Catalog(lake, SqlViewCatalog, {printable(f'sqlite:///{tmp_path}/c.db')})"
    catalog.close()


def test_counts_sizes_and_instants() -> None:
    assert [count_text(n, "entry") for n in (0, 1, 1_234)] == ["0 entries", "1 entry", "1,234 entries"]
    assert [size_text(n) for n in (0, 1023, 1638, 1 << 20, 999 << 30, 5 << 50)] == [
        "0 B",
        "1023 B",
        "1.6 KB",
        "1 MB",
        "999 GB",
        "5,120 TB",
    ]
    assert instant_text(951_868_799_999) == "2000-02-29 23:59:59 UTC"
    assert instant_text(-1) == "1969-12-31 23:59:59 UTC"
    odd = Snapshot(
        snapshot_id=-1, timestamp_ms=1 << 80, manifest_list=None, operation=None, summary={"total-records": "x"}
    )
    assert repr(odd).startswith("Snapshot(-1, no operation, +")


def test_long_texts_are_cut() -> None:
    assert printable("x" * 101) == "x" * 49 + "…" + "x" * 49
    assert printable("a\n\ud800b") == "a\\n\\ud800b"
    assert some_lines(["x"] * MOST_LINES) == ["x"] * MOST_LINES
    assert some_lines(["x"] * (MOST_LINES + 1))[-1] == "... 2 more"
    assert "... 3 more" in html_table(("n",), [(i,) for i in range(MOST_ROWS + 3)])
    assert html_bars([("a", 2), ("b", 1), ("c", 0)]).count("width:") == 3
    assert "width:100px" in html_bars([("a", 2), ("b", 1)])
