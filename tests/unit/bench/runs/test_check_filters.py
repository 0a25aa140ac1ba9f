from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.bench.cli.run import of_tables
from icebench.bench.errors import ConfigError
from icebench.bench.experiment import known_experiments, load_experiment, parse_values
from icebench.bench.runs.check_filters import check_filters
from icebench.errors import NotFound
from tests.unit.bench.cli.test_main import exit_code

WRONG = {
    "nope = 1": "no column 'nope'; the columns are id, name",
    "id = 'x'": "column 'id' is long and cannot be compared",
    "id >": "cannot parse the filter 'id >': something is missing",
    "id + name > 1": "add of int64 and string",
}


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    made = icebench.load_catalog(str(tmp_path / "wh")).create_table(
        "db.t", pa.schema([("id", pa.int64()), ("name", pa.string())])
    )
    made.append(pa.table({"id": [1], "name": ["a"]}))
    return made


@pytest.mark.parametrize(("text", "reason"), WRONG.items())
def test_a_wrong_filter_is_refused_before_an_engine_starts(
    table: icebench.Table,
    text: str,
    reason: str,
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("icebench.bench.runs.run.run_experiment", lambda *_, **__: pytest.fail("it ran"))
    options = ("--table", table.location, "--filter", "id = 1", "--filter", text)
    assert exit_code("--results", tmp_path / "results", "run", *options) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"icebench: --filter: {reason}")
    assert said.count("\n") == 1
    catalog = ("--catalog", tmp_path / "wh", "--table", "db.t", "--filter", text, "--dry-run")
    assert exit_code("--results", tmp_path / "results", "run", *catalog) == 2


def test_every_table_is_asked(table: icebench.Table, tmp_path: Path) -> None:
    other = icebench.load_catalog(str(tmp_path / "wh")).create_table("db.u", pa.schema([("id", pa.int64())]))
    other.append(pa.table({"id": [1]}))
    both = [{"path": each.location} for each in (table, other)]
    check_filters(of_tables(both, ["id > 0"]))
    with pytest.raises(ConfigError, match=r"no column 'name'; the columns are id$"):
        check_filters(of_tables(both, ["name = 'a'"]))


def test_a_table_must_be_there_and_have_rows(table: icebench.Table, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        check_filters(of_tables([{"path": str(tmp_path / "nowhere")}]))
    with pytest.raises(NotFound):
        check_filters(of_tables([{"path": "v1", "catalog": str(tmp_path / "wh"), "table": "db.nope"}]))
    empty = icebench.load_catalog(str(tmp_path / "wh")).create_table("db.empty", pa.schema([("id", pa.int64())]))
    with pytest.raises(ConfigError, match="has no snapshot"):
        check_filters(of_tables([{"path": empty.metadata_location}]))


@pytest.mark.parametrize("name", known_experiments())
def test_the_filters_of_the_projects_experiments_fit(name: str) -> None:
    check_filters(load_experiment(name))


def test_filters_of_generated_rows_are_named_by_their_key() -> None:
    values = load_experiment("quick").values
    with pytest.raises(ConfigError, match=r"^filters\.odd: no column 'ss_nope'; the columns are ss_sold_date"):
        check_filters(parse_values({**values, "filters": {"fine": "ss_item_sk = 1", "odd": "ss_nope = 1"}}))
