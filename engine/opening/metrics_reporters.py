"""The property ``metrics-reporter-impl``: which reporter the tables of a catalog report their scans and commits to."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING

from icebench.engine.catalog.properties import METRICS_REPORTER
from icebench.engine.errors import IgnoredPropertyWarning, Invalid
from icebench.engine.lazy_module import LazyModule
from icebench.engine.runtime.metrics_reports import MetricsReporter, Reporting

if TYPE_CHECKING:
    from icebench.engine.runtime import opentelemetry_reporter, prometheus_reporter
else:  # each needs an optional package
    opentelemetry_reporter = LazyModule("icebench.engine.runtime.opentelemetry_reporter")
    prometheus_reporter = LazyModule("icebench.engine.runtime.prometheus_reporter")

_MAKING = Lock()
"""Held while a reporter of the process is made: `cache` alone lets threads that come at once make one each."""
_OF_JAVA = "org.apache.iceberg."


@cache
def prometheus() -> MetricsReporter:
    """The reporter to the registry of the process, which has one of them."""
    return prometheus_reporter.PrometheusReporter()


@cache
def opentelemetry() -> MetricsReporter:
    """The reporter to the meter provider of the process."""
    return opentelemetry_reporter.OpenTelemetryReporter()


_OWN: Mapping[str, Callable[[], MetricsReporter]] = {"prometheus": prometheus, "opentelemetry": opentelemetry}


def reporting_of(properties: Mapping[str, str], catalog_name: str | None = None) -> Reporting | None:
    """Where a catalog whose properties name a reporter reports to; None for nowhere.

    Args:
        properties: Their ``metrics-reporter-impl`` may be ``prometheus``, ``opentelemetry``, or the full name of a
            reporter, of its class or of a function that creates one: ``package.module.Reporter``. A reporter of Iceberg
            Java is ignored, with an IgnoredPropertyWarning.
        catalog_name: For reports.

    Raises:
        Invalid: There is nothing of that name, or it is not a reporter.
        NotInstalled: It needs a package that is not installed.
    """
    name = properties[METRICS_REPORTER]
    if name.startswith(_OF_JAVA):
        warnings.warn(
            f"property {METRICS_REPORTER} is ignored: {name} is of Iceberg Java", IgnoredPropertyWarning, stacklevel=3
        )
        return None
    own = _OWN.get(name)
    if own is None:
        return Reporting(reporter=_named(name), catalog_name=catalog_name)
    with _MAKING:
        return Reporting(reporter=own(), catalog_name=catalog_name)


def _named(name: str) -> MetricsReporter:
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, ValueError, AttributeError) as error:
        known = ", ".join(_OWN)
        raise Invalid(f"property {METRICS_REPORTER}: no {name}; it is {known}, or package.module.Reporter") from error
    reporter = found() if isinstance(found, type) or not hasattr(found, "report") else found
    if not callable(getattr(reporter, "report", None)):
        raise Invalid(f"property {METRICS_REPORTER}: {name} has no method report")
    checked: MetricsReporter = reporter
    return checked
