"""Executors, their Python workers and what they shuffled are removed while a cluster changes a table, tasks fail first
and run twice: after each change its rows are those that it should have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fault.campaign import SEED, Figures, scaled
from tests.spark import test_cluster

master = test_cluster.master
KILLS = 100


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_rows_are_right_whoever_was_killed(master: str, tmp_path: Path, figures: Figures) -> None:
    environment = {**os.environ, "PYTHONPATH": str(test_cluster.ROOT), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-m", "tests.spark.killed_work", master, str(tmp_path), str(SEED), str(scaled(KILLS))]
    with (tmp_path / "errors").open("wb") as errors:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=errors, check=False, env=environment, cwd=test_cluster.ROOT
        )
    assert done.returncode == 0, (tmp_path / "errors").read_text(errors="replace").partition("Traceback")[2][:3_000]
    found = json.loads(done.stdout.splitlines()[-1])
    done, given_up = sum(found["done"].values()), sum(found["given up"].values())
    figures(**found["killed"], **found["done"], given_up=given_up)
    assert sum(found["killed"].values()) >= scaled(KILLS)
    assert done > given_up
