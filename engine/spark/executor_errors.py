"""Errors of executors, which Spark reports as text, raised in this process as what they were."""

from __future__ import annotations

from pyspark.errors import PythonException

from engine.errors import EngineError


def raise_own(error: PythonException, *kinds: type[EngineError]) -> None:
    """Raise an executor's error of one of these kinds as the one that it was, with its own line; do nothing for others.

    Args:
        error: As Spark reports it.
        kinds: Those that the caller is promised by type, all made of one text.
    """
    text = str(error)
    for kind in kinds:
        marker = f"{kind.__module__}.{kind.__qualname__}: "
        if marker in text:
            raise kind(text.rsplit(marker, maxsplit=1)[-1].splitlines()[0]) from error
