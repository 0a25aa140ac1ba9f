"""Is this machine fit to measure on? Each check is one line: what was found, and what to do about it.

A *fail* keeps the main job from working at all; a *warn* makes some engine skip or the figures less trustworthy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from packaging.requirements import Requirement

from icebench.bench.java_home import JavaMissing
from icebench.bench.machine import Machine

LEAST_MEMORY_GB, GOOD_MEMORY_GB = 3.0, 8.0
LEAST_DISK_GB, GOOD_DISK_GB = 1.0, 10.0
SLOW_DISK_MB_S = 80.0
BUSY_SHARE = 0.3
STOLEN_SHARE = 0.02
VECTOR_MODULE = "jdk.incubator.vector"


class Status(Enum):
    """How a check went."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """One line of the doctor. `advice` is empty when there is nothing to do."""

    status: Status
    subject: str
    found: str
    advice: str = ""


def examine(machine: Machine, work_directory: Path) -> Iterator[Check]:
    """All checks, in the order in which to fix what fails; each is made when it is asked for.

    Args:
        machine: Where the answers come from.
        work_directory: The directory under which datasets and results are written.
    """
    subjects: tuple[Callable[[], Iterator[Check]], ...] = (
        lambda: _java(machine),
        lambda: _packages(machine),
        lambda: _iceberg_jar(machine),
        lambda: _host_name(machine),
        lambda: _cores(machine),
        lambda: _memory(machine),
        lambda: _disk(machine, work_directory),
        lambda: _frequency(machine),
        lambda: _quiet(machine),
    )
    for subject in subjects:
        yield from subject()


def _java(machine: Machine) -> Iterator[Check]:
    try:
        home, major = machine.java()
    except JavaMissing as missing:
        yield Check(Status.FAIL, "Java", "none that Spark runs on", str(missing))
        return
    yield Check(Status.OK, "Java", f"{major} ({home})")
    if VECTOR_MODULE not in (machine.run(f"{home}/bin/java", "--list-modules") or ""):
        advice = "Spark starts Java with that module and this runtime is cut down: point JAVA_HOME at a complete one"
        yield Check(Status.FAIL, "Java modules", f"no {VECTOR_MODULE}", advice)


def _packages(machine: Machine) -> Iterator[Check]:
    spark = machine.version("pyspark")
    if spark is not None:
        yield Check(Status.OK, "Spark", spark)
    wrong = 0
    for text in machine.requirements():
        need = Requirement(text)
        extras = ("", "bench", "peers")
        extra = next((e for e in extras if need.marker is None or need.marker.evaluate({"extra": e})), None)
        if extra is None:
            continue
        have = machine.version(need.name)
        if have is not None and need.specifier.contains(have, prereleases=True):
            continue
        wrong += 1
        found = f"{have or 'missing'}, needed is {need.name}{need.specifier}"
        if extra == "peers":
            advice = "its engine is skipped; pip install 'icebench[peers]' brings it"
            yield Check(Status.WARN, need.name, found, advice)
        else:
            yield Check(Status.FAIL, need.name, found, "run 'make bench' or pip install 'icebench[bench]' again")
    if not wrong:
        versions = ", ".join(f"{name} {machine.version(name)}" for name in ("pyarrow", "numpy", "numba"))
        yield Check(Status.OK, "Packages", f"all as required ({versions})")


def _iceberg_jar(machine: Machine) -> Iterator[Check]:
    jar = machine.iceberg_jar()
    if jar is None:
        advice = "the Iceberg Java engine needs it: 'python -m icebench.bench.setup_jars' fetches it once (network)"
        yield Check(Status.WARN, "Iceberg jar", "not in Spark's cache, or damaged", advice)
    else:
        yield Check(Status.OK, "Iceberg jar", jar)


def _host_name(machine: Machine) -> Iterator[Check]:
    name = machine.host_name()
    if machine.environment("SPARK_LOCAL_IP") or machine.resolves(name):
        yield Check(Status.OK, "Host name", name)
    else:
        advice = "Spark may look it up at start: 'export SPARK_LOCAL_IP=127.0.0.1', or add it to /etc/hosts"
        yield Check(Status.WARN, "Host name", f"{name} does not resolve", advice)


def _cores(machine: Machine) -> Iterator[Check]:
    cores = machine.cores()
    found = f"{cores:g} usable"
    if cores < 2:
        yield Check(Status.WARN, "Cores", found, "Spark and what it is measured against share one core: expect noise")
    else:
        yield Check(Status.OK, "Cores", found)


def _memory(machine: Machine) -> Iterator[Check]:
    total, free = machine.memory_gb()
    found = f"{total:.1f} GB, {free:.1f} GB free"
    if free < LEAST_MEMORY_GB:
        advice = f"the main job takes about {LEAST_MEMORY_GB:g} GB: end other programs, or use a larger machine"
        yield Check(Status.FAIL, "Memory", found, advice)
    elif free < GOOD_MEMORY_GB:
        yield Check(Status.WARN, "Memory", found, "keep to the quick experiment, or end other programs")
    else:
        yield Check(Status.OK, "Memory", found)


def _disk(machine: Machine, directory: Path) -> Iterator[Check]:
    free = machine.disk_free_gb(directory)
    found = f"{free:.1f} GB free at {directory}"
    if free < LEAST_DISK_GB:
        yield Check(Status.FAIL, "Disk", found, "make room: 'make clean' removes generated datasets")
    elif free < GOOD_DISK_GB:
        yield Check(Status.WARN, "Disk", found, "enough for the quick experiment only; 'make clean' removes datasets")
    else:
        yield Check(Status.OK, "Disk", found)
    speed = machine.write_mb_per_s(directory)
    if speed is None:
        yield Check(Status.FAIL, "Disk writes", f"cannot write to {directory}", "choose a directory that is writable")
    elif speed < SLOW_DISK_MB_S:
        advice = "building datasets takes long; first reads are slow, repetitions come from memory"
        yield Check(Status.WARN, "Disk writes", f"{speed:.0f} MB/s, synced", advice)
    else:
        yield Check(Status.OK, "Disk writes", f"{speed:.0f} MB/s, synced")


def _frequency(machine: Machine) -> Iterator[Check]:
    governor = machine.frequency_governor()
    if governor is None:
        yield Check(Status.OK, "CPU frequency", "governor not visible (a virtual machine or container)")
    elif governor == "performance":
        yield Check(Status.OK, "CPU frequency", "governor 'performance'")
    else:
        advice = "the clock follows the load: 'cpupower frequency-set -g performance' steadies it"
        yield Check(Status.WARN, "CPU frequency", f"governor '{governor}'", advice)


def _quiet(machine: Machine) -> Iterator[Check]:
    busy, stolen = machine.busy_share(), machine.stolen_share()
    found = f"{busy:.0%} busy, {stolen:.0%} stolen by the host"
    if busy > BUSY_SHARE:
        yield Check(Status.WARN, "Load", found, "something else is running: end it, or distrust small differences")
    elif stolen > STOLEN_SHARE:
        yield Check(Status.WARN, "Load", found, "the host takes time away: distrust small differences")
    else:
        yield Check(Status.OK, "Load", found)
