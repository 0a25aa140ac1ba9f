from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from icebench.bench.doctor import Check, Status, examine
from icebench.bench.java_home import JavaMissing
from icebench.bench.machine import Machine

MODULES = "java.base@17\njdk.incubator.vector@17\n"


@dataclass
class Healthy(Machine):
    """A machine on which everything is well; a test changes one answer."""

    variables: dict[str, str] = field(default_factory=dict)
    java_major: int | None = 17
    modules: str = MODULES
    versions: dict[str, str] = field(
        default_factory=lambda: {
            "pyspark": "4.1.4",
            "pyarrow": "26.0.1",
            "numpy": "2.4.6",
            "numba": "0.68.1",
            "pyiceberg": "0.12.0",
        }
    )
    required: list[str] = field(
        default_factory=lambda: [
            "pyspark[sql]==4.1.*",
            "pyarrow>=26.0",
            'pyiceberg[pyarrow]==0.12.*; extra == "peers"',
            'ruff>=0.9; extra == "dev"',
        ]
    )
    jar: str | None = "cache/iceberg.jar"
    resolvable: bool = True
    core_count: float = 4
    memory: tuple[float, float] = (32, 20)
    disk: float = 100
    speed: float | None = 900
    governor: str | None = "performance"
    busy: float = 0.01
    stolen: float = 0.0

    def environment(self, name: str) -> str | None:
        return self.variables.get(name)

    def run(self, *command: str) -> str | None:
        return self.modules if command == ("/opt/j/bin/java", "--list-modules") else None

    def java(self) -> tuple[Path, int]:
        if self.java_major is None:
            raise JavaMissing("Java 17 is needed")
        return Path("/opt/j"), self.java_major

    def version(self, distribution: str) -> str | None:
        return self.versions.get(distribution)

    def requirements(self) -> list[str]:
        return self.required

    def iceberg_jar(self) -> str | None:
        return self.jar

    def host_name(self) -> str:
        return "box"

    def resolves(self, host_name: str) -> bool:
        return self.resolvable

    def cores(self) -> float:
        return self.core_count

    def memory_gb(self) -> tuple[float, float]:
        return self.memory

    def disk_free_gb(self, directory: Path) -> float:
        return self.disk

    def write_mb_per_s(self, directory: Path) -> float | None:
        return self.speed

    def frequency_governor(self) -> str | None:
        return self.governor

    def busy_share(self) -> float:
        return self.busy

    def stolen_share(self) -> float:
        return self.stolen


def complaints(machine: Healthy) -> list[Check]:
    return [check for check in examine(machine, Path("results")) if check.status is not Status.OK]


def test_a_healthy_machine_has_no_complaint_and_says_what_it_is() -> None:
    checks = list(examine(Healthy(), Path("results")))
    assert {check.status for check in checks} == {Status.OK}
    assert [check.subject for check in checks] == [
        "Java",
        "Spark",
        "Packages",
        "Iceberg jar",
        "Host name",
        "Cores",
        "Memory",
        "Disk",
        "Disk writes",
        "CPU frequency",
        "Load",
    ]
    assert all(check.found and not check.advice for check in checks)


@pytest.mark.parametrize(
    ("machine", "status", "subject", "found"),
    [
        (Healthy(java_major=None), Status.FAIL, "Java", "none that Spark runs on"),
        (Healthy(modules="java.base@17"), Status.FAIL, "Java modules", "no jdk.incubator.vector"),
        (
            Healthy(versions={"pyspark": "4.1.4", "pyarrow": "25.0", "pyiceberg": "0.12.0"}),
            Status.FAIL,
            "pyarrow",
            "25.0, needed is pyarrow>=26.0",
        ),
        (
            Healthy(versions={"pyspark": "4.1.4", "pyarrow": "26.0"}),
            Status.WARN,
            "pyiceberg",
            "missing, needed is pyiceberg==0.12.*",
        ),
        (Healthy(jar=None), Status.WARN, "Iceberg jar", "not in Spark's cache, or damaged"),
        (Healthy(resolvable=False), Status.WARN, "Host name", "box does not resolve"),
        (Healthy(core_count=0.5), Status.WARN, "Cores", "0.5 usable"),
        (Healthy(memory=(4, 1)), Status.FAIL, "Memory", "4.0 GB, 1.0 GB free"),
        (Healthy(memory=(8, 5)), Status.WARN, "Memory", "8.0 GB, 5.0 GB free"),
        (Healthy(disk=0.5), Status.FAIL, "Disk", "0.5 GB free at results"),
        (Healthy(disk=5), Status.WARN, "Disk", "5.0 GB free at results"),
        (Healthy(speed=None), Status.FAIL, "Disk writes", "cannot write to results"),
        (Healthy(speed=20), Status.WARN, "Disk writes", "20 MB/s, synced"),
        (Healthy(governor="powersave"), Status.WARN, "CPU frequency", "governor 'powersave'"),
        (Healthy(busy=0.8), Status.WARN, "Load", "80% busy, 0% stolen by the host"),
        (Healthy(stolen=0.1), Status.WARN, "Load", "1% busy, 10% stolen by the host"),
    ],
)
def test_what_is_wrong_is_named_with_advice(machine: Healthy, status: Status, subject: str, found: str) -> None:
    wrong = complaints(machine)
    assert [(check.status, check.subject, check.found) for check in wrong] == [(status, subject, found)]
    assert wrong[0].advice


def test_an_address_for_spark_makes_the_host_name_irrelevant() -> None:
    assert complaints(Healthy(resolvable=False, variables={"SPARK_LOCAL_IP": "127.0.0.1"})) == []


def test_an_invisible_governor_is_no_fault() -> None:
    assert complaints(Healthy(governor=None)) == []
