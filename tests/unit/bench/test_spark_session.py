import os
from pathlib import Path

import pytest

from icebench.bench import spark_session
from icebench.bench.errors import ConfigError
from icebench.bench.setup_jars import ICEBERG_RUNTIME
from icebench.bench.spark_session import SparkSettings


def test_local_settings() -> None:
    conf = SparkSettings(driver_memory="1g", shuffle_partitions=3).conf()
    assert conf["spark.master"] == "local[*]"
    assert conf["spark.driver.memory"] == "1g"
    assert conf["spark.sql.shuffle.partitions"] == "3"
    assert conf["spark.sql.session.timeZone"] == "UTC"
    assert conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.jars.packages" not in conf


@pytest.mark.parametrize("here", [True, False])
def test_a_warehouse_adds_icebergs_java_runtime_and_a_catalog(monkeypatch: pytest.MonkeyPatch, here: bool) -> None:
    monkeypatch.setattr(spark_session, "is_cached", lambda: here)
    conf = SparkSettings(iceberg_warehouse="/wh", iceberg_catalog="java").conf()
    if here:  # no resolver runs, and none prints its table
        assert conf["spark.jars"].startswith("file:///")
        assert "spark.jars.packages" not in conf
    else:
        assert conf["spark.jars.packages"] == ICEBERG_RUNTIME
    assert conf["spark.sql.catalog.java.type"] == "hadoop"
    assert conf["spark.sql.catalog.java.warehouse"] == "/wh"


def test_a_cluster_is_not_bound_to_this_machine() -> None:
    settings = SparkSettings(master="spark://driver:7077")
    assert not settings.is_local
    assert "spark.driver.host" not in settings.conf()


def test_extra_settings_win() -> None:
    assert SparkSettings(extra=(("spark.driver.memory", "9g"),)).conf()["spark.driver.memory"] == "9g"


def test_settings_from_the_environment() -> None:
    environment = {"ICEBENCH_SPARK_MASTER": "yarn", "ICEBENCH_SPARK_CONF": "a.b=1; c=x=y ;"}
    settings = SparkSettings.from_environment(environment, iceberg_warehouse="wh")
    assert settings == SparkSettings(master="yarn", iceberg_warehouse="wh", extra=(("a.b", "1"), ("c", "x=y")))
    assert SparkSettings.from_environment({}) == SparkSettings()


def test_a_setting_without_a_value_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^ICEBENCH_SPARK_CONF: 'oops' is not name=value$"):
        SparkSettings.from_environment({"ICEBENCH_SPARK_CONF": "oops"})


def test_spark_logs_errors_only_unless_the_user_says_how(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    options = SparkSettings().conf()["spark.driver.extraJavaOptions"]
    assert options == f"-Dlog4j2.configurationFile={spark_session.LOG_CONFIGURATION.as_uri()}"
    assert "rootLogger.level = error" in spark_session.LOG_CONFIGURATION.read_text()
    (tmp_path / "log4j2.xml").touch()
    assert "spark.driver.extraJavaOptions" not in SparkSettings().conf()


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077"])
def test_s3_adds_its_jars_and_file_systems(monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    monkeypatch.setattr(spark_session, "s3_jars", lambda: [Path("/jars/a.jar"), Path("/jars/b.jar")])
    monkeypatch.setattr(spark_session, "is_cached", lambda: True)
    conf = SparkSettings(master=master, s3=True, iceberg_warehouse="/wh").conf()
    for scheme in ("s3", "s3a", "s3n"):
        assert conf[f"spark.hadoop.fs.{scheme}.impl"] == "org.apache.hadoop.fs.s3a.S3AFileSystem"
    jars = conf["spark.jars"].split(",")
    assert "iceberg-spark-runtime" in jars[0]
    if master.startswith("local"):  # not copied in every session
        assert conf["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar"
        assert len(jars) == 1
    else:
        assert jars[1:] == ["file:///jars/a.jar", "file:///jars/b.jar"]
    assert not [name for name in SparkSettings(master=master).conf() if "s3" in name or "ClassPath" in name]


def test_of_what_java_says_only_its_modules_are_left_out() -> None:
    (said, saying), (shown, showing) = os.pipe(), os.pipe()
    os.write(saying, b"WARNING: Using incubator modules: jdk.incubator.vector\nan error\nWARNING: other\nno end")
    os.close(saying)
    spark_session._pass_on(said, showing)
    os.close(showing)
    assert os.read(shown, 1000) == b"an error\nWARNING: other\nno end"
    os.close(shown)
