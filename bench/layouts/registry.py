"""The layouts that definitions may name: those of ``datasets/layouts.toml``, and those of installed packages."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Mapping
from functools import cache

from icebench.bench.definition import DEFINITIONS, Definition
from icebench.bench.errors import ConfigError
from icebench.bench.layouts.layout import Layout
from icebench.bench.plugins import Registry

FILE = DEFINITIONS / "layouts.toml"
ADDED: Registry[str] = Registry("icebench.layouts", "layouts", {}, str)
"""``[[layout]]`` tables of packages, as TOML."""


@cache
def known_layouts() -> Mapping[str, Layout]:
    """Those of the project in the file's order, then those of packages. Of a package whose layouts are not TOML, wrong,
    or have the name of others, there is a warning instead of its layouts."""
    layouts = _parsed(FILE.read_text(encoding="utf-8"), "")
    for name in ADDED:
        where = f"layouts of {ADDED.package_of(name)}"
        try:
            more = _parsed(ADDED[name], where)
            if taken := next((layout for layout in more if layout in layouts), None):
                raise ConfigError(f"two layouts are named {taken!r}", path=where)
        except ConfigError as error:
            warnings.warn(f"{error}; they are left out", RuntimeWarning, stacklevel=2)
        else:
            layouts |= more
    return layouts


def _parsed(text: str, where: str) -> dict[str, Layout]:
    try:
        root = Definition(tomllib.loads(text), where)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML: {error}", path=where) from error
    layouts = parse_layouts(root)
    root.done()
    return layouts


def parse_layouts(root: Definition) -> dict[str, Layout]:
    """The layouts of the ``[[layout]]`` tables of a definition, by name.

    Raises:
        ConfigError: A key, type or value is wrong, or two have one name.
    """
    found: dict[str, Layout] = {}
    for table in root.tables("layout"):
        layout = Layout.parse(table)
        if layout.name in found:
            raise ConfigError(f"two layouts are named {layout.name!r}", path=table.at("name"))
        found[layout.name] = layout
    return found
