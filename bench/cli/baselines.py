"""Reading the committed baseline."""

from __future__ import annotations

from pathlib import Path

from icebench.bench.errors import ConfigError
from icebench.bench.gate.decisions.baseline import Baseline, decode


def read_baseline(path: Path) -> Baseline:
    """The baseline in a file; raises ConfigError, naming the place inside."""
    try:
        return decode(path.read_text(encoding="utf-8"))
    except (ConfigError, UnicodeDecodeError) as error:
        raise ConfigError(f"{error}; restore it from version control", path=str(path)) from error
