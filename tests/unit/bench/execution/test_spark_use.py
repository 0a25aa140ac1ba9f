import signal
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from icebench.bench import spark_session
from icebench.bench.engines.access import TableAccess
from icebench.bench.engines.engine import EngineMissing
from icebench.bench.errors import ConfigError
from icebench.bench.execution import spark_use
from icebench.bench.execution.spark_use import SparkDefinition, SparkUse, spark_settings
from icebench.bench.runs import run
from icebench.bench.setup_jars import JarMissing
from icebench.bench.spark_session import SparkSettings
from icebench.bench.workloads.workload import TableWorkload

DEFINITION = SparkDefinition(master="local[3]", conf={"spark.driver.memory": "1g", "spark.x": "1"})


@pytest.fixture(autouse=True)
def cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_use, "is_cached", lambda: True)


def test_the_definition_decides(tmp_path: Path) -> None:
    settings = spark_settings(DEFINITION, tmp_path, {})
    assert settings.master == "local[3]"
    assert settings.conf()["spark.driver.memory"] == "1g"
    assert settings.conf()["spark.x"] == "1"
    assert settings.iceberg_warehouse == str(tmp_path)


def test_the_environment_wins(tmp_path: Path) -> None:
    environment = {"ICEBENCH_SPARK_MASTER": "spark://host:7077", "ICEBENCH_SPARK_CONF": "spark.x=2;spark.y=3"}
    settings = spark_settings(DEFINITION, tmp_path, environment)
    assert settings.master == "spark://host:7077"
    assert (settings.conf()["spark.x"], settings.conf()["spark.y"]) == ("2", "3")
    assert settings.conf()["spark.driver.memory"] == "1g"


def test_settings_of_the_environment_are_recorded_without_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = SimpleNamespace(get=lambda name, default: default)
    session = cast("SparkSession", SimpleNamespace(conf=conf, version="4.1"))

    def recorded(given: str) -> str | None:
        monkeypatch.setenv("ICEBENCH_SPARK_CONF", given)
        use = SparkUse(DEFINITION, tmp_path, lambda: session)
        use()
        return (use.facts() or {}).get("ICEBENCH_SPARK_CONF")

    first = recorded("spark.y=one;spark.x=2;spark.a.secret.key=hidden")
    assert first is not None
    assert first.startswith("spark.a.secret.key, spark.x, spark.y (values ")
    assert recorded("spark.x=2;spark.y=one;spark.a.secret.key=other") == first
    assert recorded("spark.x=3;spark.y=one;spark.a.secret.key=hidden") not in (first, None)
    assert recorded("") is None

    monkeypatch.chdir(tmp_path)
    defaults = tmp_path / "spark-defaults.conf"
    defaults.write_text("# kept\nspark.z   4\nspark.x=2\nspark.my.password=hidden\n")
    assert recorded("") is None  # Spark reads none in the working directory
    monkeypatch.setenv("SPARK_CONF_DIR", str(defaults))
    assert recorded("") is None
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    second = recorded("spark.x=3")
    assert second is not None
    assert second.startswith("spark.my.password, spark.x, spark.z (values ")
    defaults.write_bytes(b"# caf\xe9\nspark.z=4\nspark.x=5\nspark.my.password=other\n")
    assert recorded("spark.x=3") == second
    assert recorded("") not in (second, None)


def test_spark_leaves_ctrl_c_as_it_was(tmp_path: Path) -> None:
    def session() -> SparkSession:
        signal.signal(signal.SIGINT, lambda *_: None)
        return cast("SparkSession", None)

    before = signal.getsignal(signal.SIGINT)
    SparkUse(DEFINITION, tmp_path, session)()
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077"])
def test_workers_see_the_files_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    monkeypatch.setenv("ICEBENCH_SPARK_MASTER", master)
    monkeypatch.setattr(spark_use, "hosts_without", lambda _, path: ["far"] if path.exists() else ["none"])
    use = SparkUse(DEFINITION, tmp_path, lambda: cast("SparkSession", None), files=tmp_path / "cache")
    if master.startswith("local"):
        use()
    else:
        with pytest.raises(ConfigError, match=r"workers on far do not see .*/cache,"):
            use()
    SparkUse(DEFINITION, tmp_path, lambda: cast("SparkSession", None))()


def test_without_the_jar_a_session_starts_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_use, "is_cached", lambda: False)
    settings = spark_settings(DEFINITION, tmp_path, {})
    assert settings.iceberg_warehouse is None
    assert "spark.jars.packages" not in settings.conf()


def test_equal_definitions_are_one_session(tmp_path: Path) -> None:
    again = SparkDefinition(master="local[3]", conf=dict(reversed(list(DEFINITION.conf.items()))))
    assert spark_settings(DEFINITION, tmp_path, {}) == spark_settings(again, tmp_path, {})


@pytest.mark.parametrize("on_s3", [True, False])
def test_a_table_on_s3_adds_what_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_s3: bool) -> None:
    started: list[SparkSettings] = []
    monkeypatch.setattr(spark_use, "spark_session", started.append)
    SparkUse(DEFINITION, tmp_path, on_s3=lambda: on_s3)()
    assert [settings.s3 for settings in started] == [on_s3]


def test_engines_are_skipped_where_s3_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> list[Path]:
        raise JarMissing("Ivy could not fetch hadoop-aws")

    monkeypatch.setattr(spark_session, "s3_jars", refused)
    use = SparkUse(DEFINITION, tmp_path, on_s3=lambda: True)
    with pytest.raises(EngineMissing, match="Ivy could not fetch hadoop-aws"):
        use()


def test_only_tables_on_s3_need_it(tmp_path: Path) -> None:
    for path, expected in (("s3://bucket/t", True), ("S3A://bucket/t", True), ("/wh/t", False), ("gs://b/t", False)):
        assert run.is_on_s3(TableWorkload(path=path), TableAccess()) == expected
