"""Maintenance in a process of its own.

Run as ``python -m icebench.bench.processes.fresh_maintenance ENGINE WAREHOUSE ACTION TARGET_BYTES SPARK``.

Prints one line of JSON: seconds by the clock, processor time, and how far resident memory rose above what it was when
the engine was ready (Linux only; null elsewhere). Where an engine works in a Java virtual machine, the machine and
Spark's workers count with it; the machine has done nothing before but start the session. `SPARK` is the session's
settings as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from icebench.bench.engines.engine import Maintaining
from icebench.bench.engines.registry import ENGINES, EngineContext, make_engine
from icebench.bench.layouts.actions import Action
from icebench.bench.processes.process_tree import ProcessTree
from icebench.bench.workloads.maintenance_tables import NAME


def main(arguments: list[str], clock: Callable[[], float] = time.perf_counter) -> None:
    """Do it and print; `clock` gives monotonic seconds."""
    name, warehouse, action, target_bytes, settings = arguments

    def session() -> object:
        from icebench.bench.spark_session import SparkSettings, spark_session  # local import: it imports PySpark

        values = json.loads(settings)
        return spark_session(SparkSettings(**{**values, "extra": tuple(map(tuple, values["extra"]))}))

    own = cast("Maintaining", make_engine(name, EngineContext(session)))  # type: ignore[arg-type]
    tree = ProcessTree()
    tree.start(in_children=ENGINES[name].needs_spark)
    start = clock()
    own.maintain(Path(warehouse), NAME, cast("Action", action), int(target_bytes))
    seconds = clock() - start
    cpu_seconds, peak_bytes = tree.stop()
    answer = {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_bytes": peak_bytes}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
