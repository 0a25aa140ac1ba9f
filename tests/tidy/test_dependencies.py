"""Each check on imports sees what it is there to see."""

import pytest

from tests.tidy.dependencies import cycles, declared, libraries, local_imports, locked, public_engine, rooms
from tests.tidy.rules import BENCH_ARROWS, ENGINE_LIBRARIES, ENGINE_ROWS
from tests.tidy.source import Module


def test_tables_name_the_same_rooms() -> None:
    names = [room for row in ENGINE_ROWS for room in row]
    assert len(names) == len(set(names))
    assert set(names) == set(ENGINE_LIBRARIES)
    assert {arrow for arrows in BENCH_ARROWS.values() for arrow in arrows} <= set(BENCH_ARROWS)


@pytest.mark.parametrize(
    ("path", "text", "is_fine"),
    [
        ("engine/plan/scan.py", "from icebench.engine.spec.types import Schema", True),
        ("engine/plan/scan.py", "from icebench.engine.plan.tasks import Task", True),
        ("engine/plan/scan.py", "from icebench.engine.deletes import positions", False),
        ("engine/plan/scan.py", "import icebench.engine.read.reader", False),
        ("engine/plan/scan.py", "from icebench.engine import table", False),
        ("engine/plan/scan.py", "from icebench.engine import load_table", False),
        ("engine/plan/scan.py", "from ..read import reader", False),
        ("engine/plan/scan.py", "from .. import errors", True),
        ("engine/plan/__init__.py", "from .scan import Scan", True),
        ("engine/plan/__init__.py", "from ..table import Table", False),
        ("engine/plan/scan.py", "def f():\n    from icebench.engine.table import Table", False),
        ("engine/plan/scan.py", "if TYPE_CHECKING:\n    from icebench.engine.table import Table", False),
        ("engine/spec/types.py", "import icebench.bench.errors", False),
        ("engine/table.py", "from icebench.engine.plan.scan import Scan", True),
        ("engine/table.py", "from icebench.engine.spark.native_scan import plan_to_dataframe", True),
        ("engine/table.py", "from icebench.engine.spark_source.reader import read", False),
        ("engine/operations/append.py", 'write = import_module("icebench.engine.spark.frame_writer").write', True),
        (
            "engine/operations/append.py",
            'write = import_module("icebench.engine.spark_source.batch_writer").write',
            False,
        ),
        (
            "engine/read/changelog.py",
            'def f():\n    return import_module("icebench.engine.spark.changelog_scan").f()',
            False,
        ),
        ("engine/plan/scan.py", 'reader = LazyModule("icebench.engine.read.reader")', False),
        ("engine/plan/scan.py", 'MODULES = {"reader": "icebench.engine.read.reader"}', False),
        ("engine/plan/scan.py", "from icebench import load_table", False),
        ("engine/plan/scan.py", '"""Read by icebench.engine.read.reader."""', True),
        ("bench/cli/main.py", "import icebench; icebench.load_table", True),
        ("engine/unheard_of/x.py", "", False),
        ("bench/gate/decisions/counter_verdict.py", "from icebench.bench.statistics.paired import interval", True),
        ("bench/report/page.py", "from icebench.bench.statistics.paired import interval", True),
        ("bench/statistics/paired.py", "from icebench.bench.gate.decisions.counter_verdict import Verdict", False),
        ("bench/workloads/x.py", "from icebench.bench.engines.engine import Engine", False),
        ("bench/cli/main.py", "from icebench.bench.layouts.layout import Layout", True),
        ("bench/cli/main.py", "import tests.tidy.source", False),
        ("bench/gate/decisions/counter_verdict.py", 'MODULE = "icebench.bench.report.page"', False),
        ("bench/gate/decisions/counter_verdict.py", 'TABLE = "bench.sales"', True),
        ("tests/unit/test_x.py", "from icebench.bench.cli.main import main; import icebench.engine.spec.types", True),
    ],
)
def test_rooms(path: str, text: str, is_fine: bool) -> None:
    assert bool(list(rooms([Module(path, text)]))) is not is_fine


