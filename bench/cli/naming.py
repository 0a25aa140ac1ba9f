"""How commands name a table: by its place, or by its name in a catalog."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

import icebench
from icebench.bench.errors import ConfigError
from icebench.bench.report.profile import Place
from icebench.engine.errors import without_secrets

_CATALOG = "The catalog that names it: an address, or a name of .pyiceberg.yaml or PYICEBERG_CATALOG__NAME__URI."


def catalog_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options --catalog and --warehouse of a command."""
    command = click.option("--warehouse", metavar="PLACE", help="The warehouse of an SQL catalog.")(command)
    return click.option("--catalog", metavar="CATALOG", help=_CATALOG)(command)


def named_table(catalog: str, name: str, warehouse: str | None) -> icebench.Table:
    """The table of that name in a catalog; raises EngineError."""
    return icebench.load_catalog(catalog, warehouse=warehouse).load_table(name)


def open_table(words: tuple[str, ...], catalog: str | None, warehouse: str | None) -> tuple[icebench.Table, Place]:
    """The table that a command's words name, and how to name it in other commands.

    Args:
        words: A catalog and a name in it; or one word: a name if `catalog` is given, else the place of a table.
        catalog: The option --catalog.
        warehouse: The option --warehouse.

    Raises:
        ConfigError: --warehouse without a catalog, or a catalog in two ways.
        EngineError: The table cannot be opened.
    """
    *before, name = words
    if catalog is not None and before:
        raise ConfigError(f"the catalog is {before[0]} already", path="--catalog")
    found = before[0] if before else catalog
    if found is None:
        if warehouse is not None:
            raise ConfigError("names the warehouse of a catalog, so give the TABLE, too", path="--warehouse")
        return icebench.load_table(name), Place(opened=(name,))
    shown = without_secrets(found)
    opened = (shown, name) if warehouse is None else (shown, name, "--warehouse", warehouse)
    return named_table(found, name, warehouse), Place(table=name, catalog=shown, warehouse=warehouse, opened=opened)
