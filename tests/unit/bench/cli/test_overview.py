from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

import icebench
from icebench.bench.cli.overview import LINES
from icebench.bench.report.overview import overview_lines
from icebench.bench.report.profile import Place, fix_commands
from tests.unit.bench.cli.test_main import exit_code

WIDE = pa.schema([("id", pa.int64()), ("day", pa.int32()), *((f"extra_{n}", pa.int64()) for n in range(60))])


@pytest.fixture
def made(tmp_path: Path) -> icebench.Table:
    """A wide table of small files, one of which has a position delete, in a directory with a long name."""
    catalog = icebench.load_catalog(str(tmp_path / ("warehouse_" * 8)))
    found = catalog.create_table(
        "db.events", WIDE, partition_spec=[("day", "identity"), ("id", "bucket[2]")], sort_order=["id"]
    )
    for start in range(5):
        ids = list(range(start * 8, start * 8 + 8))
        found.append(pa.table({f.name: [i % 2 for i in ids] if f.name == "day" else ids for f in WIDE}, WIDE))
    found.delete("id = 9", mode="merge-on-read")
    return found


def screen(made: icebench.Table, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    place = Place(table="db.events", words=(made.location,))
    lines = overview_lines(made, made.maintenance.profile(), place, console, lines=LINES)
    return [line.plain for line in lines]


@pytest.mark.parametrize("width", [80, 100, 200])
def test_a_table_fits_one_screen(made: icebench.Table, width: int) -> None:
    lines = screen(made, width)
    assert sum(max(1, -(-len(line) // width)) for line in lines) <= LINES
    assert all(len(line) <= width for line in lines if not line.startswith("icebench "))
    labels = [line.split()[0] for line in lines if re.match(r"[A-Z]\w+  ?", line)]
    assert labels == ["Schema", "Partitions", "Order", "Sizes", "Deletes", "Snapshots", "Metadata", "What"]


def test_it_says_what_the_table_is(made: icebench.Table) -> None:
    text = " ".join(" ".join(screen(made, 200)).split())
    profile = made.maintenance.profile()
    assert f"db.events: format {made.format_version}, {profile.files.files} data files" in text
    assert "62 columns: id long, day int, extra_0 long" in text
    assert "Partitions day, bucket[2](id) Order id asc nulls-first" in text
    assert "1 position (1 row), on 1 data file" in text
    assert re.search(r"Snapshots 6, oldest .* \(delete\); branch main", text)


def test_it_prints_the_commands_of_the_two_costliest_problems_whole(made: icebench.Table) -> None:
    profile = made.maintenance.profile()
    first, second, *_ = fix_commands(profile, Place(table="db.events", words=(made.location,)))
    commands = [line for line in screen(made, 80) if line.startswith(("icebench ", "ALTER "))]
    assert commands[:2] == [each.command or each.sql for each in (first, second)]
    assert len(profile.reasons) > 2
    assert any(f"{len(profile.reasons) - 2} more" in line for line in screen(made, 80))


def test_the_commands_run(made: icebench.Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(made.location) == 0
    commands = [line for line in capsys.readouterr().out.splitlines() if line.startswith("icebench ")]
    assert len(commands) == 3
    for command in commands:
        assert exit_code(*shlex.split(command)[1:]) == 0


def test_a_table_is_named_as_in_every_command(
    made: icebench.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(Path(made.location).parent)
    warehouse = Path(made.location).parents[1]
    ways = [("events",), (made.metadata_location,), (warehouse, "db.events"), ("db.events", "--catalog", warehouse)]
    for words in ways:
        assert exit_code(*words) == 0
        assert " 62 columns: id long" in capsys.readouterr().out


def test_a_table_without_snapshots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    icebench.load_catalog(str(tmp_path)).create_table("db.t", WIDE)
    assert exit_code(tmp_path, "db.t") == 0
    out = capsys.readouterr().out
    assert "0 data files" in out
    assert "Snapshots" not in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nope",), "No such command 'nope', and no table: "),
        (("profil",), "Did you mean 'profile'?"),
        (("profil", "wh/db/t", "--deep"), "No such command 'profil'. Did you mean 'profile'?"),
        (("tabel", "files", "wh/db/t"), "Did you mean 'table'?"),
        (("maintian", "db.t"), "Did you mean 'maintain'?"),
        (("a/directory",), "no table at "),
        (("./t", "--deep"), "No such option"),
        (("--nope",), "No such option"),
    ],
)
def test_a_word_that_is_neither_a_command_nor_a_table(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code(*words) == 2
    captured = capsys.readouterr()
    assert said in " ".join(captured.err.split())
    assert captured.out == ""
    assert not [*tmp_path.iterdir()]


def test_a_directory_of_a_bare_name_that_holds_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gates").mkdir()
    monkeypatch.chdir(tmp_path)
    assert exit_code("gates") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "No such command 'gates', and no table: gates: no table at" in said
    assert said.endswith("Did you mean 'gate'?")
