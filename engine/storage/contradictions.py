"""Handles files that contradict a table's metadata although their rows are certain: by a warning, or by an error."""

from __future__ import annotations

import warnings
from typing import Literal, TypeAlias

from icebench.engine.errors import Contradiction, ContradictionWarning, Invalid, refuse
from icebench.engine.storage.forwarding import ForwardingStore
from icebench.engine.storage.store import Store

Verify: TypeAlias = Literal["warn", "strict"]
"""What to do: warn, or raise CorruptTable."""


def warn(contradiction: Contradiction, suffix: str = "") -> None:
    """Warn of a contradiction."""
    text = f"{contradiction.location}: {contradiction.reason}; its rows are read, as the file itself is whole{suffix}"
    warnings.warn(ContradictionWarning(text), stacklevel=2)


class VerifyingStore(ForwardingStore):
    """One table's view of a store: warns once of each cause, or raises.

    Args:
        inner: The store.
        table: The table's name.
        verify: See `Verify`.

    Raises:
        Invalid: Another value of `verify`.
    """

    def __init__(self, inner: Store, table: str, verify: Verify = "warn") -> None:
        if verify not in ("warn", "strict"):
            raise Invalid(f"verify={verify!r} is neither 'warn' nor 'strict'")
        self._inner = inner
        self._table = table
        self._verify: Verify = verify
        self._reported: set[str] = set()

    def __reduce__(self) -> tuple[object, ...]:
        """Without what was reported: other processes warn by themselves."""
        return VerifyingStore, (self._inner, self._table, self._verify)

    @property
    def creates_atomically(self) -> bool:
        return self._inner.creates_atomically

    def report(self, contradiction: Contradiction) -> None:
        if self._verify == "strict":
            refuse(contradiction)
        if contradiction.cause not in self._reported:
            self._reported.add(contradiction.cause)
            suffix = f" (table {self._table}; further files with another {contradiction.cause} are not named)"
            warn(contradiction, suffix)

    def _at(self, location: str) -> tuple[Store, str]:
        return self._inner, location


class CollectingStore(ForwardingStore):
    """Collects contradictions, for another to report."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.found: list[Contradiction] = []

    @property
    def creates_atomically(self) -> bool:
        return self._inner.creates_atomically

    def report(self, contradiction: Contradiction) -> None:
        self.found.append(contradiction)

    def _at(self, location: str) -> tuple[Store, str]:
        return self._inner, location
