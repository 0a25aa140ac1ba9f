"""What the machine says about itself: the questions of `icebench.bench.doctor`, and their answers."""

from __future__ import annotations

import importlib.metadata
import math
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil

from icebench.bench.java_home import find_java_home, major_version
from icebench.bench.setup_jars import cached_jar, is_cached

GB = 1 << 30
PROBE_BYTES = 32 << 20
OBSERVED_SECONDS = 0.5


class Machine:
    """The questions; None means unknown, or not there. `clock` is in seconds; `sys` is the root of Linux's sysfs."""

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter, sys: Path = Path("/sys")) -> None:
        self._clock = clock
        self._sys = sys

    def environment(self, name: str) -> str | None:
        """An environment variable; None when unset or empty."""
        return os.environ.get(name) or None

    def run(self, *command: str) -> str | None:
        """What a command printed on either stream; None when it cannot be started or fails."""
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout + done.stderr if done.returncode == 0 else None

    def java(self) -> tuple[Path, int]:
        """The home and the major version of the Java that Spark would get; raises JavaMissing."""
        home = find_java_home()
        return home, major_version(home) or 0

    def version(self, distribution: str) -> str | None:
        """The installed version of a Python distribution."""
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            return None

    def requirements(self) -> list[str]:
        """What icebench's own metadata requires, as PEP 508 texts."""
        return importlib.metadata.requires("icebench") or []

    def iceberg_jar(self) -> str | None:
        """The path of the Iceberg Java runtime in Spark's cache."""
        return str(cached_jar()) if is_cached() else None

    def host_name(self) -> str:
        """This host's name."""
        return socket.gethostname()

    def resolves(self, host_name: str) -> bool:
        """Whether a host name has an address."""
        try:
            socket.gethostbyname(host_name)
        except OSError:
            return False
        return True

    def cores(self) -> float:
        """Cores that this process may use; a container's quota may be a fraction."""
        allowed = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
        quota = (self._cgroup("cpu.max") or "max").split()
        if quota[0] == "max":
            return allowed
        return min(allowed, int(quota[0]) / int(quota[1]))

    def memory_gb(self) -> tuple[float, float]:
        """Total and available memory, within the container's limit."""
        memory = psutil.virtual_memory()
        maximum = self._cgroup("memory.max")
        limit = math.inf if maximum in {None, "max"} else float(maximum or 0)
        if limit >= memory.total:
            return memory.total / GB, memory.available / GB
        used = float(self._cgroup("memory.current") or 0)
        return limit / GB, min(memory.available, max(0.0, limit - used)) / GB

    def disk_free_gb(self, directory: Path) -> float:
        """Free space of the disk that holds a directory, or would."""
        return shutil.disk_usage(_existing(directory)).free / GB

    def write_mb_per_s(self, directory: Path) -> float | None:
        """The speed of writing and syncing a file of 32 MB."""
        # Random bytes: some disks and file systems compress zeros away.
        block = np.random.default_rng(0).bytes(1 << 20)
        try:
            with tempfile.TemporaryFile(dir=_existing(directory)) as file:
                start = self._clock()
                for _ in range(PROBE_BYTES // len(block)):
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
                seconds = self._clock() - start
        except OSError:
            return None
        return PROBE_BYTES / 1e6 / max(seconds, 1e-9)

    def frequency_governor(self) -> str | None:
        """The CPU frequency governor."""
        return _text(self._sys / "devices/system/cpu/cpu0/cpufreq/scaling_governor")

    def busy_share(self) -> float:
        """The share of all cores in use over half a second."""
        return psutil.cpu_percent(interval=OBSERVED_SECONDS) / 100

    def stolen_share(self) -> float:
        """The share of time that the hypervisor gave to others, over half a second."""
        return getattr(psutil.cpu_times_percent(interval=OBSERVED_SECONDS), "steal", 0.0) / 100

    def _cgroup(self, name: str) -> str | None:
        return _text(self._sys / "fs/cgroup" / name)


def _existing(directory: Path) -> Path:
    """The directory, or its nearest ancestor that exists."""
    resolved = directory.resolve()
    return next(d for d in (resolved, *resolved.parents) if d.is_dir())


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
