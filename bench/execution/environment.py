"""The fingerprint of the machine and software that a run was measured on.

Two runs are comparable by the clock only when their fingerprints agree in `hardware` and `software`; counters do not
care. The id covers everything in the fingerprint, so that one file can never mix two of them.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import cpuinfo
import psutil

PACKAGES = (
    "chdb-core",
    "duckdb",
    "duckdb-extension-iceberg",
    "deflate",
    "icebench",
    "numba",
    "numpy",
    "polars",
    "polars-iceberg",
    "pyarrow",
    "pyiceberg",
    "pyroaring",
    "pyspark",
    "scipy",
    "zstandard",
)
"""Distributions whose version may move a figure."""

WHAT_RUNS = (":(exclude)docs", ":(exclude)results")
"""What of a checkout can move a figure, as git's pathspecs; a study writes its pages and results as it goes."""

CODE = ("engine", "bench", "icebench")
"""Where a file that git does not track runs as one that it tracks. What a definition in ``datasets`` says and names is
recorded with the run, so a definition of the user's own there is no change of what runs."""

Command = Callable[[Sequence[str]], str | None]
"""Runs a command and gives what it printed (stdout and stderr), or None when it cannot run or fails."""


def run_command(arguments: Sequence[str]) -> str | None:
    """The real `Command`."""
    try:
        done = subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout + done.stderr


def fingerprint(
    engines: Mapping[str, str], *, spark: Mapping[str, str] | None, checkout: Path, command: Command = run_command
) -> dict[str, Any]:
    """The environment as JSON values, with its ``"id"``.

    Args:
        engines: Name -> version of every engine of the run.
        spark: Configuration that a Spark session runs with (master, driver memory, ...); None without Spark.
        checkout: The directory whose git revision is the harness's and engine's own.
        command: Runs git and java.
    """
    values: dict[str, Any] = {
        "hardware": hardware(),
        "software": {
            "os": platform.platform(),
            "python": platform.python_version(),
            "java": _java_version(command),
            "packages": {name: version for name in PACKAGES if (version := _package_version(name)) is not None},
            "spark": None if spark is None else dict(sorted(spark.items())),
        },
        "engines": dict(sorted(engines.items())),
        "git": _git(checkout, command),
    }
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return {"id": hashlib.sha256(text.encode()).hexdigest()[:16], **values}


def facts_of(part: str, *environments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A part of each environment, without Spark's session where one of them has none: a session that was there to make
    tables is not there when they are found."""
    found = [dict(environment.get(part) or {}) for environment in environments]
    return found if all(each.get("spark") for each in found) else [{**each, "spark": None} for each in found]


def hardware() -> dict[str, Any]:
    """What decides how fast this machine is, as JSON values."""
    return {
        "cpu": cpu_model(),
        "architecture": platform.machine(),
        # What this process may use, which in a container is less than what the machine has.
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
    }


@cache
def cpu_model() -> str:
    """The name of the processor; takes a second, as several programs are asked."""
    return str(cpuinfo.get_cpu_info().get("brand_raw") or platform.processor() or "unknown")


def _package_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _java_version(command: Command) -> str | None:
    home = os.environ.get("JAVA_HOME")
    text = command([str(Path(home, "bin", "java")) if home else "java", "-version"])
    return text.splitlines()[0].strip() if text else None


def _digest(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()[:16]


def _git(checkout: Path, command: Command) -> dict[str, Any]:
    git = ["git", "-C", str(checkout)]
    found = (command([*git, "rev-parse", "HEAD", "--show-prefix"]) or "").split()
    if len(found) != 1:  # an installed package may lie in a repository of its user's
        return {"revision": None, "dirty": None, "changes": None}
    changed = command([*git, "status", "--porcelain", "--untracked-files=no", "--", *WHAT_RUNS])
    untracked = _untracked(checkout, git, command)
    # Two trees with changes are seldom the same: a run must not go on with others.
    changes = command([*git, "diff", "HEAD", "--", *WHAT_RUNS]) if changed else ""
    return {
        "revision": found[0],
        "dirty": None if changed is None else bool(changed.strip() or untracked),
        "changes": None if changes is None or not (changed or untracked) else _digest(changes + untracked),
    }


def _untracked(checkout: Path, git: Sequence[str], command: Command) -> str:
    """The code that git neither tracks nor ignores: a line for each file, of its name and a digest of what it has."""
    listed = command([*git, "ls-files", "-z", "--others", "--exclude-standard", "--", *CODE]) or ""
    lines = []
    for name in sorted(listed.split("\0")[:-1]):  # after the last one is what git warned of
        path = checkout / name
        content = path.read_bytes() if path.is_file() else b""
        lines.append(f"{hashlib.sha256(content).hexdigest()} {name}\n")
    return "".join(lines)
