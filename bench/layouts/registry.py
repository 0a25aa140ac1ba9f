"""The layouts that come with the project, by name: ``datasets/layouts.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache

from icebench.bench.definition import DEFINITIONS, Definition
from icebench.bench.errors import ConfigError
from icebench.bench.layouts.layout import Layout

FILE = DEFINITIONS / "layouts.toml"


@cache
def known_layouts() -> Mapping[str, Layout]:
    """The shipped layouts, in the file's order."""
    root = Definition(tomllib.loads(FILE.read_text(encoding="utf-8")))
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
