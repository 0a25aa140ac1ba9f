"""Uses every place of Spark that takes a secret, in a process and a session of its own, and keeps all that it says.

``python -m tests.spark.secret_work MASTER FOLDER`` reads secrets by name, as JSON, from standard input.
"""

from __future__ import annotations

import json
import sys
import traceback
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import icebench
from icebench.engine.spark_source import register
from icebench.engine.spark_source.options import read_options
from tests.services.rest_over_catalog import RestOverCatalog
from tests.services.scripted_http import Reply, ScriptedServer, Seen, scripted_server
from tests.spark.cluster_work import session_on

ROWS = pa.table({"id": range(10)})
SAID = "said.txt"
REFUSED = "which Spark shows"


def settings(folder: Path) -> dict[str, str]:
    return {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": folder.joinpath("events").as_uri(),
        "spark.local.dir": str(folder / "local"),
        "spark.task.maxFailures": "1",
    }


@contextmanager
def rest_server(folder: Path, secrets: Mapping[str, str]) -> Iterator[ScriptedServer]:
    """A server of one table, which lends secrets with it and repeats what it was sent where it refuses."""
    inner = icebench.load_catalog(f"sqlite:///{folder}/rest.db", warehouse=str(folder / "rest"))
    inner.create_table("db.t", ROWS.schema).append(ROWS)
    over = RestOverCatalog(inner._inner)

    def answer(request: Seen) -> Reply:
        if "missing" in request.path:
            message = " ".join(request.headers.values())
            return Reply(status=400, body={"error": {"message": message, "type": "Bad", "code": 400}})
        if request.path.endswith("/tokens"):
            return Reply(body={"access_token": secrets["exchanged"], "token_type": "bearer"})
        reply = over(request)
        assert isinstance(reply.body, dict)
        if "metadata" in reply.body:
            reply.body["config"] = {"s3.secret-access-key": secrets["vended"], "adls.sas-token.a": secrets["sas"]}
        return reply

    with scripted_server(answer) as server:
        yield server


