"""Every command takes a table by its place, or by a catalog and its name; what is printed can be run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from tests.unit.bench.cli.test_main import exit_code

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "day": pa.array([0, 1, 1], pa.int32())})


def filled(catalog: icebench.Catalog, name: str = "db.t") -> icebench.Table:
    made = catalog.create_table(name, ROWS.schema, properties={"read.split.open-file-cost": "10000000"})
    for _ in range(6):
        made.append(ROWS)
    return made


@pytest.fixture
def directory(tmp_path: Path) -> icebench.Table:
    return filled(icebench.load_catalog(str(tmp_path / "wh")))


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/c.db"


@pytest.mark.parametrize(
    "command", [["profile"], ["doctor"], ["maintain", "rewrite-data-files"], ["table", "files"]], ids=" ".join
)
class TestOneWay:
    def test_a_directory(self, directory: icebench.Table, command: list[str]) -> None:
        assert exit_code(*command, directory.location) == 0

    def test_a_relative_directory(
        self, directory: icebench.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
    ) -> None:
        monkeypatch.chdir(tmp_path / "wh" / "db")
        assert exit_code(*command, "t/") == 0

    def test_a_catalog_and_a_name(self, directory: icebench.Table, tmp_path: Path, command: list[str]) -> None:
        assert exit_code(*command, tmp_path / "wh", "db.t") == 0
        assert exit_code(*command, "--catalog", tmp_path / "wh", "db.t") == 0

    def test_a_configured_catalog(
        self, directory: icebench.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
    ) -> None:
        monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TYPE", "hadoop")
        monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", str(tmp_path / "wh"))
        assert exit_code(*command, "lake", "db.t") == 0

    def test_the_only_catalog_of_a_database_need_not_be_named(
        self, tmp_path: Path, database: str, command: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        filled(icebench.load_catalog(database, warehouse=str(tmp_path / "w"), name="x"))
        assert exit_code(*command, database, "db.t") == 0
        filled(icebench.load_catalog(database, warehouse=str(tmp_path / "w"), name="y"), "db.u")
        capsys.readouterr()
        assert exit_code(*command, database, "db.t") == 2
        assert "--catalog-name x" in capsys.readouterr().err
        assert exit_code(*command, database, "db.t", "--catalog-name", "x") == 0
        assert exit_code(*command, database, "db.t", "--catalog-name", "y") != 0

    def test_a_database_of_no_catalog_stays_as_it_is(
        self, tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert exit_code(*command, f"sqlite:///{tmp_path}/no/c.db", "db.t") == 2
        assert "there is no database" in capsys.readouterr().err
        (tmp_path / "empty.db").touch()
        assert exit_code(*command, f"sqlite:///{tmp_path}/empty.db", "db.t") == 2
        assert "is of no catalog" in capsys.readouterr().err
        assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("empty.db", 0)]

    def test_too_many_or_no_words(self, directory: icebench.Table, command: list[str]) -> None:
        assert exit_code(*command, "a", "b", "c") == 2


def test_maintenance_of_a_directory_is_that_of_its_catalog(directory: icebench.Table, tmp_path: Path) -> None:
    assert exit_code("maintain", "rewrite-data-files", directory.location) == 0
    assert directory.refresh().inspect.files().num_rows == 1
    assert directory.metadata_location == f"{directory.location}/metadata/v8.metadata.json"
    assert directory.scan().count() == 18


def test_what_is_in_another_catalog_is_not_changed_by_its_files(
    tmp_path: Path, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = filled(icebench.load_catalog(database, warehouse=str(tmp_path / "w")))
    assert exit_code("profile", table.location) == 0
    capsys.readouterr()
    assert exit_code("maintain", "rewrite-data-files", table.location) == 2
    assert "CATALOG NAMESPACE.TABLE" in capsys.readouterr().err
    assert table.refresh().inspect.files().num_rows == 6


def test_a_copied_table_is_not_taken_for_the_one_of_a_catalog(directory: icebench.Table, tmp_path: Path) -> None:
    (tmp_path / "other" / "db").mkdir(parents=True)
    (tmp_path / "wh" / "db" / "t").rename(tmp_path / "other" / "db" / "t")
    with pytest.warns(icebench.errors.RelocationWarning):
        assert exit_code("maintain", "rewrite-data-files", tmp_path / "other" / "db" / "t") == 2


@pytest.mark.parametrize("place", ["v1.2/t", "db/t.old"])
def test_directories_may_have_dots_in_their_names(tmp_path: Path, place: str) -> None:
    """As those of tables that Spark makes by their location, without a catalog."""
    table = icebench.load_catalog(str(tmp_path / "wh")).create_table("db.t", ROWS.schema)
    metadata = tmp_path / place / "metadata" / "v1.metadata.json"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(Path(table.metadata_location).read_text().replace(table.location, str(tmp_path / place)))
    assert exit_code("profile", tmp_path / place) == 0
    assert exit_code("maintain", "rewrite-data-files", tmp_path / place) == 2


def printed(text: str) -> list[list[str]]:
    """The words of each command of icebench, which has a line of its own."""
    lines = [line.strip() for line in text.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("icebench maintain ")]


def test_printed_commands_run(
    directory: icebench.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    for words in (["wh/db/t"], ["wh", "db.t"]):
        assert exit_code("profile", *words) == 0
        text = capsys.readouterr().out
        commands = printed(text)
        assert commands
        for command in commands:
            assert command[2 : 2 + len(words)] == words
        assert "CATALOG" not in text
        assert exit_code("profile", *words, "--json") == 0
        statements = [each["sql"] for each in json.loads(capsys.readouterr().out)["commands"]]
        assert any(each.startswith("CALL system.rewrite_data_files(table => 'db.t'") for each in statements)
    assert exit_code(*printed(text)[0]) == 0
