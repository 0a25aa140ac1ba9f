import json
import multiprocessing
import shutil
from pathlib import Path

import pytest

from icebench.bench.errors import DatasetFailed
from icebench.bench.tables import cache
from icebench.bench.tables.cache import MARKER, DatasetCache, source_digest

KEY = {"scale": 1, "layout": ["monthly", 1]}


class Builder:
    """Writes a file, and counts; breaks when asked to."""

    def __init__(self) -> None:
        self.built = 0
        self.breaks = False

    def __call__(self, folder: Path) -> dict[str, object]:
        assert list(folder.iterdir()) == []
        self.built += 1
        (folder / "data").write_text("half")
        if self.breaks:
            raise RuntimeError("power cut")
        (folder / "data").write_text("whole")
        return {"file": str(folder / "data")}


def test_the_second_time_it_is_found(tmp_path: Path) -> None:
    build = Builder()
    first = DatasetCache(tmp_path).find_or_build("monthly", KEY, build)
    assert DatasetCache(tmp_path).find_or_build("monthly", dict(reversed(KEY.items())), build) == first
    assert build.built == 1
    assert Path(first["file"]).read_text() == "whole"


def test_directories_need_no_escapes_in_uris(tmp_path: Path) -> None:
    found = DatasetCache(tmp_path).find_or_build("sorted (files=8)", KEY, Builder())
    assert Path(found["file"]).parent.name.startswith("sorted-files-8-")


def test_another_library_writes_another_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build, writers = Builder(), cache._writers()
    DatasetCache(tmp_path).find_or_build("monthly", KEY, build)
    for library in ("pyarrow", "pyspark", "Iceberg Java"):
        with monkeypatch.context() as patch:
            patch.setattr(cache, "_writers", lambda changed=library: {**writers, changed: "2"})
            DatasetCache(tmp_path).find_or_build("monthly", KEY, build)
    DatasetCache(tmp_path).find_or_build("monthly", KEY, build)
    assert build.built == 4


def test_another_key_is_another_entry(tmp_path: Path) -> None:
    build = Builder()
    first = DatasetCache(tmp_path).find_or_build("monthly", KEY, build)
    other = DatasetCache(tmp_path).find_or_build("monthly", {**KEY, "scale": 2}, build)
    assert build.built == 2
    assert first["file"] != other["file"]


def test_a_build_that_fails_leaves_nothing_and_is_done_again(tmp_path: Path) -> None:
    build, cache = Builder(), DatasetCache(tmp_path)
    build.breaks = True
    with pytest.raises(RuntimeError, match="power cut"):
        cache.find_or_build("monthly", KEY, build)
    assert [path.name for path in tmp_path.rglob("*") if path.suffix != ".lock"] == []
    build.breaks = False
    assert Path(cache.find_or_build("monthly", KEY, build)["file"]).read_text() == "whole"
    assert build.built == 2


@pytest.mark.parametrize("content", ["", "{", '{"location": "/elsewhere", "content": {}}'])
def test_a_marker_that_is_damaged_or_from_elsewhere_is_none(tmp_path: Path, content: str) -> None:
    build, cache = Builder(), DatasetCache(tmp_path)
    entry = Path(cache.find_or_build("monthly", KEY, build)["file"]).parent
    (entry / MARKER).write_text(content)
    cache.find_or_build("monthly", KEY, build)
    assert build.built == 2


def test_a_cache_that_was_moved_is_built_again(tmp_path: Path) -> None:
    build = Builder()
    DatasetCache(tmp_path / "here").find_or_build("monthly", KEY, build)
    shutil.move(tmp_path / "here", tmp_path / "there")
    found = DatasetCache(tmp_path / "there").find_or_build("monthly", KEY, build)
    assert build.built == 2
    assert Path(found["file"]).is_relative_to(tmp_path / "there")


def test_the_marker_says_what_the_entry_is(tmp_path: Path) -> None:
    entry = Path(DatasetCache(tmp_path).find_or_build("monthly", KEY, Builder())["file"]).parent
    marker = json.loads((entry / MARKER).read_text())
    assert marker["key"].items() >= KEY.items()
    assert entry.name.startswith("monthly-")


def test_a_disk_that_refuses_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DatasetFailed, match="cannot be written"):
        DatasetCache(tmp_path / "file").find_or_build("monthly", KEY, Builder())


def _slow_build(folder: Path) -> dict[str, object]:
    with (folder.parent / "builds").open("a") as file:
        file.write("one\n")
    return {}


def _find(root: Path) -> None:
    DatasetCache(root).find_or_build("monthly", KEY, _slow_build)


def test_processes_at_the_same_time_build_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_find, args=(tmp_path,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert (tmp_path / "builds").read_text() == "one\n"


def test_a_digest_follows_the_source(tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    (room / "a.py").write_text("x = 1")
    (room / "notes.txt").write_text("no source")
    first = source_digest([room])
    (room / "notes.txt").write_text("still none")
    assert source_digest([room]) == first
    (room / "a.py").write_text("x = 2")
    second = source_digest([room])
    (room / "a.py").rename(room / "b.py")
    assert len({first, second, source_digest([room]), source_digest([room / "b.py"])}) == 4


def test_a_program_that_moved_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        source_digest([tmp_path / "moved.py"])
