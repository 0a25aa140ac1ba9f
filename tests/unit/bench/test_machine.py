from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from icebench.bench.machine import GB, Machine


def sysfs(tmp_path: Path, **files: str) -> Machine:
    for name, text in files.items():
        path = tmp_path / name.replace("__", "/").replace("-", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    return Machine(sys=tmp_path)


def test_a_command_gives_what_it_printed_on_either_stream() -> None:
    program = "import sys; print('out'); print('err', file=sys.stderr)"
    assert Machine().run(sys.executable, "-c", program) == "out\nerr\n"


def test_a_command_that_is_missing_or_fails_gives_nothing() -> None:
    assert Machine().run("no-such-command-here") is None
    assert Machine().run(sys.executable, "-c", "raise SystemExit(1)") is None


def test_cores_stay_within_the_quota_of_a_container(tmp_path: Path) -> None:
    unlimited = sysfs(tmp_path / "a").cores()
    assert unlimited >= 1
    assert sysfs(tmp_path / "b", **{"fs__cgroup__cpu-max": "max 100000\n"}).cores() == unlimited
    assert sysfs(tmp_path / "c", **{"fs__cgroup__cpu-max": "50000 100000\n"}).cores() == pytest.approx(0.5)


def test_memory_stays_within_the_limit_of_a_container(tmp_path: Path) -> None:
    total = psutil.virtual_memory().total / GB
    assert sysfs(tmp_path / "a").memory_gb()[0] == pytest.approx(total)
    assert sysfs(tmp_path / "b", **{"fs__cgroup__memory-max": "max"}).memory_gb()[0] == pytest.approx(total)
    limited = sysfs(
        tmp_path / "c", **{"fs__cgroup__memory-max": str(GB // 4), "fs__cgroup__memory-current": str(GB // 8)}
    )
    assert limited.memory_gb() == pytest.approx((0.25, 0.125))


def test_the_governor_is_what_sysfs_says(tmp_path: Path) -> None:
    assert sysfs(tmp_path / "a").frequency_governor() is None
    governed = sysfs(tmp_path / "b", devices__system__cpu__cpu0__cpufreq__scaling_governor="powersave\n")
    assert governed.frequency_governor() == "powersave"


def test_disk_questions_take_a_directory_that_does_not_exist_yet(tmp_path: Path) -> None:
    machine = Machine()
    assert machine.disk_free_gb(tmp_path / "not" / "yet") > 0
    speed = machine.write_mb_per_s(tmp_path / "not" / "yet")
    assert speed is not None
    assert speed > 0
    assert list(tmp_path.iterdir()) == []


def test_shares_are_between_none_and_all() -> None:
    assert 0 <= Machine().busy_share() <= 1
    assert 0 <= Machine().stolen_share() <= 1


def test_requirements_and_versions_come_from_the_installed_metadata() -> None:
    machine = Machine()
    assert any(text.startswith("pyspark") for text in machine.requirements())
    assert machine.version("pyarrow") is not None
    assert machine.version("no-such-distribution") is None
