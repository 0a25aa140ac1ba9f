from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from icebench.bench.errors import ConfigError
from icebench.bench.gate.revisions import build as builds
from icebench.bench.gate.revisions.build import (
    WORKTREE,
    CaseProcessFailed,
    Revision,
    Unbuildable,
    _fill,
    build,
    commit_of,
    planted,
)

GOOD = "def prepare_kernels() -> None:\n    pass\n\n\nVALUE = 1\n"


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    command = ["git", "-C", str(root), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(root: Path, engine: str, lock: str = "locked\n") -> str:
    for package, text in (("engine", engine), ("icebench", "from icebench.engine import *\n")):
        (root / package).mkdir(exist_ok=True)
        (root / package / "__init__.py").write_text(text)
    if not (root / "icebench" / "engine").is_symlink():
        (root / "icebench" / "engine").symlink_to("../engine")
    (root / "requirements.lock").write_text(lock)
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "a change")
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    return root


def value(side: object, folder: Path) -> str:
    assert side is not None
    program = "import icebench; print(icebench.VALUE)"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_each_revision_has_an_engine_of_its_own_and_the_harness_of_the_asker(root: Path, tmp_path: Path) -> None:
    first = commit(root, GOOD)
    commit(root, GOOD.replace("VALUE = 1", "VALUE = 2"))
    (root / "engine" / "__init__.py").write_text(GOOD.replace("VALUE = 1", "VALUE = 3"))
    cache = tmp_path / "cache"
    base = build("HEAD~1", root=root, cache=cache)
    assert value(base, base.folder) == "1"  # and its bytecode is there
    head, worktree = (build(each, root=root, cache=cache) for each in ("HEAD", WORKTREE))
    assert base.name == first
    assert [value(side, side.folder) for side in (head, worktree)] == ["2", "3"]
    assert len({str(side.folder) for side in (base, head, worktree)}) == 3
    assert len({len(str(side.folder)) for side in (base, head, worktree)}) == 1
    assert (base.folder / "bench" / "gate" / "cases" / "work.py").is_file()
    assert build("HEAD~1", root=root, cache=cache) == base


def test_files_that_git_ignores_are_not_part_of_the_worktree(root: Path, tmp_path: Path) -> None:
    commit(root, GOOD)
    (root / ".gitignore").write_text("*.junk\n")
    (root / "engine" / "new.py").write_text("")
    (root / "engine" / "new.junk").write_text("")
    side = build(WORKTREE, root=root, cache=tmp_path / "cache")
    assert (side.folder / "engine" / "new.py").exists()
    assert not (side.folder / "engine" / "new.junk").exists()


def test_an_unknown_revision_is_named(root: Path, tmp_path: Path) -> None:
    commit(root, GOOD)
    with pytest.raises(ConfigError, match="no commit 'nowhere' here"):
        build("nowhere", root=root, cache=tmp_path / "cache")
    assert len(commit_of("HEAD", root)) == 40


def test_an_engine_that_cannot_be_imported_cannot_be_built(root: Path, tmp_path: Path) -> None:
    name = commit(root, "raise RuntimeError('broken')\n")
    with pytest.raises(Unbuildable, match=f"{name}: RuntimeError: broken"):
        build("HEAD", root=root, cache=tmp_path / "cache")


def test_a_revision_without_an_engine_cannot_be_built(root: Path, tmp_path: Path) -> None:
    (root / "requirements.lock").write_text("locked\n")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "no engine")
    with pytest.raises(Unbuildable, match="has no engine/"):
        build("HEAD", root=root, cache=tmp_path / "cache")


def test_packages_that_cannot_be_installed_are_reported(root: Path, tmp_path: Path) -> None:
    commit(root, GOOD, lock="no-such-package-of-anybody\n")
    (root / "requirements.lock").write_text("another\n")
    with pytest.raises(Unbuildable, match="its packages cannot be installed: "):
        build("HEAD", root=root, cache=tmp_path / "cache")


def test_two_at_once_make_an_engine_and_its_packages_once(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(root, GOOD, lock="another\n")
    (root / "requirements.lock").write_text("locked\n")
    installed: list[Path] = []

    def install(command: Sequence[str]) -> None:
        time.sleep(0.2)
        if "venv" in command:
            installed.append(Path(command[-1]))
            (installed[-1] / "bin").mkdir()
            (installed[-1] / "bin" / "python").symlink_to(sys.executable)

    def fill(making: Path, *given: Any) -> None:
        _fill(making, *given)
        time.sleep(0.2)

    monkeypatch.setattr(builds, "_install", install)
    monkeypatch.setattr(builds, "_fill", fill)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: build("HEAD", root=root, cache=tmp_path / "cache"), range(2))
    assert first == second
    assert [str(folder / "bin" / "python") for folder in installed] == [first.python]


def test_a_planted_revision_that_another_process_runs_stays(root: Path, tmp_path: Path) -> None:
    commit(root, GOOD)
    side = build("HEAD", root=root, cache=tmp_path / "cache")
    made = [
        planted(side, "slow", "engine/__init__.py", ("VALUE = 1", after), cache=tmp_path / "cache")
        for after in ("VALUE = 2", "VALUE = 2", "VALUE = 3")
    ]
    assert [value(each, each.folder) for each in made] == ["2", "2", "3"]
    assert made[0] == made[1]


def test_a_process_that_fails_says_what_it_said_last(root: Path, tmp_path: Path) -> None:
    name = commit(root, GOOD)
    side = build("HEAD", root=root, cache=tmp_path / "cache")
    with pytest.raises(CaseProcessFailed, match=f"{name}: .*no_such_module"):
        side.run("icebench.bench.no_such_module")


def test_a_process_beside_another_is_connected_with_it_until_it_ends(tmp_path: Path) -> None:
    (tmp_path / "says.py").write_text(
        "import os, socket, sys\n"
        "end = socket.socket(fileno=int(sys.argv[sys.argv.index('--beside') + 1]))\n"
        "end.send(b'x')\n"
        "print(end.recv(1), os.environ.get('MIMALLOC_PURGE_DELAY'))\n"
    )
    side = Revision(name="a", folder=tmp_path, python=sys.executable)
    mine, theirs = socket.socketpair()
    mine.settimeout(5)
    mine.send(b"y")
    assert side.run("says", beside=theirs) == "b'y' -1\n"
    assert (mine.recv(1), mine.recv(1)) == (b"x", b"")


def test_a_full_disk_leaves_no_part_of_an_engine(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(root, GOOD)
    (root / "engine" / "__init__.py").write_text("changed")

    def full(_path: Path, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            build("HEAD", root=root, cache=tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.suffix != ".lock"] == []
    build("HEAD", root=root, cache=tmp_path / "cache")
