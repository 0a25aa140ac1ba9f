"""Cases of engines on Spark in their own words give the answers of the code that is measured."""

from __future__ import annotations

from collections.abc import Mapping
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
from tests.services.quick_spark import quick_settings
from tests.unit.bench.engines.test_script import COLUMNS, FILTERS, answers, quoted_of
from tests.unit.bench.execution.scripted import small_table


@pytest.mark.parametrize("name", ["icebench-spark", "iceberg-java", "comet", "icebench-comet"])
def test_a_program_gives_the_rows_of_the_engine_that_is_measured(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    """All programs of an engine run in one process, whose session starts with the properties that they name."""
    if name in ("comet", "icebench-comet") and not is_cached(COMET):
        pytest.skip("Comet's jar is not cached")
    warehouse = tmp_path / "warehouse"
    # One of them with the settings that users have.
    is_quick = name != "iceberg-java"
    settings = quick_settings(warehouse) if is_quick else SparkSettings(iceberg_warehouse=str(warehouse))
    context = EngineContext(spark=lambda: spark, spark_settings=lambda: settings)
    engine, location = make_engine(name, context), small_table(tmp_path / "scanned", partitioned=True)
    entry = ENGINES[name]
    conf = (resolve_name(entry.spark_conf)(settings) if entry.spark_conf else settings).conf()
    asked = [quoted_of(engine, location, filter) for filter in FILTERS]
    asked.append(quoted_of(engine, location, FILTERS[-1], "warm"))
    programs = [(program(resolve_name(entry.scripts)["scan"], each, conf), each.query) for each in asked]
    plans = plans_of_iceberg_java(engine, tmp_path / "planned", conf) if name == "iceberg-java" else []
    found = answers(name, [*programs, *plans], tmp_path)
    handle = engine.open(location)
    right = {filter: engine.checksum(handle, COLUMNS, engine.compile(handle, filter)) for filter in FILTERS}
    for each, (checksum, rows) in zip(asked, found[: len(asked)], strict=True):
        expected = right[each.filter]
        assert decode_checksum(checksum).difference(expected) is None
        assert rows == expected.rows
    assert [files for _, files in found[len(asked) :]] == ([4, 4, 2, 2] if plans else [])


def plans_of_iceberg_java(engine: AnyEngine, folder: Path, conf: Mapping[str, str]) -> list[tuple[str, str]]:
    """Programs that plan four files, cold and warm, and two of them."""
    location, programs = small_table(folder), []
    script = resolve_name(ENGINES["iceberg-java"].scripts)["plan"]
    for filter in (None, '"id" >= 150 and id < 250'):
        for cache in ("cold", "warm"):
            query = cast("Quotable", engine).query(engine.open(location), None, filter)
            asked = Quoted(title="", query=query, location=location, filter=filter, cache=cache, is_plan=True)
            programs.append((program(script, asked, conf), ""))
    return programs
