"""What the machine did besides while a round ran: load, time stolen by its host, throttling."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

_CGROUP = Path("/sys/fs/cgroup/cpu.stat")
_THERMAL = Path("/sys/devices/system/cpu")


class Conditions:
    """Begins to observe when it is made."""

    def __init__(self) -> None:
        self._times = psutil.cpu_times()
        self._throttled = _throttled()
        self._thermal = _thermal()

    def since(self) -> dict[str, float]:
        """``load`` (runnable processes, mean of a minute), ``steal`` (share of processor time that the host took),
        ``throttled_seconds`` (that a quota held this control group back) and ``thermal_throttles`` (times that a
        processor slowed down for heat); what the system does not report is left out."""
        found = {"load": os.getloadavg()[0]}
        now = psutil.cpu_times()
        if hasattr(now, "steal"):
            total = sum(now) - sum(self._times)
            found["steal"] = max(0.0, now.steal - self._times.steal) / total if total > 0 else 0.0
        if self._throttled is not None and (throttled := _throttled()) is not None:
            found["throttled_seconds"] = (throttled - self._throttled) / 1e6
        if self._thermal is not None and (thermal := _thermal()) is not None:
            found["thermal_throttles"] = float(thermal - self._thermal)
        return {name: round(value, 6) for name, value in found.items()}


def _throttled() -> int | None:
    try:
        lines = _CGROUP.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("throttled_usec")), None)


def _thermal() -> int | None:
    try:
        counts = [int(path.read_text()) for path in _THERMAL.glob("cpu*/thermal_throttle/core_throttle_count")]
    except (OSError, ValueError):
        return None
    return sum(counts) if counts else None
