"""Modules that are imported at their first use, so that planning a scan does not load what writes tables."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from icebench.engine.errors import NotInstalled

EXTRAS = {
    "botocore": "aws",
    "duckdb": "peers",
    "opentelemetry": "metrics",
    "pandas": "peers",
    "polars": "peers",
    "prometheus_client": "metrics",
    "pyspark": "spark",
    "thriftpy2": "hive",
    "xxhash": "spark",
}
"""The extra of this distribution that brings a package."""


class LazyModule:
    """A module that is imported when one of its names is used. Thread-safe, as imports are.

    Import the module itself under ``if TYPE_CHECKING``, for type checkers. Raises NotInstalled, when it is used, if it
    needs a package of `EXTRAS` that is not there.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"LazyModule({self._name!r})"

    def __getattr__(self, attribute: str) -> Any:  # noqa: ANN401 - whatever the module has
        try:
            module = import_module(self._name)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in EXTRAS:
                raise
            raise NotInstalled(package, EXTRAS[package]) from error
        return getattr(module, attribute)
