"""Scans with more deletes than the driver should hold: executors decode them, and the rows are the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icebench.engine.read.plans import planned_files
from icebench.engine.read.request import ReadRequest
from icebench.engine.spark.arrow_scan import delete_bytes, plan_to_arrow_frame
from icebench.engine.spark.native_scan import plan_to_dataframe
from tests.spark.deleted_tables import with_every_delete


def test_executors_decode_what_is_too_much_for_the_driver(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = with_every_delete(tmp_path)
    scan = table.scan("id < 1500", ["name", "id"])
    plan = scan.plan()
    size_bytes = delete_bytes(planned_files(plan))
    assert size_bytes > 0
    expected = sorted(map(str, scan.to_arrow().to_pylist()))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the driver decodes deletes")

    with monkeypatch.context() as driver:
        driver.setattr(ReadRequest, "load_deletes", refuse)
        frame = plan_to_dataframe(spark, plan, table.store, driver_bytes=size_bytes - 1)
        assert sorted(map(str, frame.toArrow().to_pylist())) == expected
        with pytest.raises(AssertionError, match="the driver decodes"):
            plan_to_dataframe(spark, plan, table.store, driver_bytes=size_bytes)
    with_places = table.scan(columns=["id", "_pos"])
    found = plan_to_arrow_frame(
        spark, with_places.plan(), table.store, projection=with_places.schema, split_bytes=3000
    ).toArrow()
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, with_places.to_arrow().to_pylist()))
    nothing = table.scan("id < 0").plan()
    assert plan_to_arrow_frame(spark, nothing, table.store).columns == ["id", "name", "day"]
