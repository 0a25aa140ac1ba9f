from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from icebench.bench.cli.places import Places, write_whole
from icebench.bench.errors import ConfigError


def test_a_whole_file_is_written_with_the_usual_permissions_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "reports" / "r.html"
    write_whole(path, "first")
    write_whole(path, "second\n")
    assert path.read_text(encoding="utf-8") == "second\n"
    assert [p.name for p in path.parent.iterdir()] == ["r.html"]
    assert stat.S_IMODE(path.stat().st_mode) & 0o400


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.html"
    write_whole(path, "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


def test_the_latest_run_is_the_one_written_last(tmp_path: Path) -> None:
    places = Places(tmp_path)
    places.runs.mkdir()
    for age, name in ((30, "b.jsonl"), (10, "a.jsonl"), (20, "c.jsonl")):
        (places.runs / name).touch()
        os.utime(places.runs / name, (1_000_000 - age, 1_000_000 - age))
    assert [p.name for p in places.all_runs()] == ["b.jsonl", "c.jsonl", "a.jsonl"]
    assert places.latest_run().name == "a.jsonl"
    assert places.report_of(places.latest_run()) == tmp_path / "reports" / "a.html"


def test_without_a_run_the_message_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run yet: 'icebench run' makes one"):
        Places(tmp_path).latest_run()
