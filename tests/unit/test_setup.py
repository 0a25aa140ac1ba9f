"""What `make` does on a machine that lacks something, and what it hands over from pip to uv."""

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SCRIPTS = REPOSITORY / ".ci"


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A directory with the plain commands that the script needs, to be all of the PATH."""
    directory = tmp_path / "commands"
    directory.mkdir()
    for name in ("bash", "dirname", "head", "sed", "tr"):
        found = shutil.which(name)
        assert found
        (directory / name).symlink_to(found)
    return directory


def command(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def run(home: Path, commands: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", script], cwd=home, env={"PATH": str(commands)}, capture_output=True, text=True, check=False
    )


def test_an_old_python_is_one_line_and_a_failure(tmp_path: Path, commands: Path) -> None:
    command(commands, "python3", "exit 1")
    shutil.copytree(SCRIPTS, tmp_path / ".ci")
    done = run(tmp_path, commands, ".ci/setup")
    assert done.returncode == 1
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("icebench: Python 3.11 or later is needed")
    assert "apt-get install" in line
    assert "brew install" in line


def test_uv_gets_what_pip_is_configured_with(tmp_path: Path, commands: Path) -> None:
    settings = "global.index-url='https://mirror.example/simple'\n:env:.find-links='/a /b'\nglobal.find-links='/c'\n"
    command(commands, "pip_says", f"printf '%s' \"{settings}\"")
    script = f"source '{SCRIPTS / 'uv-settings'}'; configure_uv pip_says"
    script += '; echo "$UV_DEFAULT_INDEX $UV_FIND_LINKS ${UV_INDEX:-none} ${SSL_CERT_FILE:-none}"'
    done = run(tmp_path, commands, script)
    assert done.stdout == "https://mirror.example/simple /a,/b none none\n", done.stderr
    done = run(tmp_path, commands, f"export UV_DEFAULT_INDEX=https://own.example/simple\n{script}")
    assert done.stdout.startswith("https://own.example/simple "), done.stderr
