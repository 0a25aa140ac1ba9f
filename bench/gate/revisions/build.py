"""Revisions of the engine, each in a directory and an environment of its own, under the same cases.

A directory has the engine of a revision and, as a link, the harness that asks: both sides do the same work, whatever
cases either revision had. It starts with the machine code of the checkout and of the revision that was built last, so
that only what differs from both is compiled again.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from icebench.bench.errors import BenchError, ConfigError
from icebench.bench.file_lock import locked

WORKTREE = "worktree"
_LOCK = "requirements.lock"
_SOURCES = ("engine", "icebench")
_LINKS = ("icebench/engine", "icebench/bench", "icebench/datasets")
"""Of a checkout: they make folders of the repository packages of `icebench`."""

_NO_BYTECODE = shutil.ignore_patterns("*.pyc")
"""Bytecode is matched to its source by size and second: another revision may have the same."""
_KEPT_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MIMALLOC_PURGE_DELAY": "-1",
}
"""Of processes that are timed: the allocators of NumPy and Arrow keep what was freed. Whether they return it between
two runs is chance, and page faults made most of the difference between runs."""


class Unbuildable(BenchError):
    """A revision cannot be made to run."""


class CaseProcessFailed(BenchError):
    """A process of a revision ended with an error."""


class OutOfTime(BenchError):
    """There is no time left for what was to be run."""


@dataclass(frozen=True, kw_only=True)
class Revision:
    """A revision that can be run.

    Args:
        name: The commit, or `WORKTREE`.
        folder: Where its engine is.
        python: Its interpreter.
    """

    name: str
    folder: Path
    python: str

    def run(
        self,
        module: str,
        *arguments: str,
        seed: int = 0,
        seconds: float = math.inf,
        beside: socket.socket | None = None,
    ) -> str:
        """What a module of the harness prints, run with this revision's engine.

        Args:
            module: Its name.
            arguments: Its arguments.
            seed: The hash seed.
            seconds: It is ended when it takes longer.
            beside: Connected with the other side of a pair, and closed when the process has ended.

        Raises:
            CaseProcessFailed: With the last line of what it said.
            OutOfTime: It took longer.
        """
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONHASHSEED": str(seed)}
        if beside is not None:
            environment |= _KEPT_MEMORY
            arguments = (*arguments, "--beside", str(beside.fileno()))
        try:
            done = subprocess.run(
                [self.python, "-m", module, *arguments],
                env=environment,
                cwd=self.folder,
                capture_output=True,
                text=True,
                check=False,
                timeout=None if math.isinf(seconds) else seconds,
                pass_fds=() if beside is None else (beside.fileno(),),
            )
        except subprocess.TimeoutExpired as error:
            raise OutOfTime(f"{self.name}: {module} took longer than {seconds:.0f} s") from error
        finally:
            if beside is not None:
                beside.close()
        if done.returncode:
            raise CaseProcessFailed(f"{self.name}: {_last_line(done)}")
        return done.stdout


def commit_of(revision: str, root: Path) -> str:
    """The full id of a commit.

    Raises:
        ConfigError: There is no such commit.
    """
    done = _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if done.returncode:
        raise ConfigError(f"no commit {revision!r} here", path=str(root))
    return done.stdout.strip()


def build(revision: str, *, root: Path, cache: Path) -> Revision:
    """Make a revision ready to run; what was made before is used again.

    Args:
        revision: Anything that git understands, or `WORKTREE` for the files as they are.
        root: The checkout.
        cache: Where to build.

    Raises:
        ConfigError: There is no such revision.
        Unbuildable: Its engine cannot be imported, or its packages cannot be installed.
    """
    if revision == WORKTREE:
        name, sources = WORKTREE, _worktree_sources(root)
        lock = (root / _LOCK).read_bytes()
    else:
        name = commit_of(revision, root)
        sources = _committed_sources(root, name)
        lock = committed_file(root, name, _LOCK)
    if "icebench/__init__.py" not in sources or "engine/__init__.py" not in sources:
        raise Unbuildable(f"{name}: has no engine/ that is a package of icebench/")
    digest = hashlib.sha256(b"".join(p.encode() + b"\0" + data + b"\0" for p, data in sorted(sources.items())))
    folder = cache / f"engine-{digest.hexdigest()[:16]}"
    with locked(folder):
        if not folder.exists():
            built = sorted(cache.glob("engine-*[0-9a-f]"), key=lambda path: path.stat().st_mtime)
            _lay_out(folder, lambda making: _fill(making, sources, [root, *built[-1:]]))
    python = sys.executable if lock == (root / _LOCK).read_bytes() else _environment(lock, cache)
    made = Revision(name=name, folder=folder, python=python)
    try:
        made.run("icebench.bench.gate.cases.compile_kernels")
    except CaseProcessFailed as error:
        raise Unbuildable(str(error)) from error
    return made


def planted(side: Revision, name: str, path: str, change: tuple[str, str], *, cache: Path) -> Revision:
    """The same revision with one text of a file replaced.

    Raises:
        Unbuildable: The text does not occur once, or what came of it cannot be imported.
    """
    before, after = change
    text = (side.folder / path).read_text(encoding="utf-8")
    if text.count(before) != 1:
        raise Unbuildable(f"{name}: {path} has {before.strip()!r} {text.count(before)} times")

    def copy(making: Path) -> None:
        shutil.copytree(side.folder, making, symlinks=True, dirs_exist_ok=True, ignore=_NO_BYTECODE)
        (making / path).write_text(text.replace(before, after), encoding="utf-8")

    # Named by the change, so that none is replaced while another process runs it.
    digest = hashlib.sha256(f"{path}\0{before}\0{after}".encode()).hexdigest()[:8]
    folder = cache / f"{side.folder.name}-{name}-{digest}.copy"
    with locked(folder):
        if not folder.exists():
            _lay_out(folder, copy)
    made = Revision(name=name, folder=folder, python=side.python)
    try:
        made.run("icebench.bench.gate.cases.compile_kernels")
    except CaseProcessFailed as error:
        raise Unbuildable(str(error)) from error
    return made


def _worktree_sources(root: Path) -> dict[str, bytes]:
    listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", *_SOURCES).stdout
    return {p: (root / p).read_bytes() for p in listed.split("\0") if p and (root / p).is_file()}


def _committed_sources(root: Path, commit: str) -> dict[str, bytes]:
    listed = _git(root, "ls-tree", "-r", "-z", "--name-only", commit, *_SOURCES).stdout.split("\0")
    return {path: committed_file(root, commit, path) for path in listed if path and path not in _LINKS}


def committed_file(root: Path, commit: str, path: str) -> bytes:
    """A file of a commit; empty where it has none."""
    return subprocess.run(["git", "-C", str(root), "show", f"{commit}:{path}"], capture_output=True, check=False).stdout


def _lay_out(folder: Path, fill: Callable[[Path], None]) -> None:
    """Make a directory that appears whole or not at all."""
    making = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".", suffix=".part"))
    try:
        fill(making)
        making.rename(folder)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise


def _fill(making: Path, sources: dict[str, bytes], compiled: Sequence[Path]) -> None:
    """Write the sources; files that are those of a compiled engine keep their time, by which machine code is found."""
    for path, data in sources.items():
        target = making / path
        target.parent.mkdir(parents=True, exist_ok=True)
        alike = (root / path for root in compiled if (root / path).is_file() and (root / path).read_bytes() == data)
        if there := next(alike, None):
            shutil.copy2(there, target)
        else:
            target.write_bytes(data)
    for root in reversed(compiled):
        for kept in (root / "engine").rglob("__pycache__"):
            place = making / kept.relative_to(root)
            if place.parent.is_dir():
                shutil.copytree(kept, place, dirs_exist_ok=True, ignore=_NO_BYTECODE)
    (making / "bench").symlink_to(Path(__file__).resolve().parents[2], target_is_directory=True)
    for package in ("engine", "bench"):
        (making / "icebench" / package).symlink_to(Path("..", package), target_is_directory=True)


def _environment(lock: bytes, cache: Path) -> str:
    """The interpreter of an environment with these packages."""
    folder = cache / f"packages-{hashlib.sha256(lock).hexdigest()[:16]}"
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    with locked(folder):
        if not ready.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / _LOCK).write_bytes(lock)
            _install([sys.executable, "-m", "venv", "--without-pip", str(folder)])
            sync = [sys.executable, "-m", "uv", "pip", "sync", "--quiet", "--python", str(python)]
            _install([*sync, "--require-hashes", str(folder / _LOCK)])
            ready.touch()
    return str(python)


def _install(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unbuildable(f"its packages cannot be installed: {_last_line(done)}")


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
