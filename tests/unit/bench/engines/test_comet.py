from types import SimpleNamespace
from typing import Any, cast

import pytest

from icebench.bench.engines.comet import Comet, IcebenchComet
from icebench.bench.engines.engine import EngineMissing
from icebench.bench.engines.icebench_spark import IcebenchSpark
from icebench.bench.engines.iceberg_java import IcebergJava

NATIVE = {Comet: "CometIcebergNativeScan", IcebenchComet: "CometNativeScan"}


def engine_with(kind: type[Comet | IcebenchComet], plan: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Whose scans have this plan."""
    texts = SimpleNamespace(toString=lambda: plan)
    java = SimpleNamespace(queryExecution=lambda: SimpleNamespace(executedPlan=lambda: texts))
    monkeypatch.setattr(kind, "frame", lambda *_: SimpleNamespace(_jdf=java))
    for other in (IcebergJava, IcebenchSpark):
        monkeypatch.setattr(other, "checksum", lambda *_: "rows")
    return object.__new__(cast("Any", kind))


@pytest.mark.parametrize("kind", NATIVE)
def test_a_scan_that_comet_leaves_to_spark_is_skipped_and_not_a_failure(
    kind: type[Comet | IcebenchComet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make bench` would end with an error for what the table's place decides."""
    for plan in (
        "BatchScan db.t",
        "FileScan parquet [k#1]",
        *(other for other in NATIVE.values() if other != NATIVE[kind]),
    ):
        with pytest.raises(EngineMissing, match="comet leaves this scan to Spark"):
            engine_with(kind, plan, monkeypatch).checksum(None, ["k"], None)


@pytest.mark.parametrize("kind", NATIVE)
def test_a_native_scan_is_taken(kind: type[Comet | IcebenchComet], monkeypatch: pytest.MonkeyPatch) -> None:
    own = engine_with(kind, f"+- {NATIVE[kind]} [k#1]", monkeypatch)
    assert own.checksum(None, ["k"], None) == "rows"
