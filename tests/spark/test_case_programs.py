"""Cases of engines on Spark in their own words give the answers of the code that is measured."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name
from typing import cast

import pytest
from pyspark.sql import SparkSession

from icebench.bench.engines.checksum import decode_checksum
from icebench.bench.engines.comet import COMET
from icebench.bench.engines.engine import AnyEngine, Quotable
from icebench.bench.engines.registry import ENGINES, EngineContext, make_engine
from icebench.bench.engines.script import Quoted, program
from icebench.bench.setup_jars import is_cached
from icebench.bench.spark_session import SparkSettings
from tests.unit.bench.engines.test_script import COLUMNS, FILTERS, answers, quoted_of
from tests.unit.bench.execution.scripted import small_table


@pytest.mark.parametrize("name", ["icebench-spark", "iceberg-java", "comet"])
def test_a_program_gives_the_rows_of_the_engine_that_is_measured(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    if name == "comet" and not is_cached(COMET):
        pytest.skip("Comet's jar is not cached")
    settings = SparkSettings(iceberg_warehouse=str(tmp_path / "warehouse"))
    context = EngineContext(spark=lambda: spark, spark_settings=lambda: settings)
    engine, location = make_engine(name, context), small_table(tmp_path, partitioned=True)
    entry = ENGINES[name]
    conf = (resolve_name(entry.spark_conf)(settings) if entry.spark_conf else settings).conf()
    asked = [quoted_of(engine, location, filter, cache) for filter in FILTERS for cache in ("cold", "warm")]
    script = resolve_name(entry.scripts)["scan"]
    found = answers(name, [(program(script, each, conf), each.query) for each in asked], tmp_path)
    handle = engine.open(location)
    right = {filter: engine.checksum(handle, COLUMNS, engine.compile(handle, filter)) for filter in FILTERS}
    for each, (checksum, rows) in zip(asked, found, strict=True):
        expected = right[each.filter]
        assert decode_checksum(checksum).difference(expected) is None
        assert rows == expected.rows


def test_a_program_plans_the_files_that_iceberg_java_plans(spark: SparkSession, tmp_path: Path) -> None:
    location = small_table(tmp_path)
    engine: AnyEngine = make_engine("iceberg-java", EngineContext(spark=lambda: spark))
    conf = SparkSettings(iceberg_warehouse=str(tmp_path / "warehouse")).conf()
    script = resolve_name(ENGINES["iceberg-java"].scripts)["plan"]
    programs = []
    for filter in (None, "id >= 150 and id < 250"):
        for cache in ("cold", "warm"):
            query = cast("Quotable", engine).query(engine.open(location), None, filter)
            asked = Quoted(title="", query=query, location=location, filter=filter, cache=cache, is_plan=True)
            programs.append((program(script, asked, conf), ""))
    assert [files for _, files in answers("iceberg-java", programs, tmp_path)] == [4, 4, 2, 2]
