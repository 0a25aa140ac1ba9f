import stat
import subprocess
import sys
from pathlib import Path

import pytest

from icebench.bench.java_home import JavaMissing, candidates, find_java_home, major_version

REPOSITORY = Path(__file__).parents[3]


def java(home: Path, says: str) -> Path:
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return home


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_302"', 8),
        ('openjdk version "25" 2025-09-16 LTS', 25),
        ("Unable to locate a Java Runtime.", None),
    ],
)
def test_major_version(tmp_path: Path, says: str, version: int | None) -> None:
    assert major_version(java(tmp_path / "home", says)) == version


def test_no_java_has_no_version(tmp_path: Path) -> None:
    assert major_version(tmp_path) is None


def test_the_first_fitting_candidate_wins(tmp_path: Path) -> None:
    new = java(tmp_path / "new", 'openjdk version "25.0.1"')
    on_path = java(tmp_path / "path", 'openjdk version "11.0.2"')
    installed = java(tmp_path / "jvm" / "java-21", 'openjdk version "21.0.2"')
    java(tmp_path / "jvm" / "java-22", 'openjdk version "22.0.2"')
    environment = {"JAVA_HOME": str(new), "PATH": str(on_path / "bin")}
    places = [str(tmp_path / "jvm" / "*")]
    assert list(candidates(environment, places))[:3] == [new, on_path, installed]
    assert find_java_home(environment, places) == installed


def test_what_does_not_fit_is_named_on_one_line(tmp_path: Path) -> None:
    old = java(tmp_path / "old", 'java version "1.8.0_302"')
    with pytest.raises(JavaMissing, match=f"{old} is 8.*openjdk-17-jre-headless.*brew") as missing:
        find_java_home({"JAVA_HOME": str(old), "PATH": ""}, places=[])
    assert "\n" not in str(missing.value)


def test_runs_before_anything_is_installed() -> None:
    # -S leaves out site-packages.
    done = subprocess.run(
        [sys.executable, "-S", "-m", "icebench.bench.java_home"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert major_version(Path(done.stdout.strip())) is not None
