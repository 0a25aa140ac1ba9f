"""The harness without the packages of the engines that it compares with: it runs, and says what is missing."""

import subprocess
import sys

import pytest

PEERS = ("duckdb", "polars", "pyiceberg")


@pytest.mark.parametrize("arguments", [["--help"], ["list"]])
def test_the_command_line_works_without_any_peer(arguments: list[str]) -> None:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({PEERS!r})); sys.argv = ['icebench', *{arguments!r}];"
    done = subprocess.run(
        [sys.executable, "-c", blocked + "from bench.cli.main import main; main()"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout
