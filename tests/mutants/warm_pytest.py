"""Runs pytest in a fork of a process that has the libraries loaded, which takes most of the time of a narrow test.

A job of `tests.fault.fork_server`: ``{"root": ..., "arguments": [...], "environment": {...}, "output": ...}``. Of this
project the child loads everything anew, from the copy.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.tidy.source import REPOSITORY

_LIBRARIES = (
    "_hypothesis_pytestplugin", "click", "cramjam", "deflate", "fastavro", "hypothesis.strategies", "isal.igzip_lib",
    "jinja2", "numpy", "pyarrow.compute", "pyarrow.dataset", "pyarrow.fs", "pyarrow.orc", "pyarrow.parquet",
    "pyroaring", "pytest", "pytest_benchmark.plugin", "pytest_timeout", "rich.table", "scipy.stats",
    "sqlalchemy.dialects.sqlite", "sqlglot.parser", "urllib3", "xdist.plugin", "zstandard",
)  # fmt: skip
_PROJECT = ("bench", "engine", "tests")


def warm_up() -> None:
    for name in _LIBRARIES:
        import_module(name)


def run(job: dict[str, Any]) -> None:
    """Ends the process with pytest's exit code."""
    os.setsid()
    output = os.open(job["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(job["root"])
    os.environ.update(job["environment"])
    sys.dont_write_bytecode = True
    sys.path[:] = [job["root"], *(path for path in sys.path if Path(path or ".").absolute() != REPOSITORY)]
    for name in [name for name in sys.modules if name.partition(".")[0] in _PROJECT]:
        del sys.modules[name]
    pytest = import_module("pytest")
    code = pytest.main(["-W", "ignore::pytest.PytestAssertRewriteWarning", *job["arguments"]])
    sys.stdout.flush()
    os._exit(code)
