"""Typed getters over a parsed TOML table, whose errors start with the path of what is wrong.

A definition is parsed, not validated: a getter looks up a key, returns a typed value, and remembers that the key is
known; `done` then rejects unknown keys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from icebench.bench.errors import ConfigError

T = TypeVar("T")

_MISSING: Any = object()
_SHOWN = 40
"""Names that an error lists."""

DEFINITIONS = Path(__file__).resolve().parents[1] / "datasets"
"""Where the definitions that come with the project are, in the repository and in a wheel."""


class Definition:
    """One table of a definition; `path` is its place, empty for the root."""

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self._values = values
        self._known: set[str] = set()
        self.path = path

    def at(self, key: str) -> str:
        """The path of a key of this table."""
        return f"{self.path}.{key}" if self.path else key

    def text(self, key: str, default: str = _MISSING, *, known: Collection[str] | None = None) -> str:
        """A string; one of `known` when given."""
        value = self._get(key, str, "a string", default)
        if known is not None:
            one_of(value, known, key.rstrip("s"), self.at(key))
        elif not value.strip():
            raise ConfigError("must not be empty", path=self.at(key))
        return value

    def whole(self, key: str, default: int = _MISSING, *, least: int) -> int:
        """An integer of at least `least`."""
        value = self._get(key, int, "a whole number", default)
        if value < least:
            raise ConfigError(f"{value} is below {least}", path=self.at(key))
        return value

    def number(
        self, key: str, default: float = _MISSING, *, least: float, above: bool = False, infinite: bool = False
    ) -> float:
        """A number of at least `least`, or above it; finite unless it may be infinite."""
        value = float(self._get(key, (int, float), "a number", default))
        if not (value > least if above else value >= least) or (value == float("inf") and not infinite):
            raise ConfigError(f"{value:g} is not {'above' if above else 'at least'} {least:g}", path=self.at(key))
        return value

    def flag(self, key: str, *, default: bool = _MISSING) -> bool:
        """A boolean."""
        return self._get(key, bool, "true or false", default)

    def items(self, key: str, default: list[Any] = _MISSING) -> Iterator[tuple[str, Any]]:
        """The entries of a list with the path of each."""
        for index, value in enumerate(self._get(key, list, "a list", default)):
            yield f"{self.at(key)}[{index}]", value

    def names(
        self, key: str, default: list[str] | None = None, *, known: Collection[str], what: str, empty: bool = False
    ) -> tuple[str, ...]:
        """A list of distinct names from `known`; `what` says what each one is. Without a default it must be there, and
        have at least one name unless it may be empty."""
        seen: list[str] = []
        for path, value in self.items(key, _MISSING if default is None else default):
            name = typed(value, str, "a string", path)
            one_of(name, known, what, path)
            if name in seen:
                raise ConfigError(f"{what} {name!r} is listed twice", path=path)
            seen.append(name)
        if not seen and not empty:
            raise ConfigError(f"must name at least one {what}", path=self.at(key))
        return tuple(seen)

    def wholes(self, key: str) -> tuple[int, ...]:
        """A list of integers; empty when absent."""
        return tuple(typed(value, int, "a whole number", path) for path, value in self.items(key, []))

    def columns(self, key: str = "columns") -> tuple[str, ...]:
        """A list of names of columns, of whatever table; empty when absent."""
        return tuple(typed(value, str, "a column's name", path) for path, value in self.items(key, []))

    def part(self, key: str, default: float) -> float:
        """A fraction of at least 0 and at most 1."""
        value = self.number(key, default, least=0)
        if value > 1:
            raise ConfigError(f"{value:g} is above 1", path=self.at(key))
        return value

    def shares(self, key: str, default: list[float], *, above: bool = False) -> tuple[float, ...]:
        """A list of fractions less than 1, and at least 0 or above it."""
        found = []
        for path, value in self.items(key, list(default)):
            share = float(typed(value, (int, float), "a number", path))
            if not (0 < share < 1 if above else 0 <= share < 1):
                raise ConfigError(f"{share:g} is not a fraction {'between 0 and 1' if above else 'below 1'}", path=path)
            found.append(share)
        return tuple(found)

    def tables(self, key: str) -> Iterator[Definition]:
        """A table, or a list of tables; none when absent."""
        self._known.add(key)
        found = self._values.get(key, [])
        if isinstance(found, list):
            for index, value in enumerate(found):
                path = f"{self.at(key)}[{index}]"
                yield Definition(typed(value, dict, "a table", path), path)
        else:
            yield Definition(typed(found, dict, "a table", self.at(key)), self.at(key))

    def table(self, key: str) -> Definition:
        """A table in this one; empty when absent."""
        return Definition(self._get(key, dict, "a table", {}), self.at(key))

    def texts(self, key: str) -> dict[str, str]:
        """A table of strings; empty when absent."""
        values = self._get(key, dict, "a table", {})
        return {k: typed(v, str, "a string", f"{self.at(key)}.{k}") for k, v in values.items()}

    def properties(self, key: str) -> dict[str, str]:
        """A table of strings, numbers and booleans as text, by full name: TOML reads ``a.b = 1`` as a table in a table.
        Empty when absent."""
        found: dict[str, str] = {}
        waiting = [("", self._get(key, dict, "a table", {}))]
        while waiting:
            prefix, table = waiting.pop()
            for name, value in table.items():
                full = prefix + name
                if isinstance(value, dict):
                    waiting.append((f"{full}.", value))
                    continue
                path = f"{self.at(key)}.{full}"
                if not isinstance(value, bool):
                    typed(value, (str, int, float), "text, a number, true or false", path)
                found[full] = str(value).lower() if isinstance(value, bool) else str(value)
        return found

    def numbers(self, key: str) -> dict[str, float]:
        """A table of numbers of at least 0; empty when absent."""
        values = Definition(self._get(key, dict, "a table", {}), self.at(key))
        return {name: values.number(name, least=0) for name in values.keys()}  # noqa: SIM118 - it is no mapping

    def keys(self) -> tuple[str, ...]:
        """The names of what is there."""
        return tuple(self._values)

    def done(self) -> None:
        """Reject keys that no getter has looked up."""
        for key in self._values:
            one_of(key, self._known, "key", self.path or "definition")

    def _get(self, key: str, kinds: type[T] | tuple[type[T], ...], wanted: str, default: T) -> T:
        self._known.add(key)
        value = self._values.get(key, default)
        if value is _MISSING:
            raise ConfigError(f"missing key {key!r}", path=self.path or "definition")
        return typed(value, kinds, wanted, self.at(key))


def typed(value: object, kinds: type[T] | tuple[type[T], ...], wanted: str, path: str) -> T:
    """The value when it has the type; a boolean is no number.

    Raises:
        ConfigError: It has another type.
    """
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
        raise ConfigError(f"must be {wanted}, not {value!r}", path=path)
    return value


def one_of(name: str, known: Collection[str], what: str, path: str) -> None:
    """Reject an unknown name.

    Raises:
        ConfigError: The message lists the known names, and the nearest.
    """
    if name in known:
        return
    near = get_close_matches(name, known, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    shown = [*sorted(known)[:_SHOWN], *(["..."] if len(known) > _SHOWN else [])]
    raise ConfigError(f"unknown {what} {name!r}{hint}; known: {', '.join(shown)}", path=path)


def copied(values: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy of parsed TOML, to be changed."""
    return deepcopy(dict(values))