class Work:
    """What is done with each way to name a catalog."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.said: list[str] = []
        self._number = 0

    def fails(self, action: Callable[[], object], message: str = "") -> None:
        with pytest.raises(Exception, match=message) as caught:
            action()
        self.said += traceback.format_exception(caught.value)

    def read(self, options: Mapping[str, str]) -> None:
        """Reads rows and changes, and fails to."""
        frame = self._read(options)
        self.said.append(repr(read_options({**options, "path": "db.t"})))
        self.said.append(frame._jdf.queryExecution().toString())
        assert frame.count() >= 10
        # An executor loads the table.
        assert len(self._read({**options, "changelog": "true"}).collect()) >= 10
        self.fails(lambda: self._read(options, "db.missing"))

    def write(self, options: Mapping[str, str]) -> None:
        """Writes, by SQL too, and streams; a write and a stream fail."""
        listed = ", ".join(f"`{name}` '{value}'" for name, value in {**options, "path": "db.t"}.items())
        self.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING icebench OPTIONS ({listed})")
        self._write(self.spark.sql("SELECT * FROM v LIMIT 1"), options, "overwrite")
        wrong = self.spark.createDataFrame([("a",)], "other string")
        self.fails(lambda: self._write(wrong, options, "append"))
        self._stream(options, fails=False)
        self._stream(options, fails=True)

    def refuses(self, options: Mapping[str, str]) -> None:
        """An option that Spark would show is an error at once."""
        self.fails(lambda: self._read(options), REFUSED)

    def refuses_all(self, options: Mapping[str, str]) -> None:
        """So it is of writes and streams."""
        self.refuses(options)
        self.fails(lambda: self._write(self.spark.range(1), options, "append"), REFUSED)
        stream = self.spark.readStream.format("icebench").options(**options)
        self.fails(lambda: stream.load("db.t"), REFUSED)

    def _read(self, options: Mapping[str, str], name: str = "db.t") -> DataFrame:
        return self.spark.read.format("icebench").options(**options).load(name)

    def _write(self, frame: DataFrame, options: Mapping[str, str], mode: str) -> None:
        frame.write.format("icebench").options(**options).mode(mode).save("db.t")

    def _stream(self, options: Mapping[str, str], *, fails: bool) -> None:
        self._number += 1
        given = {**options, "streaming-skip-overwrite-snapshots": str(not fails).lower()}
        frame = self.spark.readStream.format("icebench").options(**given).load("db.t")
        writer = frame.writeStream.format("icebench").options(**options)
        writer = writer.option("checkpointLocation", str(self.folder / f"checkpoint-{self._number}"))
        if fails:
            query = writer.start("db.t")
            self.fails(query.processAllAvailable, "streaming-skip-overwrite-snapshots")
            return
        # Its own appends would be new rows for it.
        query = writer.trigger(availableNow=True).start("db.t")
        query.awaitTermination()
        self.said.append(query._jsq.explainInternal(True))

    def pages(self) -> Iterator[str]:
        """All that the UI shows."""
        context = self.spark.sparkContext
        api = f"/api/v1/applications/{context.applicationId}"
        places = ["/SQL/", "/environment/", "/jobs/", "/stages/", "/storage/", "/executors/", "/StreamingQuery/"]
        places += [f"{api}/{name}" for name in ("environment", "jobs", "stages", "executors")]
        places += [f"{api}/sql?details=true&planDescription=true&length=1000"]
        executions = json.loads(self._page(places[-1]))
        assert len(executions) > 10
        places += [f"/SQL/execution/?id={each['id']}" for each in executions]
        yield from map(self._page, places)

    def _page(self, place: str) -> str:
        with urllib.request.urlopen(f"{self.spark.sparkContext.uiWebUrl}{place}") as answer:
            text: str = answer.read().decode()
            return text


def main(master: str, folder: Path) -> None:
    secrets: dict[str, Any] = json.load(sys.stdin)
    for name in ("events", "local"):
        (folder / name).mkdir(parents=True)
    spark = session_on(master, settings(folder), shuffle_partitions=1)
    register(spark)
    work = Work(spark, folder)
    database = secrets["database-address"]
    warehouse = {"warehouse": str(folder / "warehouse")}
    table = icebench.load_catalog("lake", warehouse=warehouse["warehouse"]).create_table("db.t", ROWS.schema)
    table.append(ROWS)
    table.append(spark.range(3))
    assert table.scan().to_spark(spark).count() == 13
    with rest_server(folder, secrets) as server:
        rest = {"catalog": server.address, "catalog.s3.secret-access-key": secrets["s3"]}
        rest |= {"catalog-secret.header.X-Api-Key": secrets["header"], "catalog-secret.s3.proxy-uri": secrets["proxy"]}
        own = {"catalog": "own", "catalog-name": "lake", "catalog-secret.uri": database, **warehouse}
        for options in ({"catalog": "lake", **warehouse}, {**rest, "credential": f"id:{secrets['credential']}"}):
            work.read(options)
        for options in (own, {**rest, "token": secrets["token"]}):
            work.read(options)
            work.write(options)
        shown = {"catalog": server.address}
        work.refuses_all({"catalog": database, **warehouse})
        for options in (
            {"catalog": "own", "catalog.uri": database},
            {**shown, "catalog.header.X-Api-Key": secrets["header"]},
            {**shown, "catalog.adls.account-key": secrets["account"]},
            {**shown, "catalog.s3.proxy-uri": secrets["proxy"]},
            {"catalog": f"{server.address}?token={secrets['token']}"},
        ):
            work.refuses(options)
        gone = {"catalog": "own", "catalog-secret.uri": secrets["gone-address"]}
        work.fails(lambda: work._read(gone))
    work.said += work.pages()
    (folder / SAID).write_text("\n".join(work.said))
    for number, file in enumerate(path for path in (folder / "local").rglob("*") if path.is_file()):
        (folder / f"local-{number}").write_bytes(file.read_bytes())
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
