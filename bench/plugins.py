"""Registries of what a definition names: what comes with the project, and what installed packages add.

A package adds a thing by an entry point of the registry's group, whose value is ``module:attribute``. Names are known
without importing anything; a thing is imported when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name
from typing import Generic, TypeVar, cast

from icebench.bench.errors import ConfigError

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Things by name: the project's in their order, then those of packages, sorted.

    Args:
        group: The group of entry points, such as ``icebench.engines``.
        what: One of the things, in messages.
        own: Those of the project: name -> thing, or ``module:attribute``.
        kind: What a thing must be an instance of.
    """

    def __init__(self, group: str, what: str, own: Mapping[str, T | str], kind: type = object) -> None:
        self.group = group
        self._what = what
        self._kind = kind
        self._own = dict(own)
        self._given: dict[str, T] = {}
        self._loaded: dict[str, T] = {}

    @property
    def own(self) -> tuple[str, ...]:
        """The names of what comes with the project."""
        return tuple(self._own)

    @cached_property
    def _added(self) -> Mapping[str, Sequence[EntryPoint]]:
        found: dict[str, list[EntryPoint]] = {}
        for point in sorted(entry_points(group=self.group), key=lambda each: each.name):
            found.setdefault(point.name, []).append(point)
        return found

    def package_of(self, name: str) -> str | None:
        """The package that adds the thing of that name, with its version; None for one of the project's."""
        points = self._added.get(name, ())
        return ", ".join(map(_package, points)) or None

    def add(self, name: str, thing: T) -> None:
        """Add a thing for the life of the process.

        Raises:
            ConfigError: There is one of that name.
        """
        if name in self:
            raise ConfigError(f"there is a {self._what} {name!r} already")
        self._given[name] = thing

    def __getitem__(self, name: str) -> T:
        """The thing of that name.

        Raises:
            KeyError: There is none.
            ConfigError: The package that adds it cannot be imported, adds something else, or is one of two.
        """
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._own, *self._given, *self._added)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._given or name in self._added

    def _load(self, name: str) -> T:
        packages = [_package(point) for point in self._added.get(name, ())]
        packages += ["icebench"] if name in self._own and packages else []
        if len(packages) > 1:
            raise ConfigError(f"two packages have a {self._what} {name!r}: {' and '.join(sorted(packages))}")
        if name in self._given:
            return self._given[name]
        return self._load_own(name) if name in self._own else self._load_added(*self._added[name])

    def _load_own(self, name: str) -> T:
        thing = self._own[name]
        return cast("T", resolve_name(thing) if isinstance(thing, str) and self._kind is not str else thing)

    def _load_added(self, point: EntryPoint) -> T:
        where = f"{self._what} {point.name!r} of package {_package(point)}"
        try:
            thing = point.load()
        except Exception as error:  # a package of somebody else's may raise anything
            raise ConfigError(f"{where} cannot be imported: {error}") from error
        if not isinstance(thing, self._kind):
            raise ConfigError(f"{where} is a {type(thing).__name__}, not a {self._kind.__name__}")
        if (name := getattr(thing, "name", point.name)) != point.name:
            raise ConfigError(f"{where} calls itself {name!r}")
        return cast("T", thing)


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value
