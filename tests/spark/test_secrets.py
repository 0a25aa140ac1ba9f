"""Random secrets, given in every place of Spark that takes one, are found nowhere that Spark or the engine shows."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlalchemy import create_engine

from icebench.engine.spark_source.options import read_options
from tests.spark import test_cluster
from tests.spark.secret_work import SAID

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("database", "gone", "header", "proxy", "s3", "sas", "token", "credential", "exchanged", "vended", "account")
HIDDEN_BY_SPARK = b"*********(redacted)"

master = test_cluster.master


def new_database(postgres_url: str) -> str:
    """The address of an empty database of the server."""
    name = f"secrets_{secrets.token_hex(4)}"
    server = create_engine(postgres_url, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f"create database {name}")
    server.dispose()
    return postgres_url.replace("/postgres?", f"/{name}?")


def run_work(master: str, folder: Path, postgres_url: str) -> dict[str, str]:
    """Everything done with secrets; them, by name."""
    # Spark hides what has a word like "token" in it, and no path here may have one either.
    found = {name: f"zq{secrets.token_hex(12)}" for name in NAMES}
    database = new_database(postgres_url).replace("icebench@", f"icebench:{found['database']}@")
    given = found | {
        "database-address": database,
        "gone-address": f"postgresql+psycopg://icebench:{found['gone']}@127.0.0.1:1/db",
        "proxy": f"http://user:{found['proxy']}@127.0.0.1:1",
    }
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYICEBERG_CATALOG__LAKE__URI": database}
    environment["PYSPARK_PYTHON"] = sys.executable
    command = [sys.executable, "-m", "tests.spark.secret_work", master, str(folder)]
    with (folder / "output").open("wb") as output:
        done = subprocess.run(
            command,
            input=json.dumps(given).encode(),
            stdout=output,
            stderr=output,
            cwd=ROOT,
            env=environment,
            timeout=1_700,
            check=False,
        )
    text = (folder / "output").read_text(errors="replace")
    assert done.returncode == 0, text[-3_000:]
    return found


def places_with(texts: Iterable[str], folder: Path) -> list[tuple[str, str]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [(text, str(path)) for path in files for text in texts if text.encode() in path.read_bytes()]


def check(found: dict[str, str], folder: Path) -> None:
    assert places_with(found.values(), folder) == []
    events = b"".join(path.read_bytes() for path in (folder / "events").rglob("events_*"))
    # What is looked through is where options are shown.
    assert events.count(HIDDEN_BY_SPARK) > 10
    assert (folder / SAID).stat().st_size > 100_000


def test_names_of_secrets_are_those_that_spark_hides(spark: SparkSession) -> None:
    names = ["token", "credential", "catalog-secret.uri", "catalog-secret.header.x-key", "catalog.adls.sas-token.a"]
    names += ["catalog.s3.secret-access-key", "catalog.rest.auth.basic.password", "catalog.credential"]
    assert all(read_options({"path": "db.t", "catalog": "lake", name: "zq"}) for name in names)
    given = spark._jvm.PythonUtils.toScalaMap(dict.fromkeys(names, "zq"))  # type: ignore[union-attr]
    shown = spark._jsparkSession.sessionState().conf().redactOptions(given).toString()
    assert "zq" not in shown
    assert shown.count(HIDDEN_BY_SPARK.decode()) == len(names)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_no_secret_is_shown(tmp_path: Path, postgres_url: str) -> None:
    check(run_work("local[2]", tmp_path, postgres_url), tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_no_secret_is_shown_on_a_cluster(master: str, tmp_path: Path, postgres_url: str) -> None:
    check(run_work(master, tmp_path, postgres_url), tmp_path)
    assert list(tmp_path.rglob("stderr"))
