"""What a shell completes of tables, by click's own protocol and in bash."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from click.shell_completion import BashComplete

import icebench
from icebench.bench.cli.main import COMMANDS, app

SCHEMA = pa.schema([("id", pa.int64())])
TAKES_A_TABLE = ["", "profile", "doctor", "advise", "table files", "maintain rewrite-data-files"]


@pytest.fixture(autouse=True)
def _directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warehouse with two namespaces, and `lake`, which is configured for it."""
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    for name in ("db.events", "db.orders", "shop.orders"):
        catalog.create_table(name, SCHEMA)
    (tmp_path / "notes.txt").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TYPE", "hadoop")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", str(tmp_path / "wh"))


def completed(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What click answers bash at the end of a line, as ``type,value``."""
    words = [*shlex.split(line), *([""] if line.endswith(" ") else [])]
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    return BashComplete(app, {}, "icebench", "_ICEBENCH_COMPLETE").complete().splitlines()


@pytest.mark.parametrize("command", TAKES_A_TABLE)
class TestEveryCommandOfATable:
    def test_places(self, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
        line = f"icebench {command} ".replace("  ", " ")
        assert completed(f"{line}w", monkeypatch) == ["dir,w"]
        assert completed(f"{line}wh/db/events/metadata/v1", monkeypatch) == ["file,wh/db/events/metadata/v1"]

    def test_catalogs_beside_directories(self, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("lakes").mkdir()
        found = completed(f"icebench {command} la".replace("  ", " "), monkeypatch)
        assert found == ["plain,lake", "plain,lakes/"]

    @pytest.mark.parametrize("catalog", ["wh", "lake"])
    def test_tables_of_a_catalog(self, command: str, catalog: str, monkeypatch: pytest.MonkeyPatch) -> None:
        line = f"icebench {command} {catalog} ".replace("  ", " ")
        assert completed(line, monkeypatch) == ["plain,db.events", "plain,db.orders", "plain,shop.orders"]
        assert completed(f"{line}d", monkeypatch) == ["plain,db.events", "plain,db.orders"]
        assert completed(f"{line}db.o", monkeypatch) == ["plain,db.orders"]
        assert completed(f"{line}db.orders ", monkeypatch) == []

    def test_tables_of_the_option(self, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
        if command:  # options come after a table where there is no command
            assert completed(f"icebench {command} --catalog wh sh", monkeypatch) == ["plain,shop.orders"]
            assert completed(f"icebench {command} --catalog la", monkeypatch)[0] == "plain,lake"

    def test_what_cannot_be_opened_completes_nothing(self, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
        before = sorted(Path().rglob("*"))
        for catalog in ("nowhere", "sqlite:///no/such/c.db", "notes.txt", "thrift://127.0.0.1:1"):
            assert completed(f"icebench {command} {catalog} d".replace("  ", " "), monkeypatch) == []
        assert sorted(Path().rglob("*")) == before


def test_the_first_word_may_be_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed("icebench pro", monkeypatch) == ["plain,profile"]
    every = completed("icebench ", monkeypatch)
    assert every == [f"plain,{name}" for name in [*COMMANDS, "lake", "wh/"]]
    assert completed("icebench --deb", monkeypatch) == ["plain,--debug"]
    assert completed("icebench wh db.events --ware", monkeypatch) == ["plain,--warehouse"]


def test_no_command_is_imported_for_its_name() -> None:
    environment = {**os.environ, "COMP_WORDS": "icebench ", "COMP_CWORD": "1", "_ICEBENCH_COMPLETE": "bash_complete"}
    code = (
        "import atexit, sys; from icebench.bench.cli.main import main\n"
        "atexit.register(lambda: print(sorted({'pyarrow', 'icebench.bench.cli.run'} & set(sys.modules))))\n"
        "main([])"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_the_only_catalog_of_a_database_need_not_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    icebench.load_catalog("sqlite:///c.db", warehouse="w", name="x").create_table("db.mine", SCHEMA)
    assert completed("icebench profile sqlite:///c.db d", monkeypatch) == ["plain,db.mine"]
    icebench.load_catalog("sqlite:///c.db", warehouse="w", name="y").create_table("db.other", SCHEMA)
    assert completed("icebench profile --catalog-name y sqlite:///c.db d", monkeypatch) == ["plain,db.other"]
    assert completed("icebench profile sqlite:///c.db d", monkeypatch) == []
    # bash divides words at colons
    assert completed("icebench profile --catalog-name x sqlite : ///c.db d", monkeypatch) == ["plain,db.mine"]


def test_many_namespaces_are_completed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = icebench.load_catalog("wh")
    for number in range(21):
        catalog.create_table(f"n{number:02}.t", SCHEMA)
    assert completed("icebench wh n", monkeypatch)[:2] == ["plain,n00.", "plain,n01."]
    assert completed("icebench wh n0", monkeypatch)[:2] == ["plain,n00.t", "plain,n01.t"]


def test_tables_of_a_query_stand_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed("icebench sql 'select 1' wh/db/events w", monkeypatch) == ["dir,w"]
    assert completed("icebench sql --catalog wh 'select 1' db.events s", monkeypatch) == ["plain,shop.orders"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_a_table_alone(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "icebench"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m icebench "$@"\n')
    program.chmod(0o755)
    script = (
        'eval "$(_ICEBENCH_COMPLETE=bash_source icebench)"\n'
        "COMP_WORDS=(icebench wh db.); COMP_CWORD=2\n"
        '_icebench_completion icebench; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    root = Path(__file__).parents[4]
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(root)}
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["db.events", "db.orders"], done.stderr