@pytest.mark.parametrize(
    ("text", "is_fine"),
    [
        ("import icebench; icebench.load_table('x')", True),
        ("from icebench import load_table", True),
        ("from icebench.errors import Unsupported", True),
        ("from icebench.engine.errors import without_secrets", True),
        ("from icebench.engine.spark.session import session", True),
        ("import icebench.engine.spec.types", False),
        ("from icebench.engine import spec", False),
        ("from icebench.engine.spec.types import Schema", False),
        ("import icebench; icebench.engine.plan.scan.Scan()", False),
        ("from icebench.engine.errors import _hidden", False),
    ],
)
def test_public_engine(text: str, is_fine: bool) -> None:
    assert bool(list(public_engine([Module("bench/engines/own.py", text)]))) is not is_fine
    assert not list(public_engine([Module("tests/unit/test_x.py", text)]))


@pytest.mark.parametrize(
    ("path", "text", "is_fine"),
    [
        ("engine/spec/types.py", "import numpy", False),
        ("engine/spec/types.py", "import re, decimal", True),
        ("engine/spec/types.py", "import os", False),
        ("bench/gate/decisions/counter_verdict.py", "from time import perf_counter", False),
        ("bench/gate/decisions/counter_verdict.py", "import json", True),
        ("engine/plan/scan.py", "import pyarrow as pa", True),
        ("engine/plan/scan.py", "import pyarrow.dataset", False),
        ("engine/plan/scan.py", "from pyarrow import compute as pc", False),
        ("engine/plan/scan.py", "import pyarrow as pa\npa.compute.sum(x)", False),
        ("engine/columnar/filters.py", "import pyarrow.compute as pc", True),
        ("engine/storage/arrow.py", "from pyarrow import fs", True),
        ("engine/storage/local.py", "from pyarrow import fs", False),
        ("engine/read/reader.py", "def f():\n    from pyspark.sql import SparkSession", False),
        ("engine/spark/reader.py", "from pyspark.sql import SparkSession", True),
        ("bench/cli/main.py", "import polars", False),
    ],
)
def test_libraries(path: str, text: str, is_fine: bool) -> None:
    assert bool(list(libraries([Module(path, text)]))) is not is_fine


def test_declared() -> None:
    text = "import numpy.random, pyspark, os, icebench"
    assert not list(declared([Module("bench/x.py", text)]))
    # Installed, but only because another library needs it.
    assert list(declared([Module("bench/x.py", "from dateutil import parser")]))


def test_locked() -> None:
    pyproject = """
        [project]
        dependencies = ["some_thing[extra]>=1.0", "old>=3"]
        optional-dependencies = { dev = ["missing"] }
    """
    lock = "old==2.9 ; python_version > '3' \\\n    --hash=sha256:1\nsome-thing==1.2 \\\n    --hash=sha256:2\n"
    assert [finding.subject for finding in locked(pyproject, lock)] == ["old>=3", "missing"]


def test_cycles() -> None:
    chain = [
        Module("engine/a.py", "from icebench.engine import b"),
        Module("engine/b.py", "from icebench.engine.c import thing"),
    ]
    assert not list(cycles([*chain, Module("engine/c.py", "")]))
    for text in ("def f():\n    import icebench.engine.a", 'a = LazyModule("icebench.engine.a")'):
        assert len(list(cycles([*chain, Module("engine/c.py", text)]))) == 1


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("import os", 0),
        ("def f():\n    import os", 1),
        ("class A:\n    async def f(self):\n        import os\n        import re", 2),
        ("def f():\n    import os  # local import: the module is slow", 0),
        ("def f():\n    # local import: both are slow\n    import os\n    import re", 0),
        ("def f():\n    # local import: this is slow\n    import os\n    x = 1\n    import re", 1),
    ],
)
def test_local_imports(text: str, count: int) -> None:
    assert len(list(local_imports([Module("engine/x.py", text)]))) == count
