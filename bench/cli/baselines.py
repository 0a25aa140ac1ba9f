"""Reading the committed baseline."""

from __future__ import annotations

from pathlib import Path

from icebench.bench.errors import ConfigError
from icebench.bench.gate.decisions.baseline import Baseline, decode
from icebench.bench.gate.revisions.build import WORKTREE, committed_file

COMMITTED = "results/baselines/counters.json"
"""The baseline in a commit."""


def accepted_by(head: str, path: Path, root: Path) -> Baseline:
    """What a revision accepts: the baseline in `path` for the worktree, else that of the commit; empty where it has
    none. Raises as `read_baseline`."""
    if head == WORKTREE:
        return read_baseline(path) if path.is_file() else Baseline()
    text = committed_file(root, head, COMMITTED)
    try:
        return decode(text.decode()) if text else Baseline()
    except (ConfigError, UnicodeDecodeError) as error:
        raise ConfigError(str(error), path=f"{head}:{COMMITTED}") from error


def read_baseline(path: Path) -> Baseline:
    """The baseline in a file; raises ConfigError, naming the place inside."""
    try:
        return decode(path.read_text(encoding="utf-8"))
    except (ConfigError, UnicodeDecodeError) as error:
        raise ConfigError(f"{error}; restore it from version control", path=str(path)) from error
