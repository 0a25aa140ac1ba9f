"""Scans of large row groups in fresh processes: processor time of the first scan and of the second, and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.engines.pyarrow_files import PyArrowFiles
from bench.errors import Disagreement, EngineFailed
from bench.experiment import Repetitions
from bench.measure.fresh_scan import SCANNERS
from bench.measure.reading import NAME
from bench.measure.recorder import CaseId, Evidence
from bench.measure.subject import Bench

FIRST, SECOND, MEMORY = "scan_cpu_first", "scan_cpu_second", "memory_peak"
_TIMEOUT_SECONDS = 600


@dataclass(frozen=True, kw_only=True)
class LargeSubject:
    """A table of large row groups.

    Args:
        name: Under which it is recorded, as the layout.
        case: What it is.
        location: Its metadata file.
        rows: What a scan must give.
        engines: Names of those that read it.
    """

    name: str
    case: str
    location: str
    rows: int
    engines: Sequence[str]


def measure_large(bench: Bench, subject: LargeSubject, often: Repetitions) -> None:
    """Record `scan_cpu_first`, `scan_cpu_second` and `memory_peak` of each reader, readers in turn."""
    case = CaseId(layout=subject.name, measurement=NAME, case=subject.case)
    chosen = [name for name in SCANNERS if name in bench.engines and name in (*subject.engines, PyArrowFiles.name)]
    samples: dict[str, list[dict[str, Any]]] = {name: [] for name in chosen}
    for ordinal in range(often.repetitions):
        bench.progress(NAME, f"{subject.name}: {subject.case}, fresh processes", ordinal, often.repetitions)
        for name in bench.random.sample(sorted(samples), len(samples)):
            try:
                samples[name].append(_answer(name, subject))
            except (Disagreement, EngineFailed) as error:
                bench.recorder.fail(case.of(name), error)
                del samples[name]
    for name, taken in samples.items():
        evidence = Evidence(counters={"rows_returned": subject.rows})
        for metric, key in ((FIRST, "cpu_first"), (SECOND, "cpu_second")):
            bench.recorder.record(case.of(name), metric, "s", [answer[key] for answer in taken], evidence)
        if peaks := [float(answer["peak_bytes"]) for answer in taken if answer["peak_bytes"] is not None]:
            bench.recorder.record(case.of(name), MEMORY, "bytes", peaks, evidence)


def _answer(name: str, subject: LargeSubject) -> dict[str, Any]:
    """What a fresh process says of its scans."""
    command = [sys.executable, "-m", "bench.measure.fresh_scan", name, subject.location]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS)
    if done.returncode:
        raise EngineFailed(f"a fresh process failed: {done.stderr.strip().splitlines()[-1:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    if answer["rows"] != subject.rows:
        raise Disagreement(f"a fresh process reads {answer['rows']} rows, not {subject.rows}")
    return answer
