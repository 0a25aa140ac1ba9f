"""What every task of ours does first in a Python worker of Spark."""

from __future__ import annotations

import gc
import sys
from pathlib import PurePath
from zipimport import zipimporter

import pyspark

_OTHERS = ("py4j-", "spark-core")
"""How the names of archives begin that Spark brings beside that of PySpark."""


def prepare_worker() -> None:
    """Spare the tasks that follow in this worker what PySpark 4.1 does for each of them; does nothing elsewhere.

    Before each task PySpark calls `importlib.invalidate_caches`, and Python before 3.13 then reads the directories
    of PySpark's archives and of Spark's core jar again, once for each package that was imported from there
    (SPARK-54744 ends it); after each task it looks for garbage among the objects of all modules: together a quarter
    of a second of processor time (docs/design/spark.md). So the archives, which nothing changes while an
    application runs, are taken out of what is read again, and the objects that are there now are no longer looked
    at. Archives of the user's stay.
    """
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is None or spec.name != "pyspark.daemon":
        return
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and _is_of_spark(finder.archive):
            del sys.path_importer_cache[path]
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()


def _is_of_spark(archive: str) -> bool:
    own = getattr(pyspark.__loader__, "archive", None)
    return archive == own or PurePath(archive).name.startswith(_OTHERS)
