"""Where the commands find and leave their files, under one results directory."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from icebench.bench.errors import ConfigError


@dataclass(frozen=True)
class Places:
    """The layout of a results directory."""

    results: Path = Path("results")

    @property
    def runs(self) -> Path:
        """One newline-JSON file a run."""
        return self.results / "runs"

    @property
    def reports(self) -> Path:
        """One HTML file a run."""
        return self.results / "reports"

    @property
    def baseline(self) -> Path:
        """The committed work counters of the gate."""
        return self.results / "baselines" / "counters.json"

    @property
    def asv_results(self) -> Path:
        """What revisions took and counted, as asv keeps results; the history, which is committed, is in there."""
        return self.results / "asv" / "results"

    def all_runs(self) -> list[Path]:
        """The run files, the one that was written to last at the end."""
        return sorted(self.runs.glob("*.jsonl"), key=lambda path: (path.stat().st_mtime_ns, path.name))

    def latest_run(self) -> Path:
        """The newest run file.

        Raises:
            ConfigError: There is none.
        """
        runs = self.all_runs()
        if not runs:
            raise ConfigError("no run yet: 'icebench run' makes one", path=str(self.runs))
        return runs[-1]

    def report_of(self, run: Path) -> Path:
        """Where the report of a run file goes unless the user says otherwise."""
        return self.reports / f"{run.stem}.html"


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically: a temporary file beside it, synced, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes private files; a report is to be shared as any other file.
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
