"""What is varied, and the layouts that it makes: table properties and keys of layouts, each with its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, dropwhile, product
from typing import Any

from icebench.bench.definition import Definition, one_of
from icebench.bench.errors import ConfigError
from icebench.bench.layouts.layout import FORMAT_VERSION, TARGET_SIZE, Layout
from icebench.bench.statistics.designs import DESIGNS, combinations_of

_VERSION = "format_version"
_ORDERS = ("sort", "zorder", "hilbert")
_EXCLUSIVE = (_ORDERS, ("files", TARGET_SIZE))
"""Axes of which a layout has one: a value that is not empty takes the place of what the layout has by the others."""
_KEYS = (*_ORDERS, "partition", "files", "file_index", "cluster_manifests")
_RESERVED = ("design", "layouts")
_COMMON = ("write", "parquet", "metadata")
"""First parts of properties' names that say little."""
_UNITS = (("GB", 30), ("MB", 20), ("KB", 10))

Value = object
"""As TOML has it."""


@dataclass(frozen=True, kw_only=True)
class Axes:
    """The table ``[axes]`` of a definition.

    Args:
        values: Axis -> text of a value -> the value; the first is the usual one.
        design: One of `DESIGNS`.
        layouts: Names of those that are varied; all where there are none.
    """

    values: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    design: str = DESIGNS[0]
    layouts: tuple[str, ...] = ()

    @classmethod
    def parse(cls, values: Definition) -> Axes:
        """The axes that a table of a definition says; none of an empty one.

        Raises:
            ConfigError: A key, type or value is wrong, the design does not fit the axes, or two axes contradict each
                other in one of its combinations.
        """
        design = values.text("design", DESIGNS[0], known=DESIGNS)
        layouts = tuple(str(name) for _, name in values.items("layouts", []))
        found: dict[str, dict[str, Value]] = {}
        for name in values.keys():  # noqa: SIM118 - a definition is no mapping
            if name in _RESERVED:
                continue
            if "." not in name:
                one_of(name, (*_KEYS, _VERSION), "axis (a table property has a dot in its name)", values.at(name))
            own = {_label_of(name, value): value for _, value in values.items(name)}
            if len(own) < 2:
                raise ConfigError("an axis needs two values or more, all different", path=values.at(name))
            found[name] = own
        made = cls(values=found, design=design, layouts=layouts)
        try:
            tried = made.combinations()
        except ValueError as error:
            raise ConfigError(str(error), path=values.at("design")) from error
        short = made._short()
        for combination, rivals in product(tried, _EXCLUSIVE):
            given = [name for name in rivals if name in found and found[name][combination[short[name]]]]
            if len(given) > 1:
                both = ", ".join(f"{short[name]}={combination[short[name]]}" for name in given)
                message = f"contradicts {given[0]} in a combination of this design: {both}"
                raise ConfigError(message, path=values.at(given[1]))
        return made

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """Short name of each axis -> texts of its values."""
        return {short: tuple(self.values[name]) for name, short in self._short().items()}

    def combinations(self) -> list[dict[str, str]]:
        """What is tried, by short names."""
        return combinations_of(self.levels, self.design) if self.values else []

    def varied(self, layout: Layout) -> list[Layout]:
        """The layout with each combination, the usual values first.

        Raises:
            ConfigError: A value is none for its axis.
        """
        if not self.values or (self.layouts and layout.name not in self.layouts):
            return [layout]
        full = {short: name for name, short in self._short().items()}
        found = []
        for combination in self.combinations():
            made = layout
            for short, text in combination.items():
                made = _changed(made, full[short], self.values[full[short]][text])
            found.append(replace(made, name=self.name_of(layout.name, combination)))
        return found

    def name_of(self, layout: str, combination: Mapping[str, str]) -> str:
        """What a layout with a combination is called, by its unusual values: ``sorted (compression-codec=snappy)``."""
        usual = {axis: texts[0] for axis, texts in self.levels.items()}
        changed = [f"{axis}={text}" for axis, text in combination.items() if text != usual[axis]]
        return f"{layout} ({', '.join(changed)})" if changed else layout

    def _short(self) -> dict[str, str]:
        """Axis -> its name without first parts that say little, or all of it where that makes two alike."""
        last = {name: ".".join(dropwhile(_COMMON.__contains__, name.split("."))) for name in self.values}
        return {name: short if list(last.values()).count(short) == 1 else name for name, short in last.items()}


def _label_of(axis: str, value: Value) -> str:
    """A value in names: a number of bytes in the largest unit that it is a multiple of."""
    if axis.endswith("-bytes") and isinstance(value, int) and value > 0:
        for unit, bits in _UNITS:
            if value % (1 << bits) == 0:
                return f"{value >> bits} {unit}"
    return text_of(value)


def text_of(value: Value) -> str:
    """A value as a property has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return "+".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def check_distinct(varied: Sequence[Layout]) -> None:
    """Reject layouts that are the same under two names, whose figures would look like an effect, or like none.

    Raises:
        ConfigError: The message has both names.
    """
    plain = [replace(layout, name="", description="") for layout in varied]
    for (one, first), (other, second) in combinations(zip(varied, plain, strict=True), 2):
        if first == second:
            raise ConfigError(f"{one.name!r} and {other.name!r} are the same layout", path="axes")


def _changed(layout: Layout, axis: str, value: Value) -> Layout:
    others = {name for rivals in _EXCLUSIVE if axis in rivals and value for name in rivals} - {axis}
    unset: dict[str, Any] = {name: None if name == "files" else () for name in others if name != TARGET_SIZE}
    properties = {name: own for name, own in layout.properties.items() if name not in others}
    if "." in axis or axis == _VERSION:
        name = FORMAT_VERSION if axis == _VERSION else axis
        return replace(layout, properties={**properties, name: text_of(value)}, **unset)
    # A layout of that key alone: so values are checked as those of any layout are.
    parsed = Layout.parse(Definition({"name": layout.name, axis: value}, f"axes ({layout.name})"))
    return replace(layout, properties=properties, **{**unset, axis: getattr(parsed, axis)})
