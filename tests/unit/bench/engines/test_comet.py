from types import SimpleNamespace
from typing import Any, cast

import pytest

from icebench.bench.engines.comet import Comet
from icebench.bench.engines.engine import EngineMissing
from icebench.bench.engines.iceberg_java import IcebergJava


def comet_with(plan: str, monkeypatch: pytest.MonkeyPatch) -> Comet:
    """Whose scans have this plan."""
    texts = SimpleNamespace(toString=lambda: plan)
    java = SimpleNamespace(queryExecution=lambda: SimpleNamespace(executedPlan=lambda: texts))
    monkeypatch.setattr(Comet, "frame", lambda *_: SimpleNamespace(_jdf=java))
    monkeypatch.setattr(IcebergJava, "checksum", lambda *_: "rows")
    return object.__new__(Comet)


def test_a_scan_that_comet_leaves_to_spark_is_skipped_and_not_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make bench` would end with an error for what the table's place decides."""
    with pytest.raises(EngineMissing, match="comet leaves this scan to Spark"):
        comet_with("BatchScan db.t", monkeypatch).checksum(cast("Any", None), ["k"], cast("Any", None))


def test_a_native_scan_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    own = comet_with("+- CometIcebergNativeScan [k#1]", monkeypatch)
    assert cast("Any", own.checksum(cast("Any", None), ["k"], cast("Any", None))) == "rows"
