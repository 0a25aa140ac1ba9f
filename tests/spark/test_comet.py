"""Scans in a session with DataFusion Comet, and what is said of one without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icebench.bench.engines.comet import COMET
from icebench.bench.setup_jars import is_cached
from tests.spark.deleted_tables import with_every_delete


@pytest.mark.skipif(not is_cached(COMET), reason=f"no Comet: python -m icebench.bench.setup_jars {COMET} fetches it")
def test_rows_with_comet_are_those_of_the_arrow_reader(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.spark.comet_work", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=290)
    assert done.returncode == 0, done.stderr[-5_000:]


def test_without_comet_nothing_is_handed_over(spark: SparkSession, tmp_path: Path) -> None:
    table = with_every_delete(tmp_path)
    found = table.scan().explain(spark=spark)
    assert found.spark_readers[-1] == "nothing is native: the session has no DataFusion Comet"
    assert any(line.startswith("Spark's own reader: ") for line in found.spark_readers)
    assert "  on Spark: nothing is native" in repr(found)
    assert "on Spark" in found._repr_html_()
    assert "on Spark" not in repr(table.scan().explain())
    rows = table.scan().to_spark(spark, native_deletes=True).toArrow()
    assert rows.sort_by("id").equals(table.scan().to_arrow().cast(rows.schema).sort_by("id"))
