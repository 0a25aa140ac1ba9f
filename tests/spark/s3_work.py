"""Reads and changes tables on S3 in a session of our own: `python -m tests.spark.s3_work MASTER FOLDER BUCKET`, with
the catalog's properties as JSON on standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa

import icebench
from icebench.bench.engines.access import Access
from icebench.bench.engines.spark_storage import give_access
from icebench.bench.spark_session import SparkSettings, spark_session
from tests.services.quick_spark import HEAP_OPTIONS, quick_spark

ROWS = pa.table({"id": range(1_000), "p": ["a", "b"] * 500, "x": [n / 4 for n in range(1_000)]})


def main(master: str, folder: Path, bucket: str, properties: dict[str, str]) -> None:
    events = folder / "events"
    events.mkdir()
    extra = (*quick_spark(*HEAP_OPTIONS), ("spark.eventLog.enabled", "true"), ("spark.eventLog.dir", events.as_uri()))
    extra += (("spark.eventLog.compress", "false"),)
    conf = {"spark.executor.memory": "512m", "spark.cores.max": "2", "spark.driver.host": "127.0.0.1"}
    extra += () if master.startswith("local") else tuple(conf.items())
    spark = spark_session(SparkSettings(master=master, driver_memory="1g", shuffle_partitions=2, s3=True, extra=extra))
    found: dict[str, object] = {}
    for scheme, version in (("s3", "2"), ("s3a", "3")):
        name = f"db.{scheme}{version}"
        warehouse = f"{scheme}://{bucket}/wh"
        catalog = icebench.load_catalog(f"sqlite:///{folder}/{scheme}.db", warehouse=warehouse, properties=properties)
        table = catalog.create_table(
            name, ROWS.schema, partition_spec=[("p", "identity")], properties={"format-version": version}
        )
        table.append(ROWS)
        table.delete("id < 100", "merge-on-read")
        give_access(spark, Access(scheme, catalog.storage_options(name)))
        read = table.scan("x >= 50").to_spark(spark)
        counted = [read.count(), read.agg({"id": "sum"}).collect()[0][0]]
        source = spark.createDataFrame(pa.table({"id": [150, 5_000], "p": ["a", "b"], "x": [-1.0, -2.0]}))
        for mode in ("merge-on-read", "copy-on-write"):
            table.upsert(source, ["id"], mode)
        after = table.scan().to_spark(spark)
        assert sorted(map(tuple, after.collect())) == sorted(
            map(tuple, zip(*table.scan().to_arrow().to_pydict().values(), strict=True))
        )
        found[f"{scheme} {version}"] = [*counted, after.count(), after.where("x < 0").count()]
    (folder / "found").write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], json.load(sys.stdin))
