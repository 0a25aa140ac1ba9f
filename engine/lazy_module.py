"""Modules that are loaded when they are first used, so that planning a scan does not wait for what writes tables."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LateModule:
    """Stands for a module until one of its names is asked for; safe among threads, as imports are.

    For type checkers the module is imported beside it, under ``if TYPE_CHECKING``.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"LateModule({self._name!r})"

    def __getattr__(self, attribute: str) -> Any:  # noqa: ANN401 - whatever the module has
        return getattr(import_module(self._name), attribute)
