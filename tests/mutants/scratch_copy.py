"""A copy of the project in which bugs are planted, one at a time."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Self

from tests.fault.fork_server import ForkServer
from tests.mutants.catalogue import Mutant
from tests.tidy.source import REPOSITORY, tracked_files

_TIMEOUT_SECONDS = 300.0
_NOTHING_RUN = {4, 5}
"""pytest's exit codes for a path or a name that is not there, and for no test."""


class ScratchCopy:
    """The project's files, copied to `root`, which must not exist; a context manager. No test of it writes into the
    project.

    Bytecode and machine code beside the sources are copied too, as making them takes minutes; their time stamps are
    kept, and so they are valid. In the copy none is written, so none of a planted bug can be left.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._environment: dict[str, str] = {}
        for name in tracked_files():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, root / name)
        for folder in ("engine", "bench", "datasets"):
            (root / "icebench" / folder).symlink_to(Path("..", folder), target_is_directory=True)
        for package in ("engine", "bench", "tests"):
            for kept in (REPOSITORY / package).rglob("__pycache__"):
                shutil.copytree(kept, root / kept.relative_to(REPOSITORY), dirs_exist_ok=True)
        self._server = ForkServer("tests.mutants.warm_pytest", root.with_suffix(".log"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.__exit__(kind, error, trace)

    @contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        """A block in which the copy has the bug."""
        path = self._root / mutant.file
        original = path.read_text(encoding="utf-8")
        status = path.stat()
        kernels = self._root / "kernels"
        try:
            path.write_text(mutant.applied(original), encoding="utf-8")
            for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
                stale.unlink()
            if path.stem.endswith("kernels") or "icebench.engine.kernels" in original:
                # Numba looks at the file of a kernel only, not at those of the functions that it calls.
                self._environment = {"NUMBA_CACHE_DIR": str(kernels)}
            yield
        finally:
            self._environment = {}
            path.write_text(original, encoding="utf-8")
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
            shutil.rmtree(kernels, ignore_errors=True)

    def run(self, tests: Sequence[str]) -> tuple[bool, str]:
        """Whether the tests pass, and pytest's output; tests that do not end in time fail.

        Raises:
            ValueError: pytest did not run them.
        """
        output = self._root.with_suffix(".out")
        options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=line", "--hypothesis-profile=mutants"]
        environment = {"PYTHONPATH": str(self._root), "PYTHONDONTWRITEBYTECODE": "1", **self._environment}
        child = self._server.start(
            {
                "root": str(self._root),
                "arguments": [*options, *tests],
                "environment": environment,
                "output": str(output),
            }
        )
        timer = Timer(_TIMEOUT_SECONDS, _kill, [child])
        timer.start()
        try:
            code = self._server.wait(child)
        finally:
            timer.cancel()
            _kill(child)  # what its tests left running
        said = output.read_text(errors="replace")
        if code in _NOTHING_RUN:
            raise ValueError(said)
        return code == 0, said


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
