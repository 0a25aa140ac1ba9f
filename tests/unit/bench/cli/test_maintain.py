from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.errors import StorageFailed
from tests.unit.bench.cli.test_main import exit_code

NEVER = "2999-01-01T00:00:00Z"
"""Everything is older than this."""


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    """Six files of two rows, a snapshot each."""
    made = icebench.load_catalog(str(tmp_path / "wh")).create_table("db.t", pa.schema([("a", pa.int64())]))
    for number in range(6):
        made.append(pa.table({"a": [5 - number, 10]}))
    return made


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Figures by their labels, without the lists."""
    lines = [line.rsplit(maxsplit=1) for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    return {label.strip(): value for label, value in lines}


def test_files_are_put_together(table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("maintain", "rewrite-data-files", tmp_path / "wh", "db.t") == 0
    assert said(capsys).items() >= {"rewritten data files": "6", "added data files": "1"}.items()
    table.refresh()
    assert table.inspect.data_files()["record_count"].to_pylist() == [12]
    assert exit_code("maintain", "rewrite-data-files", tmp_path / "wh", "db.t") == 0
    assert said(capsys)["rewritten data files"] == "0"


def test_that_dangling_deletes_stay_is_printed(
    table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StorageFailed("no room")

    monkeypatch.setattr("icebench.engine.maintenance.rewrite_data_files.remove_dangling_deletes", fail)
    assert exit_code("maintain", "rewrite-data-files", tmp_path / "wh", "db.t", "--remove-dangling-deletes") == 1
    printed = capsys.readouterr()
    assert "no dangling delete was removed: no room" in printed.err
    assert "rewritten data files" in printed.out


def test_rows_are_sorted(table: icebench.Table, tmp_path: Path) -> None:
    options = ["--sort-by", "a", "--min-input-files", "1", "--rewrite-all"]
    assert exit_code("maintain", "rewrite-data-files", tmp_path / "wh", "db.t", *options) == 0
    assert table.refresh().scan().to_arrow()["a"].to_pylist() == [0, 1, 2, 3, 4, 5, 10, 10, 10, 10, 10, 10]


def test_files_are_clustered_as_declared(
    table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["maintain", "cluster", tmp_path / "wh", "db.t"]
    assert exit_code(*command) == 2
    assert "declares no clustering" in capsys.readouterr().err
    assert exit_code(*command, "--dry-run", "--key", "a") == 2
    capsys.readouterr()
    assert exit_code(*command, "--strategy", "sort", "--key", "a") == 0
    figures = {"depth after": "1.00", "merges": "1", "rewritten data files": "6", "added data files": "1"}
    assert said(capsys).items() >= figures.items()
    assert table.refresh().scan().to_arrow()["a"].to_pylist() == [0, 1, 2, 3, 4, 5, 10, 10, 10, 10, 10, 10]
    assert exit_code(*command, "--dry-run") == 0
    assert said(capsys)["merges"] == "0"


@pytest.mark.parametrize(
    "declared",
    [
        ("--key", "nope", "--strategy", "sort"),
        ("--key", "a"),
        ("--strategy", "zorder"),
        ("--key", "a", "--key", "a", "--strategy", "sort"),
    ],
)
def test_a_wrong_declaration_leaves_the_table_as_it_is(
    table: icebench.Table, tmp_path: Path, declared: tuple[str, ...]
) -> None:
    before = table.metadata_location
    assert exit_code("maintain", "cluster", tmp_path / "wh", "db.t", *declared) == 2
    assert table.refresh().metadata_location == before


def test_distinct_values_are_counted(table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("profile", tmp_path / "wh", "db.t") == 0
    assert "distinct values" not in capsys.readouterr().out
    command = ["maintain", "compute-table-stats", tmp_path / "wh", "db.t"]
    first = table.snapshots[0].snapshot_id
    assert exit_code(*command, "--column", "a", "--snapshot", first) == 0
    assert said(capsys).items() >= {"data files                      1, read:": "1", "a": "2"}.items()
    assert exit_code(*command) == 0
    assert said(capsys).items() >= {"data files                      6, read:": "5", "a": "7"}.items()
    table.append(pa.table({"a": [1]}))
    assert exit_code("profile", tmp_path / "wh", "db.t") == 0
    shown = capsys.readouterr().out
    assert "distinct values of 1 columns; 8.33 % of the rows changed since" in shown
    assert any(line.split()[0] == "a" and line.split()[-1] == "7" for line in shown.splitlines() if line.strip())


def test_manifests_are_put_together(table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("maintain", "rewrite-manifests", tmp_path / "wh", "db.t") == 0
    assert said(capsys).items() >= {"manifests created": "1", "manifests replaced": "6"}.items()
    assert table.refresh().inspect.manifests().num_rows == 1


def test_snapshots_expire_only_where_it_is_asked_for(
    table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["maintain", "expire-snapshots", tmp_path / "wh", "db.t", "--older-than", NEVER]
    assert exit_code(*command) == 0
    captured = capsys.readouterr()
    assert "snapshot ids                    5" in captured.out
    assert str(table.snapshots[0].snapshot_id) in captured.out
    assert "--delete does it" in captured.err
    assert len(table.refresh().snapshots) == 6
    assert exit_code(*command, "--retain-last", 2, "--delete") == 0
    assert said(capsys)["deleted manifest lists"] == "4"
    assert len(table.refresh().snapshots) == 2
    assert table.scan().count() == 12


def test_orphans_are_deleted_only_where_it_is_asked_for(
    table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    orphan = Path(table.location) / "data" / "orphan.parquet"
    orphan.write_bytes(b"abc")
    command = ["maintain", "remove-orphan-files", tmp_path / "wh", "db.t"]
    assert exit_code(*command) == 0
    assert said(capsys)["locations"] == "0"
    os.utime(orphan, (1, 1))
    assert exit_code(*command) == 0
    assert str(orphan) in capsys.readouterr().out
    assert orphan.exists()
    assert exit_code(*command, "--delete") == 0
    assert said(capsys).items() >= {"locations": "1", "size bytes": "3", "deleted": "1"}.items()
    assert not orphan.exists()
    assert table.refresh().scan().count() == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rewrite-data-files", "{}", "db.t", "--sort-by", "a", "--zorder-by", "a"], "--zorder-by and --hilbert-by"),
        (["rewrite-data-files", "{}", "db.t", "--hilbert-by", "a", "--zorder-by", "a"], "--zorder-by and --hilbert-by"),
        (["rewrite-data-files", "{}", "db.t", "--sort-by", "z"], "'z'"),
        (["rewrite-data-files", "{}", "db.t", "--where", "a <"], "a <"),
        (["rewrite-manifests", "{}", "db.none"], "no table db.none"),
        (["expire-snapshots", "{}", "db.t", "--older-than", "soon"], "soon"),
        (["remove-orphan-files", "{}"], "TABLE"),
    ],
)
def test_what_is_wrong_is_said(
    table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, arguments: list[str], message: str
) -> None:
    assert exit_code("maintain", *(each.format(tmp_path / "wh") for each in arguments)) == 2
    assert message in capsys.readouterr().err
    assert len(table.refresh().snapshots) == 6


def test_deletes_are_rewritten(table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = table.keyed_stream(["a"])
    stream.delete(pa.table({"a": [3]}))
    stream.commit()
    assert exit_code("maintain", "convert-equality-deletes", tmp_path / "wh", "db.t") == 0
    assert said(capsys).items() >= {"removed delete files": "1", "added delete files": "1"}.items()
    assert exit_code("maintain", "rewrite-position-deletes", tmp_path / "wh", "db.t", "--rewrite-all") == 0
    assert said(capsys).items() >= {"removed delete files": "1", "added delete files": "1"}.items()
    assert table.refresh().scan().count() == 11
