"""`scan.explain()` on tables whose plans are known by hand."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

import icebench
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bound import leaves
from icebench.engine.expressions.literal_intervals import FALSE, NULL, TRUE
from icebench.engine.plan.explanation import ALL_MATCH, NEEDED, NEVER, NO_FILES, blocking_tests
from icebench.engine.plan.plan_text import BY_AGE, BY_INDEX, BY_METRICS, BY_PARTITION, BY_SUMMARY, NO_TARGET
from icebench.engine.plan.scan import as_predicate
from icebench.errors import Invalid

ROWS = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("name", pa.string())])


def rows(*ids: int, name: str | None = "a") -> pa.Table:
    return pa.table({"id": ids, "day": pa.array(ids, pa.date32()), "name": [name] * len(ids)}, ROWS)


@pytest.fixture
def catalog(tmp_path: Path) -> icebench.Catalog:
    return icebench.load_catalog(str(tmp_path))


@pytest.fixture
def table(catalog: icebench.Catalog) -> icebench.Table:
    made = catalog.create_table("db.t", ROWS, partition_spec=[("day", "month")])
    made.append(rows(0, 400))
    made.append(rows(1, 2, name=None))
    return made


def test_files_are_skipped_by_bounds_that_are_shown(table: icebench.Table) -> None:
    found = table.scan("id > 300 or name is null").explain()
    assert [(each.is_planned, each.why) for each in found.files] == [
        (True, ALL_MATCH),
        (True, ALL_MATCH),
        (False, "not id > 300: id is 0; not name is null: name is 'a', there are none"),
    ]
    assert found.files[-1].skipped_by == BY_METRICS
    assert found.files[-1].tests == ("id > 300", "name is null")
    only_nulls = table.scan("name = 'a' and id < 3").explain().files
    assert sorted(each.why for each in only_nulls if not each.is_planned) == [
        "not id < 3: id is 400",
        "not name = 'a': name has only nulls",
    ]
    some = table.scan("id = 1").explain()
    assert [each.why for each in some.files if each.is_planned] == [
        "rows may match; left to test: id = 1; id is 1 to 2"
    ]
    assert {each.why for each in table.scan().explain().files} == {NEEDED}


def test_entries_and_manifests_are_skipped_by_partition_fields(table: icebench.Table) -> None:
    found = table.scan("day > date '1971-01-01'").explain()
    skipped = [each for each in found.manifests if not each.is_planned]
    assert [(each.skipped_by, each.why) for each in skipped] == [
        (BY_SUMMARY, "not day > date '1971-01-01': partition field day_month is 1970-01")
    ]
    (entry,) = [each for each in found.files if not each.is_planned]
    assert entry.skipped_by == BY_PARTITION
    assert entry.why == "not day > date '1971-01-01': partition field day_month is 1970-01"
    between = table.scan("day > date '1972-01-01'").explain().manifests
    assert [each.why for each in between] == [
        "not day > date '1972-01-01': partition field day_month is 1970-01",
        "not day > date '1972-01-01': partition field day_month is 1970-01 to 1971-02",
    ]


def test_a_planned_file_has_the_bounds_by_which_its_rows_may_match(table: icebench.Table) -> None:
    found = table.scan("id <> 2 and day < date '1970-01-03' and name is null").explain()
    left = "rows may match; left to test: id != 2 and day < date '1970-01-03'"
    metadata = "id is 1 to 2, partition field day_month is 1970-01, day is date '1970-01-02' to date '1970-01-03'"
    assert [each.why for each in found.files if each.is_planned] == [f"{left}; {metadata}"]


def test_a_manifest_without_live_files_is_not_called_read(table: icebench.Table) -> None:
    table.delete("id = 400", "copy-on-write")
    table.delete("true", "copy-on-write")
    found = table.scan().explain()
    assert {each.why for each in found.manifests} == {NO_FILES}
    assert not any(each.is_planned for each in found.manifests)


def test_filters_that_no_row_can_match(table: icebench.Table) -> None:
    found = table.scan("1 = 2").explain()
    assert {each.why for each in found.manifests} == {NEVER}


def test_files_older_than_a_column(table: icebench.Table) -> None:
    table.update_schema(lambda schema: schema.add_column("more", icebench.LONG))
    table.append(pa.table({"id": [9], "day": pa.array([9], pa.date32()), "name": ["b"], "more": [1]}))
    found = table.scan("more = 1").explain()
    old = [each for each in found.files if not each.is_planned]
    assert [(each.skipped_by, each.why) for each in old] == [(BY_AGE, "not more = 1: more was added later")] * 3


def test_files_without_the_value_by_an_index(table: icebench.Table) -> None:
    table.maintenance.build_index("id", kind="values")
    table.append(rows(10, 12))
    table.maintenance.build_index("id", kind="values")
    found = table.scan("id = 11").explain()
    (skipped,) = [each for each in found.files if each.skipped_by == BY_INDEX]
    assert skipped.why == "not id = 11: id is 10 to 12, the index of id has no such value"


def test_what_deletes_add(table: icebench.Table) -> None:
    table.append(rows(3, 4))
    table.delete("id in (1, 3)", "merge-on-read")
    found = table.scan("id < 3").explain()
    kept = [each.why for each in found.files if each.is_planned]
    assert kept == [f"{ALL_MATCH}; 1 delete file of 1 row to apply", ALL_MATCH]
    assert sorted((each.is_planned, each.skipped_by or "", each.record_count) for each in found.delete_files) == [
        (False, NO_TARGET, 1),
        (True, "", 1),
    ]
    assert "1 of 2 delete files in these are needed:" in repr(found).splitlines()
    later = table.scan("day > date '1971-01-01'").explain()
    assert not any(each.is_planned for each in later.delete_files)


def test_what_each_file_has_to_apply(table: icebench.Table) -> None:
    table.append(rows(3, 4, 5, 6))
    table.append(rows(7, 8, 9))
    for condition in ("id in (3, 4, 5)", "id in (1, 400)", "id > 7"):
        table.delete(condition, "merge-on-read")
    whys = {each.record_count: each.why.rpartition("; ")[2] for each in table.scan().explain().files}
    assert whys == {
        1: NEEDED,
        2: "1 delete file of 1 row to apply",
        3: "1 delete file of 2 rows to apply",
        4: "1 delete file of 3 rows to apply",
    }


def test_row_groups_are_read_on_request(catalog: icebench.Catalog) -> None:
    table = catalog.create_table("db.g", ROWS, properties={"write.parquet.row-group-limit": "10"})
    table.append(rows(*range(30)))
    assert "row groups" not in repr(table.scan("id < 10").explain())
    found = table.scan("id < 10").explain(row_groups=True)
    assert found.row_groups is not None
    skipped = sum(found.row_groups["is_skipped"].to_pylist())
    total = found.row_groups.num_rows
    assert f"row groups: {total - skipped:,} of {total:,} are read" in repr(found)
    assert "row groups" in found._repr_html_()


def test_text_and_html_hold_every_reason(table: icebench.Table) -> None:
    scan = table.scan("id > 300 and name <> '<b>'")
    found = scan.explain()
    assert repr(scan).startswith("Scan(db.t, filter: id > 300 and name != '<b>', 1 of 3 files, ")
    lines = repr(found).splitlines()
    assert lines[0] == repr(found.plan).splitlines()[0]
    assert "1 of 3 data files in these are planned:" in lines
    assert sum(line.startswith("  - ") for line in lines) == 2
    markup = found._repr_html_()
    assert "<b>" not in markup
    ET.fromstring(f"<div>{markup}</div>")


def test_incremental_scans_are_explained(table: icebench.Table) -> None:
    first = table.snapshots[0].snapshot_id
    found = table.incremental_append_scan(first, filter="id > 1").explain()
    assert [each.is_planned for each in found.files] == [True]
    assert len(found.manifests) == 1


def test_errors_are_those_of_a_plan(table: icebench.Table) -> None:
    with pytest.raises(Invalid, match="no column 'x'"):
        table.scan("x = 1").explain()


def test_blocking_tests_are_enough_and_only_found_where_the_filter_cannot_be_true() -> None:
    schema = icebench.Schema((icebench.NestedField(field_id=1, name="x", type=icebench.LONG),))
    text = "(x = 1 or (x = 2 and x = 3)) and (x = 4 or x = 5)"
    bound = bind(as_predicate(text, schema), schema)
    assert len(leaves(bound)) == 5
    for outcomes in product((TRUE, FALSE, TRUE | FALSE, NULL, 0), repeat=5):
        one, two, three, four, five = (bool(each & TRUE) for each in outcomes)
        found = blocking_tests(bound, outcomes)
        assert (found is None) == ((one or (two and three)) and (four or five))
        if found is not None:
            assert not any(outcomes[i] & TRUE for i in found)
            one, two, three, four, five = (i not in found for i in range(5))
            assert not ((one or (two and three)) and (four or five))
