"""What columns cost and who uses them; what is proposed, and that only metadata is changed."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.bench.advise.columns import ColumnUse, apply_proposals, examine_columns, filtered_shares, propose
from icebench.bench.advise.queries import Query
from icebench.bench.errors import ConfigError
from tests.unit.bench.cli.test_main import exit_code

SCHEMA = pa.schema(
    [
        ("day", pa.int32()),
        ("id", pa.int64()),
        ("small", pa.int64()),
        ("price", pa.decimal128(30, 2)),
        ("note", pa.string()),
        ("late", pa.int64()),
    ]
)
SQL = """
-- weight: 3
select note from t where id = 5;
select sum(price) from t where late > 5;
"""


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    properties = {"write.metadata.metrics.max-inferred-column-defaults": "5"}
    made = icebench.load_catalog(str(tmp_path / "wh")).create_table(
        "db.t", SCHEMA, partition_spec=[("day", "identity")], properties=properties
    )
    for start in (0, 2**40, 200):
        ids = range(start, start + 100)
        made.append(
            pa.table(
                {
                    "day": [1] * 100,
                    "id": ids,
                    "small": range(100),
                    "price": [Decimal(i % 100) / 4 for i in ids],
                    "note": [f"text {i}" for i in ids],
                    "late": ids,
                },
                SCHEMA,
            )
        )
    return made


def test_partition_fields_are_asked_for_by_their_source_columns(tmp_path: Path) -> None:
    spec = [("id", "bucket[4]"), ("late", "truncate[10]")]
    made = icebench.load_catalog(str(tmp_path / "wh")).create_table("db.t", SCHEMA, partition_spec=spec)
    queries = [
        Query(name="a", weight=3.0, equalities=("id",), columns=("note",)),
        Query(name="b", join_keys=("small", "id")),
        Query(name="c", weight=4.0, ranges=("day",)),
    ]
    assert {name: share for name, share in filtered_shares(made, queries).items() if share} == {
        "id_bucket": 0.5,
        "id": 0.5,
        "small": 0.125,
        "day": 0.5,
    }


@pytest.mark.parametrize("deep", [False, True])
def test_costs_and_use_of_columns(table: icebench.Table, tmp_path: Path, deep: bool) -> None:
    path = tmp_path / "q.sql"
    path.write_text(SQL.replace(" t ", " db.t "))
    uses = examine_columns(table, queries=path, deep=deep).uses
    by_name = {use.name: use for use in uses}
    assert {name: (use.read, use.filtered) for name, use in by_name.items()} == {
        "day": (0, 0),
        "id": (0.75, 0.75),
        "small": (0, 0),
        "price": (0.25, 0),
        "note": (0.75, 0),
        "late": (0.25, 0.25),
    }
    assert by_name["day"].needed == ("partition",)
    sizes = table.inspect.data_files()["readable_metrics"].combine_chunks()
    for name, use in by_name.items():
        stored = sum(sizes.field(name).field("column_size").to_pylist()) if name != "late" else use.data_bytes
        assert use.data_bytes == stored or deep
        assert use.data_bytes > 0 or name == "late"
    assert sum(use.planning_share for use in uses) == pytest.approx(1)


def uses_of(table: icebench.Table, column: str) -> list[ColumnUse]:
    return list(examine_columns(table, used=[column]).uses)


def test_what_is_proposed_and_what_is_done(table: icebench.Table, tmp_path: Path) -> None:
    path = tmp_path / "q.sql"
    path.write_text(SQL.replace(" t ", " db.t "))
    proposals = examine_columns(table, queries=path).proposals
    found = {(each.change, each.column) for each in proposals}
    assert found == {
        ("metrics", "small"),
        ("metrics", "price"),
        ("metrics", "note"),
        ("order", "late"),
        ("drop", "small"),
    }
    before = table.scan().to_arrow()
    snapshot = table.current_snapshot
    assert apply_proposals(table, proposals) == 4
    table.refresh()
    assert table.current_snapshot == snapshot
    assert table.schema().fields[0].name == "late"
    assert table.metadata.properties["write.metadata.metrics.column.note"] == "none"
    assert table.scan().to_arrow().select(before.column_names).equals(before)
    assert not {("metrics", "note"), ("order", "late")} & {
        (each.change, each.column) for each in examine_columns(table, queries=path).proposals
    }
    table.append(before.slice(0, 1).select(table.schema().name_of[i] for i in (6, 1, 2, 3, 4, 5)))
    newest = table.inspect.data_files()["readable_metrics"].combine_chunks()
    assert newest.field("late").field("lower_bound").null_count == 3
    assert newest.field("note").field("lower_bound").null_count == 1


def test_the_order_is_not_changed_for_columns_that_get_metrics(table: icebench.Table) -> None:
    """As in Iceberg Java, nested columns are counted after all others, and sort keys get metrics in any place."""
    assert [each.column for each in propose(table, uses_of(table, "late")) if each.change == "order"] == ["late"]
    table.replace_sort_order(["late"])
    assert not [each for each in propose(table, uses_of(table, "late")) if each.change == "order"]
    table.replace_sort_order([])
    inner = icebench.StructType((icebench.NestedField(field_id=1, name="x", type=icebench.LONG),))
    table.update_schema(lambda update: update.drop_column("small").add_column("s", inner).move_first("s"))
    assert not [each for each in propose(table, uses_of(table, "late")) if each.change == "order"]


def test_footers_are_of_renamed_columns(table: icebench.Table) -> None:
    before = {use.name: use.data_bytes for use in examine_columns(table, used=["id"], deep=True).uses}
    table.update_schema(lambda update: update.drop_column("note").rename_column("late", "note"))
    after = {use.name: use.data_bytes for use in examine_columns(table, used=["id"], deep=True).uses}
    assert after["note"] == before["late"] > 0


@pytest.mark.parametrize(
    "condition",
    [
        "note is null",
        "note is not null",
        "note <> 'text 3'",
        "not note = 'text 3'",
        "id = 5 and (note is null or small <> 1)",
        "note = :text and id < ? and small >= cast(current_date as bigint)",
        "note in (select d.name from dim d)",
        "note = (select max(d.name) from dim d)",
        "exists (select 1 from dim d where d.name = t.note)",
    ],
)
def test_metrics_of_every_column_in_a_condition_are_kept(table: icebench.Table, tmp_path: Path, condition: str) -> None:
    path = tmp_path / "q.sql"
    path.write_text(f"select price from db.t where {condition}")
    tested = {name for name in SCHEMA.names if name in condition}
    found = examine_columns(table, queries=path)
    assert {use.name for use in found.uses if use.filtered} == tested
    unfiltered = set(SCHEMA.names) - tested - {"day", "late"}  # of one a partition is made, the other has no metrics
    assert {each.column for each in found.proposals if each.change == "metrics"} == unfiltered


def test_metrics_of_columns_that_are_compared_with_another_table_are_kept(
    table: icebench.Table, tmp_path: Path
) -> None:
    path = tmp_path / "q.sql"
    path.write_text("select price from db.t v join dim d on v.note = d.name and v.small < d.size and v.id + 1 = d.id")
    uses = examine_columns(table, queries=path).uses
    assert {use.name for use in uses if use.filtered} == {"note", "small", "id"}


def test_metrics_that_answer_aggregates_are_kept(table: icebench.Table, tmp_path: Path) -> None:
    path = tmp_path / "q.sql"
    path.write_text(
        "select min(note), max(v.id) + 1, sum(price), count(distinct price), max(price) over () from db.t v; "
        "select count(small) from t where late = 3; select max(price) from t group by day; "
        "select max(t.price) from t join d on t.id = d.id"
    )
    found = examine_columns(table, queries=path)
    assert {use.name for use in found.uses if "aggregate" in use.needed} == {"note", "id", "small"}
    assert [each.column for each in found.proposals if each.change == "metrics"] == ["price"]


def test_columns_that_are_named(table: icebench.Table, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    advice = examine_columns(table, used=["note"])
    assert {use.name for use in advice.uses if use.filtered} == {"note"}
    assert "drop" not in {each.change for each in advice.proposals}
    with pytest.raises(ConfigError, match=r"--used: unknown column 'note2' \(did you mean 'note'\?\)"):
        examine_columns(table, used=["note2"])
    with pytest.raises(ConfigError, match="cannot be read"):
        examine_columns(table, queries=tmp_path / "none.sql")
    command = ["maintain", "columns", tmp_path / "wh", "db.t"]
    assert exit_code(*command) == 2
    capsys.readouterr()
    assert exit_code(*command, "--used", "note") == 0
    captured = capsys.readouterr()
    assert "metrics price" in captured.out
    assert "nothing was changed" in captured.err
    assert exit_code(*command, "--used", "id", "--json", "--execute") == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["columns"]) == 6
    assert table.refresh().metadata.properties["write.metadata.metrics.column.note"] == "none"


@pytest.mark.parametrize("broken", ["selct small from t", "select sum(price) from t where smal = 3"])
def test_nothing_is_called_unused_while_a_query_is_not_understood(
    table: icebench.Table, capsys: pytest.CaptureFixture[str], tmp_path: Path, broken: str
) -> None:
    path = tmp_path / "q.sql"
    path.write_text(f"{broken};\n{SQL}")
    command = ["maintain", "columns", tmp_path / "wh", "db.t", "--queries", path]
    assert exit_code(*command, "--execute") == 1
    captured = capsys.readouterr()
    assert "not understood: q1: sel" in captured.err or "not understood: q1: smal: " in captured.err
    assert not {"drop", "metrics"} & {line.split(" ")[0] for line in captured.out.splitlines()}
    assert "order late" in captured.out
    table.refresh()
    assert table.schema().fields[0].name == "late"
    assert not any("metrics.column" in name for name in table.metadata.properties)
    assert exit_code(*command, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert [each["query"] for each in found["not_understood"]] == ["q1"]
    by_name = {each["name"]: each for each in found["columns"]}
    assert (by_name["price"]["read"], by_name["note"]["read"]) == (0.25, 0.75)
